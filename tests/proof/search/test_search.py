"""What the search finds of plans that are right: each was refused, or undecided, by a tag that was wrong, or by none."""

from __future__ import annotations

import pytest
from tests.lowering.test_gathered_rows import BAG
from tests.proof.plan.sound_memory import CHOSEN
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import Laid, laid, lowered

from texpr.frontend import parse
from texpr.proof.search import proved

GUARDED = """
fn f(x: i32[n], c: i32[n]): i32[n]
    where n >= 2
    assume c in 0..n
{
    new y: i32[n]
    if c[0] > c[1] {
        let p = c[0]
        par n |i| { y[i] = x[p] }
    } else {
        par n |i| { y[i] = c[i] }
    }
    return y
}"""
"""A number that is kept from one launch to the next, taken before it is asked whether there is one."""

TURN = """
fn f(A: f32[n, 64] align(16)): f32[n, 64] {
    new C: f32[n, 64]
    par n |i| #bind(grid.x) {
        par 64 |z| { C[i, z] = 0.0 }
        seq 3 |u| { seq 5 |t| {
            if t == 2 {
                new s: f32[1, 64]
                par 64 |a| #tma(0, 1, 64) { s[0, a] = A[i, a] }
                par 64 |c| { C[i, c] += s[0, 63 - c] }
            }
        } }
    }
    return C
}"""
"""A copy in one turn of a loop."""

ARM = """
fn f(x: f32[n, 64] align(16), z: f32[n]): f32[n, 64] {
    new y: f32[n, 64]
    par n |i| #bind(grid.x) {
        par 64 |o| { y[i, o] = 0.0 }
        let v = z[i] * 2.0
        if v > 0.0 {
            new s: f32[1, 64]
            par 64 |a| #tma(0, 1, 64) { s[0, a] = x[i, a] }
            par 64 |c| { y[i, c] = s[0, 63 - c] }
        }
    }
    return y
}"""
"""A register decides on a copy: the thread reads it, not the engine."""

RING = """
fn f(x: i32[n, 8]): i32[n, 8] {
    new y: i32[n, 8]
    par 1 |b| #bind(grid.x) {
        new s: i32[3, 8]
        par 8 |t| #async { if 0 < n { s[0, t] = x[0, t] } }
        par 8 |t| #async { if 1 < n { s[1, t] = x[1, t] } }
        seq n |k| {
            par 8 |t| #async { if k + 2 < n { s[(k + 2) % 3, t] = x[k + 2, t] } }
            par 8 |j| { y[k, j] = s[k % 3, 7 - j] }
        }
    }
    return y
}"""
"""A copy before a loop, for which a wait in its second turn is."""

SECOND = """
fn f(x: f32[n, 8], inout y: f32[8], inout z: f32[n, 8]) {
    seq n |m| {
        new v: f32[8]
        par 8 |i| { v[i] = 2.0 * y[7 - i] }
        par 8 |j| { z[m, j] = v[7 - j] }
    }
    seq n |u| {
        let v = x[u, 0] + 1.0
        par 8 |w| { y[w] += v }
        par 8 |q| { y[q] *= 2.0 }
    }
}"""
"""A second `v`, a value that one launch keeps for the next: as memory it is called neither like it nor after the first."""

MERGED = """
fn f(A: f32[N0, N1, N2, N3] align(16)): f32[N0, N1, N2, N3]
    where N3 % 4 == 0
{
    new C: f32[N0, N1, N2, N3]
    par N0 |i0| { par N1 |i1| { par N2 |i2| { par N3 |i3| { C[i0, i1, i2, i3] = A[i0, i1, i2, i3] } } } }
    return C
}"""
"""Rows of a box that are merged dimensions: places in it say the indices, quotients by sizes do so as well."""

SLIM = """
fn f(x: u64[7, 11, 1, D] align(16)): u64[7, 11, 1, D]
    where D % 2 == 0
{
    new y: u64[7, 11, 1, D]
    par 7 |i| { par 11 |j| { par 1 |k| { par D |l| { y[i, j, k, l] = x[i, j, k, l] } } } }
    return y
}"""
"""A dimension of one element has the stride of the one around it."""

BOXES = """
fn f(A: f32[M, K], B: f32[K, N], inout C: f32[M, N] align(16))
    where N % 4 == 0
{
    par M |i| { par N |j| { seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] } } }
}"""
"""A sum in a tile of several boxes whose chunks are moved: both its place and the indices say which thread has it."""

LANES = """
fn f(y: i32[n]): i32[n] {
    new q: i32[n]
    par n |i| {
        new v: i32[5]
        par 5 |d| { v[d] = d }
        par 5 |e| { v[e] += y[i] }
        seq 3 |k| { par 5 |l| { v[l] = 0 } }
        q[i] = v[3] - 1
    }
    return q
}"""
"""Lanes hold an element each: in turns of more lanes than there are elements, all but the first do nothing."""

LAID = {
    "lanes": (LANES, "split(l, 100) -> (lo, li)  bind(e, block.z)", "sm_90a"),
    "merged": (
        MERGED,
        """merge(i0, i1) -> m  split(m, 6) -> (mo, mb)  split(i2, 1) -> (i2o, i2b)  split(i3, 4) -> (i3o, i3b)
           reorder(mo, i2o, i3o, mb, i2b, i3b)  stage(A, at=i3o, in=shared, via=tma) -> As""",
        "sm_90a",
    ),
    "slim": (
        SLIM,
        """split(i, 4) -> (bi, ti)  split(j, 1) -> (bj, tj)  split(k, 4) -> (bk, tk)  split(bk, 3) -> (ok, qk)
           split(l, 16) -> (bl, tl)  reorder(bi, bj, ok, qk, bl, ti, tj, tk, tl)  bind(bi, grid.x)  bind(tl, block.x)
           stage(x, at=bl, in=shared, via=tma) -> xs""",
        "sm_90a",
    ),
    "rows": (  # elements of a tile that are filled: those beyond its last row, and those beyond its last column
        BAG,
        """split(j, 40) -> (jo, ji)  split(t, 7) -> (to, ti)  reorder(p, jo, to, ji, ti)  bind(p, grid.y)  bind(jo, grid.x)
           stage(table, at=to, in=shared, via=gather4, fill=zero) -> T  bind(ji, block.x)""",
        "sm_100a",
    ),
    "boxes": (
        BOXES,
        """split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)  reorder(bi, bj, ti, tj)  bind(bi, grid.y)  bind(bj, grid.x)
           stage(C, at=bj, in=shared, via=tma, box=(8, 16), swizzle=64B) -> tile""",
        "sm_90a",
    ),
}


SAID = "guarded", "turn", "arm", "chosen", "ring", "second"


def written(text: str) -> Laid:
    """A program that is laid out as it stands."""
    (function,) = parse(text, "t.te").functions
    return lowered(function, function)


@pytest.mark.parametrize("text", [GUARDED, TURN, ARM, CHOSEN, RING, SECOND], ids=SAID)
def test_what_is_written_is_proved(text: str) -> None:
    made = written(text)
    assert not open_of(proved(made.function, made.plan))


@pytest.mark.parametrize("name", LAID)
def test_what_is_laid_out_is_proved(name: str) -> None:
    made = laid(*LAID[name])
    assert not open_of(proved(made.function, made.plan))
