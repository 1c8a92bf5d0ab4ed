"""`mma` on a CPU: instructions of a core on rows of memory, from a schedule, or the planner, to numbers; and planted bugs."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import CDLL
from itertools import chain

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.native import call
from tests.planted import plain
from tests.proofs import undecided
from tests.trapping import TRAPPING

from texpr.backends.cpu import headers
from texpr.backends.cpu.printer import print_cpu
from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import AUTO
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

TARGET = "cpu_avx512_bf16"
NUMPY: Mapping[str, type] = {"bf16": ml_dtypes.bfloat16, "u8": np.uint8, "i8": np.int8, "i16": np.int16}
SIZES = ((13, 70, 33), (1, 1, 1), (0, 3, 2), (4, 0, 2), (7, 5, 0), (16, 128, 66))

PRODUCT = """\
fn f(A: LEFT[M, K], B: RIGHT[K, N]): INTO[M, N] {
    new C: INTO[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0
        seq K |k| reduce(C) { C[i, j] += CAST(A[i, k]) * CAST(B[k, j]) }
    } }
    return C
}
"""
TILED = """\
schedule f for cpu {
    split(j, 64) -> (jb, jv)  split(i, 12) -> (ib, ie)  split(ie, 6) -> (io, iv)  split(k, 32) -> (ko, ki)
    reorder(jb, ib, ko, io, ki, iv, jv)
    stage(B, at=ko, in=registers, fill=zero) -> Bp
    stage(A, at=io, in=registers, fill=zero) -> Ap
    stage(C, at=io, in=registers, start=neutral) -> acc
    split(Bp.d0, 2) -> (q, p)  reorder(Bp.q, Bp.d1, Bp.p)
    mma(iv, jv, ki, vdpbf16ps) -> (im, jm, km)
}
"""


def product(left: str = "bf16", right: str = "bf16", into: str = "f32") -> str:
    text = PRODUCT.replace("LEFT", left).replace("RIGHT", right).replace("INTO", into).replace("CAST", into)
    return text.replace("= 0\n", "= 0.0\n") if into == "f32" else text


def turned(text: str, *, left: bool = False, right: bool = False) -> str:
    """The same product of transposed operands."""
    if left:
        text = text.replace("[M, K]", "[K, M]").replace("A[i, k]", "A[k, i]")
    return text.replace("[K, N]", "[N, K]").replace("B[k, j]", "B[j, k]") if right else text


CASES = {
    "scheduled": (product() + TILED, "vdpbf16ps"),
    "found": (product(), "vdpbf16ps"),
    "columns of A": (turned(product(), left=True), "vdpbf16ps"),
    "rows of B": (turned(product(), right=True), "vdpbf16ps"),
    "both": (turned(product(), left=True, right=True), "vdpbf16ps"),
    "bytes": (product("u8", "i8", "i32"), "vpdpbusd"),
    "words": (product("i16", "i16", "i32"), "vpdpwssd"),
}


SHORT = ("scheduled", "bytes")
EACH = [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in CASES]


def compiled(text: str) -> Compiled:
    function = parse(text)["f"]
    return lower(function, TARGET, schedule=function.schedules[0] if function.schedules else AUTO)


def used(plan: k.Plan) -> list[str]:
    return [s.name for kernel in k.kernels(plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.Alone)]


def library(made: Compiled, *flags: str) -> CDLL:
    path = Toolchain(this_machine()).loadable(
        "rows", {"rows.cpp": made.source}, headers(), flags=("-O1", *TRAPPING, *flags), openmp=True
    )
    return CDLL(str(path))


def arguments(made: Compiled, sizes: Mapping[str, int]) -> dict[str, NDArray[np.generic]]:
    """Small integers; of bytes without a sign large ones, too."""
    rng, found = np.random.default_rng(3), dict[str, NDArray[np.generic]]()
    for buffer in made.function.params:
        shape = [e.evaluate({sym: sizes[sym.name] for sym in e.syms()}) for e in buffer.shape]
        low, high = {"u8": (0, 256), "i8": (-128, 128), "i16": (-32768, 32768)}.get(buffer.dtype.name, (-3, 4))
        found[buffer.name] = rng.integers(low, high, shape).astype(NUMPY[buffer.dtype.name])
    return found


def require_right(made: Compiled, loaded: CDLL, *, sizes: tuple[tuple[int, int, int], ...] = SIZES) -> None:
    assert made.written is not None
    for rows, columns, depth in sizes:
        given = arguments(made, {"M": rows, "N": columns, "K": depth})
        found = call(loaded, made.written, made.plan, given)
        np.testing.assert_array_equal(found["C"], run(made.written, given)["C"], err_msg=str((rows, columns, depth)))


@pytest.mark.parametrize("name", EACH)
def test_numbers(name: str) -> None:
    text, instruction = CASES[name]
    made = compiled(text)
    assert used(made.plan) == [instruction]
    require_right(made, library(made))


@pytest.mark.parametrize("name", EACH)
def test_proved(name: str) -> None:
    made = compiled(CASES[name][0])
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))] == []
    assert list(undecided(made.function, made.plan)) == []
    assert plain(parse_plan(plan_text(made.plan))) == plain(made.plan)


@pytest.mark.parametrize("name", ["scheduled", *(pytest.param(name, marks=pytest.mark.long) for name in ("bytes", "words"))])
def test_without_the_instructions(name: str) -> None:
    """A compiler that has them not takes the meaning."""
    made = compiled(CASES[name][0])
    require_right(made, library(made, "-U__AVX512BF16__", "-U__AVX512VNNI__"))


REFUSED = {
    "rows that are not interleaved": (
        "split(Bp.d0, 2) -> (q, p)  reorder(Bp.q, Bp.d1, Bp.p)", "", "E0919", "do not follow one another",
    ),
    "interleaved by four": ("split(Bp.d0, 2)", "split(Bp.d0, 4)", "E0919", "do not follow one another"),
    "what is filled with one": ("fill=zero", "fill=1.0", "E0906", "would change nothing"),
    "what is not filled": ("stage(A, at=io, in=registers, fill=zero)", "stage(A, at=io, in=registers)", "E0906", "holes"),
    "another's": ("vdpbf16ps", "vpdpwssd", "E0919", "`vpdpwssd` means"),
    "lanes": ("vdpbf16ps", "mma_m16n8k16_f32_bf16", "E0908", "has no instruction"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    old, new, code, reason = REFUSED[name]
    assert old in TILED
    with pytest.raises(TexprError) as caught:
        compiled(product() + TILED.replace(old, new))
    (found,) = caught.value.diagnostics
    assert found.code == code and reason in found.message, found.message


def test_a_processor_without_them() -> None:
    function = parse(product() + TILED)["f"]
    with pytest.raises(TexprError) as caught:
        lower(function, "cpu", schedule=function.schedules[0])
    assert caught.value.diagnostics[0].code == "E0908"
    made = lower(parse(product())["f"], "cpu", schedule=AUTO)
    assert used(made.plan) == []


BUGS = {
    "the next element of the left rows": ("Ap[im, 2 * km] 2 read", "Ap[im, 2 * km + 1] 2 read"),
    "the next column of the panel": ("Bp[km, 16 * jm, 0] 32 read", "Bp[km, 16 * jm + 1, 0] 32 read"),
    "the other of a pair": ("Bp[km, 16 * jm, 0] 32 read", "Bp[km, 16 * jm, 1] 32 read"),
    "the same vector of sums": ("acc[im, 16 * jm] 16 update", "acc[im, 0] 16 update"),
    "the row before": ("Ap[im, 2 * km] 2 read", "Ap[0, 2 * km] 2 read"),
    "the first pair of each row": ("Ap[im, 2 * km] 2 read", "Ap[im, 0] 2 read"),
    "the first rows of the panel": ("Bp[km, 16 * jm, 0] 32 read", "Bp[0, 16 * jm, 0] 32 read"),
}
WITHIN = ("the row before", "the same vector of sums", "the first pair of each row", "the first rows of the panel")
"""Those that touch nothing beyond an array, so that the numbers they give can be looked at."""


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_planted(name: str) -> None:
    """None of these is proved."""
    made, (old, new) = compiled(CASES["scheduled"][0]), BUGS[name]
    text = plain(made.plan)
    assert text.count(old) == 1, text
    assert list(undecided(made.function, parse_plan(text.replace(old, new))))


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == WITHIN[0] else pytest.mark.long) for name in WITHIN])
def test_numbers_show_it(name: str) -> None:
    made, (old, new) = compiled(CASES["scheduled"][0]), BUGS[name]
    altered = parse_plan(plain(made.plan).replace(old, new))
    wrong = replace(made, plan=altered, source=print_cpu(altered, made.target))
    with pytest.raises(AssertionError, match="Mismatched elements"):
        require_right(wrong, library(wrong), sizes=((13, 70, 33),))


RULES = {
    "2 read": ("4 read", "is 2 of bf16, read"),
    "16 update": ("16 read", "is 16 of f32, update"),
    "acc[im, 16 * jm] 16": ("Ap[im, 16 * jm] 16", "in bounds"),
    "vdpbf16ps [": ("other [", "no instruction other"),
}


@pytest.mark.planted
@pytest.mark.parametrize("old", RULES)
def test_rules_of_kernels(old: str) -> None:
    made, (new, reason) = compiled(CASES["scheduled"][0]), RULES[old]
    line = next(each for each in plain(made.plan).splitlines() if each.strip().startswith("alone instr"))
    text = plain(made.plan).replace(line, line.replace(old, new, 1))
    assert any(reason in each for each in undecided(made.function, parse_plan(text)))


@pytest.mark.planted
def test_a_core_is_one_lane() -> None:
    made = compiled(CASES["scheduled"][0])
    text = plain(made.plan).replace('"(1,2):(0,1@1)"', '"(2,1):(1@1,0)"', 1)
    assert any("is not done by one lane" in each for each in undecided(made.function, parse_plan(text)))


@pytest.mark.planted
def test_what_is_written_is_read_as_nothing_else() -> None:
    """Of an instruction whose operands have one type, so that nothing else is wrong."""
    made = compiled(CASES["scheduled"][0])
    text = plain(made.plan).replace("Ap[im, 2 * km] 2", "acc[im, 0] 2", 1)
    text = text.replace("operand a: bf16", "operand a: f32", 1).replace("(a[i, k] as f32)", "a[i, k]")
    told = undecided(made.function, parse_plan(text))
    assert any("vdpbf16ps writes acc, and reads it as another operand" in each for each in told)
