"""Programs that each need something particular of the lowering, with the sizes to run them at."""

from __future__ import annotations

from texpr.support.record import Record


class Program(Record, dict=True):
    """`scale`: inputs are integers in ±scale (0..limit for index arrays named in `below`)."""

    name: str
    text: str
    sizes: tuple[dict[str, int], ...]
    below: tuple[tuple[str, str], ...] = ()


def _sizes(*names: str) -> tuple[dict[str, int], ...]:
    return tuple(dict.fromkeys(names, value) for value in (0, 1, 5, 37, 300))


PROGRAMS = (
    Program("pivot_row", """
fn f(A: i32[n, m], P: i32[n]): i32[n, m]
    assume P in 0..n
{
    new B: i32[n, m]
    par n |i| { par m |j| { B[i, j] = A[i, j] } }
    seq n |k| {
        let p = P[k]
        par n |i| { if i != p { par m |j| { B[i, j] += B[p, j] } } }
    }
    return B
}""", tuple({"n": n, "m": m} for n, m in ((0, 3), (1, 1), (3, 5), (7, 40))), (("P", "n"),)),
    Program("data_condition_outside", """
fn f(x: i32[n], c: i32[k]): i32[n]
    where k >= 2
{
    new y: i32[n]
    par n |i| { y[i] = x[i] }
    if c[0] > c[1] { par n |i| { y[i] += 1 } } else { par n |i| { y[i] -= 2 } }
    if n > 4 { par n |i| { y[i] *= 3 } } else { par n |i| { y[i] *= 5 } }
    return y
}""", tuple({"n": n, "k": 2} for n in (0, 1, 5, 300))),
    Program("custom_combiner", """
combine gcdish(a: i32, b: i32): i32 identity 0 { return max(abs(a), abs(b)) }
fn f(x: i32[n, m]): i32[n] {
    new y: i32[n]
    par n |i| { y[i] = 0
        par m |j| reduce(y) { y[i] gcdish= x[i, j] } }
    return y
}""", _sizes("n", "m")[:4]),
    Program("arg_of_rows", """
fn f(x: i32[n, m]): (i32[n], i32[n]) {
    new v: i32[n]
    new at: i32[n]
    par n |i| {
        new best: i32
        new where_: i32
        best = -100
        where_ = -1
        par m |j| reduce(best, where_) { (best, where_) max= (x[i, j], j) }
        v[i] = best
        at[i] = where_
    }
    return (v, at)
}""", _sizes("n", "m")[:4]),
    Program("ragged", """
fn f(x: i32[n, m], len: i32[n]): i32[n]
    assume len in 0..m + 1
{
    new y: i32[n]
    par n |i| {
        new s: i32
        s = 0
        let l = len[i]
        par l |j| reduce(s) { s += x[i, j] }
        seq l |j| { s = s * 3 % 1001 + x[i, j] }
        y[i] = s
    }
    return y
}""", _sizes("n", "m")[:4], (("len", "m"),)),
    Program("histogram_of_rows", """
fn f(x: i32[n, m]): i32[n, 8]
    assume x in 0..8
{
    new h: i32[n, 8]
    par n |i| {
        new c: i32[8]
        par 8 |b| { c[b] = 0 }
        par m |j| reduce(c) { c[x[i, j]] += 1 }
        par 8 |b| { h[i, b] = c[b] * 10 + b }
    }
    return h
}""", _sizes("n", "m")[:4], (("x", "8"),)),
    Program("scatter_sum", """
fn f(x: i32[n], w: i32[m]): i32[n + m] {
    new y: i32[n + m]
    par n + m |i| { y[i] = 0 }
    par n |i| reduce(y) { seq m |r| { y[i + r] += w[r] * x[i] } }
    return y
}""", _sizes("n", "m")[:4]),
    Program("outer_product_reduction", """
fn f(A: i32[k, n], B: i32[k, m]): i32[n, m] {
    new C: i32[n, m]
    par n |i| { par m |j| { C[i, j] = 0 } }
    par k |t| reduce(C) { par n |i| { par m |j| { C[i, j] += A[t, i] * B[t, j] } } }
    return C
}""", tuple({"n": n, "m": m, "k": t} for n, m, t in ((0, 2, 3), (3, 4, 0), (5, 7, 3), (40, 33, 9)))),
    Program("atomic_sum", """
fn f(x: f32[n]): f32 {
    new s: f32
    s = 0.0
    par n |i| reduce(s) #atomic { s += x[i] }
    return s
}""", _sizes("n")),
    Program("atomic_own", """
fn f(x: i32[n, m]): i32[n] {
    new y: i32[n]
    par n |i| {
        new s: i32
        s = 1
        par m |j| reduce(s) #atomic { s += x[i, j] }
        y[i] = s
    }
    return y
}""", _sizes("n", "m")[:4]),
    Program("chain_of_pars", """
fn f(x: i32[n], y: i32[n]): i32[n] {
    new a: i32[n]
    new b: i32[n]
    new z: i32[n]
    par n |i| { a[i] = x[i] * 2 }
    par n |i| { b[i] = a[i] + y[i] }
    par n |i| { z[i] = b[i] * a[i] + a[n - 1 - i] }
    return z
}""", _sizes("n")),
    Program("condition_that_is_overwritten", """
fn f(x: i32[n, m], t: i32[n]): (i32[n], i32[n]) {
    new u: i32[n]
    new y: i32[n]
    par n |i| { u[i] = t[i] }
    par n |i| {
        new best: i32
        best = 0
        par m |j| reduce(best) { best max= x[i, j] }
        y[i] = best
        if u[i] > 1 { y[i] += u[i] } else { u[i] = 7 }
    }
    return (y, u)
}""", _sizes("n", "m")[:4]),
    Program("private_array", """
fn f(x: i32[n, 6]): i32[n, 6] {
    new y: i32[n, 6]
    par n |i| {
        new v: i32[6]
        seq 6 |j| { v[j] = x[i, 5 - j] }
        seq 5 |j| { if v[j] > v[j + 1] { v[j] = v[j + 1] } }
        seq 6 |j| { y[i, j] = v[j] }
    }
    return y
}""", _sizes("n")),
    Program("private_array_of_open_size", """
fn f(x: i32[n, m]): i32[n, m] {
    new y: i32[n, m]
    par n |i| {
        new v: i32[m]
        seq m |j| { v[j] = x[i, m - 1 - j] }
        seq m |j| { y[i, j] = v[j] + v[m - 1 - j] }
    }
    return y
}""", _sizes("n", "m")[:4]),
    Program("shared_array_of_open_size", """
fn f(x: i32[n, m]): i32[n, m] {
    new y: i32[n, m]
    par n |i| {
        new v: i32[m]
        par m |j| { v[j] = x[i, j] * 2 }
        seq 3 |t| {
            par m |j| { y[i, j] = v[m - 1 - j] + t }
            par m |j| { v[j] = y[i, j] }
        }
    }
    return y
}""", _sizes("n", "m")[:4]),
    Program("loop_carried", """
fn f(x: i32[n, 70]): i32[n, 70] {
    new y: i32[n, 70]
    par n |i| {
        new v: i32[70]
        par 70 |j| { v[j] = x[i, j] }
        seq 4 |t| {
            new w: i32[70]
            par 70 |j| { w[j] = v[(j + 1) % 70] + v[(j + 69) % 70] }
            par 70 |j| { v[j] = w[69 - j] }
        }
        par 70 |j| { y[i, j] = v[j] }
    }
    return y
}""", _sizes("n")[:4]),
    Program("warp_teams", """
fn f(x: i32[n, 20]): i32[n, 20] {
    new y: i32[n, 20]
    par n |i| {
        new s: i32
        s = 0
        new v: i32[20]
        par 20 |j| { v[19 - j] = x[i, j] }
        par 20 |j| reduce(s) { s += v[j] * j }
        par 20 |j| { y[i, j] = v[j] + s }
    }
    return y
}""", _sizes("n")),
    Program("branch_with_pars", """
fn f(x: i32[n, m], c: i32[n]): i32[n, m] {
    new y: i32[n, m]
    par n |i| {
        new v: i32[40]
        par 40 |j| { v[j] = j }
        par m |j| { y[i, j] = x[i, j] }
        if c[i] > 0 {
            par 40 |j| { v[39 - j] = j * 2 }
            par m |j| { y[i, j] += v[j % 40] }
        } else {
            seq 2 |t| { par m |j| { y[i, j] -= v[(j + t) % 40] } }
        }
        par m |j| { y[i, j] += v[(j * 7) % 40] }
    }
    return y
}""", _sizes("n", "m")[:4]),
    Program("triangle", """
fn f(x: i32[n, n]): i32[n, n] {
    new y: i32[n, n]
    par n |i| { par n |j| { y[i, j] = 0 } }
    par n |i| { par i + 1 |j| { y[i, j] = x[j, i] } }
    par n |i| { seq n - i |d| { y[i, i + d] += x[i, d] } }
    return y
}""", _sizes("n")[:4]),
    Program("elimination", """
fn f(A: i32[n, n]): i32[n, n] {
    new L: i32[n, n]
    par n |i| { par n |j| { L[i, j] = A[i, j] } }
    seq n |k| {
        par n - k - 1 |i| { par n - k - 1 |j| {
            L[k + 1 + i, k + 1 + j] -= L[k + 1 + i, k] * L[k, k + 1 + j]
        } }
    }
    return L
}""", _sizes("n")[:4]),
    Program("in_place", """
fn f(inout a: i32[n], inout b: i32[n]) {
    par n |i| { (a[i], b[i]) = (b[i] + 1, a[i] - 1) }
    par n |i| { a[i] += b[n - 1 - i] }
}""", _sizes("n")),
    Program("strided", """
fn f(A: i32[n, m] stride(lda, 1)): i32[m, n]
    where lda >= m
{
    new B: i32[m, n]
    par m |j| { par n |i| { B[j, i] = A[i, j] } }
    return B
}""", tuple({"n": n, "m": m, "lda": m} for n, m in ((0, 1), (3, 5), (40, 33)))),
    Program("many_levels", """
fn f(x: i32[a, b, c, d, e, g]): i32[g, e, d, c, b, a] {
    new y: i32[g, e, d, c, b, a]
    par a |i| { par b |j| { par c |k| { par d |l| { par e |m| {
        par g |n| { y[n, m, l, k, j, i] = x[i, j, k, l, m, n] }
    } } } } }
    return y
}""", ({"a": 2, "b": 3, "c": 1, "d": 4, "e": 2, "g": 5}, {"a": 1, "b": 0, "c": 2, "d": 2, "e": 2, "g": 2})),
    Program("total_of_two", """
fn f(x: i32[n, m]): (i32, i32) {
    new s: i32
    new q: i32
    s = 5
    q = 7
    par n |i| reduce(s, q) { par m |j| reduce(s, q) { s += x[i, j]
        q max= x[i, j] * x[i, j] } }
    return (s, q)
}""", _sizes("n", "m")[:4]),
    Program("difference", """
fn f(x: i32[n]): i32 {
    new s: i32
    s = 100
    par n |i| reduce(s) { s -= x[i] }
    return s
}""", (*_sizes("n"), {"n": 9000})),
    Program("nothing_parallel", """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    new s: i32
    s = 0
    seq n |i| {
        s = s + x[i]
        y[i] = s
    }
    return y
}""", _sizes("n")),
    Program("seq_outside_without_crossing", """
fn f(A: i32[n, k], B: i32[k, m]): i32[n, m] {
    new C: i32[n, m]
    par n |i| { par m |j| { C[i, j] = 0 } }
    seq k |t| { par n |i| { par m |j| { C[i, j] += A[i, t] * B[t, j] } } }
    return C
}""", tuple({"n": n, "m": m, "k": t} for n, m, t in ((0, 2, 3), (3, 4, 0), (5, 7, 3), (40, 33, 9)))),
)  # fmt: skip

REDUCED = ("f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def reduction_over(dtype: str) -> str:
    """Sums, least and greatest of rows, over more than one warp, in `dtype`."""
    return f"""
fn reduce_{dtype}(x: {dtype}[n, m]): ({dtype}[n], {dtype}[n], {dtype}[n])
    where m >= 1
{{
    new s: {dtype}[n]
    new lo: {dtype}[n]
    new hi: {dtype}[n]
    par n |i| {{
        s[i] = 0
        lo[i] = x[i, 0]
        hi[i] = x[i, 0]
        par m |j| reduce(s) {{ s[i] += x[i, j] }}
        par m |j| reduce(lo, hi) {{ lo[i] min= x[i, j]
            hi[i] max= x[i, j] }}
    }}
    return (s, lo, hi)
}}
"""
