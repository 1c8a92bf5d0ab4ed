"""Products in tensor memory, as users write and schedule them, and what those compute, as NumPy says it."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike
from tests.instr.texts import Arguments, Array

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.support.record import Record

_TEXT = """\
fn product(A: {of}[M, K] align(16), B: {of}[N, K] align(16)): {out}[M, N] align(16)
    where K % {each} == 0, N % {each} == 0
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

schedule product "tiles" for sm_100a {{
    split(i, 128) -> (i_b, i_m)
    split(j, {columns}) -> (j_b, j_m)
    split(k, {deep}) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_m, j_m, k_i)
    bind(i_b, grid.y)
    bind(j_b, grid.x)
    stage(A, at=k_o, in=shared, via=tma, swizzle=128B) -> A_s
    stage(B, at=k_o, in=shared, via=tma, swizzle=128B) -> B_s
    mma(i_m, j_m, k_i, {instr})
    {ring}
}}
"""

TYPES: dict[str, tuple[int, DTypeLike]] = {
    "bf16": (2, ml_dtypes.bfloat16),
    "f16": (2, np.float16),
    "tf32": (4, np.float32),
    "f8e4m3": (1, ml_dtypes.float8_e4m3fn),
    "f8e5m2": (1, ml_dtypes.float8_e5m2),
    "i8": (1, np.int8),
    "u8": (1, np.uint8),
}


class Case(Record):
    """A product of matrices of type `of`, with so many columns a tile, results of type `out`, and copies ahead in `stages`,
    whose slots rest for `lag` turns."""

    of: str
    columns: int
    out: str
    stages: int = 3
    lag: int = 0

    @property
    def acc(self) -> str:
        """The type of sums."""
        return "i32" if self.of in ("i8", "u8") else "f32"

    @property
    def text(self) -> str:
        """It in the language."""
        size, whole = TYPES[self.of][0], self.acc == "i32"
        late = f", lag={self.lag}" if self.lag else ""
        ring = f"pipeline(k_o, stages={self.stages}{late})" if self.stages > 1 else ""
        a, b = (f"i32({each})" if whole else each for each in ("A[i, k]", "B[j, k]"))
        return _TEXT.format(
            of=self.of, out=self.out, acc=self.acc, zero="0" if whole else "0.0", a=a, b=b, each=16 // size,
            deep=128 // size,
            given="total" if self.out == self.acc else f"{self.out}(total)", columns=self.columns,
            instr=f"tcgen05_m128n{self.columns}k{32 // size}_{self.acc}_{self.of}",
            ring=ring,
        )  # fmt: skip

    def arguments(self, sizes: tuple[int, int, int]) -> tuple[Arguments, Array]:
        """Matrices of small whole numbers, of M × K and N × K elements, and their product."""
        rows, columns, deep = sizes
        random, (_, dtype) = np.random.default_rng(7), TYPES[self.of]
        a, b = (random.integers(0, 4, shape).astype(dtype) for shape in ((rows, deep), (columns, deep)))
        wide = np.int32 if self.acc == "i32" else np.float32
        out = dict(bf16=ml_dtypes.bfloat16, f16=np.float16).get(self.out, wide)
        return {"A": a, "B": b}, (a.astype(wide) @ b.astype(wide).T).astype(out)


CASES = {
    "ring": Case("bf16", 64, "bf16"),
    "in turn": Case("bf16", 64, "f32", 1),
    "late": Case("bf16", 64, "bf16", 4, 1),
    "n16": Case("f16", 16, "f16", 2),
    "n256": Case("bf16", 256, "bf16", 4),
    "tf32": Case("tf32", 32, "f32"),
    "f8e4m3": Case("f8e4m3", 96, "bf16", 2),
    "i8": Case("i8", 32, "i32", 2),
}


@cache
def compiled(name: str) -> Compiled:
    """A case as it is scheduled."""
    function = parse(CASES[name].text, "case.te")["product"]
    return lower(function, "sm_100a", schedule=function.schedules[0])
