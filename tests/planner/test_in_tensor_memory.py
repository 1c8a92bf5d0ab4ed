"""Products that the planner gives to tensor memory by itself: which instruction, right in the emulator, and proved."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike
from tests.lowering.emulated import require_right
from tests.proofs import undecided

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.ir import kernel as k

TEXT = """\
fn product(A: {of}[{rows}] align(16), B: {of}[{columns}] align(16)): {out}[M, N] align(16)
    where K % 16 == 0, N % 16 == 0, M % 16 == 0
{{
    new C: {out}[M, N]
    par M |i| {{ par N |j| {{
        new total: {acc}
        total = {zero}
        seq K |k| reduce(total) {{ total += {a} * {b} }}
        C[i, j] = {given}
    }} }}
    return C
}}
"""

TYPES: dict[str, DTypeLike] = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "tf32": np.float32,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "i8": np.int8,
}

CASES = {
    "tcgen05_m128n256k16_f32_bf16": ("bf16", "bf16", ""),
    "tcgen05_m128n256k16_f32_bf16_bn": ("bf16", "bf16", "b"),
    "tcgen05_m128n256k16_f32_f16_am": ("f16", "f32", "a"),
    "tcgen05_m128n256k16_f32_bf16_am_bn": ("bf16", "f32", "ab"),
    "tcgen05_m128n256k8_f32_tf32": ("tf32", "f32", ""),
    "tcgen05_m128n192k32_f32_f8e4m3": ("f8e4m3", "bf16", ""),
    "tcgen05_m128n192k32_i32_i8": ("i8", "i32", ""),
}
"""By the instruction: types of operands and results, and which operands have rows of memory across the sum."""


@cache
def compiled(name: str) -> Compiled:
    of, out, turned = CASES[name]
    whole = of == "i8"
    a, b = ("A[k, i]" if "a" in turned else "A[i, k]"), ("B[k, j]" if "b" in turned else "B[j, k]")
    text = TEXT.format(
        of=of, out=out, acc="i32" if whole else "f32", zero="0" if whole else "0.0", a=f"i32({a})" if whole else a,
        b=f"i32({b})" if whole else b, given="total" if out in ("f32", "i32") else f"{out}(total)",
        rows="K, M" if "a" in turned else "M, K", columns="K, N" if "b" in turned else "N, K",
    )  # fmt: skip
    return lower(parse(text, "case.te")["product"], "sm_100a", schedule="auto")


@pytest.mark.parametrize("name", CASES)
def test_the_instruction_is_found(name: str) -> None:
    (kernel,) = k.kernels(compiled(name).plan.steps)
    assert [op.name for op in k.walk(kernel.body) if isinstance(op, k.CollectiveAlone)] == [name]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [(144, 272, 96), pytest.param((16, 16, 0), marks=pytest.mark.long)])
def test_emulated(name: str, sizes: tuple[int, int, int]) -> None:
    of, out, turned = CASES[name]
    rows, columns, deep = sizes
    random, wide = np.random.default_rng(5), np.int32 if of == "i8" else np.float32
    a, b = (random.integers(0, 4, shape).astype(TYPES[of]) for shape in ((rows, deep), (deep, columns)))
    wanted = (a.astype(wide) @ b.astype(wide)).astype(TYPES.get(out, wide))
    given = {"A": np.ascontiguousarray(a.T) if "a" in turned else a, "B": b if "b" in turned else np.ascontiguousarray(b.T)}
    made = compiled(name)
    require_right(made, given, wanted, seed=2)


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert not list(undecided(made.function, made.plan))
