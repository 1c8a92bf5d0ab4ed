"""Products by the tensor core of a warpgroup, as users write them, and what those compute, as NumPy says it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike
from tests.instr.texts import Arguments, Array

from texpr.isa.instructions.wgmma import product
from texpr.support.record import Record

WGMMA = """\
instr wgmma_m64n64k16(a: bf16[64, 16], b: bf16[16, 64], inout d: f32[64, 64]) {
    fragment a: descriptor (8,8) : (1@0,1@1);
    fragment b: descriptor (8,8) : (1@1,1@0);
    fragment d: ((4,8,4),(2,2,8)) : ((2@1,1@0,16@0),(1@1,8@0,8@1));
    asm "sm_90a": "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {d}, {a}, {b}, 1, 1, 1, 0, 0;";
    effect joins wgmma group;
    meaning { par 64 |i| { par 64 |j| { seq 16 |k| reduce(d) { d[i, j] += a[i, k] * b[k, j] } } } }
}
"""

TILED = (
    WGMMA
    + """
fn product(A: bf16[64 * m, 64 * p] align(16), B: bf16[64 * n, 64 * p] align(16)): f32[64 * m, 64 * n] {
    new C: f32[64 * m, 64 * n]
    par m |bi| { par n |bj| {
        fully par 128 |t| #align(128) #block {
            reg d: f32[32] = 0.0
            seq p |ko| {
                seq 4 |kk| {
                    wgmma_m64n64k16(A[64 * bi : +64, 64 * ko + 16 * kk : +16],
                                    transpose(B[64 * bj : +64, 64 * ko + 16 * kk : +16]), d)
                }
            }
            seq 32 |r| {
                C[64 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2), 64 * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }
        }
    } }
    return C
}

schedule product "one tile" for sm_90a {
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
}

schedule product "ring" for sm_90a {
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
    pipeline(ko, stages=3)
}
"""
)
"""Tiles that the copy engine brings, one after the other, or ahead into a ring."""

WRITTEN = (
    WGMMA
    + """
fn product(A: bf16[64 * m, 64 * p], B: bf16[64 * n, 64 * p]): f32[64 * m, 64 * n] {
    new C: f32[64 * m, 64 * n]
    par m |bi| { par n |bj| {
        new S: bf16[8, 64, 8]
        new T: bf16[8, 64, 8]
        fully par 128 |t| #align(128) #block {
            reg d: f32[32] = 0.0
            seq p |ko| {
                seq 4 |c| { seq 8 |e| {
                    S[c + 4 * (t / 64), t % 64, e] = A[64 * bi + t % 64, 64 * ko + 8 * (c + 4 * (t / 64)) + e]
                    T[c + 4 * (t / 64), t % 64, e] = B[64 * bj + t % 64, 64 * ko + 8 * (c + 4 * (t / 64)) + e]
                } }
                seq 4 |kk| {
                    let a = reshape(transpose(S[2 * kk : +2, :, :], (1, 0, 2)), (64, 16))
                    let b = reshape(transpose(T[2 * kk : +2, :, :], (1, 0, 2)), (64, 16))
                    wgmma_m64n64k16(a, transpose(b), d)
                }
            }
            seq 32 |r| {
                C[64 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2), 64 * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }
        }
    } }
    return C
}
"""
)
"""Core matrices that threads write: 16 bytes of a row behind those of the row before."""

SCALED = (
    WGMMA
    + """
fn product(A: bf16[64 * m, 64 * p] align(16), B: bf16[64 * n, 64 * p] align(16)): f32[64 * m, 64 * n] {
    new C: f32[64 * m, 64 * n]
    par m |bi| { par n |bj| {
        fully par 128 |t| #align(128) #block {
            reg d: f32[32] = 0.0
            seq p |ko| {
                seq 32 |r| { d[r] = d[r] * 2.0 }
                seq 4 |kk| {
                    wgmma_m64n64k16(A[64 * bi : +64, 64 * ko + 16 * kk : +16],
                                    transpose(B[64 * bj : +64, 64 * ko + 16 * kk : +16]), d)
                }
            }
            seq 32 |r| {
                C[64 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2), 64 * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }
        }
    } }
    return C
}

schedule product for sm_90a {
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
}
"""
)
"""Lanes touch the sum in each turn."""

GROUPS = (
    WGMMA
    + """
fn product(A: bf16[128 * m, 64 * p] align(16), B: bf16[64 * n, 64 * p] align(16)): f32[128 * m, 64 * n] {
    new C: f32[128 * m, 64 * n]
    par m |bi| { par n |bj| {
        fully par 256 |t| #align(128) #block {
            reg d: f32[32] = 0.0
            seq p |ko| {
                seq 4 |kk| {
                    wgmma_m64n64k16(A[128 * bi + 64 * (t / 128) : +64, 64 * ko + 16 * kk : +16],
                                    transpose(B[64 * bj : +64, 64 * ko + 16 * kk : +16]), d)
                }
            }
            seq 32 |r| {
                C[128 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2), 64 * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }
        }
    } }
    return C
}

schedule product for sm_90a {
    stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs
}
"""
)
"""Two warpgroups, each with rows of its own."""

UNITS = (
    WGMMA
    + """
fn product(A: bf16[8 * p, 64 * m, 8] align(16), B: bf16[8 * p, 64 * n, 8] align(16)): f32[64 * m, 64 * n] {
    new C: f32[64 * m, 64 * n]
    par m |bi| { par n |bj| {
        fully par 128 |t| #align(128) #block {
            reg d: f32[32] = 0.0
            seq p |ko| {
                seq 4 |kk| {
                    let a = reshape(transpose(A[8 * ko + 2 * kk : +2, 64 * bi : +64, :], (1, 0, 2)), (64, 16))
                    let b = reshape(transpose(B[8 * ko + 2 * kk : +2, 64 * bj : +64, :], (1, 0, 2)), (64, 16))
                    wgmma_m64n64k16(a, transpose(b), d)
                }
            }
            seq 32 |r| {
                C[64 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2), 64 * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }
        }
    } }
    return C
}

schedule product "engine" for sm_90a {
    stage(A, at=ko, in=shared, via=tma) -> As
    stage(B, at=ko, in=shared, via=tma) -> Bs
}

schedule product "threads" for sm_90a {
    stage(A, at=ko, in=shared) -> As
    stage(B, at=ko, in=shared, via=tma) -> Bs
}

schedule product "asynchronous" for sm_90a {
    stage(A, at=ko, in=shared, via=cp_async) -> As
    stage(B, at=ko, in=shared, via=tma) -> Bs
    vectorize(As_2, 8) -> (one, lane)
}
"""
)
"""Matrices that are core matrices in global memory, too, and are copied as they are."""


class Case(Record):
    """A text, its schedule, and how it is called. `types`: of the operands, and of the sum; `across`: whether A, and B, are
    given with the sum along their first dimension; `units`: as core matrices; `tile`: rows, columns and depth of a tile."""

    text: str
    schedule: str | None = None
    types: tuple[DTypeLike, DTypeLike] = (ml_dtypes.bfloat16, np.float32)
    across: tuple[bool, bool] = (False, False)
    units: bool = False
    tile: tuple[int, int, int] = (64, 64, 64)
    doubled: bool = False

    def arguments(self, tiles: tuple[int, int, int] = (1, 1, 2)) -> tuple[Arguments, Array]:
        """Small whole numbers, and their product."""
        rows, columns, depth = (count * each for count, each in zip(tiles, self.tile, strict=True))
        random = np.random.default_rng(rows + columns + depth)
        low = 0 if np.dtype(self.types[0]) == np.uint8 else -3
        left, right = (random.integers(low, 4, (extent, depth)) for extent in (rows, columns))
        a, b = ((x.T if turned else x).astype(self.types[0]) for x, turned in zip((left, right), self.across, strict=True))
        if self.units:
            a, b = (x.reshape(x.shape[0], -1, 8).transpose(1, 0, 2) for x in (a, b))
        wanted = left @ right.T
        if self.doubled:  # what is there, by 2, before each tile
            wanted = np.zeros_like(wanted)
            for at in range(0, depth, 64):
                wanted = 2 * wanted + left[:, at : at + 64] @ right[:, at : at + 64].T
        return {"A": np.ascontiguousarray(a), "B": np.ascontiguousarray(b)}, wanted.astype(self.types[1])


def of_record(
    columns: int, of: str, into: str = "f32", *, by_m: bool = False, by_n: bool = False, span: int = 128, more: str = ""
) -> str:
    """A product of tiles by a shipped record: a row of a tile is as wide as the swizzle."""
    record = product(columns, of, into, by_m=by_m, by_n=by_n)
    deep = record.operands[0].shape[1]
    wide = {"tf32": 4, "bf16": 2, "f16": 2}.get(of, 1)
    tile, count = span // wide, columns // 2
    left = f"{of}[{tile} * p, 64 * m]" if by_m else f"{of}[64 * m, {tile} * p]"
    right = f"{of}[{tile} * p, {columns} * n]" if by_n else f"{of}[{columns} * n, {tile} * p]"
    depth, i, j = f"{tile} * ko + {deep} * kk : +{deep}", "64 * bi : +64", f"{columns} * bj : +{columns}"
    a = f"transpose(A[{depth}, {i}])" if by_m else f"A[{i}, {depth}]"
    b = f"B[{depth}, {j}]" if by_n else f"transpose(B[{j}, {depth}])"
    return f"""{record.text}

fn product(A: {left} align(16), B: {right} align(16)): {into}[64 * m, {columns} * n] {{
    new C: {into}[64 * m, {columns} * n]
    par m |bi| {{ par n |bj| {{
        fully par 128 |t| #align(128) #block {{
            reg d: {into}[{count}] = {0 if into == "i32" else 0.0}
            seq p |ko| {{ seq {tile // deep} |kk| {{ {record.name}({a}, {b}, d) }} }}
            seq {count} |r| {{
                let i = 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2)
                C[64 * bi + i, {columns} * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }}
        }}
    }} }}
    return C
}}

schedule product for sm_90a {{
    stage(A, at=ko, in=shared, via=tma, swizzle={span}B) -> As
    stage(B, at=ko, in=shared, via=tma, swizzle={span}B{more}) -> Bs
}}
"""


LENT = (
    product(64, "bf16", in_registers=True).text
    + """

fn product(A: bf16[64 * m, 64 * p], B: bf16[64 * n, 64 * p] align(16)): f32[64 * m, 64 * n] {
    new C: f32[64 * m, 64 * n]
    par m |bi| { par n |bj| {
        fully par 128 |t| #align(128) #block {
            reg d: f32[32] = 0.0
            reg a: bf16[8] = 0.0
            seq p |ko| {
                seq 4 |kk| {
                    seq 8 |i| {
                        let row = 64 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (i / 2 % 2)
                        a[i] = A[row, 64 * ko + 16 * kk + 2 * (t % 4) + i % 2 + 8 * (i / 4)]
                    }
                    wgmma_m64n64k16_f32_bf16_ar(a, transpose(B[64 * bj : +64, 64 * ko + 16 * kk : +16]), d)
                }
            }
            seq 32 |r| {
                C[64 * bi + 16 * (t / 32) + t / 4 % 8 + 8 * (r / 2 % 2), 64 * bj + 8 * (r / 4) + 2 * (t % 4) + r % 2] = d[r]
            }
        }
    } }
    return C
}

schedule product for sm_90a { stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs }
"""
)
"""Rows that lanes have in registers, which they lend."""

BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn

CASES = {
    "one tile": Case(TILED, "one tile"),
    "ring": Case(TILED, "ring"),
    "written": Case(WRITTEN),
    "scaled": Case(SCALED, doubled=True),
    "groups": Case(GROUPS, tile=(128, 64, 64)),
    "lent": Case(LENT),
    "units": Case(UNITS, "engine", units=True),
    "units by threads": Case(UNITS, "threads", units=True),
    "n8": Case(of_record(8, "bf16"), tile=(64, 8, 64)),
    "n256": Case(of_record(256, "bf16"), tile=(64, 256, 64)),
    "f16": Case(of_record(64, "f16"), types=(np.float16, np.float32)),
    "tf32": Case(of_record(64, "tf32"), types=(np.float32, np.float32), tile=(64, 64, 32)),
    "f8e4m3": Case(of_record(64, "f8e4m3"), types=(FP8, np.float32), tile=(64, 64, 128)),
    "i8": Case(of_record(64, "i8", "i32"), types=(np.int8, np.int32), tile=(64, 64, 128)),
    "u8": Case(of_record(64, "u8", "i32"), types=(np.uint8, np.int32), tile=(64, 64, 128)),
    "b by columns": Case(of_record(64, "bf16", by_n=True), across=(False, True)),
    "a by rows": Case(of_record(64, "bf16", by_m=True), across=(True, False)),
    "both": Case(
        of_record(128, "f16", by_m=True, by_n=True, more=", box=(64, 64)"),
        types=(np.float16, np.float32),
        across=(True, True),
        tile=(64, 128, 64),
    ),
    "64 bytes": Case(of_record(64, "bf16", span=64), tile=(64, 64, 32)),
    "32 bytes": Case(of_record(64, "bf16", span=32), tile=(64, 64, 16)),
}
