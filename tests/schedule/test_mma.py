"""`mma`: products that lanes do by instructions, from a schedule to emulated numbers; what is matched, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.instr.texts import MMA_16816
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.text import print_function
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.schedule import builder
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record

NUMPY: Mapping[str, type] = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64, "tf32": np.float32, "i8": np.int8,
    "u8": np.uint8, "i32": np.int32, "f8e4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


def product(
    of: str = "bf16", into: str = "f32", value: str = "A[i, k] * B[k, j]", where: str = "", clause: str = "reduce(C)"
) -> str:
    """A product of matrices in the plainest words."""
    return f"""\
fn f(A: {of}[M, K], B: {of}[K, N]): {into}[M, N]{f" where {where}" if where else ""} {{
    new C: {into}[M, N]
    par M |i| {{ par N |j| {{
        C[i, j] = {"0.0" if into.startswith("f") else "0"}
        seq K |k| {clause} {{ C[i, j] += {value} }}
    }} }}
    return C
}}
"""


def tiled(rows: str = "32, 16", columns: str = "16, 8", depth: int = 16, more: str = "", mma: str = "mma(ii, jj, ki)") -> str:
    """A schedule: a block's rows and a warp's of them, columns likewise, and the depth of a turn."""
    (block, warp), (across, along) = (each.split(", ") for each in (rows, columns))
    return f"""\
schedule f for cuda {{
    split(i, {block}) -> (bi, i1)  split(i1, {warp}) -> (wi, ii)
    split(j, {across}) -> (bj, j1)  split(j1, {along}) -> (wj, jj)
    split(k, {depth}) -> (ko, ki)
    reorder(bi, bj, ko, wi, wj, ii, jj, ki)
    bind(wi, block.z)  bind(wj, block.y)
    stage(C, at=bj, in=registers) -> sums
    stage(A, at=ko, in=shared) -> As
    stage(B, at=ko, in=shared) -> Bs
    {more}
    {mma}
}}
"""


FOLLOWED = """\
fn f(A: bf16[M, K], B: bf16[K, N]): bf16[M, N] {
    new C: bf16[M, N]
    par M |i| { par N |j| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += A[i, k] * B[k, j] }
        C[i, j] = bf16(max(s, 1.0))
    } }
    return C
}
"""


class Case(Record):
    """A program with a schedule, and the instructions that are to be in the kernel."""

    text: str
    wanted: tuple[str, ...]
    sizes: tuple[tuple[int, int, int], ...] = ((32, 16, 16), (33, 17, 19), (1, 1, 1), (0, 3, 2), (7, 5, 0))


BYTES = "i32(A[i, k]) * i32(B[k, j])"
BF16, LOADS = "mma_m16n8k16_f32_bf16", ("ldmatrix_x4_bf16", "ldmatrix_x4_trans_bf16")
FEW = ("ldmatrix_x4_bf16", "ldmatrix_x2_trans_bf16")
"""Where a warp has one tile of columns: b is two matrices."""
CASES = {
    "one tile": Case(product() + tiled("16, 16", "8, 8"), (*FEW, BF16)),
    "warps": Case(product() + tiled(), (*FEW, BF16)),
    "tiles of a warp": Case(product() + tiled("64, 32", "32, 16", 32), (*LOADS, BF16), ((65, 33, 70), (64, 32, 64))),
    "a ring": Case(product() + tiled("32, 32", "16, 16", 32) + "", (*LOADS, BF16)),
    "rows that are longer": Case(
        product() + tiled("32, 32", "16, 16", 32, "resize(As.d1, 0, 8)  resize(Bs.d1, 0, 8)"), (*LOADS, BF16)
    ),
    "columns of A": Case(
        product(value="A[k, i] * B[k, j]").replace("A: bf16[M, K]", "A: bf16[K, M]") + tiled("32, 32", "16, 16"),
        ("ldmatrix_x4_trans_along_bf16", "ldmatrix_x4_trans_bf16", BF16),
    ),
    "rows of B": Case(
        product(value="A[i, k] * B[j, k]").replace("B: bf16[K, N]", "B: bf16[N, K]") + tiled("32, 32", "16, 16"),
        ("ldmatrix_x4_bf16", "ldmatrix_x4_along_bf16", BF16),
    ),
    "the other way": Case(
        product(value="B[k, j] * A[i, k]") + tiled("32, 32", "32, 32"),
        ("ldmatrix_x4_trans_along_bf16", "ldmatrix_x4_along_bf16", BF16),
    ),
    "f16": Case(product("f16") + tiled(), ("ldmatrix_x4_f16", "ldmatrix_x2_trans_f16", "mma_m16n8k16_f32_f16")),
    "f16 into f16": Case(product("f16", "f16") + tiled(), ("ldmatrix_x4_f16", "ldmatrix_x2_trans_f16", "mma_m16n8k16_f16_f16")),
    "tf32": Case(product("tf32") + tiled(depth=8), ("ldmatrix_x4_tf32", "mma_m16n8k8_f32_tf32")),
    "i8": Case(product("i8", "i32", BYTES) + tiled(depth=32), ("ldmatrix_x4_i8", "mma_m16n8k32_i32_i8")),
    "u8": Case(product("u8", "i32", BYTES) + tiled(depth=32), ("ldmatrix_x4_u8", "mma_m16n8k32_i32_u8")),
    "f64": Case(product("f64", "f64") + tiled("16, 8", "16, 8", 4), ("mma_m8n8k4_f64_f64",)),
    "by name": Case(
        product() + tiled(depth=8, mma="mma(ii, jj, ki, mma_m16n8k8_f32_bf16) -> (i_t, j_t, k_t)"),
        ("ldmatrix_x2_bf16", "ldmatrix_x1_trans_bf16", "mma_m16n8k8_f32_bf16"),
    ),
    "of the text": Case(
        MMA_16816 + product() + tiled(mma="mma(ii, jj, ki, mma_m16n8k16)"), (*FEW, "mma_m16n8k16")
    ),
    "from memory of callers": Case(
        product(where="M % 32 == 0, N % 16 == 0, K % 16 == 0")
        + "\n".join(line for line in tiled().splitlines() if "in=shared" not in line) + "\n",
        (BF16,), ((32, 16, 16), (64, 48, 32), (0, 16, 16)),
    ),
    "what follows on registers": Case(
        FOLLOWED + tiled().replace("stage(C, at=bj, in=registers) -> sums", ""), (*FEW, BF16)
    ),
}  # fmt: skip


def arguments(made: Compiled, sizes: Mapping[str, int]) -> dict[str, NDArray[np.generic]]:
    """Small integers."""
    rng, found = np.random.default_rng(3), dict[str, NDArray[np.generic]]()
    for buffer in made.function.params:
        shape = [e.evaluate({sym: sizes[sym.name] for sym in e.syms()}) for e in buffer.shape]
        low = 0 if buffer.dtype.name.startswith("u") else -3
        found[buffer.name] = rng.integers(low, 4, shape).astype(NUMPY[buffer.dtype.name])
    return found


def compiled(text: str, target: str = "sm_80") -> Compiled:
    function = parse(text)["f"]
    return lower(function, target, schedule=function.schedules[0])


def used(made: Compiled) -> set[str]:
    """The instructions in the kernels."""
    return {
        each.name for kernel in k.kernels(made.plan.steps) for each in k.walk(kernel.body) if isinstance(each, k.Collective)
    }


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    case = CASES[name]
    made, function = compiled(case.text), parse(case.text)["f"]
    assert used(made) == {*case.wanted}
    for rows, columns, depth in case.sizes:
        sizes = {"M": rows, "N": columns, "K": depth}
        given = arguments(made, sizes)
        wanted = run(function, given)
        for seed in (None, 1):
            found = run_plan(function, made.plan, given, seed=seed)
            assert not found.reports, (sizes, seed)
            np.testing.assert_array_equal(found.arrays["C"], wanted["C"])


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(CASES[name].text)
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))] == []
    assert list(undecided(made.function, made.plan)) == []


def test_from_python() -> None:
    function = parse(product(where="M % 16 == 0, N % 8 == 0, K % 16 == 0") + tiled())["f"]
    schedule = builder.Schedule(function, target="sm_80")
    for loop, by, names in (("i", 16, ("bi", "ii")), ("j", 8, ("bj", "jj")), ("k", 16, ("ko", "ki"))):
        schedule = schedule.split(loop, by, names=names)
    schedule = schedule.reorder("bi", "bj", "ko", "ii", "jj", "ki").stage("C", at="bj", in_="registers")
    schedule = schedule.stage("A", at="ko").stage("B", at="ko").mma("ii", "jj", "ki", BF16)
    assert f"mma(ii, jj, ki, {BF16})" in str(schedule)
    assert f"instr {BF16}(" in schedule.show()


def test_accumulators_are_registers_of_the_fragment() -> None:
    made = compiled(CASES["tiles of a warp"].text)
    text = plan_text(made.plan)
    assert "array lanes sums: f32[16]" in text  # 2 × 2 tiles of 4
    assert "new sums: f32[128, 16]" in print_function(made.function)


REFUSED = {
    "in order": (product(clause="") + tiled(), "E0919", "mean"),
    "f32": (product("f32") + tiled(depth=8), "E0919", "mean"),
    "a difference": (product(value="A[i, k] * B[k, j]").replace("+=", "-=") + tiled(), "E0919", "mean"),
    "other extents": (product() + tiled("24, 24", "8, 8"), "E0919", "mean"),
    "the diagonal": (product(value="A[i, k] * B[k, i]", where="M == N") + tiled(), "E0919", "mean"),
    "no such instruction": (product() + tiled(mma="mma(ii, jj, ki, mma_m16)"), "E0903", "no instruction `mma_m16`"),
    "another's": (product() + tiled(mma="mma(ii, jj, ki, mma_m16n8k16_f32_f16)"), "E0919", "`mma_m16n8k16_f32_f16` means"),
    "in memory of callers": (
        product(where="M % 32 == 0, N % 16 == 0, K % 16 == 0") + tiled().replace("stage(C, at=bj, in=registers) -> sums", ""),
        "E0919", "in memory that callers know",
    ),
    "holes outside": (product() + tiled().replace("stage(A, at=ko, in=shared) -> As", ""), "E0906", "outside of `A`"),
    "holes that are not zero": (
        product() + tiled().replace("stage(A, at=ko, in=shared) -> As", "stage(A, at=ko, in=shared, fill=1.0) -> As")
        .replace("stage(B, at=ko, in=shared) -> Bs", "stage(B, at=ko, in=shared, fill=1.0) -> Bs"),
        "E0906", "would change nothing",
    ),
    "a sum that goes on": (
        product("f64", "f64", clause="reduce(C) #ieee")
        .replace("(A: f64[M, K], B: f64[K, N]): f64[M, N] {", "(A: f64[M, K], B: f64[K, N], inout C: f64[M, N]) {")
        .replace("    new C: f64[M, N]\n", "").replace("        C[i, j] = 0.0\n", "").replace("    return C\n", "") + tiled(),
        "E0906", "−0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, code, reason = REFUSED[name]
    with pytest.raises(TexprError) as caught:
        compiled(text)
    (found,) = caught.value.diagnostics
    assert found.code == code and reason in found.message, found.message


def test_a_target_without_warps() -> None:
    function = parse(product() + tiled().replace("for cuda ", ""))["f"]
    with pytest.raises(TexprError) as caught:
        builder.Schedule(function, target="cpu").split("i", 16).split("j", 8).split("k", 16).mma("i_i", "j_i", "k_i")
    assert caught.value.diagnostics[0].code == "E0908"


@pytest.mark.parametrize(("name", "target"), [("tiles of a warp", "sm_80"), ("tiles of a warp", "sm_90a"), ("i8", "sm_80")])
def test_machine_code(name: str, target: str) -> None:
    """Nothing spills, and the instructions are there."""
    made = compiled(CASES[name].text, target)
    code = code_of(binary := built(made.source, target))
    assert spills_nothing(binary)
    assert ("IMMA.16832" if name == "i8" else "HMMA.16816.F32.BF16") in code and "LDSM.16" in code
