"""Instructions as users write them, with functions that use them, and what those compute, as NumPy says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from texpr.support.record import Record

Array = NDArray[Any]
Arguments = dict[str, Array]

MMA_16816 = """\
instr mma_m16n8k16(a: bf16[16, 16], b: bf16[16, 8], inout c: f32[16, 8]) {
    fragment a: ((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1));
    fragment b: ((4,8),(2,2)) : ((2@0,1@1),(1@0,8@0));
    fragment c: ((4,8),(2,2)) : ((2@1,1@0),(1@1,8@0));
    asm "sm_80": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {c}, {a}, {b}, {c};";
    meaning { par 16 |i| { par 8 |j| { seq 16 |k| reduce(c) { c[i, j] += a[i, k] * b[k, j] } } } }
}
"""

REGISTERS = (
    MMA_16816
    + """
fn product(A: bf16[16 * m, 16 * p], B: bf16[16 * p, 8 * n]): f32[16 * m, 8 * n] {
    new C: f32[16 * m, 8 * n]
    par m |bi| { par n |bj| {
        fully par 32 |lane| #align(32) #block {
            new a: bf16[8]
            new b: bf16[4]
            new c: f32[4] = 0.0
            seq p |ki| {
                seq 8 |r| { a[r] = A[16 * bi + lane / 4 + 8 * (r / 2 % 2), 16 * ki + 2 * (lane % 4) + r % 2 + 8 * (r / 4)] }
                seq 4 |r| { b[r] = B[16 * ki + 2 * (lane % 4) + r % 2 + 8 * (r / 2), 8 * bj + lane / 4] }
                mma_m16n8k16(a, b, c)
            }
            seq 4 |r| { C[16 * bi + lane / 4 + 8 * (r / 2), 8 * bj + 2 * (lane % 4) + r % 2] = c[r] }
        }
    } }
    return C
}
"""
)


MET = """\
instr turn(a: i32[32], inout c: i32[32]) {
    fragment a: (32,1) : (1@0,0);
    fragment c: (32,1) : (1@0,0);
    asm "sm_80": "shfl.sync.down.b32 {c}, {a}, 1, 0x1f, {lanes};";
    meaning { par 32 |i| { c[i] = a[min(i + 1, 31)] } }
}

fn met(x: i32[32 * n]): i32[n] {
    new y: i32[n]
    par n |b| {
        new total: i32
        total = 0
        fully par 32 |lane| reduce(total) {
            reg a: i32[1] = x[32 * b + lane]
            reg c: i32[1]
            turn(a, c)
            if n > 1 { turn(c, a) }
            total += a[0]
        }
        y[b] = total
    }
    return y
}
"""
"""What lanes have behind an instruction, summed up; one of two is done where a size says so."""

SEED = (
    MMA_16816
    + """
fn mma(a: bf16[16, 16], b: bf16[16, 8]): f32[16, 8] {
    new d: f32[16, 8]
    fully par 32 |i| #align(32) #block {
        reg ra: bf16[8]
        reg rb: bf16[4]
        reg rc: f32[4] = 0.0
        seq 8 |r| { ra[r] = a[i / 4 + 8 * (r / 2 % 2), 2 * (i % 4) + r % 2 + 8 * (r / 4)] }
        seq 4 |r| { rb[r] = b[2 * (i % 4) + r % 2 + 8 * (r / 2), i / 4] }
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", ra, rb, rc)
        seq 4 |r| { d[i / 4 + 8 * (r / 2), 2 * (i % 4) + r % 2] = rc[r] }
    }
    return d
}
"""
)
"""As the seed writes it."""


TILE = (
    MMA_16816
    + """
fn product(A: bf16[16, 16 * p], B: bf16[16 * p, 32]): f32[16, 32] {
    new C: f32[16, 32]
    fully par 32 |lane| {
        reg a: bf16[8]
        reg c: f32[16] = 0.0
        seq p |ki| {
            seq 8 |r| { a[r] = A[lane / 4 + 8 * (r / 2 % 2), 16 * ki + 2 * (lane % 4) + r % 2 + 8 * (r / 4)] }
            static for t in 0..4 { mma_m16n8k16(a, B[16 * ki : +16, 8 * t : +8], c[4 * t : +4]) }
        }
        seq 16 |r| { C[lane / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (lane % 4) + r % 2] = c[r] }
    }
    return C
}
"""
)
"""Four products of one `a`, each with registers of its own of one array."""

LDMATRIX = (
    MMA_16816
    + """
instr ldmatrix_x4(p: bf16[16, 16], inout d: bf16[16, 16]) {
    fragment p: shared ((8,2,2),8) : ((1@0,8@0,8@1),1@1);
    fragment d: ((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1));
    asm "sm_80": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d}, [{p}];";
    meaning { par 16 |i| { par 16 |j| { d[i, j] = p[i, j] } } }
}

fn product(A: bf16[16 * m, 16 * p], B: bf16[16 * p, 8 * n]): f32[16 * m, 8 * n] {
    new C: f32[16 * m, 8 * n]
    par m |bi| { par n |bj| {
        new S: bf16[16, 16]
        fully par 32 |lane| #align(32) #block {
            reg a: bf16[8]
            reg b: bf16[4]
            reg c: f32[4] = 0.0
            seq p |ki| {
                seq 8 |r| { S[lane / 2, 8 * (lane % 2) + r] = A[16 * bi + lane / 2, 16 * ki + 8 * (lane % 2) + r] }
                seq 4 |r| { b[r] = B[16 * ki + 2 * (lane % 4) + r % 2 + 8 * (r / 2), 8 * bj + lane / 4] }
                ldmatrix_x4(S, a)
                mma_m16n8k16(a, b, c)
            }
            seq 4 |r| { C[16 * bi + lane / 4 + 8 * (r / 2), 8 * bj + 2 * (lane % 4) + r % 2] = c[r] }
        }
    } }
    return C
}
"""
)
"""Rows of shared memory, each of which a lane says the address of."""


def matrices(shape: str, a: str, b: str, c: str, asm: str, fragments: tuple[str, str, str]) -> str:
    """A product of matrices by an instruction on parts of arrays, whose fragments are those of one shape."""
    m, n, k = extents(shape)
    left, right = (f"i32({each})" if c == "i32" else each for each in ("a[i, k]", "b[k, j]"))
    return f"""\
instr mma(a: {a}[{m}, {k}], b: {b}[{k}, {n}], inout c: {c}[{m}, {n}]) {{
    fragment a: {fragments[0]};
    fragment b: {fragments[1]};
    fragment c: {fragments[2]};
    asm "sm_80": "{asm}";
    meaning {{ par {m} |i| {{ par {n} |j| {{ seq {k} |k| reduce(c) {{ c[i, j] += {left} * {right} }} }} }} }}
}}

fn product(A: {a}[{m} * m, {k} * p], B: {b}[{k} * p, {n} * n], inout C: {c}[{m} * m, {n} * n]) {{
    par m |bi| {{ par n |bj| {{ fully par 32 |lane| #align(32) {{
        seq p |ki| {{
            mma(A[{m} * bi : +{m}, {k} * ki : +{k}], B[{k} * ki : +{k}, {n} * bj : +{n}], C[{m} * bi : +{m}, {n} * bj : +{n}])
        }}
    }} }} }}
}}
"""


def extents(shape: str) -> list[int]:
    """Rows, columns and depth of a shape."""
    return [int(part) for part in shape.replace("m", " ").replace("n", " ").replace("k", " ").split()]


C_16_8 = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"
HALVES = "((4,8),(2,2,2)):((2@1,1@0),(1@1,8@0,8@1))", "((4,8),(2,2)):((2@0,1@1),(1@0,8@0))", C_16_8
HALVES_8 = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((4,8),2):((2@0,1@1),1@0)", C_16_8
BYTES = "((4,8),(4,2,2)):((4@1,1@0),(1@1,8@0,16@1))", "((4,8),(4,2)):((4@0,1@1),(1@0,16@0))", C_16_8
BYTES_16 = "((4,8),(4,2)):((4@1,1@0),(1@1,8@0))", "((4,8),4):((4@0,1@1),1@0)", C_16_8
DOUBLES = "((4,8),1):((1@1,1@0),0)", "((4,8),1):((1@0,1@1),0)", "((4,8),2):((2@1,1@0),1@1)"
TF32 = "((4,8),(2,2)):((1@1,1@0),(8@0,4@1))", "((4,8),2):((1@0,1@1),4@0)", C_16_8

SHAPES = {
    "m16n8k16 f16": ("m16n8k16", "f16", "f16", "f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", HALVES),
    "m16n8k16 bf16": ("m16n8k16", "bf16", "bf16", "f32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", HALVES),
    "m16n8k16 f16 into f16": ("m16n8k16", "f16", "f16", "f16", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", HALVES),
    "m16n8k8 bf16": ("m16n8k8", "bf16", "bf16", "f32", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", HALVES_8),
    "m16n8k32 i8": ("m16n8k32", "i8", "i8", "i32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", BYTES),
    "m16n8k16 u8": ("m16n8k16", "u8", "u8", "i32", "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32", BYTES_16),
    "m8n8k4 f64": ("m8n8k4", "f64", "f64", "f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", DOUBLES),
    "m16n8k8 tf32": ("m16n8k8", "tf32", "tf32", "f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", TF32),
}
"""Shapes of mma, with types, template and fragments (PTX ISA 8.5, "Matrix Fragments for mma.m8n8k4", …)."""


def of_shape(name: str) -> str:
    """The product by one of `SHAPES`."""
    shape, a, b, c, verb, fragments = SHAPES[name]
    braced = "{c}, {{a}}, {{b}}, {c}" if a == "f64" else "{c}, {a}, {b}, {c}"
    if (shape, a) in (("m16n8k8", "bf16"), ("m16n8k16", "u8")):
        braced = "{c}, {a}, {{b}}, {c}"
    return matrices(shape, a, b, c, f"{verb} {braced};", fragments)


NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
    "i32": np.int32, "tf32": np.float32,
}  # fmt: skip


def numbers(name: str, m: int, n: int, p: int, seed: int = 0) -> tuple[Arguments, Array]:
    """Small integers for the product by one of `SHAPES`, and what is to be left in C."""
    shape, a, b, c, _, _ = SHAPES[name]
    rows, columns, depth = extents(shape)
    rng = np.random.default_rng(seed)
    low = 0 if a.startswith("u") else -3
    A = rng.integers(low, 4, (rows * m, depth * p)).astype(NUMPY[a])
    B = rng.integers(low, 4, (depth * p, columns * n)).astype(NUMPY[b])
    C = rng.integers(-3, 4, (rows * m, columns * n)).astype(NUMPY[c])
    wanted = A.astype(np.float64) @ B.astype(np.float64) + C.astype(np.float64)
    return {"A": A, "B": B, "C": C}, wanted.astype(NUMPY[c])


ROTATED = """\
instr turn_and_add(a: f32[4], inout c: f32[4]) {
    fragment a: ((2,2),1) : ((2@0,1@0),0);
    fragment c: 4 : 1@0;
    asm "sm_80": "turn.add.f32 {c}, {a};";
    effect moves between lanes;
    meaning { par 4 |i| { c[i] += a[(i + 1) % 4] } }
}

fn turned(x: f32[4 * n]): f32[4 * n] {
    new y: f32[4 * n] = 0.0
    par n |b| { turn_and_add(x[4 * b : +4], y[4 * b : +4]) }
    return y
}
"""
"""An instruction that there is not: of lanes 0, 1, 2, 3 the fragment of `a` gives elements 0, 2, 1 and 3."""

SCALED = """\
instr scale(a: f32[8], s: f32[1], inout c: f32[8]) {
    fragment a: (4,2) : (2@0,1@0);
    fragment s: (4,1) : (0,0);
    fragment c: (4,2) : (2@0,1@0);
    asm "sm_80": "scale.f32 {c}, {a}, {s};";
    meaning { par 8 |i| { c[i] = a[i] * s[0] } }
}

fn scaled(x: f32[8 * n], s: f32[n]): f32[8 * n] {
    new y: f32[8 * n]
    par n |b| { scale(x[8 * b : +8], s[b : +1], y[8 * b : +8]) }
    return y
}
"""
"""Four lanes have a copy of `s` each."""

WARPS = (
    MMA_16816
    + """
fn product(A: bf16[64, 16 * p], B: bf16[16 * p, 8]): f32[64, 8] {
    new C: f32[64, 8]
    par 1 |block| {
        fully par 128 |t| #align(32) {
            new c: f32[4] = 0.0
            seq p |ki| {
                new a: bf16[8]
                new b: bf16[4]
                let row = 16 * (t / 32) + t % 32 / 4
                seq 8 |r| { a[r] = A[row + 8 * (r / 2 % 2), 16 * ki + 2 * (t % 4) + r % 2 + 8 * (r / 4)] }
                seq 4 |r| { b[r] = B[16 * ki + 2 * (t % 4) + r % 2 + 8 * (r / 2), t % 32 / 4] }
                mma_m16n8k16(a, b, c)
            }
            seq 4 |r| { C[16 * (t / 32) + t % 32 / 4 + 8 * (r / 2), 2 * (t % 4) + r % 2] = c[r] }
        }
    }
    return C
}
"""
)
"""Four warps of a block, each with rows of its own."""

SOME_WARPS = (
    MMA_16816
    + """
fn product(A: bf16[16, 16], B: bf16[16, 8]): f32[16, 8] {
    new C: f32[16, 8]
    par 1 |block| {
        new S: bf16[16, 16]
        fully par 128 |t| { seq 2 |r| { S[t / 8, 2 * (t % 8) + r] = A[t / 8, 2 * (t % 8) + r] } }
        fully par 32 |lane| {
            reg c: f32[4] = 0.0
            mma_m16n8k16(S, B, c)
            seq 4 |r| { C[lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2] = c[r] }
        }
    }
    return C
}
"""
)
"""One warp of a block, whose others only copy."""

PARTS_OF_WARPS = (
    MMA_16816
    + """
fn product(A: bf16[32, 16], B: bf16[16, 8]): f32[32, 8] {
    new C: f32[32, 8] = 0.0
    fully par 64 |t| { mma_m16n8k16(A[16 * (t / 32) : +16, :], B, C[16 * (t / 32) : +16, :]) }
    return C
}
"""
)
"""A part for each warp, at the top of a function."""

STMATRIX = (
    MMA_16816
    + """
instr stmatrix_x4(d: bf16[16, 16], inout p: bf16[16, 16]) {
    fragment d: ((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1));
    fragment p: shared ((8,2,2),8) : ((1@0,8@0,8@1),1@1);
    asm "sm_90": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [{p}], {d};";
    meaning { par 16 |i| { par 16 |j| { p[i, j] = d[i, j] } } }
}

fn product(A: bf16[16 * m, 16 * p], B: bf16[16 * p, 16 * n]): bf16[16 * m, 16 * n] {
    new C: bf16[16 * m, 16 * n]
    par m |bi| {
        new S: bf16[16, 16]
        fully par 32 |lane| #align(32) #block {
            seq n |bj| {
                reg c: f32[8] = 0.0
                seq p |ki| {
                    static for t in 0..2 {
                        mma_m16n8k16(A[16 * bi : +16, 16 * ki : +16], B[16 * ki : +16, 16 * bj + 8 * t : +8], c[4 * t : +4])
                    }
                }
                reg d: bf16[8]
                seq 8 |r| { d[r] = bf16(c[r]) }
                stmatrix_x4(d, S)
                seq 8 |r| { C[16 * bi + lane / 2, 16 * bj + 8 * (lane % 2) + r] = S[lane / 2, 8 * (lane % 2) + r] }
            }
        }
    }
    return C
}
"""
)
"""Results that leave registers by rows of shared memory, each of which a lane says the address of."""

FEW_MATRICES = """\
instr stmatrix_x2(d: f16[16, 8], inout p: f16[16, 8]) {
    fragment d: ((4,8),(2,2)) : ((2@0,1@1),(1@0,8@0));
    fragment p: shared ((8,2,2),8) : ((1@0,8@0,0),1@1);
    asm "sm_90": "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [{p}], {d};";
    meaning { par 16 |i| { par 8 |j| { p[i, j] = d[i, j] } } }
}

instr ldmatrix_x1(p: f16[8, 8], inout d: f16[8, 8]) {
    fragment p: shared ((8,4),8) : ((1@0,0),1@1);
    fragment d: ((4,8),2) : ((2@1,1@0),1@1);
    asm "sm_80": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{d}}, [{p}];";
    meaning { par 8 |i| { par 8 |j| { d[i, j] = p[i, j] } } }
}

fn swapped(x: f16[16 * n, 8]): f16[16 * n, 8] {
    new y: f16[16 * n, 8]
    par n |b| {
        new S: f16[16, 8]
        fully par 32 |lane| {
            reg d: f16[4]
            reg low: f16[2]
            reg high: f16[2]
            seq 4 |r| { d[r] = x[16 * b + 2 * (lane % 4) + r % 2 + 8 * (r / 2), lane / 4] }
            stmatrix_x2(d, S)
            ldmatrix_x1(S[0 : +8, :], low)
            ldmatrix_x1(S[8 : +8, :], high)
            seq 2 |r| { y[16 * b + lane / 4, 2 * (lane % 4) + r] = high[r] }
            seq 2 |r| { y[16 * b + 8 + lane / 4, 2 * (lane % 4) + r] = low[r] }
        }
    }
    return y
}
"""
"""Two matrices stored by columns, loaded one by one by rows: of 32 lanes 16, and 8, say where rows are; others repeat."""


class Case(Record):
    """A text, the function of it, arguments, and what it is to give. `assembles`: its template is of a real machine.
    `target`: the first one that has its instructions."""

    text: str
    name: str
    arguments: Callable[[], tuple[Arguments, str, Array]]
    assembles: bool = True
    target: str = "sm_80"


def _product(m: int, n: int, p: int) -> Callable[[], tuple[Arguments, str, Array]]:
    def made() -> tuple[Arguments, str, Array]:
        given, wanted = numbers("m16n8k16 bf16", m, n, p)
        without = {"A": given["A"], "B": given["B"]}
        return without, "C", (wanted - given["C"]).astype(np.float32)

    return made


def _turned() -> tuple[Arguments, str, Array]:
    x = np.arange(12, dtype=np.float32)
    return {"x": x}, "y", np.roll(x.reshape(3, 4), -1, axis=1).reshape(-1)


def _met() -> tuple[Arguments, str, Array]:
    x = np.arange(96, dtype=np.int32)
    return {"x": x}, "y", x.reshape(3, 32)[:, np.minimum(np.arange(32) + 2, 31)].sum(axis=1).astype(np.int32)


def _scaled() -> tuple[Arguments, str, Array]:
    x, s = np.arange(24, dtype=np.float32), np.array([2, 3, 5], np.float32)
    return {"x": x, "s": s}, "y", (x.reshape(3, 8) * s[:, None]).reshape(-1)


def _stored() -> tuple[Arguments, str, Array]:
    given, wanted = numbers("m16n8k16 bf16", 1, 4, 2)
    return {"A": given["A"], "B": given["B"]}, "C", (wanted - given["C"]).astype(NUMPY["bf16"])


def _swapped() -> tuple[Arguments, str, Array]:
    x = np.arange(256).astype(np.float16).reshape(32, 8)
    return {"x": x}, "y", x.reshape(2, 2, 8, 8)[:, ::-1].reshape(32, 8)


def _seed() -> tuple[Arguments, str, Array]:
    given, wanted = numbers("m16n8k16 bf16", 1, 1, 1)
    return {"a": given["A"], "b": given["B"]}, "d", (wanted - given["C"]).astype(np.float32)


def _shape(name: str) -> Callable[[], tuple[Arguments, str, Array]]:
    def made() -> tuple[Arguments, str, Array]:
        given, wanted = numbers(name, 2, 1, 2)
        return given, "C", wanted

    return made


CASES = {
    "registers": Case(REGISTERS, "product", _product(2, 1, 2)),
    "tile": Case(TILE, "product", _product(1, 4, 2)),
    "met": Case(MET, "met", _met),
    "seed": Case(SEED, "mma", _seed),
    "ldmatrix": Case(LDMATRIX, "product", _product(2, 1, 2)),
    "stmatrix": Case(STMATRIX, "product", _stored, target="sm_90"),
    "few matrices": Case(FEW_MATRICES, "swapped", _swapped, target="sm_90"),
    "warps": Case(WARPS, "product", _product(4, 1, 3)),
    "some warps": Case(SOME_WARPS, "product", _product(1, 1, 1)),
    "parts of warps": Case(PARTS_OF_WARPS, "product", _product(2, 1, 1)),
    "turned": Case(ROTATED, "turned", _turned, assembles=False),
    "scaled": Case(SCALED, "scaled", _scaled, assembles=False),
    **{name: Case(of_shape(name), "product", _shape(name)) for name in SHAPES},
}
