"""Small programs, of which each has something that a kernel could get wrong: registers, arrays, loops, tests of data, sums."""

TURNS = """
fn f(x: i32[n, 6]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 1
        seq 6 |k| {
            if k % 2 == 0 { y[i] = y[i] + x[i, k] }
            if k % 2 == 1 { y[i] = y[i] * x[i, k] }
            if k % 2 == 0 { y[i] = y[i] - x[i, k] }
        }
    }
    return y
}"""
REGISTERS = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        new a: i32
        new b: i32
        a = x[i]
        a = a + 3
        b = x[i] * 2
        b = b + a
        a = b - 1
        y[i] = a + b
    }
    return y
}"""
SHARED = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par n |g| {
        new a: i32[8]
        new b: i32[8]
        par 8 |t| { a[t] = x[g, t] }
        par 8 |t| { b[t] = a[7 - t] + x[g, t] }
        seq 3 |s| {
            par 8 |t| { a[t] = b[7 - t] + s }
            par 8 |t| { b[t] = a[(t + 1) % 8] }
        }
        par 8 |t| { y[g, t] = a[t] - b[t] }
    }
    return y
}"""
LOCAL = """
fn f(x: i32[n, 4]): i32[n, 4] {
    new y: i32[n, 4]
    par n |g| {
        new a: i32[4]
        new b: i32[4]
        seq 4 |t| { a[t] = x[g, t] }
        seq 4 |t| { b[t] = a[3 - t] * 2 }
        seq 3 |s| { a[s + 1] = a[s] + b[s] }
        seq 4 |t| { y[g, t] = a[t] + b[3 - t] }
    }
    return y
}"""
TESTED = """
fn f(x: i32[n, m]): (i32[n], i32[n]) {
    new y: i32[n]
    new z: i32[n]
    par n |i| {
        new best: i32
        new at: i32
        best = 0
        at = 0 - 1
        seq m |k| {
            if x[i, k] > best { best = x[i, k] at = i32(k) } else { at = at + 1 }
        }
        y[i] = best
        z[i] = at
    }
    return (y, z)
}"""
SUM = """
fn f(x: i32[n, m]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 0
        par m |k| reduce(y) { y[i] += x[i, k] }
    }
    return y
}"""
LAUNCHES = """
fn f(inout a: i32[n], inout b: i32[n]) {
    seq 3 |s| {
        par n |i| { a[i] = b[i] + 1 }
        par n |i| { b[i] = a[n - 1 - i] * 2 }
    }
}"""
RUNNING = """
fn f(x: i32[n, m]): i32[n, m] {
    new y: i32[n, m]
    par n |i| {
        new s: i32
        new t: i32
        s = 0
        seq m |k| {
            t = s
            s = s + x[i, k]
            y[i, k] = s + t
        }
    }
    return y
}"""
TRIANGLE = """
fn f(x: i32[n, n]): i32[n, n] {
    new y: i32[n, n]
    par n |i| { par n |j| {
        y[i, j] = 0
        seq i + 1 |k| { if k + j < n { y[i, j] = y[i, j] + x[i, k] * x[k + j, j] } }
    } }
    return y
}"""
IN_PLACE = """
fn f(inout x: i32[n], y: i32[n]): i32[n] {
    new z: i32[n]
    par n |i| {
        new a: i32
        a = x[i]
        x[i] = a + y[i]
        a = a * 2
        x[i] = x[i] + a
        z[i] = a
    }
    return z
}"""
PRODUCT = """
fn f(A: i32[n, m], B: i32[m, n]): i32[n, n] {
    new C: i32[n, n]
    par n |i| { par n |j| {
        C[i, j] = 0
        seq m |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""
TUPLE = """
fn f(x: i32[n, 4]): (i32[n], i32[n]) {
    new best: i32[n]
    new at: i32[n]
    par n |i| {
        best[i] = -2147483648
        at[i] = 2147483647
        par 4 |j| reduce(best, at) { (best[i], at[i]) max= (x[i, j], i32(j)) }
    }
    return (best, at)
}"""
LANES = """
fn f(x: i32[m, 32]): i32[m, 32] {
    new y: i32[m, 32]
    par m |r| {
        new t: i32[32]
        par 32 |i| { t[i] = x[r, i] + x[r, i] }
        par 32 |j| { y[r, j] = select(j > 0, t[j - 1], t[j]) + t[j] + select(j < 31, t[j + 1], t[j]) }
    }
    return y
}"""
ATOMICS = """
fn f(x: i32[n], w: i32[n]): i32[8]
    assume x in 0..8
{
    new s: i32[8]
    par 8 |b| { s[b] = 0 }
    par n |i| reduce(s) { s[x[i]] += w[i] }
    par n |i| reduce(s) { s[x[i]] max= w[i] }
    return s
}"""
ROWS = """
fn f(first: i32[m + 1], x: i32[n, 8]): i32[m, 8]
    where n >= 1
    assume first in 0..n + 1
{
    new y: i32[m, 8]
    par m |i| {
        new a: i32[8]
        par 8 |t| { a[t] = 0 }
        seq first[i + 1] - first[i] |k| {
            new b: i32[8]
            par 8 |t| { b[t] = a[7 - t] }
            par 8 |t| { a[t] = b[(t + 1) % 8] + x[min(first[i] + k, n - 1), t] }
        }
        par 8 |t| { y[i, t] = a[t] }
    }
    return y
}"""
LENGTHS = """
fn f(len: i32[n], x: i32[n, m]): i32[n, m]
    where m >= 1
    assume len in 0..m
{
    new y: i32[n, m]
    par n |i| {
        let l = len[i]
        par m |k| { y[i, k] = 0 }
        par l |k| { y[i, k] = x[i, k] }
        y[i, l] = 7
    }
    return y
}"""
PLACES = """
fn f(at: i32[n], x: i32[n], inout y: i32[2 * n])
    assume at in 0..n
{
    seq n |i| { y[at[i] + i] = x[i] }
}"""

PROGRAMS = {
    "turns": (TURNS, ""),
    "registers": (REGISTERS, ""),
    "shared": (SHARED, ""),
    "local": (LOCAL, ""),
    "tested": (TESTED, ""),
    "sum": (SUM, ""),
    "launches": (LAUNCHES, ""),
    "running": (RUNNING, ""),
    "triangle": (TRIANGLE, ""),
    "in place": (IN_PLACE, ""),
    "product": (PRODUCT, ""),
    "tiles": (PRODUCT, "split(i, 2)\nsplit(j, 2)\nsplit(k, 3)"),
    "tuple": (TUPLE, ""),
    "lanes": (LANES, ""),
    "atomics": (ATOMICS, ""),
    "rows": (ROWS, ""),
    "lengths": (LENGTHS, ""),
    "places": (PLACES, ""),
}
"""Each with what its schedule does."""
