"""Products on targets whose tensor cores are those of warps alone: each type is found, and is in the machine code.

`sm_89` and `sm_120a` have all types by `mma.sync`; `sm_120a` has the copy engine, too, whose swizzled tiles `ldmatrix` reads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import changed, is_proved, line_of, plain
from tests.proofs import undecided
from tests.schedule.test_mma import BYTES, product

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record


class Kind(Record):
    """A type of factors, of the sum, the instruction that is found, its name in machine code, and elements of 16 bytes."""

    of: str
    into: str
    found: str
    word: str
    whole: int


KINDS = {
    "bf16": Kind("bf16", "f32", "mma_m16n8k16_f32_bf16", "HMMA.16816.F32.BF16", 8),
    "f16": Kind("f16", "f32", "mma_m16n8k16_f32_f16", "HMMA.16816.F32", 8),
    "tf32": Kind("tf32", "f32", "mma_m16n8k8_f32_tf32", "HMMA.1688.F32.TF32", 4),
    "f8e4m3": Kind("f8e4m3", "f32", "mma_m16n8k32_f32_f8e4m3", "QMMA.16832.F32.E4M3.E4M3", 16),
    "f8e5m2": Kind("f8e5m2", "f32", "mma_m16n8k32_f32_f8e5m2", "QMMA.16832.F32.E5M2.E5M2", 16),
    "i8": Kind("i8", "i32", "mma_m16n8k32_i32_i8", "IMMA.16832.S8.S8", 16),
    "u8": Kind("u8", "i32", "mma_m16n8k32_i32_u8", "IMMA.16832.U8.U8", 16),
    "f16 into f16": Kind("f16", "f16", "mma_m16n8k16_f32_f16", "HMMA.16816.F32", 8),
}
TARGETS = ("sm_89", "sm_120a")


def text_of(kind: Kind) -> str:
    """The product by rows of both, which begin at multiples of 16 bytes."""
    value = (BYTES if kind.into == "i32" else "A[i, k] * B[k, j]").replace("B[k, j]", "B[j, k]")
    text = product(kind.of, kind.into, value, where=f"K % {kind.whole} == 0, N % 4 == 0")
    return text.replace("[K, N]", "[N, K] align(16)").replace("A: " + kind.of + "[M, K]", "A: " + kind.of + "[M, K] align(16)")


@cache
def compiled(name: str, target: str) -> Compiled:
    made = lower(parse(text_of(KINDS[name]))["f"], target, schedule="auto")
    return made.wide or made


def instructions(made: Compiled) -> set[str]:
    """Those that multiply."""
    every = (s.name for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.Collective))
    return {name for name in every if "mma" in name}


@pytest.mark.parametrize(("name", "target"), [(name, target) for name in KINDS for target in TARGETS])
def test_found(name: str, target: str) -> None:
    made = compiled(name, target)
    assert instructions(made) == {KINDS[name].found}
    assert any(isinstance(s, k.CopyAsync) for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body))


SLOW = ("f16", "f8e5m2", "u8", "f16 into f16", "tf32")
"""Types whose machine code is like that of another one."""


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=[pytest.mark.long] if name in SLOW or target == "sm_89" else [])
        for name in KINDS
        for target in TARGETS
    ],
)
def test_machine_code(name: str, target: str) -> None:
    code = code_of(binary := built(compiled(name, target).source, target))
    assert all(word in code for word in (KINDS[name].word, "LDSM.16.M88.4", "LDGSTS.E")) and spills_nothing(binary)


@pytest.mark.parametrize("name", ["bf16", "i8", "f8e4m3", "tf32"])
def test_proved(name: str) -> None:
    made = compiled(name, "sm_120a")
    assert not [*undecided(made.function, made.plan)]


NUMPY = {
    "bf16": ml_dtypes.bfloat16, "i8": np.int8, "f8e4m3": ml_dtypes.float8_e4m3fn, "tf32": np.float32, "f16": np.float16,
}  # fmt: skip


def arguments(of: str, sizes: dict[str, int]) -> dict[str, NDArray[Any]]:
    """Small integers."""
    rng = np.random.default_rng(5)
    shapes = {"A": (sizes["M"], sizes["K"]), "B": (sizes["N"], sizes["K"])}
    return {name: rng.integers(-2, 3, shape).astype(NUMPY[of]) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", ["i8", *(pytest.param(name, marks=pytest.mark.long) for name in ("bf16", "f8e4m3", "tf32"))])
def test_emulated(name: str) -> None:
    made, function = compiled(name, "sm_120a"), parse(text_of(KINDS[name]))["f"]
    for sizes in ({"M": 130, "N": 20, "K": 80}, {"M": 1, "N": 4, "K": 16}, {"M": 3, "N": 8, "K": 0}):
        given = arguments(name, sizes)
        ran = run_plan(made.function, made.plan, given, sizes, seed=1)
        assert not ran.reports, (sizes, ran.reports[0])
        np.testing.assert_array_equal(ran.arrays["C"], run(function, given, sizes)["C"], str(sizes))


BY_ENGINE = """
schedule f for sm_120a {
    split(i, 64) -> (bi, i1)  split(i1, 32) -> (wi, ii)
    split(j, 64) -> (bj, j1)  split(j1, 32) -> (wj, jj)
    split(k, 64) -> (ko, ki)
    reorder(bi, bj, ko, wi, wj, ii, jj, ki)
    bind(bi, grid.y)  bind(bj, grid.x)
    bind(wi, block.z)  bind(wj, block.y)
    stage(C, at=bj, in=registers) -> sums
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
    mma(ii, jj, ki)
    pipeline(ko, stages=3)
}
"""


@cache
def by_engine() -> Compiled:
    """bf16, by tiles that the copy engine brings."""
    function = parse(text_of(KINDS["bf16"]) + BY_ENGINE)["f"]
    return lower(function, "sm_120a", schedule=function.schedules[0])


def test_tiles_of_the_engine_are_loaded_by_lanes() -> None:
    made = by_engine()
    assert instructions(made) == {"mma_m16n8k16_f32_bf16"} and not [*undecided(made.function, made.plan)]
    code = code_of(binary := built(made.source, "sm_120a"))
    assert all(word in code for word in ("UTMALDG.2D", "SYNCS", "LDSM.16.M88.4", "HMMA.16816.F32.BF16"))
    assert all((each.spill_stores, each.spill_loads) == (0, 0) for each in binary.kernels)
    sizes = {"M": 70, "N": 68, "K": 200}
    given = arguments("bf16", sizes)
    ran = run_plan(made.function, made.plan, given, sizes, seed=2)
    assert not ran.reports
    np.testing.assert_array_equal(ran.arrays["C"], run(parse(text_of(KINDS["bf16"]))["f"], given, sizes)["C"])


def test_the_target_has_no_warpgroups_nor_tensor_memory() -> None:
    """Its products are those of a warp: nothing of the other two generations has a template for it."""
    others = [each for each in INSTRUCTIONS.values() if each.name.startswith(("wgmma", "tcgen05"))]
    assert others and all(each.template(resolve("sm_120a")) is None for each in others)


PARITY = "parity ((((ko + 1) / 3) + 1) % 2)"
FIRST = "if (i32(thread) < i32(32)) {"
BUGS = {
    "no wait for tiles": ("mbarrier wait Bs_As_full", ""),
    "the other parity": (PARITY, "parity (((ko + 1) / 3) % 2)"),
    "a wait of the first warp alone": ("mbarrier wait Bs_As_full", FIRST),
    "fewer bytes": ("bytes 16384", "bytes 8192"),
    "another swizzle": ("map A_map", "swizzle 64"),
    "no fence": ("fence async", ""),
    "the units of other lanes": ("xor(2 * ki_o + ((thread % 32) / 16), thread, 3)", "xor(2 * ki_o, thread, 3)"),
    "rows of other lanes": ("16 * ii_o_1 + 8 * (((thread % 32) / 8) % 2)", "16 * ii_o_1 + 8 * ((thread % 32) / 16)"),
    "another slot": ("As[((ko + 1) % 3)", "As[((ko + 2) % 3)"),
}
"""What becomes what; of lines, that they are left out, are for some threads alone, or have another swizzle."""


def planted(name: str) -> k.Plan:
    """The plan by tiles of the engine, with a bug in it."""
    text, (old, new) = plain(by_engine().plan), BUGS[name]
    if new == FIRST:
        line = line_of(text, old)
        return parse_plan(text.replace(line, f"{FIRST}\n{line}}}\n"))
    if new.startswith("swizzle"):
        return parse_plan(changed(text, old, "swizzle 128", new))
    at = old if new else line_of(text, old)
    assert at in text, name
    return parse_plan(text.replace(at, new))


SOUGHT = ("another swizzle", "rows of other lanes", "the units of other lanes", "another slot")
"""Those whose counterexample is looked for, for seconds."""


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in SOUGHT else name for name in BUGS])
def test_no_bug_is_proved(name: str) -> None:
    assert not is_proved(by_engine(), lambda: planted(name))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name in BUGS if name != "a wait of the first warp alone"])
def test_bugs_are_shown(name: str) -> None:
    sizes = {"M": 70, "N": 68, "K": 328}
    given = arguments("bf16", sizes)
    wanted = run(parse(text_of(KINDS["bf16"]))["f"], given, sizes)["C"]
    for seed in (1, None, 2, 3):
        try:
            ran = run_plan(by_engine().function, planted(name), given, sizes, seed=seed)
        except (CompilerBug, RuntimeError, AssertionError):
            return
        if ran.reports or not np.array_equal(ran.arrays["C"], wanted):
            return
    pytest.fail("the emulator finds nothing")
