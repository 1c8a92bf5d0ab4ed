"""The programs of the table of `docs/theory/mapping.md`."""

from __future__ import annotations

WHOLE = "M % 32 == 0, N % 32 == 0, K % 32 == 0"


def copied(shape: str, loops: str, index: str, dtype: str = "f32", where: str = "", read: str = "", result: str = "") -> str:
    """One array from another: `B[index] = A[read]`."""
    nest = loops.split()
    pars = " ".join(f"par {extent} |{name}| {{" for extent, name in (each.split(":") for each in nest))
    made = result or shape
    head = f"fn f(X: {dtype}[{shape}]): {dtype}[{made}] {'where ' + where if where else ''} {{ new Y: {dtype}[{made}]"
    return f"{head} {pars} Y[{index}] = X[{read or index}] {'}' * len(nest)} return Y }}"


def transpose(dtype: str, shape: str = "M, N", where: str = "") -> str:
    m, n = shape.split(", ")
    return copied(shape, f"{n}:j {m}:i", "j, i", dtype, where, "i, j", f"{n}, {m}")


def product(a: str, b: str, left: str, right: str, where: str, dtype: str = "f32") -> str:
    return f"""fn f(A: {dtype}[{a}], B: {dtype}[{b}]): f32[M, N] where {where} {{
        new C: f32[M, N]
        par M |i| {{ par N |j| {{
            new s: f32 = 0.0
            seq K |k| {{ s += f32(A[{left}] * B[{right}]) }}
            C[i, j] = s
        }} }}
        return C
    }}"""


BIAS = """fn f(A: f32[M, N], b: f32[N]): f32[M, N] where N % 32 == 0 {
    new B: f32[M, N]
    par M |i| { par N |j| { B[i, j] = A[i, j] + b[j] } }
    return B
}"""
GATHER = """fn f(T: f32[V, N], I: i32[M]): f32[M, N] where N % 32 == 0 assume I in 0..V {
    new B: f32[M, N]
    par M |i| { par N |j| { B[i, j] = T[I[i], j] } }
    return B
}"""
BLOCKS = """fn f(T: f32[V, 8], I: i32[M]): f32[M, 8] assume I in 0..V {
    new B: f32[M, 8]
    par M |i| { par 8 |j| { B[i, j] = T[I[i], j] } }
    return B
}"""
STENCIL = """fn f(A: f32[M, N]): f32[M, N] where N % 32 == 0, M >= 2, N >= 2 {
    new B: f32[M, N]
    par M |i| { par N |j| { B[i, j] = 0.0 } }
    par M - 2 |i| { par N - 2 |j| { B[i + 1, j + 1] = A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2] } }
    return B
}"""
CONVOLUTION = """fn f(X: f32[H, W, C], K: f32[3, 3, C, F]): f32[H - 2, W - 2, F]
    where H >= 3, W >= 3, C % 32 == 0, F % 32 == 0
{
    new Y: f32[H - 2, W - 2, F]
    par H - 2 |p| { par W - 2 |q| { par F |f| {
        new s: f32 = 0.0
        seq 3 |r| { seq 3 |t| { seq C |c| { s += X[p + r, q + t, c] * K[r, t, c, f] } } }
        Y[p, q, f] = s
    } } }
    return Y
}"""
IM2COL = """fn f(x: f32[C, H, W]): f32[H - 2, W - 2, C, 3, 3] where H >= 3, W >= 3, W % 32 == 0 {
    new y: f32[H - 2, W - 2, C, 3, 3]
    par H - 2 |p| { par W - 2 |q| { par C |c| { par 3 |r| { par 3 |s| { y[p, q, c, r, s] = x[c, p + r, q + s] } } } } }
    return y
}"""
FIVE = ("A, B, C, D, E", "C:c E:e A:a D:d B:b", "c, e, a, d, b")
DEEP = copied(
    ", ".join("4" for _ in range(12)),
    " ".join(f"4:i{n}" for n in range(12)),
    ", ".join(f"i{n}" for n in range(12)),
    read=", ".join(f"i{11 - n}" for n in range(12)),
)

PROGRAMS = {
    "copy": copied("M, N", "M:i N:j", "i, j", where=WHOLE.rsplit(",", 1)[0]),
    "copy, rows of any length": copied("M, N", "M:i N:j", "i, j"),
    "copy, rows of 3": copied("M, 3", "M:i 3:j", "i, j"),
    "copy, rows of 7, f16": copied("M, 7", "M:i 7:j", "i, j", "f16"),
    "copy, 33 × 37": copied("33, 37", "33:i 37:j", "i, j"),
    "every third": copied("3 * n", "n:i", "i", read="3 * i", result="n"),
    "bias": BIAS,
    "four neighbours": STENCIL,
    "gather of rows": GATHER,
    "gather of blocks of 8": BLOCKS,
    "transpose f64": transpose("f64", where="M % 32 == 0, N % 32 == 0"),
    "transpose f32": transpose("f32", where="M % 32 == 0, N % 32 == 0"),
    "transpose f16": transpose("f16", where="M % 32 == 0, N % 32 == 0"),
    "transpose f8e4m3": transpose("f8e4m3", where="M % 32 == 0, N % 32 == 0"),
    "transpose, any size": transpose("f32"),
    "transpose, 101 × 67": transpose("f32", "101, 67"),
    "planes of RGB, u8": copied("M, N, 3", "M:i N:j 3:c", "c, i, j", "u8", "N % 32 == 0", "i, j, c", "3, M, N"),
    "3-D reversal": copied("M, N, K", "K:k N:j M:i", "k, j, i", where=WHOLE, read="i, j, k", result="K, N, M"),
    "3-D permute, any size": copied("M, N, K", "N:j K:k M:i", "j, k, i", read="i, j, k", result="N, K, M"),
    "blocks of 8": copied("M, N, 8", "N:b M:i 8:j", "b, i, j", read="i, b, j", result="N, M, 8"),
    "5-D permute f16": copied(FIVE[0], FIVE[1], FIVE[2], "f16", read="a, b, c, d, e", result="C, E, A, D, B"),
    "reversal of 12 axes of 4": DEEP,
    "matmul NN": product("M, K", "K, N", "i, k", "k, j", WHOLE),
    "matmul NT": product("M, K", "N, K", "i, k", "j, k", WHOLE),
    "matmul TN": product("K, M", "K, N", "k, i", "k, j", WHOLE),
    "matmul NN bf16": product("M, K", "K, N", "i, k", "k, j", WHOLE, "bf16"),
    "convolution 3 × 3": CONVOLUTION,
    "im2col 3 × 3": IM2COL,
}

TILE = """fn f(A: f32[M, N]): f32[N, M] where M % 32 == 0, N % 32 == 0 {
    new B: f32[N, M]
    par M / 32 |bi| { par N / 32 |bj| {
        new T: f32[32, 32]
        par 32 |r| { par 32 |c| { T[r, c] = A[bi * 32 + r, bj * 32 + c] } }
        par 32 |n| { par 32 |m| { B[bj * 32 + n, bi * 32 + m] = T[m, n] } }
    } }
    return B
}
"""

SCHEDULED = {
    "tile turned, as it lies": TILE + "schedule f for cuda { place(T, shared) }",
    "tile turned, rows a word longer": TILE + "schedule f for cuda { place(T, shared) resize(T.d1, 0, 1) }",
    "tile turned, swizzled by 8": TILE + "schedule f for cuda { place(T, shared) swizzle(T.d0, T.d1, xor=8) }",
    "tile turned, swizzled": TILE + "schedule f for cuda { place(T, shared) swizzle(T.d0, T.d1, xor=32) }",
}
"""What a schedule places in shared memory; the last band reads it."""
