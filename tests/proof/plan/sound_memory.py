"""Small programs whose arrays lie in the same bytes, whose copies go on by themselves, and whose blocks are clusters."""

from tests.lowering.clustered import blocked

CHAIN = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| {
        new a: i32[8]
        par 8 |p| { a[p] = x[i, p] }
        new b: i32[8]
        par 8 |q| { b[q] = a[7 - q] }
        new c: i32[8]
        par 8 |r| { c[r] = b[(r + 1) % 8] }
        par 8 |s| { y[i, s] = c[7 - s] }
    }
    return y
}"""
WIDE = CHAIN.replace("8", "40").replace("7", "39")
TURNS = """
fn f(x: i32[n, 8]): i64[n, 8] {
    new y: i64[n, 8]
    par n |i| {
        par 8 |o| { y[i, o] = 0 }
        seq 2 |t| {
            new a: i32[8]
            par 8 |p| { a[p] = x[i, p] + t }
            new b: i64[8]
            par 8 |q| { b[q] = i64(a[7 - q]) }
            new c: i16[8]
            par 8 |r| { c[r] = i16(b[(r + 1) % 8]) }
            par 8 |s| { y[i, s] += i64(c[7 - s]) }
        }
    }
    return y
}"""
LIVING = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| {
        new a: i32[8]
        par 8 |p| { a[p] = x[i, p] }
        new c: i32[8]
        par 8 |r| { c[r] = a[7 - r] * 2 }
        new b: i32[8]
        par 8 |q| { b[q] = c[7 - q] + 1 }
        par 8 |s| { y[i, s] = a[s] - b[7 - s] + c[(s + 1) % 8] }
    }
    return y
}"""
SUMMED = """
fn f(x: i32[n, 64]): i32[n, 64] {
    new y: i32[n, 64]
    par n |i| {
        new a: i32[64]
        par 64 |p| { a[p] = x[i, p] }
        new s: i32 = 0
        par 64 |q| reduce(s) { s += a[63 - q] }
        new b: i32[64]
        par 64 |r| { b[r] = s - x[i, r] }
        new t: i32 = 0
        par 64 |u| reduce(t) { t max= b[63 - u] }
        par 64 |v| { y[i, v] = b[63 - v] + t }
    }
    return y
}"""
THREADS = "bind(i, grid.x) " + " ".join(f"bind({each}, block.x)" for each in "pqrs")
SHARED = " ".join(f"place({each}, shared)" for each in "abc")

RING = """
fn f(x: i32[n, 8] align(16)): i32[n, 8] {
    new y: i32[n, 8]
    par 1 |b| { seq n |i| { par 8 |j| { y[i, j] = x[i, j] + x[i, 7 - j] } } }
    return y
}"""
STAGED = "bind(b, grid.x) stage(x, at=i, in=shared, via=VIA) -> xs "
LONG = RING.replace("8", "40").replace("7", "39")
PRODUCT = """
fn f(A: i32[n, 8] align(16), B: i32[8, m] align(16)): i32[n, m] {
    new C: i32[n, m]
    par n |i| { par m |j| {
        C[i, j] = 0
        seq 8 |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""
TILES = """
    split(i, 2) -> (bi, ti) split(j, 4) -> (bj, tj) split(k, 2) -> (ko, ki)
    reorder(bi, bj, ko, ti, tj, ki)
    bind(bi, grid.y) bind(bj, grid.x) bind(ti, block.y) bind(tj, block.x)
    stage(A, at=ko, in=shared, via=cp_async, fill=zero) -> As
    stage(B, at=ko, in=shared, via=cp_async, fill=zero) -> Bs
    pipeline(ko, stages=2)"""
LATER = """
fn f(inout x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| #bind(grid.x) {
        new a: i32[8]
        par 8 |p| #async { a[p] = x[i, p] }
        par 8 |q| { x[i, q] = 2 * a[7 - q] }
        new b: i32[8]
        par 8 |r| #async { b[r] = x[i, r] }
        par 8 |s| { y[i, s] = b[(s + 1) % 8] }
    }
    return y
}"""
EARLIER = """
fn f(inout x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| #bind(grid.x) {
        new a: i32[8]
        par 8 |p| #async { a[p] = x[i, p] }
        par 8 |q| { x[i, q] = 3 * q + 1 }
        par 8 |r| { y[i, r] = a[7 - r] }
    }
    return y
}"""
HALF = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |i| #bind(grid.x) {
        par 8 |o| { y[i, o] = 1 }
        new a: i32[8]
        par 8 |p| #async { a[p] = x[i, p] }
        if i % 2 == 0 { par 8 |q| { y[i, q] = 2 * a[7 - q] } }
    }
    return y
}"""
CHOSEN = """
fn f(x: i32[n, 8], z: i32[n]): (i32[n, 8], i32[n, 8]) {
    new y: i32[n, 8]
    new w: i32[n, 8]
    par n |i| #bind(grid.x) {
        par 8 |o| { y[i, o] = 1 }
        new a: i32[8]
        par 8 |p| #async { a[p] = x[i, p] }
        if z[i] > 0 {
            new b: i32[8]
            par 8 |t| #async { b[t] = x[i, 7 - t] }
            par 8 |q| { y[i, q] = a[7 - q] + b[(q + 1) % 8] }
        }
        par 8 |r| { w[i, r] = a[7 - r] }
    }
    return (y, w)
}"""
ASKED = """
fn f(x: i32[n, 8] align(16), z: i32[n]): (i32[n, 8], i32[n]) {
    new y: i32[n, 8]
    new w: i32[n]
    par n |i| {
        par 8 |o| { y[i, o] = 1 }
        w[i] = 0
        if z[i] > 0 { w[i] = 1 }
        if z[i] > 0 { par 1 |u| { par 8 |q| { y[i, q] = 2 * x[i, 7 - q] } } }
    }
    return (y, w)
}"""

CLUSTER = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |r| {
        new row: i32[8]
        par 8 |j| { row[j] = x[r, j] }
        new all: i32 = 0
        par 8 |l| reduce(all) { all += row[l] }
        par 8 |o| { y[r, o] = row[7 - o] * 2 + all }
    }
    return y
}"""
SWEEPS = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |r| {
        new a: i32[8]
        new b: i32[8]
        par 8 |i| { a[i] = x[r, i] }
        seq 2 |t| {
            par 8 |j| { b[j] = a[7 - j] + t }
            par 8 |k| { a[k] = b[(k + 3) % 8] * 2 }
        }
        par 8 |l| { y[r, l] = a[l] }
    }
    return y
}"""


def staged(via: str, more: str = "") -> str:
    return STAGED.replace("VIA", via) + more


MEMORY = {
    "chain": (CHAIN, f"{THREADS} {SHARED}"),
    "two warps": (WIDE, f"bind(i, grid.x) {SHARED}"),
    "turns": (TURNS, f"{THREADS} {SHARED}"),
    "living": (LIVING, f"{THREADS} {SHARED}"),
    "summed": (SUMMED, "bind(i, grid.x) place(a, shared) place(b, shared)"),
    "staged": (RING, staged("cp_async", "bind(j, block.x)")),
    "vectors": (RING, staged("ld", "vectorize(xs_1, 4)")),
    "ring of two": (RING, staged("cp_async", "vectorize(xs_1, 4) pipeline(i, stages=2)")),
    "ring of three": (RING, staged("cp_async", "pipeline(i, stages=3)")),
    "long ring": (LONG, staged("cp_async", "pipeline(i, stages=2)")),
    "product": (PRODUCT, TILES),
    "later": (LATER, ""),
    "earlier": (EARLIER, ""),
    "half": (HALF, ""),
    "chosen": (CHOSEN, ""),
    "asked": (ASKED, "bind(i, grid.x) stage(x, at=u, in=shared) -> xs"),
    "asked of tiles": (ASKED, "bind(i, grid.x) stage(x, at=u, in=shared, via=tma) -> xs"),
    "cluster": (CLUSTER, blocked(4, *"jlo") + " place(row, cluster)"),
    "sweeps": (SWEEPS, blocked(4, *"ijkl") + " place(a, cluster) place(b, cluster)"),
    "tile": (RING, staged("tma")),
    "stored": (RING, staged("tma", "stage(y, at=i, in=shared, via=tma) -> ys")),
    "ring of tiles": (RING, staged("tma", "pipeline(i, stages=2)")),
}
"""Each with what its schedule does."""
