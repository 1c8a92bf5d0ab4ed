"""Products with scales in tensor memory from text to numbers: lowered, emulated, proved, read back; others are refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.instr.reads_back import reads_back
from tests.instr.tensor_memory.scaled import CASES, compiled
from tests.lowering.emulated import require_right
from tests.proofs import undecided

from texpr.driver import lower
from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError


def emulated(name: str, sizes: tuple[int, int, int], seed: int | None) -> None:
    made, (arguments, wanted) = compiled(name), CASES[name].arguments(sizes)
    require_right(made, arguments, wanted, seed=seed)


@pytest.mark.parametrize("name", [pytest.param("wide", marks=pytest.mark.long), *(n for n in CASES if n != "wide")])
def test_emulated(name: str) -> None:
    for seed in (None,) if name == "automatic" else (None, LOCKSTEP, 1):
        emulated(name, (128, CASES[name].columns or 256, 160), seed)


@pytest.mark.parametrize("name", ["ring", "late"])
@pytest.mark.parametrize("sizes", [(136, 72, 288), (1, 8, 32), (130, 128, 0), (0, 8, 32), (8, 0, 32)])
def test_ragged_sizes_and_none(name: str, sizes: tuple[int, int, int]) -> None:
    emulated(name, sizes, 3)


@pytest.mark.parametrize("seed", range(4, 8))
def test_orders(seed: int) -> None:
    emulated("ring", (128, 128, 544), seed)
    emulated("late", (128, 64, 800), seed)


def test_the_interpreter_says_the_same() -> None:
    arguments, wanted = CASES["automatic"].arguments((5, 8, 96))
    np.testing.assert_array_equal(run(parse(CASES["automatic"].text, "case.te")["product"], arguments)["C"], wanted)


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("name", CASES)
def test_texts_read_back(name: str) -> None:
    assert reads_back(CASES[name].text, compiled(name))


@pytest.mark.parametrize("name", ["in turn", "ring", "late"])
def test_one_commit_a_turn_of_copies_and_products(name: str) -> None:
    (kernel,) = k.kernels(compiled(name).plan.steps)
    kinds = [type(stmt) for stmt in k.walk(kernel.body)]
    launched = [stmt.name for stmt in k.walk(kernel.body) if isinstance(stmt, k.CollectiveAlone)]
    assert kinds.count(k.CommitColumns) == 1 and len(launched) == 3
    assert launched[:2] == ["tcgen05_cp_f8e8m0_x128"] * 2


def test_the_planner_finds_it() -> None:
    (kernel,) = k.kernels(compiled("automatic").plan.steps)
    launched = {stmt.name for stmt in k.walk(kernel.body) if isinstance(stmt, k.CollectiveAlone)}
    assert "tcgen05_m128n256k32_f32_mx_f8e4m3" in launched
    assert [stmt.count for stmt in k.walk(kernel.body) if isinstance(stmt, k.TakeColumns)] == [512]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a: f8e8m0[M, K / 32]", "a: f32[M, K / 32]"),
        ("a[i, k / 32]", "a[i, k / 16]"),
        ("f32(A[i, k]) * f32(a[i, k / 32]) * f32(B[j, k])", "f32(A[i, k]) * f32(B[j, k])"),
    ],
)  # fmt: skip
def test_others_stay_as_they_are(old: str, new: str) -> None:
    """Scales of another type, of smaller blocks, or of one operand alone: a right program, and no such instruction."""
    text = CASES["automatic"].text.replace(old, new)
    text = text.replace("a: f8e8m0[M, K / 32]", "a: f8e8m0[M, K / 16]") if "16" in new else text
    made = lower(parse(text, "case.te")["product"], "sm_100a", schedule="auto")
    launched = [
        stmt for kernel in k.kernels(made.plan.steps) for stmt in k.walk(kernel.body) if isinstance(stmt, k.CollectiveAlone)
    ]
    assert not launched


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    stage(a, at=k_o, in=shared) -> a_s\n", "", "a hole may lie outside of `a`"),
        ("split(k, 128)", "split(k, 256)", "is scales of four blocks of 32, and `a_s` is of another shape"),
        ("stage(a, at=k_o, in=shared)", "stage(a, at=k_o, in=shared, fill=0)", "0 is no power of two"),
        ("stage(a, at=k_o, in=shared)", "stage(a, at=k_o, in=shared, fill=2)", None),
    ],
)
def test_what_is_not_staged_so_is_refused(old: str, new: str, said: str | None) -> None:
    text = CASES["in turn"].text.replace(old, new)
    text = text.replace("via=tma, swizzle=128B)", "via=tma, swizzle=128B, box=(128, 128))") if "256" in new else text
    function = parse(text, "case.te")["product"]
    with pytest.raises(TexprError, match=said):
        lower(function, "sm_100a", schedule=function.schedules[0])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("seq n |i| { y[0] += f8e8m0(x[i]) }", "the target is of scales"),
        ("par n |i| { y[i] = y[i] * y[i] }", "`mul` is not for scales"),
        ("par n |i| { y[i] = 0.0 }", "0.0 is no power of two"),
        ("par n |i| { y[i] = 3.0 }", "3.0 is no power of two"),
    ],
)
def test_scales_are_stored_and_converted_alone(body: str, said: str) -> None:
    with pytest.raises(TexprError, match=said):
        parse(f"fn f(x: f32[n], inout y: f8e8m0[n])\n    where n >= 1\n{{\n    {body}\n}}\n", "case.te")
