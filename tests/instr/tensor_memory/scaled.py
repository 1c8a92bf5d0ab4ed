"""Products with scales in tensor memory, as users write and schedule them, and what those compute, as NumPy says it."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike
from tests.instr.texts import Arguments, Array

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.support.record import Record

PRODUCT = """\
fn product(
    A: {of}[M, K] align(16), a: f8e8m0[M, K / 32], B: {of}[N, K] align(16), b: f8e8m0[N, K / 32]
): {out}[M, N] align(16)
    where K % 32 == 0, N % 8 == 0
{{
    new C: {out}[M, N]
    par M |i| {{ par N |j| {{
        new total: f32
        total = 0.0
        seq K |k| reduce(total) {{ total += f32(A[i, k]) * f32(a[i, k / 32]) * f32(B[j, k]) * f32(b[j, k / 32]) }}
        C[i, j] = {given}
    }} }}
    return C
}}
"""

SCHEDULE = """
schedule product "tiles" for sm_100a {{
    split(i, 128) -> (i_b, i_m)
    split(j, {columns}) -> (j_b, j_m)
    split(k, 128) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_m, j_m, k_i)
    bind(i_b, grid.y)
    bind(j_b, grid.x)
    stage(A, at=k_o, in=shared, via=tma, swizzle=128B) -> A_s
    stage(B, at=k_o, in=shared, via=tma, swizzle=128B) -> B_s
    stage(a, at=k_o, in=shared) -> a_s
    stage(b, at=k_o, in=shared) -> b_s
    mma(i_m, j_m, k_i, tcgen05_m128n{columns}k32_f32_mx_{of})
    {ring}
}}
"""

TYPES: dict[str, DTypeLike] = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}


class Scaled(Record):
    """A product of 8-bit floats with a scale for each block of 32, as `texts.Case`."""

    of: str
    columns: int
    out: str = "f32"
    ring: str = ""

    @property
    def text(self) -> str:
        """It in the language, without a schedule where it has no columns."""
        given = "total" if self.out == "f32" else f"{self.out}(total)"
        plain = PRODUCT.format(of=self.of, out=self.out, given=given)
        return plain + (SCHEDULE.format(of=self.of, columns=self.columns, ring=self.ring) if self.columns else "")

    def arguments(self, sizes: tuple[int, int, int]) -> tuple[Arguments, Array]:
        """Small whole numbers and powers of two, each block with another one, and their product."""
        rows, columns, deep = sizes
        random = np.random.default_rng(7)
        left, right = (random.integers(-3, 4, (n, deep)).astype(TYPES[self.of]) for n in (rows, columns))
        a, b = (_powers(random, (n, deep // 32)) for n in (rows, columns))
        wide = [np.repeat(each.astype(np.float32), 32, 1) for each in (a, b)]
        wanted = (left.astype(np.float32) * wide[0]) @ (right.astype(np.float32) * wide[1]).T
        out = wanted.astype({"bf16": ml_dtypes.bfloat16}.get(self.out, np.float32))
        return {"A": left, "a": a, "B": right, "b": b}, out


def _powers(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return (2.0 ** random.integers(-2, 3, shape)).astype(np.float32).astype(ml_dtypes.float8_e8m0fnu)


CASES = {
    "in turn": Scaled("f8e4m3", 128),
    "ring": Scaled("f8e4m3", 128, "bf16", "pipeline(k_o, stages=3)"),
    "late": Scaled("f8e5m2", 128, "f32", "pipeline(k_o, stages=4, lag=1)"),
    "wide": Scaled("f8e4m3", 256, "bf16", "pipeline(k_o, stages=4, lag=1)"),
    "automatic": Scaled("f8e4m3", 0),
}


@cache
def compiled(name: str) -> Compiled:
    """A case as it is scheduled."""
    function = parse(CASES[name].text, "case.te")["product"]
    return lower(function, "sm_100a", schedule=function.schedules[0] if function.schedules else "auto")
