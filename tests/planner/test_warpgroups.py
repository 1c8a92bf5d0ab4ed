"""Products that the planner gives to the tensor core of a warpgroup: which; they are proved, and their numbers are right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from math import erf, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.emulator import LOCKSTEP
from texpr.explain import explain
from texpr.ir import kernel as k
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.record import Record, replace
from texpr.toolchain.machine import this_machine

Array = NDArray[np.generic]

NUMPY: Mapping[str, type[np.generic]] = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "tf32": np.float32, "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2, "i8": np.int8, "u8": np.uint8, "f32": np.float32, "i32": np.int32,
}  # fmt: skip


class Case(Record):
    """A product of `of` into `into`. `a`, `b`: as they lie in memory; `promise`: what sizes are multiples of; `more`: what
    becomes of a sum, which is stored as `out`; `batch`: of how many."""

    instr: str
    of: str = "bf16"
    into: str = "f32"
    a: str = "M, K"
    b: str = "N, K"
    promise: str = "K % 8 == 0"
    more: str = ""
    out: str = ""
    batch: int = 0
    turned: bool = False
    align: str = " align(16)"
    sizes: tuple[tuple[int, int, int], ...] = ((67, 13, 328), (1, 1, 8), (131, 3, 200), (5, 0, 16), (3, 7, 0))

    @property
    def text(self) -> str:
        """The program."""
        h, hh, one = ("h, ", f"{self.batch}, ", f"par {self.batch} |h| {{ ") if self.batch else ("", "", "")
        names = {"M": "i", "N": "j", "K": "k"}
        a, b = (", ".join(names[each] for each in shape.split(", ")) for shape in (self.a, self.b))
        left, right = f"A[{h}{a}]", f"B[{h}{b}]"
        left, right = (f"i32({each})" if self.into == "i32" else each for each in (left, right))
        value = f"{right} * {left}" if self.turned else f"{left} * {right}"
        zero, out, more = "0" if self.into == "i32" else "0.0", self.out or self.into, self.more or "s"
        return f"""
fn f(A: {self.of}[{hh}{self.a}]{self.align}, B: {self.of}[{hh}{self.b}]{self.align}, b: f32[N]): {out}[{hh}M, N]
    where {self.promise}
{{
    new C: {out}[{hh}M, N]
    {one}par M |i| {{ par N |j| {{
        new s: {self.into} = {zero}
        seq K |k| reduce(s) {{ s += {value} }}
        C[{h}i, j] = {more}
    }} }}{" }" if self.batch else ""}
    return C
}}
"""

    def arguments(self, sizes: Mapping[str, int]) -> tuple[dict[str, Array], NDArray[np.float64]]:
        """Small whole numbers, and the sums."""
        rng, low = np.random.default_rng(5), 0 if self.of == "u8" else -3
        outer = (self.batch,) if self.batch else ()
        shapes = ([sizes[each] for each in shape.split(", ")] for shape in (self.a, self.b))
        left, right = (rng.integers(low, 4, (*outer, *shape)) for shape in shapes)
        given: dict[str, Array] = {"A": left.astype(NUMPY[self.of]), "B": right.astype(NUMPY[self.of])}
        given["b"] = rng.integers(-3, 4, sizes["N"]).astype(np.float32)
        one, other = (each.astype(np.float64) for each in (left, right))  # exact, and much faster than of integers
        sums = (one if self.a == "M, K" else one.swapaxes(-1, -2)) @ (other.swapaxes(-1, -2) if self.b == "N, K" else other)
        return given, sums


GELU = "bf16(0.5 * (0.25 * s + b[j]) * (1.0 + erf((0.25 * s + b[j]) * 0.70710678)))"
BOTH, N8, M8 = "M % 8 == 0, N % 8 == 0", "N % 8 == 0", "M % 8 == 0, K % 8 == 0"
CASES = {
    "rows of both": Case("wgmma_m64n256k16_f32_bf16"),
    "rows and columns": Case(
        "wgmma_m64n256k16_f32_bf16_bn", b="K, N", promise=f"K % 8 == 0, {N8}", sizes=((67, 72, 72), (1, 8, 8), (131, 264, 72))
    ),
    "columns of both": Case(
        "wgmma_m64n256k16_f32_bf16_am_bn", a="K, M", b="K, N", promise=BOTH, sizes=((72, 264, 67), (8, 8, 1), (136, 8, 131))
    ),
    "columns and rows": Case("wgmma_m64n256k16_f32_bf16_am", a="K, M", promise=M8, sizes=((72, 67, 72), (8, 1, 8))),
    "the other way": Case("wgmma_m64n256k16_f32_bf16", turned=True, sizes=((67, 131, 72), (1, 1, 8))),
    "f16": Case("wgmma_m64n256k16_f32_f16", of="f16", sizes=((67, 71, 72),)),
    "tf32": Case("wgmma_m64n256k8_f32_tf32", of="tf32", promise="K % 4 == 0", sizes=((67, 71, 76), (1, 1, 4))),
    "f8e4m3": Case("wgmma_m64n128k32_f32_f8e4m3", of="f8e4m3", promise="K % 16 == 0", sizes=((67, 71, 144), (1, 1, 16))),
    "f8e5m2": Case("wgmma_m64n128k32_f32_f8e5m2", of="f8e5m2", promise="K % 16 == 0", sizes=((67, 71, 144),)),
    "i8": Case("wgmma_m64n256k32_i32_i8", of="i8", into="i32", promise="K % 16 == 0", sizes=((67, 71, 144), (1, 1, 16))),
    "u8": Case("wgmma_m64n256k32_i32_u8", of="u8", into="i32", promise="K % 16 == 0", sizes=((67, 71, 144),)),
    "bias": Case("wgmma_m64n256k16_f32_bf16", more="max(s + b[j], 0.0)", sizes=((67, 71, 72), (1, 1, 8), (3, 5, 0))),
    "gelu": Case("wgmma_m64n256k16_f32_bf16", more=GELU, out="bf16", sizes=((67, 71, 72), (3, 5, 0))),
    "f8e4m3, nothing promised": Case(
        "wgmma_m64n128k32_f32_f8e4m3", of="f8e4m3", promise="M >= 0", align="", sizes=((67, 13, 391), (1, 1, 1), (3, 5, 0))
    ),
    "batched": Case("wgmma_m64n256k16_f32_bf16", batch=3, sizes=((67, 71, 72), (1, 1, 8))),
}  # fmt: skip


@cache
def compiled(name: str, at: tuple[int, int, int] | None = None) -> Compiled:
    sizes = None if at is None else dict(zip("MNK", at, strict=True))
    return lower(parse(CASES[name].text)["f"], "sm_90a", sizes, schedule="auto")


def wanted(case: Case, sums: NDArray[np.float64], bias: NDArray[np.float64]) -> NDArray[np.float64]:
    """What becomes of sums."""
    match case.more:
        case "":
            return sums
        case text if text.startswith("max"):
            return np.maximum(sums + bias, 0.0)
        case _:
            scaled = 0.25 * sums + bias
            return 0.5 * scaled * (1 + np.array([erf(x * sqrt(0.5)) for x in scaled.flat]).reshape(scaled.shape))


def agrees(case: Case, made: Compiled, at: tuple[int, int, int], seeds: Iterable[int | None]) -> None:
    """Numbers are those of NumPy, and no detector finds a fault."""
    sizes = dict(zip("MNK", at, strict=True))
    given, sums = case.arguments(sizes)
    for seed in seeds:
        found = run_plan(made.function, made.plan, given, sizes if made.function.sizes else None, seed=seed)
        assert not found.reports, (sizes, found.reports[0])
        right = wanted(case, sums, given["b"].astype(np.float64))
        if case.out:
            np.testing.assert_allclose(found.arrays["C"].astype(np.float64), right, 1e-2, 1e-2, err_msg=str(sizes))
        else:
            np.testing.assert_array_equal(found.arrays["C"], right, str(sizes))


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    """At sizes that are fixed, for which smaller tiles are chosen; where these are given to warps, at every size."""
    case = CASES[name]
    made = compiled(name, case.sizes[0])
    if not any(isinstance(s, k.CollectiveAsync) for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body)):
        agrees(case, compiled(name), case.sizes[1], (None, 1))
    agrees(case, made, case.sizes[0], (None, LOCKSTEP, 1))


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_emulated_at_every_size(name: str) -> None:
    for at in CASES[name].sizes:
        agrees(CASES[name], compiled(name), at, (None, LOCKSTEP, 1))


@pytest.mark.parametrize("name", CASES)
def test_taken_and_proved(name: str) -> None:
    made = compiled(name)
    assert made.planned is not None and made.written is not None
    (chosen,) = made.planned.nests
    assert chosen.candidate is not None, chosen
    assert chosen.candidate.data().get("instruction") == CASES[name].instr
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))] == []
    assert list(undecided(made.function, made.plan)) == []


PROMISED = CASES["rows and columns"].text


def planned(text: str, sizes: tuple[int, int, int] | None = None) -> dict[str, Any]:
    """What `explain` says of the one nest of a program."""
    made = lower(parse(text)["f"], "sm_90a", dict(zip("MNK", sizes, strict=True)) if sizes else None, schedule="auto")
    data = explain(made, this_machine())
    (nest,) = data["planned"]["nests"]
    return {**nest, "ratio": data["speed"]["ratio"]}


def test_a_large_product_comes_near_what_any_program_needs() -> None:
    """Where sizes are fixed blocks share strips in clusters, where they are open they do not."""
    fixed, any_size = planned(PROMISED, (4096, 4096, 4096)), planned(PROMISED)
    for nest in (fixed, any_size):
        assert nest["tile"] == {"i": 128, "j": 256, "k": 64} and nest["stages"] == 4
        assert nest["instruction"] == "wgmma_m64n256k16_f32_bf16_bn"
    assert (fixed["cluster"], any_size["cluster"]) == ([2, 1], [1, 1])
    assert fixed["ratio"] < 1.1 < any_size["ratio"] < 1.3


@pytest.mark.parametrize(("old", "new", "copied"), [
    ("B: bf16[K, N] align(16)", "B: bf16[K, N]", "B"),
    ("K % 8 == 0, N", "K % 2 == 1, N", "A"),
])  # fmt: skip
def test_rows_that_begin_anywhere_are_copied_first(old: str, new: str, copied: str) -> None:
    assert old in PROMISED
    made = lower(parse(PROMISED.replace(old, new))["f"], "sm_90a", schedule="auto")
    assert made.planned is not None and made.schedule is not None
    (chosen,) = made.planned.nests
    assert chosen.candidate is not None and chosen.candidate.data()["instruction"] == "wgmma_m64n256k16_f32_bf16_bn"
    found = [each.args[0].value for each in made.schedule.directives if any(arg.value == "global" for arg in each.args)]
    assert found == [copied]


def test_rows_that_begin_at_multiples_of_8_bytes_are_left_to_products_of_a_warp() -> None:
    """Copies that go on by themselves bring them, so that it is not worth another launch, of sizes that nobody knows."""
    made = lower(parse(PROMISED.replace("K % 8 == 0, N", "K % 4 == 0, N"))["f"], "sm_90a", schedule="auto")
    assert made.planned is not None
    (chosen,) = made.planned.nests
    assert chosen.candidate is not None and chosen.candidate.data()["instruction"] == "mma_m16n8k16_f32_bf16"
    assert len(chosen.refused) == 1 and "every stride but the innermost is a multiple of 16 bytes" in chosen.refused[0]


@pytest.mark.parametrize("name", ["tf32", "f8e4m3", "i8"])
def test_columns_of_other_types_are_left(name: str) -> None:
    """Of which no instruction has the sum along other rows of memory than an operand's own."""
    case = replace(CASES[name], b="K, N", promise=f"{CASES[name].promise}, N % 16 == 0")
    made = lower(parse(case.text)["f"], "sm_90a", schedule="auto")
    assert not any(isinstance(s, k.CollectiveAsync) for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body))


def test_sums_in_order_are_left() -> None:
    made = lower(parse(PROMISED.replace(" reduce(s)", ""))["f"], "sm_90a", schedule="auto")
    assert not any(isinstance(s, k.Collective) for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a"])
def test_targets_without_it(target: str) -> None:
    made = lower(parse(PROMISED)["f"], target, schedule="auto")
    found = [s for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.CollectiveAsync)]
    assert all(isinstance(s, k.CollectiveAlone) for s in found) and bool(found) == (target == "sm_100a")


@pytest.mark.parametrize("sizes", [None, (4096, 4096, 4096)], ids=["open", "fixed"])
def test_machine_code(sizes: tuple[int, int, int] | None) -> None:
    """Products and copies are as planned, nothing is spilled, and ptxas has no reason to wait behind each product."""
    made = lower(parse(PROMISED)["f"], "sm_90a", dict(zip("MNK", sizes, strict=True)) if sizes else None, schedule="auto")
    code = code_of(found := built(made.source))
    assert spills_nothing(found) and not serialised(found)
    assert code.count("HGMMA.64x256x16.F32.BF16") == (8 if sizes else 4), "of one turn, or of two that nvcc writes out"
    assert code.count("UTMALDG.2D") >= (3 if sizes else 5)
    assert ("UTMALDG.2D.MULTICAST" in code) == (sizes is not None) and "gsb0, 0x1" in code
