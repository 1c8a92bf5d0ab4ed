"""Asynchronous copies: the same results in every order, no copy touched before it landed, no wait longer than it must be."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.schedule.laid import Laid, binary, counts, integers, laid, lowered, refusal, wrong

from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError

MATMUL = """
fn matmul(A: f32[M, K] align(16), B: f32[K, N] align(16)): f32[M, N]
    where K % 4 == 0, N % 4 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""


def tiles(via: str, fill: str = "zero", lanes: int = 4) -> str:
    vectors = f"vectorize(As_1, {lanes})  vectorize(Bs_1, {lanes})" if lanes > 1 else ""
    return f"""
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)
    split(ti, 2) -> (t1, r1)  split(tj, 4) -> (t2, r2)  split(k, 8) -> (ko, ki)
    reorder(bi, bj, ko, t1, t2, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(A, at=ko, in=shared, via={via}, fill={fill}) -> As
    stage(B, at=ko, in=shared, via={via}, fill={fill}) -> Bs
    {vectors}
    bind(t1, block.y)  bind(t2, block.x)  unroll(r1)"""


def operands(m: int, depth: int, n: int) -> dict[str, Any]:
    return {"A": integers(m, depth), "B": integers(depth, n, seed=1)}


def waits(made: Laid) -> list[int]:
    return [s.pending for s in made.statements if isinstance(s, k.WaitAsync)]


@pytest.mark.parametrize("fill", ["zero", "weak"])
@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("sizes", [(0, 4, 4), (3, 0, 4), (16, 16, 32), (19, 12, 36)])
def test_matmul(fill: str, lanes: int, sizes: tuple[int, int, int]) -> None:
    m, depth, n = sizes
    made = laid(MATMUL, tiles("cp_async", fill, lanes))
    assert {s.count for s in made.statements if isinstance(s, k.CopyAsync)} == {lanes}
    orders = (None, 0, 1) if lanes != 4 else (None, -2, 0, 1, 2, 3)
    assert wrong(made, operands(*sizes), {"M": m, "K": depth, "N": n}, orders) is None


NEGATIVE = """
fn f(x: f32[n] align(16)): f32[(n + 31) / 32, 32] {
    new z: f32[(n + 31) / 32, 32]
    par (n + 31) / 32 |g| #bind(grid.x) {
        new s: f32[32]
        par 32 |a| #async { if 32 * g + a < n { s[a] = x[32 * g + a] } else { s[a] = FILL } }
        par 32 |c| { z[g, c] = 1.0 / s[31 - c] }
    }
    return z
}"""


@pytest.mark.parametrize(("fill", "is_copied"), [("0.0", True), ("-0.0", False), ("nan", False), ("2.0", False)])
def test_holes_hold_just_what_is_asked(fill: str, is_copied: bool) -> None:
    """An asynchronous copy fills with zero alone, which -0 is not: one over it is another infinity."""
    (function,) = parse(NEGATIVE.replace("FILL", fill), "t.te").functions
    made = lowered(function, function)
    assert any(isinstance(s, k.CopyAsync) and s.when is not None for s in made.statements) == is_copied
    x = np.arange(1, 41, dtype=np.float32)
    want = np.full(64, 1 / float(fill) if float(fill) else np.copysign(np.inf, float(fill)), np.float32)
    want[:40] = 1 / x
    got = results(made.function, run_plan(made.function, made.plan, {"x": x}, {"n": 40}))
    np.testing.assert_array_equal(got["z"], want.reshape(2, 32)[:, ::-1])


def test_sizes_that_are_no_multiple_go_one_by_one() -> None:
    """Rows of A have 4 m elements, but of them only K are there: the last of a row may not be a whole vector."""
    text = MATMUL.replace("A: f32[M, K] align(16)", "A: f32[M, K] stride(lda, 1) align(16)").replace(
        "K % 4 == 0,", "lda % 4 == 0, lda >= K,"
    )
    made = laid(text, tiles("cp_async"))
    assert {s.count for s in made.statements if isinstance(s, k.CopyAsync)} == {1, 4}


def test_copies_of_a_step_are_one_group_and_one_wait_covers_both() -> None:
    made = laid(MATMUL, tiles("cp_async"))
    assert len([s for s in made.statements if isinstance(s, k.CommitAsync)]) == 2
    assert waits(made) == [0]
    (wait,) = (s for s in made.statements if isinstance(s, k.WaitAsync))
    assert {(c.kind, c.buffer) for c in wait.covers} >= {("RAW", "As"), ("RAW", "Bs")}


def test_what_is_copied_does_not_pass_through_registers() -> None:
    arrays, sizes = operands(16, 32, 32), {"M": 16, "K": 32, "N": 32}
    plain, copied = (counts(laid(MATMUL, tiles(via)), arrays, sizes) for via in ("ld", "cp_async"))
    assert (plain.async_copies, copied.async_copies) == (0, (16 * 32 + 32 * 32) // 4)
    assert plain.global_load_sectors == copied.global_load_sectors


RING = """
fn ring(x: f32[n, 128] align(16)): f32[n, 128] {
    new y: f32[n, 128]
    par 1 |b| #bind(grid.x) {
        new s: f32[3, 128]
        par 64 |t| #bind(block.x) #async { par 2 |v| #vector { if 0 < n { s[0, 2 * t + v] = x[0, 2 * t + v] } } }
        par 64 |t| #bind(block.x) #async { par 2 |v| #vector { if 1 < n { s[1, 2 * t + v] = x[1, 2 * t + v] } } }
        seq n |k| {
            par 64 |t| #bind(block.x) #async { par 2 |v| #vector {
                if k + 2 < n { s[(k + 2) % 3, 2 * t + v] = x[k + 2, 2 * t + v] } } }
            par 128 |j| { y[k, j] = 2.0 * s[k % 3, 127 - j] }
        }
    }
    return y
}"""
"""Three stages: while one is used, two are on their way."""


PAST = RING.replace("if k + 2 < n { ", "").replace("x[k + 2, 2 * t + v] } } }", "x[min(k + 2, n - 1), 2 * t + v] } }")
"""Copies that nobody uses are on their way when the loop ends."""


def pragmas(text: str) -> Laid:
    """The only function of `text`, whose loops carry the marks that schedules write."""
    (function,) = parse(text, "t.te").functions
    return lowered(function, function)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10])
def test_a_ring_of_stages(n: int) -> None:
    for text in (RING, PAST):
        assert wrong(pragmas(text), {"x": integers(n, 128)}) is None


def test_in_a_ring_the_latest_copy_stays_on_its_way() -> None:
    """In each iteration all but the latest is waited for, enough before the first one too; at the end what nobody used."""
    assert waits(pragmas(RING)) == [1, 0]


def test_one_warp_waits_at_its_own_barrier() -> None:
    made = pragmas(RING.replace("par 64", "par 32").replace("2 * t", "4 * t").replace("par 2 |v|", "par 4 |v|"))
    assert {s.level for s in made.statements if isinstance(s, k.Barrier)} == {k.Level.WARP}
    assert wrong(made, {"x": integers(10, 128)}) is None


OVERWRITTEN = """
fn f(inout x: f32[128] align(16)): f32[128] {
    new y: f32[128]
    par 1 |b| #bind(grid.x) {
        new s: f32[128]
        par 64 |t| #bind(block.x) #async { par 2 |v| #vector { s[2 * t + v] = x[2 * t + v] } }
        par 128 |j| { x[j] = 0.0 }
        par 128 |j| { y[j] = s[127 - j] }
    }
    return y
}"""


def test_a_source_is_not_overwritten_before_it_is_read() -> None:
    made = pragmas(OVERWRITTEN)
    (wait,) = (s for s in made.statements if isinstance(s, k.WaitAsync))
    assert ("WAR", "x") in {(c.kind, c.buffer) for c in wait.covers}
    assert wrong(made, {"x": integers(128)}) is None


LOOPED = """
fn f(x: f32[n, 128] align(16)): f32[128] {
    new y: f32[128]
    par 1 |b| #bind(grid.x) {
        new s: f32[128]
        par 128 |j| { s[j] = 0.0 }
        seq n |k| {
            par 64 |t| #bind(block.x) #async { par 2 |v| #vector { s[2 * t + v] = x[k, 2 * t + v] } }
        }
        par 128 |j| { y[j] = s[127 - j] }
    }
    return y
}"""


@pytest.mark.parametrize("n", [0, 1, 5])
def test_copies_of_a_loop_are_used_after_it(n: int) -> None:
    made = pragmas(LOOPED)
    assert wrong(made, {"x": integers(n, 128)}) is None


AFTER = """
fn ring(x: f32[n, 128] align(16)): f32[n, 128] {
    new y: f32[n, 128]
    par 1 |b| #bind(grid.x) {
        new s: f32[3, 128]
        seq 3 |p| {
            par 64 |t| #bind(block.x) #async { par 2 |v| #vector { if p < n { s[p, 2 * t + v] = x[p, 2 * t + v] } } }
        }
        seq n |k| {
            par 128 |j| { y[k, j] = 2.0 * s[k % 3, 127 - j] }
            par 64 |t| #bind(block.x) #async { par 2 |v| #vector {
                if k + 3 < n { s[k % 3, 2 * t + v] = x[k + 3, 2 * t + v] } } }
        }
    }
    return y
}"""
"""The place that was just used is filled again, for three turns later."""

BRANCHES = """
fn f(x: f32[n, 128] align(16)): f32[n, 128] {
    new y: f32[n, 128]
    par 1 |b| #bind(grid.x) {
        new s: f32[128]
        par 128 |j| { s[j] = 1.0 }
        seq n |k| {
            if k % 2 == 0 {
                par 64 |t| #bind(block.x) #async { par 2 |v| #vector { s[2 * t + v] = x[k, 2 * t + v] } }
            }
            par 128 |j| { y[k, j] = s[127 - j] }
        }
    }
    return y
}"""


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_copies_elsewhere_in_the_turn(n: int) -> None:
    for text in (AFTER, BRANCHES):
        assert wrong(pragmas(text), {"x": integers(n, 128)}) is None


def test_on_a_longer_way_the_latest_copy_stays_on_its_way() -> None:
    """Three turns lie between a copy and its use; the wait in the last of them comes before that turn's own copy."""
    assert waits(pragmas(AFTER)) == [0, 1, 0]


def test_copies_in_a_loop_or_a_branch_are_met_after_it() -> None:
    """A wait for all, and a barrier where none was."""
    for text in (AFTER, BRANCHES, LOOPED):
        body = pragmas(text).statements
        after = [body[at + 1] for at, stmt in enumerate(body) if isinstance(stmt, k.WaitAsync) and at + 1 < len(body)]
        assert any(isinstance(stmt, k.Barrier) for stmt in after)
        pairs = pairwise(body)
        assert not any(isinstance(one, k.Barrier) and isinstance(other, k.Barrier) for one, other in pairs)


def test_on_a_cpu_copies_are_ordinary() -> None:
    (function,) = parse(re.sub(r"#bind\(.*?\) ", "", RING), "t.te").functions
    made = lowered(function, function, "cpu")
    assert not any(isinstance(s, k.CopyAsync | k.CommitAsync | k.WaitAsync) for s in made.statements)


def test_conversions_are_no_copies() -> None:
    """What changes on the way passes through registers, by vectors, without a group or a wait."""
    made = pragmas(OVERWRITTEN.replace("s[2 * t + v] = x[2 * t + v]", "s[2 * t + v] = x[2 * t + v] * 2.0"))
    assert not any(isinstance(s, k.CopyAsync | k.CommitAsync | k.WaitAsync) for s in made.statements)
    assert wrong(made, {"x": integers(128)}) is None


def test_a_vector_of_a_result_needs_a_schedule() -> None:
    text = """
fn f(x: f32[128] align(16)): f32[128] {
    new y: f32[128]
    par 32 |t| #bind(block.x) { par 4 |v| #vector { y[4 * t + v] = x[4 * t + v] } }
    return y
}"""
    with pytest.raises(TexprError) as found:
        pragmas(text)
    (said,) = found.value.diagnostics
    assert (said.code, said.help) == ("E0911", "results are aligned where a schedule asks for it, by `vectorize`")


def test_too_few_bytes_are_refused() -> None:
    text = MATMUL.replace("f32[M, K] align", "bf16[M, K] align").replace("f32[K, N] align", "bf16[K, N] align")
    assert refusal(text, tiles("cp_async", lanes=1)).splitlines()[0] == (
        "error[E0911]: an asynchronous copy moves 4, 8 or 16 bytes, and this one would move 2 at once into `Bs`"
    )


PLANTED = {
    "no_wait_at_all": (r"tx_wait_async<\d>\(\);", "", RING),
    "wait_too_short": (r"tx_wait_async<1>\(\);", "tx_wait_async<2>();", RING),
    "no_first_wait": (r"tx_wait_async<0>\(\);\n(?=(?:.*\n)*?.*__sync)", "", AFTER),
    "no_last_wait": (r"tx_wait_async<0>\(\);\n}\n", "}\n", PAST),
    "no_barrier": (r"__syncthreads\(\);", "", RING),
    "no_commit_in_the_loop": (r"(?s)(tx_commit_async.*tx_commit_async.*)tx_commit_async\(\);", r"\1", RING),
    "source_overwritten": (r"tx_wait_async<0>\(\);", "tx_wait_async<1>();", OVERWRITTEN),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_seen(name: str) -> None:
    old, new, program = PLANTED[name]
    made = pragmas(program)
    text = re.sub(old, new, made.text)
    assert text != made.text
    arrays = {"x": integers(128) if program is OVERWRITTEN else integers(7, 128)}
    assert wrong(made, arrays, orders=(None, 0, 1, 2, 3), text=text) is not None


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_nvcc_makes_asynchronous_copies(target: str) -> None:
    ptx = binary(laid(MATMUL, tiles("cp_async"), target), target).ptx.decode()
    assert "cp.async.cg.shared.global" in ptx and "cp.async.commit_group" in ptx and "cp.async.wait_group 0" in ptx
