"""Small programs, each of which a lowering that looks less closely gets wrong. Run by hand (`machine`), so they cost little."""

from __future__ import annotations

from tests.lowering.programs import Program

WITNESSES = (
    Program("let_then_single", """
fn f(x: i32[n], len: i32[k]): i32[n]
    where k >= 2
    assume len in 0..n + 1
{
    new y: i32[n]
    par n |i| { y[i] = 7 }
    let l = len[0]
    par l |i| { y[i] = x[i] }
    return y
}""", ({'n': 5, 'k': 2}, {'n': 50, 'k': 2}), (('len', 'n'),)),
    Program("let_let", """
fn f(x: i32[n], P: i32[n]): i32[1]
    where n >= 1
    assume P in 0..n
{
    new y: i32[1]
    let p = P[0]
    let q = P[p]
    y[0] = x[q]
    return y
}""", ({'n': 5},), (('P', 'n'),)),
    Program("single_par_then_let", """
fn f(x: i32[n], len: i32[k]): i32[n]
    where k >= 2, n >= 300
    assume len in 0..n + 1
{
    new y: i32[n]
    new a: i32[n]
    par n |i| { a[i] = 1 }
    let l = len[0]
    par l |i| { a[i] = x[i] }
    let p = a[257]
    par n |i| { y[i] = p + a[i] }
    return y
}""", ({'n': 300, 'k': 2},), (('len', 'n'),)),
    Program("single_par_then_if", """
fn f(x: i32[n], len: i32[k]): i32[n]
    where k >= 2, n >= 300
    assume len in 0..n + 1
{
    new y: i32[n]
    new a: i32[n]
    par n |i| { a[i] = 1 }
    let l = len[0]
    par l |i| { a[i] = x[i] }
    if a[257] > 0 { par n |i| { y[i] = a[i] } } else { par n |i| { y[i] = 0 - a[i] } }
    return y
}""", ({'n': 300, 'k': 2},), (('len', 'n'),)),
    Program("guarded_team", """
fn f(x: i32[n, 70], c: i32[k]): i32[n, 70]
    where k >= 2
{
    new y: i32[n, 70]
    par n |i| { par 70 |j| { y[i, j] = 0 } }
    if c[0] > c[1] {
        par n |i| {
            new v: i32[70]
            par 70 |j| { v[j] = x[i, j] }
            par 70 |j| { y[i, j] = v[69 - j] }
        }
    } else {
        par n |i| {
            new s: i32
            s = 0
            let q = x[i, 3]
            par 70 |j| reduce(s) { s += x[i, j] }
            par 70 |j| { y[i, j] = s + q }
        }
    }
    return y
}""", ({'n': 5, 'k': 2},)),
    Program("guarded_let", """
fn f(x: i32[n], c: i32[n]): i32[n]
    where n >= 2
    assume c in 0..n
{
    new y: i32[n]
    par n |i| { y[i] = 0 }
    if c[0] > c[1] {
        let p = c[0]
        par n |i| { new s: i32
            s = x[p]
            y[i] = s }
    } else {
        let p = c[1]
        let q = c[p]
        par n |i| { y[i] = x[p] * 2 + q }
    }
    return y
}""", ({'n': 5}, {'n': 9}), (('c', 'n'),)),
    Program("fuse_reduce", """
fn f(x: i32[n, m], inout y: i32[n]): i32[n, m] {
    new z: i32[n, m]
    par n |i| { par m |j| { z[i, j] = x[i, j] * 2 } }
    par n |i| { par m |j| reduce(y) { y[i] += x[i, j] } }
    return z
}""", ({'n': 5, 'm': 40},)),
    Program("fuse_atomic", """
fn f(x: i32[n, m], inout y: i32[n, 8]): i32[n, m]
    assume x in 0..8
{
    new z: i32[n, m]
    par n |i| { par m |j| { z[i, j] = x[i, j] * 2 } }
    par n |i| { par m |j| reduce(y) { y[i, x[i, j]] += 1 } }
    return z
}""", ({'n': 5, 'm': 40},), (('x', '8'),)),
    Program("contract_reduce", """
fn f(x: i32[n, m]): i32[n] {
    new y: i32[n]
    new t: i32[n]
    par n |i| {
        t[i] = 0
        par m |j| reduce(t) { t[i] += x[i, j] }
        y[i] = t[i] * 2
    }
    return y
}""", ({'n': 5, 'm': 40}, {'n': 3, 'm': 300})),
    Program("promote_guard", """
fn f(x: i32[n], inout c: i32[m]): i32[n]
    where m <= n
{
    new y: i32[n]
    par n |i| { seq 4 |k| { if i < m { c[i] += k } }
       y[i] = x[i] }
    return y
}""", ({'n': 5, 'm': 2}, {'n': 50, 'm': 20})),
    Program("promote_one", """
fn f(x: i32[n], inout c: i32[1]): i32[n] {
    new y: i32[n]
    par n |i| { seq n |k| { if i == 3 { c[0] += x[k] } }
       y[i] = x[i] }
    return y
}""", ({'n': 5}, {'n': 50})),
    Program("promote_atomic", """
fn f(x: i32[n, m], inout y: i32[n]): i32[n] {
    new z: i32[n]
    par n |i| reduce(y) { seq m |r| { y[i / 2] += x[i, r] } }
    par n |i| { z[i] = 1 }
    return z
}""", ({'n': 50, 'm': 4},)),
    Program("promote_team", """
fn f(x: i32[n, m, 3], inout y: i32[n]): i32[n] {
    new z: i32[n]
    par n |i| { par m |j| reduce(y) { seq 3 |k| { y[i] += x[i, j, k] } }
     z[i] = y[i]}
    return z
}""", ({'n': 5, 'm': 40},)),
    Program("pass_over", """
fn f(x: i32[n, 70]): i32[n, 70] {
    new y: i32[n, 70]
    par n |i| {
        new v: i32[70]
        new w: i32[70]
        par 70 |j| { v[j] = x[i, j] }
        par 70 |j| { w[j] = 0 }
        seq 4 |t| {
            seq 1 |u| {
                par 70 |j| { w[j] += v[(j + 1) % 70] }
                par 70 |j| { v[j] = w[j] + t }
            }
        }
        par 70 |j| { y[i, j] = v[j] }
    }
    return y
}""", ({'n': 3},)),
)  # fmt: skip
