"""Programs of shapes that users bring, with sizes to run them at."""

from __future__ import annotations

from texpr.support.record import Record, field


class Shape(Record, dict=True):
    """A text of one function, sizes that are fixed, and sizes of runs."""

    text: str
    runs: tuple[dict[str, int], ...]
    fixed: dict[str, int] = field(default_factory=dict[str, int])
    below: dict[str, str] = field(default_factory=dict[str, str])


LOCALS = """
fn f(x: f32[b, n, 64]): f32[b, 64] {
    new o: f32[b, 64]
    par b |i| {
        new acc: f32[64]
        par 64 |d| { acc[d] = 0.0 }
        seq n |t| { par 64 |d| { acc[d] += x[i, t, d] } }
        par 64 |d| { o[i, d] = acc[d] }
    }
    return o
}"""

SCORES = """
fn f(x: f32[b, n, 64], q: f32[b, 32]): f32[b, 64] {
    new o: f32[b, 64]
    par b |i| {
        new acc: f32[64]
        par 64 |d| { acc[d] = 0.0 }
        seq n |t| {
            new dot: f32
            dot = 0.0
            par 32 |e| reduce(dot) { dot += q[i, e] * x[i, t, e] }
            par 64 |d| { acc[d] += dot * x[i, t, d] }
        }
        par 64 |d| { o[i, d] = acc[d] }
    }
    return o
}"""

BEGUN_BEFORE = """
fn f(x: f32[B, N, M], z: f32[B, M]): f32[B, M] {
    new y: f32[B, M]
    par B |b| { par M |j| { y[b, j] = z[b, j] } }
    par B |b| { par N |i| reduce(y) { par M |j| { y[b, j] += x[b, i, j] } } }
    return y
}"""

BIASED = """
fn f(x: f32[M, K], W: f32[K, N], bias: f32[N]): f32[M] {
    new y: f32[M]
    par M |i| {
        y[i] = 0.0
        par N |j| reduce(y) {
            new acc: f32
            acc = bias[j]
            par K |k| reduce(acc) { acc += x[i, k] * W[k, j] }
            y[i] += acc
        }
    }
    return y
}"""

HALVES = """
fn f(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |j| {
        y[j] = 0.0
        seq j + 1 |i| reduce(y) { y[j] += x[i / 2] }
    }
    return y
}"""

HALVES_BEHIND = """
fn f(x: f32[m], z: f32[m, n]): f32[m] {
    new y: f32[m]
    par m |j| { y[j] = 0.0 }
    par m |j| { par (j + 2) / 3 |i| reduce(y) { y[j] += x[(i + j) / 2] } }
    par m |j| { seq n |k| { y[j] += z[j, k] } seq n |k| { y[j] += z[j, n - 1 - k] } }
    return y
}"""

HALVES_OF_ALL = """
fn f(x: f32[m], w: f32[n]): f32[m] where m >= n {
    new y: f32[m]
    par m |j| { y[j] = 0.0 }
    par m |j| { par n |i| reduce(y) { y[j] += x[(i + j) / 2] } }
    return y
}"""

FOLDED = """
fn f(x: f32[n, m], v: f32): f32[m] {
    new y: f32[m]
    par m |j| { y[j] = v * 2.0 seq n |i| { y[j] += x[i, j] } }
    return y
}"""

NORMED = """
fn f(x: f32[M, S]): f32[M, S] {
    new y: f32[M, S]
    par M |i| {
        new sum: f32
        sum = 0.0
        par S |j| reduce(sum) { sum += x[i, j] }
        let k = f32(S) + sum
        par S |s| { y[i, s] = x[i, s] * k }
    }
    return y
}"""

CUBES = """
fn f(x: f32[H, W, D]): f32[H - 2, W - 2, D - 2] where H >= 3, W >= 3, D >= 3 {
    new y: f32[H - 2, W - 2, D - 2]
    par H - 2 |h| { par W - 2 |w| { par D - 2 |d| {
        new top: f32
        top = x[h, w, d]
        par 3 |a| reduce(top) { par 3 |b| reduce(top) { par 3 |c| reduce(top) { top max= x[h + a, w + b, d + c] } } }
        y[h, w, d] = top
    } } }
    return y
}"""

GRADIENT = """
fn f(x: f32[n, C], w: f32[G]): f32[C]
    where C % G == 0, G >= 1
{
    new y: f32[C]
    par C |c| { y[c] = 0.0 }
    par n |i| reduce(y) { par G |g| { par C / G |c| { y[g * (C / G) + c] += x[i, g * (C / G) + c] * w[g] } } }
    return y
}"""

GRADIENT_OF_FIVE = """
fn f(x: f32[n, C], const G: i32 = 5): f32[C]
    where C % G == 0
{
    new y: f32[C]
    par C |c| { y[c] = 0.0 }
    par n |i| reduce(y) { par G |g| { par C / G |c| { y[g * (C / G) + c] += x[i, g * (C / G) + c] } } }
    return y
}"""

GRADIENT_OF_FIVE_ROWS = """
fn f(x: f32[n, 5, q]): f32[5 * q]
{
    new y: f32[5 * q]
    par 5 * q |c| { y[c] = 0.0 }
    par n |i| reduce(y) { par 5 |g| { par q |c| { y[g * q + c] += x[i, g, c] } } }
    return y
}"""

MEANS = """
fn f(x: f32[n, C], w: f32[G]): f32[G]
    where C % G == 0, G >= 1
{
    new m: f32[G]
    par G |g| { m[g] = 0.0 }
    par n |i| reduce(m) { par G |g| { par C / G |c| reduce(m) { m[g] += x[i, g * (C / G) + c] * w[g] } } }
    return m
}"""

GROUPS_OF_A_PRODUCT = """
fn f(A: f32[M, K], B: f32[K, N], w: f32[G]): f32[M, N]
    where N % G == 0, G >= 1
{
    new y: f32[M, N]
    par M |i| {
        new h: f32[N]
        par N |j| {
            h[j] = 0.0
            par K |k| reduce(h) { h[j] += A[i, k] * B[k, j] }
        }
        par G |g| {
            new s: f32
            s = 0.0
            par N / G |c| reduce(s) { s += h[g * (N / G) + c] }
            par N / G |c| { y[i, g * (N / G) + c] = h[g * (N / G) + c] - s * w[g] }
        }
    }
    return y
}"""

FLATTENED = """
fn f(x: f32[B, C, H, W]): f32[B, C * H * W] {
    new y: f32[B, C, H, W]
    par B, C, H, W |b, c, h, w| { y[b, c, h, w] = x[b, c, h, w] * 2.0 }
    let z = reshape(y, (B, C * H * W))
    new o: f32[B, C * H * W]
    par B, C * H * W |b, k| { o[b, k] = z[b, k] + 1.0 }
    return o
}"""

WRITTEN_FLAT = """
fn f(x: f32[B, C, D, H, W]): f32[B, C * D * H * W] {
    new t: f32[B, C, D, H, W]
    let z = reshape(t, (B, C * D * H * W))
    let v = reshape(x, (B, C * D * H * W))
    par B, C * D * H * W |b, k| { z[b, k] = v[b, k] + 1.0 }
    new y: f32[B, C * D * H * W]
    par B, C * D * H * W |b, k| { y[b, k] = z[b, k] * 2.0 }
    return y
}"""

IN_PLANES = """
fn f(x: f32[B, C, D, H, W]): f32[B, C * D, H * W] {
    new t: f32[B, C, D, H, W]
    let z = reshape(t, (B, C * D, H * W))
    let v = reshape(x, (B, C * D, H * W))
    par B, C * D, H * W |b, k, l| { z[b, k, l] = v[b, k, l] + 1.0 }
    new y: f32[B, C * D, H * W]
    par B, C * D, H * W |b, k, l| { y[b, k, l] = z[b, k, l] * 2.0 }
    return y
}"""

TURNS = """
fn f(x: f32[n], w: f32[m]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = x[i] }
    seq n - m * m |t| { par n |i| { y[i] = y[i] * 0.5 + x[i] } }
    return y
}"""

EACH_ROW = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { par N |i| reduce(y) { par M |j| reduce(y) { y[b, i] += x[b, i, j] } } }
    return y
}"""

TURNED_ROWS = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { seq N |i| reduce(y) { par M |j| reduce(y) { y[b, N - 1 - i] += x[b, i, j] } } }
    return y
}"""

GREATEST_OF_ROWS = """
fn f(x: f32[B, N, M]): (f32[B, N], i32[B, N]) {
    new y: f32[B, N]
    new z: i32[B, N]
    par B |b| { par N |i| {
        y[b, i] = -inf
        z[b, i] = 0
        par M |j| reduce(y, z) { (y[b, i], z[b, i]) max= (x[b, i, j], j) }
    } }
    return y, z
}"""

SOME_OF_ROWS = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |i| {
        y[b, i] = 0.0
        par i |j| reduce(y) { if j < M { y[b, i] += x[b, i, j] } }
    } }
    return y
}"""

HIDDEN = """
fn f(x: f32[B, K], w: f32[K, 64]): f32[B, 64] {
    new y: f32[B, 64]
    par B |b| {
        new h: f32[64]
        par 64 |j| {
            h[j] = 0.0
            par K |k| reduce(h) { h[j] += x[b, k] * w[k, j] }
        }
        par 64 |c| { y[b, c] = h[63 - c] }
    }
    return y
}"""

PRODUCT_BY_ROWS = """
fn f(A: f32[N, K], B: f32[K, M]): f32[N, M] {
    new C: f32[N, M]
    par N |i| { seq M |j| {
        C[i, j] = 0.0
        seq K |k| { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""

ONE_AFTER_ANOTHER = """
fn f(x: f32[B, N]): f32[B] {
    new y: f32[B]
    par B |b| { y[b] = 0.0 }
    par B |b| {
        seq N |j| { y[b] += x[b, j] }
        seq N |j| { y[b] += x[b, j] * x[b, j] }
        seq N |j| { y[b] max= x[b, j] }
    }
    return y
}"""

FREE_ONE_AFTER_ANOTHER = """
fn f(x: f32[B, N]): f32[B] {
    new y: f32[B]
    par B |b| { y[b] = 0.0 }
    par B |b| reduce(y) {
        seq N |j| reduce(y) { y[b] += x[b, j] }
        seq N |j| { y[b] += x[b, j] * x[b, j] }
    }
    return y
}"""

ADDED_IN_TURN = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { seq N |i| { seq M |j| { y[b, N - 1 - i] += x[b, i, j] } } }
    return y
}"""

PAIRS_OF_ROWS = """
fn f(x: f32[B, N, M]): f32[B, N] {
    new y: f32[B, N]
    par B |b| { par N |j| { y[b, j] = 0.0 } }
    par B |b| { par N |i| reduce(y) { par M |j| reduce(y) { y[b, i / 2] += x[b, i, j] } } }
    return y
}"""

DECOMPOSITION = """
fn f(A: f32[N, N]): f32[N, N] {
    new L: f32[N, N]
    par N |i| { par N |j| { L[i, j] = A[i, j] } }
    seq N |k| { par N - k - 1 |i| { seq N - k - 1 |j| {
        L[k + 1 + i, k + 1 + j] -= L[k + 1 + i, k] * L[k, k + 1 + j]
    } } }
    return L
}"""

SUMS_IN_TURN = """
fn f(x: f32[C, B, N]): (f32[C], f32) {
    new y: f32[C]
    new z: f32
    par C |c| {
        y[c] = 0.0
        seq B |i| reduce(y) { par N |j| reduce(y) { y[c] += x[c, i, j] } }
    }
    z = 0.0
    seq B |i| reduce(z) { par N |j| reduce(z) { if j < C { z += x[j, i, j] } } }
    return y, z
}"""

SHAPES = {
    "a local of fixed extent": Shape(LOCALS, ({"b": 3, "n": 0}, {"b": 2, "n": 5})),
    "scores into a local": Shape(SCORES, ({"b": 3, "n": 0}, {"b": 2, "n": 5})),
    "sums of rows begun before": Shape(
        BEGUN_BEFORE, ({"B": 2, "N": 0, "M": 3}, {"B": 5, "N": 7, "M": 19}, {"B": 1, "N": 300, "M": 2})
    ),
    "bias, then a product": Shape(BIASED, ({"M": 3, "K": 0, "N": 34}, {"M": 2, "K": 67, "N": 18}, {"M": 1, "K": 1, "N": 0})),
    "a size that is fixed, in a value": Shape(NORMED, ({"M": 3}, {"M": 0}), {"S": 128}),
    "extrema of cubes": Shape(CUBES, ({"H": 3, "W": 4, "D": 9}, {"H": 5, "W": 3, "D": 4})),
    "a triangle read at halves": Shape(HALVES, ({"n": 0}, {"n": 1}, {"n": 131})),
    "a triangle read at halves from each row on": Shape(
        HALVES_BEHIND, ({"m": 0, "n": 1}, {"m": 1, "n": 0}, {"m": 131, "n": 3}, {"m": 5, "n": 0})
    ),
    "all read at halves from each row on": Shape(HALVES_OF_ALL, ({"m": 1, "n": 0}, {"m": 1, "n": 1}, {"m": 131, "n": 69})),
    "columns summed up from a scalar on": Shape(FOLDED, ({"n": 0, "m": 3}, {"n": 3, "m": 130}, {"n": 2, "m": 0})),
    "no turns, or some": Shape(TURNS, ({"n": 9, "m": 2}, {"n": 5, "m": 70000}, {"n": 0, "m": 1})),
    "flattened": Shape(
        FLATTENED, ({"B": 2, "C": 3, "H": 5, "W": 7}, {"B": 1, "C": 2, "H": 0, "W": 3}, {"B": 0, "C": 1, "H": 1, "W": 1})
    ),
    "written flat": Shape(WRITTEN_FLAT, ({"B": 2, "C": 9, "D": 3, "H": 5, "W": 2}, {"B": 1, "C": 2, "D": 0, "H": 2, "W": 3})),
    "in planes": Shape(IN_PLANES, ({"B": 2, "C": 9, "D": 3, "H": 5, "W": 7}, {"B": 1, "C": 2, "D": 2, "H": 0, "W": 3})),
    "a gradient of groups": Shape(GRADIENT, ({"n": 0, "C": 6, "G": 2}, {"n": 3, "C": 0, "G": 4}, {"n": 5, "C": 119, "G": 7})),
    "a gradient of five groups": Shape(GRADIENT_OF_FIVE, ({"n": 0, "C": 5}, {"n": 3, "C": 0}, {"n": 5, "C": 215})),
    "a gradient of five rows": Shape(GRADIENT_OF_FIVE_ROWS, ({"n": 0, "q": 1}, {"n": 3, "q": 0}, {"n": 5, "q": 43})),
    "a sum for each row, where rows are free": Shape(EACH_ROW, ({"B": 3, "N": 5, "M": 70}, {"B": 2, "N": 3, "M": 0})),
    "the same from the last row on": Shape(TURNED_ROWS, ({"B": 3, "N": 5, "M": 70}, {"B": 2, "N": 3, "M": 0})),
    "the greatest of each row of planes": Shape(GREATEST_OF_ROWS, ({"B": 2, "N": 3, "M": 70}, {"B": 2, "N": 3, "M": 0})),
    "some of each row of planes": Shape(SOME_OF_ROWS, ({"B": 2, "N": 70, "M": 40}, {"B": 2, "N": 3, "M": 0})),
    "a layer that one thread keeps": Shape(HIDDEN, ({},), {"B": 3, "K": 7}),
    "a product, row by row": Shape(PRODUCT_BY_ROWS, ({"N": 67, "M": 3, "K": 5}, {"N": 2, "M": 3, "K": 0})),
    "added in turn": Shape(ADDED_IN_TURN, ({"B": 67, "N": 3, "M": 5}, {"B": 2, "N": 3, "M": 0})),
    "pairs of rows": Shape(PAIRS_OF_ROWS, ({"B": 67, "N": 5, "M": 3}, {"B": 2, "N": 3, "M": 0})),
    "what is left of a matrix": Shape(DECOMPOSITION, ({"N": 0}, {"N": 1}, {"N": 5})),
    "sums in turn, of any order": Shape(SUMS_IN_TURN, ({"C": 3, "B": 4, "N": 70}, {"C": 2, "B": 3, "N": 0})),
    "means of groups": Shape(MEANS, ({"n": 0, "C": 6, "G": 2}, {"n": 3, "C": 0, "G": 4}, {"n": 5, "C": 119, "G": 7})),
    "groups of a product": Shape(
        GROUPS_OF_A_PRODUCT,
        ({"M": 2, "K": 0, "N": 6, "G": 3}, {"M": 3, "K": 4, "N": 0, "G": 1}, {"M": 5, "K": 7, "N": 51, "G": 3}),
    ),
}
