"""Copies that run ahead in rings: the same results at every trip count, in every order; as far ahead as asked; bugs seen."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering import machine
from tests.lowering.rings import BLUR, MATMUL, PLANTED, multiplying, walking
from tests.schedule.laid import Laid, binary, integers, laid, lowered, refusal, wrong

import texpr
from texpr.affine.expr import Sym
from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.schedule.rewrite import ring
from texpr.support.diagnostic import TexprError

ORDERS = (None, LOCKSTEP, *range(8))
FEW = (None, LOCKSTEP, 0, 1)
VIAS, STAGES = ("ld", "cp_async", "tma"), (2, 3, 4)
TRIPS = (0, 4, 8, 12, 20, 24, 44)
"""K of tiles of 8: no turn, less than one, one, and so on to more than two rounds of the longest ring."""


def operands(m: int, depth: int, n: int) -> dict[str, NDArray[Any]]:
    return {"A": integers(m, depth), "B": integers(depth, n, seed=1)}


def statements(made: Laid, *kinds: type[Any]) -> list[Any]:
    return [s for s in made.statements if isinstance(s, kinds)]


@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("via", VIAS)
def test_matmul(via: str, stages: int) -> None:
    made = laid(MATMUL, multiplying(via, stages))
    for depth in TRIPS:
        assert wrong(made, operands(19, depth, 36), {"M": 19, "K": depth, "N": 36}, FEW) is None, depth
    assert wrong(made, operands(3, 40, 4), {"M": 3, "K": 40, "N": 4}, ORDERS) is None
    assert wrong(made, operands(0, 4, 0), {"M": 0, "K": 4, "N": 0}, (None,)) is None


@pytest.mark.parametrize("via", VIAS)
def test_the_ring_of_most_slots(via: str) -> None:
    made = laid(MATMUL, multiplying(via, 8))
    for depth in (4, 56, 140):
        assert wrong(made, operands(5, depth, 8), {"M": 5, "K": depth, "N": 8}, FEW) is None


@pytest.mark.parametrize(("via", "stages"), [*product(VIAS, (3,)), ("tma", 2), ("cp_async", 4)])
def test_stencil(via: str, stages: int) -> None:
    """Each region overlaps the one before it, and begins outside of the tensor; the loop was a `par`."""
    made = laid(BLUR, walking(via, stages))
    for m, n in ((0, 8), (8, 0), (3, 4), (13, 44), (41, 36)):
        assert wrong(made, {"x": integers(m, n)}, {"M": m, "N": n}, ORDERS if m == 41 else FEW) is None


@pytest.mark.parametrize("via", VIAS)
def test_the_plain_program_means_the_same(via: str) -> None:
    made = laid(MATMUL, multiplying(via, 3))
    for depth in TRIPS:
        want, got = (interpret(f, operands(3, depth, 4), {"M": 3, "K": depth, "N": 4}) for f in (made.original, made.function))
        assert np.array_equal(want["C"], got["C"])


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("via", ["cp_async", "tma"])
def test_kernel_form(via: str, stages: int) -> None:
    """By the machine that shares nothing with the emulator."""
    made, given, sizes = laid(MATMUL, multiplying(via, stages)), operands(16, 20, 32), {"M": 16, "K": 20, "N": 32}
    want = interpret(made.original, given, sizes)["C"]
    assert all(np.array_equal(machine.run(made.function, made.plan, given, sizes, order)["C"], want) for order in range(3))


# How far ahead.


@pytest.mark.parametrize("stages", STAGES)
def test_a_wait_leaves_the_latest_copies_on_their_way(stages: int) -> None:
    """One wait and one barrier a turn, behind the use: two copies fewer than slots are left, and one starts before the use."""
    made = laid(MATMUL, multiplying("cp_async", stages))
    (loop,) = (s for s in made.statements if isinstance(s, k.For) and s.sym.base == "ko")
    inside = [type(s) for s in loop.body if isinstance(s, k.If | k.CommitAsync | k.WaitAsync | k.Barrier)]
    assert inside == [k.If, k.CommitAsync, k.If, k.WaitAsync, k.Barrier]
    assert [s.pending for s in loop.body if isinstance(s, k.WaitAsync)] == [stages - 2]
    assert len(statements(made, k.Barrier)) == 1


@pytest.mark.parametrize("stages", STAGES)
def test_the_phase_waited_for_is_that_of_the_copy(stages: int) -> None:
    """Every turn, counted one by one: slot and parity, against as many fills of each slot as there were."""
    made = laid(MATMUL, multiplying("tma", stages))
    (expect,), (wait,) = statements(made, k.BarrierExpect), statements(made, k.BarrierWait)
    ko = Sym("ko")
    for trips in range(12):
        fills = [0] * stages
        phases: dict[int, tuple[int, int]] = {}
        for turn in range(trips + stages - 1):
            if turn < trips:
                (slot,) = (e.evaluate({ko: turn}) for e in expect.barrier.index)
                phases[turn] = slot, fills[slot] % 2
                fills[slot] += 1
            if turn >= stages - 1:
                (slot,) = (e.evaluate({ko: turn}) for e in wait.barrier.index)
                assert (slot, wait.parity.evaluate({ko: turn})) == phases[turn - stages + 1]


def test_a_barrier_for_each_slot() -> None:
    made = laid(MATMUL, multiplying("tma", 4))
    (kernel,) = k.kernels(made.plan.steps)
    assert [str(a.buffer.shape[0]) for a in kernel.arrays if a.barrier] == ["4"]
    assert len(statements(made, k.BarrierInit)) == 4
    assert [s.bytes for s in statements(made, k.BarrierExpect)] == [(16 * 8 + 8 * 32) * 4]
    assert "0 < K" not in made.text, "where there is a turn there is a tensor"


def test_slots_begin_where_copies_may() -> None:
    """10 × 40 elements are no multiple of 128 bytes, so a slot has room for 12 × 40."""
    made = laid(BLUR, walking("tma", 3))
    assert "new xs: f32[3, 12, 40]" in str_of(made)
    assert "new xs: f32[3, 10, 34]" in str_of(laid(BLUR, walking("cp_async", 3)))


def str_of(made: Laid) -> str:
    return "\n".join(f"new {s.buffer.name}: f32[{', '.join(map(str, s.buffer.shape))}]" for s in news(made))


def news(made: Laid) -> list[Any]:
    return [s for s in ir.walk(made.function.body) if isinstance(s, ir.New)]


# Loops around, holes, types.


@pytest.mark.parametrize("via", VIAS)
def test_a_loop_around(via: str) -> None:
    """A block does several tiles, so rings go on where the last tile left them: phases of all tiles so far are counted."""
    schedule = multiplying(via, 3).replace("bind(bj, grid.x)", "")
    made = laid(MATMUL, schedule)
    for depth in (0, 4, 20, 48):
        assert wrong(made, operands(16, depth, 100), {"M": 16, "K": depth, "N": 100}, FEW) is None


@pytest.mark.parametrize("via", VIAS)
def test_holes_of_the_loop(via: str) -> None:
    """The loop was split, so its last iterations may be none; they copy what nobody uses, or nothing."""
    schedule = multiplying(via, 2).replace("(ko, ki)", "(kk, ki)  split(kk, 3) -> (k1, ko)").replace("bj, ko,", "bj, k1, ko,")
    made = laid(MATMUL, schedule)
    for depth in (0, 20, 24, 56):
        assert wrong(made, operands(16, depth, 36), {"M": 16, "K": depth, "N": 36}, FEW) is None


@pytest.mark.parametrize(
    ("via", "dtype"), [*product(("ld",), ("f16", "f64", "i32", "u8")), *product(("cp_async", "tma"), ("f16", "f64", "i32"))]
)
def test_types(via: str, dtype: str) -> None:
    text = f"""
fn turned(x: {dtype}[n, 64] align(16)): {dtype}[n, 64] {{
    new y: {dtype}[n, 64]
    par 1 |b| {{ seq n |i| {{ par 64 |j| {{ y[i, j] = x[i, j] + x[i, 63 - j] }} }} }}
    return y
}}"""
    lanes = "" if via == "tma" or dtype == "u8" else "vectorize(xs_1, 2) -> (half, lane)"
    made = laid(text, f"bind(b, grid.x)  stage(x, at=i, in=shared, via={via}) -> xs  {lanes}  pipeline(i, stages=3)")
    names = {"f16": "float16", "f64": "float64", "i32": "int32", "u8": "uint8"}
    for n in (0, 1, 2, 7):
        x = np.abs(integers(n, 64)).astype(names[dtype])
        assert wrong(made, {"x": x}, {"n": n}, FEW) is None


REGISTERS = """
fn rows(x: f32[m, 64]): f32[m, 64] {
    new y: f32[m, 64]
    par m |i| { seq 64 |j| { y[i, j] = x[i, j] + x[i, 63 - j] } }
    return y
}"""


def test_what_a_thread_keeps_runs_ahead_too() -> None:
    schedule = "split(j, 8) -> (jo, ji)  bind(i, grid.x)  stage(x, at=jo, in=shared) -> xs  pipeline(jo, stages=2)"
    text = REGISTERS.replace("seq 64", "par 64").replace("x[i, 63 - j]", "1.0")
    assert wrong(laid(text, schedule), {"x": integers(5, 64)}, orders=FEW) is None


KEPT = """
fn f(x: f32[n, 64]): f32[n, 64] {
    new y: f32[n, 64]
    par 64 |t| {
        seq n |i| {
            new a: f32
            a = x[i, t]
            y[i, t] = 2.0 * a
        }
    }
    return y
}"""


def test_registers() -> None:
    made = laid(KEPT, "bind(t, block.x)  pipeline(i, a, stages=3)")
    for n in (0, 1, 2, 3, 8):
        assert wrong(made, {"x": integers(n, 64)}, orders=FEW) is None


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("via", ["cp_async", "tma"])
def test_trip_counts_that_are_numbers(via: str, trips: int) -> None:
    """The last turns come after the last iteration, so slots go round where iterations alone would not."""
    text = f"""
fn turned(x: f32[5, 64] align(16)): f32[5, 64] {{
    new y: f32[5, 64]
    par 1 |b| {{
        par 5 |r| {{ par 64 |c| {{ y[r, c] = 0.0 }} }}
        seq {trips} |i| {{ par 64 |j| {{ y[i, j] = x[i, 63 - j] }} }}
    }}
    return y
}}"""
    made = laid(text, f"bind(b, grid.x)  stage(x, at=i, in=shared, via={via}) -> xs  pipeline(i, stages=4)")
    assert wrong(made, {"x": integers(5, 64)}, {}, FEW) is None


# What may come earlier.


def shifted(distance: int) -> str:
    """What is read in iteration k + `distance` is written in iteration k."""
    return f"""
fn f(inout x: i32[n + 12, 4]): i32[n, 4] {{
    new y: i32[n, 4]
    seq n |k| {{
        new s: i32[4]
        par 4 |a| {{ s[a] = x[k + 6, a] }}
        par 4 |b| {{ y[k, b] = s[3 - b]  x[k + {6 + distance}, b] = 7 * k + b }}
    }}
    return y
}}"""


def taken_on_trust(*_: object) -> None:
    """In place of the proof."""


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize("distance", range(-2, 6))
def test_copies_come_earlier_just_where_they_may(distance: int, stages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused exactly where the plain program of the ring, made all the same, computes something else."""
    text, schedule = shifted(distance), f"pipeline(k, s, stages={stages})"
    given = {"x": integers(24, 4, dtype="int32")}
    refused = 1 <= distance < stages
    if refused:
        assert "E0906" in refusal(text, schedule)
        monkeypatch.setattr(ring, "_require_early", taken_on_trust)
        laid.cache_clear()
    made = laid(text, schedule, "cpu")
    laid.cache_clear()
    want, got = (interpret(f, given, {"n": 12}) for f in (made.original, made.function))
    assert all(np.array_equal(want[name], got[name]) for name in want) is not refused


def test_what_an_iteration_computes_does_not_fill_an_earlier_slot() -> None:
    text = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    seq n |k| { new s: i32 new t: i32 s = x[k] t = s + 1 y[k] = t * s }
    return y
}"""
    assert refusal(text, "pipeline(k, t, stages=2)", "cpu").startswith(
        "error[E0906]: what fills the ring depends on what the iteration itself computes, so it cannot come earlier"
    )
    made = laid(text, "pipeline(k, s, t, stages=2)", "cpu")
    given = {"x": integers(7, dtype="int32")}
    want, got = (interpret(f, given, {"n": 7}) for f in (made.original, made.function))
    assert np.array_equal(want["y"], got["y"])


SKIPPING = """
fn f(A: f32[n, 64] align(16)): f32[n, 64] {
    new C: f32[n, 64]
    par 1 |b| #bind(grid.x) {
        new s: f32[2, 1, 64]
        seq n + 1 |k| {
            if SOURCE { par 64 |a| #tma(0, 1, 64) { s[SLOT, 0, a] = A[k, a] } }
            if k >= 1 { par 64 |c| { C[k - 1, c] = s[(k + 1) % 2, 0, 63 - c] } }
        }
    }
    return C
}"""
"""A ring written by hand, with holes to fill."""


def by_hand(source: str, slot: str) -> str:
    from_text = SKIPPING.replace("SOURCE", source).replace("SLOT", slot)
    try:
        (function,) = parse(from_text, "t.te").functions
        made = lowered(function, function)
    except TexprError as refused:
        return str(refused)
    return "" if wrong(made, {"A": integers(5, 64)}, orders=FEW) is None else "wrong"


def test_rings_by_hand() -> None:
    """What is counted is what happens, or it is refused; nothing is taken on trust."""
    assert by_hand("k < n", "k % 2") == ""
    assert by_hand("k < n", "k / 2 % 2") == "", "used in the turn of the copy, too, so all wait for it there"
    assert by_hand("k < n", "k % 4 % 2").startswith("E0916")
    assert "is decided anew in each iteration of `k`" in by_hand("2 * k < 2 * n + 1", "k % 2")
    assert "it is used where it may not have been copied before" in by_hand("k < n - 1", "k % 2")


# Bugs.


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_seen(name: str) -> None:
    bug = PLANTED[name]
    made = laid(MATMUL, multiplying(bug.via, 3))
    text = re.sub(bug.old, bug.new, made.text)
    assert text != made.text
    given = {"A": integers(16, 40) + 1, "B": integers(40, 32, seed=1)}
    found = {wrong(made, given, {"M": 16, "K": 40, "N": 32}, (order,), text) for order in (None, LOCKSTEP, 0, 1, 2)}
    assert None not in found
    assert {each.split(" in order")[0] for each in found if each} <= bug.checks


# From Python, and for machines.


def test_from_python() -> None:
    said = texpr.Schedule(texpr.parse(KEPT)["f"], target="sm_90a").bind("t", "block.x").pipeline("i", "a", stages=3)
    assert "pipeline(i, a, stages=3)" in str(said)
    assert "new a: f32[3]" in said.show()
    with pytest.raises(texpr.TexprError, match="`i` is pipelined already"):
        said.pipeline("i", "a", stages=3)


@pytest.mark.parametrize(
    ("via", "target"), [("cp_async", "sm_80"), ("cp_async", "sm_90a"), ("tma", "sm_90a"), ("tma", "sm_100a")]
)
def test_nvcc_takes_rings(via: str, target: str) -> None:
    made = binary(laid(MATMUL, multiplying(via, 4), target), target)
    ptx = made.ptx.decode()
    assert ("cp.async.wait_group 2" if via == "cp_async" else "mbarrier.try_wait") in ptx
    assert not any(each.spill_stores + each.spill_loads + each.stack_bytes for each in made.kernels)


BRANCHES = """
fn f(A: f32[n, 64] align(16)): f32[n, 64] {
    new C: f32[n, 64]
    par n |i| #bind(grid.x) {
        par 64 |z| { C[i, z] = 0.0 }
        seq 3 |u| { seq 5 |t| {
            if WHEN {
                new s: f32[1, 64]
                par 64 |a| #tma(0, 1, 64) { s[0, a] = A[i, a] }
                par 64 |c| { C[i, c] += s[0, 63 - c] * f32(t + 1) }
            }
        } }
    }
    return C
}"""
"""A copy in some turns of a loop: which phase is waited for depends on how many there were."""


@pytest.mark.parametrize("when", ["t < 4", "t >= 2", "t == 2", "t >= 1 and t < 4", "u >= 1", "u >= 1 and t >= 2", "t >= 5"])
def test_copies_in_a_range_of_turns(when: str) -> None:
    (function,) = parse(BRANCHES.replace("WHEN", when), "t.te").functions
    assert wrong(lowered(function, function), {"A": integers(3, 64)}, orders=FEW) is None


@pytest.mark.parametrize("when", ["t % 2 == 0", "t != 2", "t / 2 == 1", "t < u", "t < 1 or t >= 3", "A[i, 0] > 0.0"])
def test_copies_in_other_turns_are_refused(when: str) -> None:
    (function,) = parse(BRANCHES.replace("WHEN", when), "t.te").functions
    with pytest.raises(TexprError, match="is decided anew in each iteration of `t`"):
        lowered(function, function)


def told(said: str, inner: str) -> ir.Function:
    """What a `let` says decides on a copy: another thing in each turn."""
    text = BRANCHES.replace("if WHEN", f"let v = {said}\n {inner}").replace("align(16)):", "align(16), I: i32[n, 5]):")
    (function,) = parse(text.replace("64] {\n    new C", "64]\n assume I in 0..5 {\n new C"), "t.te").functions
    return function


@pytest.mark.parametrize(
    ("said", "when"), [("A[i, t] * 2.0", "v > 0.0"), ("A[i, t] > 0.0", "v"), ("I[i, t]", "v > 0"), ("I[i, t]", "t < v")]
)
def test_copies_that_a_let_decides_on_are_refused(said: str, when: str) -> None:
    function = told(said, f"if {when}")
    with pytest.raises(TexprError, match="is decided anew in each iteration of `t`"):
        lowered(function, function)


def test_copies_of_which_a_let_says_how_many_there_are_are_refused() -> None:
    function = told("I[i, u]", "seq v |w|")
    with pytest.raises(TexprError, match="how often `w` runs depends on `v`"):
        lowered(function, function)


BESIDE = """
fn f(A: f32[M, N] align(16)): f32[M, N]
    where N % 4 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| { C[i, j] = A[i, j] + 1.0 } }
    return C
}"""

SEVERAL = """
    split(i, 8) -> (bi, ti)  split(j, 16) -> (bj, tj)  reorder(bi, bj, ti, tj)
    split(bi, 4) -> (w, s)  reorder(w, bj, s, ti, tj)
    bind(w, grid.y)  bind(bj, grid.x)
    stage(A, at=s, in=shared, via=VIA, fill=zero) -> As
    stage(C, at=s, in=shared, via=tma) -> Cs"""
"""A block makes four tiles, one after the other: what is staged is for all of its threads."""


@pytest.mark.parametrize("via", VIAS)
@pytest.mark.parametrize("more", ["", " pipeline(s, stages=3)", " bind(ti, block.y)  bind(tj, block.x)"])
def test_several_tiles_a_block(via: str, more: str) -> None:
    """What is copied out is not among the buffers of a ring that nobody named."""
    made = laid(BESIDE, SEVERAL.replace("VIA", via) + more)
    for m, n in ((0, 4), (1, 4), (33, 20), (70, 36)):
        assert wrong(made, {"A": integers(m, n)}, {"M": m, "N": n}, FEW) is None


@pytest.mark.parametrize("own", ["As", "Bs"])
def test_a_ring_beside_a_copy_of_each_turn(own: str) -> None:
    """Copies of the other operand are made in the turns that compute."""
    made = laid(MATMUL, multiplying("tma", 3).replace("stages=3", f"{own}, stages=3"))
    for depth in TRIPS[:5]:
        assert wrong(made, operands(5, depth, 36), {"M": 5, "K": depth, "N": 36}, FEW) is None


SELDOM = """
fn f(A: f32[n, 64] align(16), w: i32[n]): f32[n, 64] {
    new C: f32[n, 64]
    par n |i| { par 64 |z| { C[i, z] = 0.0 } }
    par 1 |b| #bind(grid.x) {
        seq n |k| {
            new s: f32[1, 64]
            par 64 |a| #tma(0, 1, 64) { s[0, a] = A[k, a] }
            USE
        }
    }
    return C
}"""
"""A phase begins in each turn, and all wait for it; what was copied is used in some turns alone."""


@pytest.mark.parametrize(
    "use",
    [
        "if k >= 3 { par 64 |c| { C[k, c] = s[0, 63 - c] } }",
        "if w[k] > 0 { par 64 |c| { C[k, c] = s[0, 63 - c] } }",
        "seq w[k] |t| { par 64 |c| { C[k, c] = s[0, 63 - c] } }".replace("w[k]", "(k % 3)"),
        "if w[k] > 0 { par 64 |c| { C[k, c] = s[0, 63 - c] } } else { par 64 |d| { C[k, d] = 1.0 } }",
    ],
)
def test_copies_that_are_used_in_some_turns(use: str) -> None:
    """Nobody begins a phase while another thread still waits for the last one."""
    (function,) = parse(SELDOM.replace("USE", use), "t.te").functions
    made = lowered(function, function)
    for n in (1, 2, 7):
        assert wrong(made, {"A": integers(n, 64), "w": np.arange(n, dtype=np.int32) % 2}, orders=range(6)) is None
