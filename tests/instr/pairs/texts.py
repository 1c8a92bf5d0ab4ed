"""Products of pairs of blocks, as users write and schedule them, and what those compute, as NumPy says it."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
from tests.instr.tensor_memory.texts import TYPES
from tests.instr.texts import Arguments, Array

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.support.record import Record

_TEXT = """\
fn product(A: {of}[{rows}] align(16), B: {of}[{cols}] align(16)): {out}[M, N] align(16)
    where K % {each} == 0, N % {each} == 0, M % {least} == 0
{{
    new C: {out}[M, N]
    par M |i| {{ par N |j| {{
        new total: f32
        total = 0.0
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
    cluster(i_b, 2)
    stage(A, at=k_o, in=shared, via=tma, swizzle=128B{a_box}) -> A_s
    stage(B, at=k_o, in=shared, via=tma, swizzle=128B{b_box}, multicast=i_b) -> B_s
    mma(i_m, j_m, k_i, tcgen05_pair_m128n{columns}k{step}_f32_{of}{turned})
    {ring}
}}
"""


class Case(Record):
    """A product of matrices of type `of`, with so many columns a tile, results of type `out`, and copies ahead in `stages`,
    whose slots rest for `lag` turns. `turned`: of which operands neighbours in memory go along rows, or columns, of the
    product: "_am", "_bn", or both."""

    of: str
    columns: int
    out: str
    stages: int = 3
    lag: int = 0
    turned: str = ""

    @property
    def text(self) -> str:
        """It in the language."""
        size = TYPES[self.of][0]
        late = f", lag={self.lag}" if self.lag else ""
        m, n = "_am" in self.turned, "_bn" in self.turned
        return _TEXT.format(
            of=self.of, out=self.out, each=16 // size, deep=128 // size, columns=self.columns, step=32 // size,
            given="total" if self.out == "f32" else f"{self.out}(total)",
            turned=self.turned, least=16 // size if m else 1, rows="K, M" if m else "M, K", cols="K, N" if n else "N, K",
            a="A[k, i]" if m else "A[i, k]", b="B[k, j]" if n else "B[j, k]",
            a_box=", box=(64, 64)" if m else "", b_box=", box=(64, 64)" if n else "",
            ring=f"pipeline(k_o, stages={self.stages}{late})" if self.stages > 1 else "",
        )  # fmt: skip

    def arguments(self, sizes: tuple[int, int, int]) -> tuple[Arguments, Array]:
        """Matrices of small whole numbers, of M × K and N × K elements, and their product."""
        rows, columns, deep = sizes
        random, dtype = np.random.default_rng(7), TYPES[self.of][1]
        a, b = (random.integers(-3, 4, shape).astype(dtype) for shape in ((rows, deep), (columns, deep)))
        out = dict(bf16=ml_dtypes.bfloat16, f16=np.float16).get(self.out, np.float32)
        given = {
            "A": np.ascontiguousarray(a.T) if "_am" in self.turned else a,
            "B": np.ascontiguousarray(b.T) if "_bn" in self.turned else b,
        }
        return given, (a.astype(np.float32) @ b.astype(np.float32).T).astype(out)


CASES = {
    "late": Case("bf16", 64, "bf16", 4, 1),
    "ring": Case("f16", 64, "f32", 3),
    "in turn": Case("bf16", 64, "f32", 1),
    "wide": Case("bf16", 256, "bf16", 4, 1),
    "tf32": Case("tf32", 64, "f32"),
    "turned": Case("bf16", 128, "f32", 4, 1, "_am_bn"),
    "f8e4m3": Case("f8e4m3", 128, "bf16", 4, 1),
}


@cache
def compiled(name: str) -> Compiled:
    """A case as it is scheduled."""
    function = parse(CASES[name].text, "case.te")["product"]
    return lower(function, "sm_100a", schedule=function.schedules[0])
