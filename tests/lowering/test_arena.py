"""Shared arrays that live at different times lie in the same bytes: right in every order, and told where they should not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.lowering import emulated
from tests.lowering.chains import chain, data

from texpr.emulator import LOCKSTEP, Fault
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel.shared import array_bytes, overlaps, shared_bytes
from texpr.ir.kernel.verify import verify
from texpr.ir.program import Function, Seq
from texpr.ir.value import Buffer
from texpr.isa.levels import Space
from texpr.isa.registry import resolve
from texpr.isa.target import Target
from texpr.lowering.dependences.lives import Lives, Turn
from texpr.lowering.lower import lower
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.record import replace

USUAL = resolve("sm_90a")


def function(seed: int) -> Function:
    return parse(chain(seed), "chain.te").functions[0]


def kernel_of(found: Function, target: Target = USUAL) -> tuple[k.Plan, k.Kernel]:
    plan, _ = lower(found, target)
    verify(plan, target)
    (kernel,) = k.kernels(plan.steps)
    return plan, kernel


def apart(kernel: k.Kernel) -> int:
    """Bytes of its shared arrays beside each other."""
    return sum(array_bytes(array) for array in kernel.arrays if array.space is Space.SHARED)


def tight(kernel: k.Kernel) -> Target:
    """A machine whose blocks have as little as the kernel takes, or less if that can be."""
    largest = max(array_bytes(array) for array in kernel.arrays if array.space is Space.SHARED)
    room = max(largest, shared_bytes(kernel) * 3 // 4)
    return replace(USUAL, shared_static=room)


def faults(found: Function, plan: k.Plan, seed: int, orders: tuple[int | None, ...] = (None, LOCKSTEP, 0, 1)) -> Iterator[bool]:
    """For each order, whether something is wrong: what is told, or, where nothing is, the numbers."""
    given = data(seed)
    expected = interpret(found, given)["y"]
    for order in orders:
        run = emulated.run_plan(found, plan, given, seed=order)
        yield bool(run.reports) or not np.array_equal(run.arrays["y"].reshape(expected.shape), expected)


def check(seeds: range) -> tuple[int, int]:
    """How many programs shared bytes, and how many more did where there was less room."""
    shared = forced = 0
    for seed in seeds:
        found = function(seed)
        plan, kernel = kernel_of(found)
        assert not any(faults(found, plan, seed)), seed
        shared += any(overlaps(kernel))
        narrow, less = kernel_of(found, tight(kernel))
        assert not any(faults(found, narrow, seed)), seed
        forced += shared_bytes(less) < shared_bytes(kernel)
    return shared, forced


def test_random_programs_are_right_in_every_order() -> None:
    shared, forced = check(range(2))
    assert shared >= 1 and forced >= 1, (shared, forced)


@pytest.mark.long
def test_many_random_programs_are_right_in_every_order() -> None:
    shared, forced = check(range(2, 120))
    assert shared >= 50 and forced >= 40, (shared, forced)


@pytest.mark.planted
def test_arrays_that_live_together_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: lives are overlooked."""

    def always(lives: Lives, one: Buffer, other: Buffer) -> bool:
        return True

    monkeypatch.setattr(Lives, "disjoint", always)
    for seed in (0, 2, 3):
        found = function(seed)
        plan, kernel = kernel_of(found)
        assert any(overlaps(kernel))
        assert all(faults(found, plan, seed)), seed


@pytest.mark.planted
def test_a_loop_that_brings_an_element_back_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what a loop carries, and what lives round one, is overlooked."""

    def nothing(lives: Lives, loop: Seq) -> tuple[int, ...]:
        return ()

    monkeypatch.setattr(Lives, "_body", nothing)
    found = parse(
        """fn f(x: i32[n, 64], inout y: i64[n, 64], count: i32[m]) {
            par n |i| {
                new v: i32[64]
                par 64 |a| { v[a] = x[i, a] }
                seq 3 |s| {
                    par 64 |b| { y[i, b] += i64(v[(b + s) % 64]) }
                    new w: i32[64]
                    par 64 |c| { w[c] = x[i, 63 - c] + 1 }
                    par 64 |d| { y[i, d] += i64(w[(d + 1) % 64]) }
                }
            }
        }""",
        "chain.te",
    ).functions[0]
    plan, kernel = kernel_of(found)
    assert any(overlaps(kernel)) and all(faults(found, plan, 1))
    monkeypatch.undo()
    plan, kernel = kernel_of(found)
    assert not any(overlaps(kernel)) and not any(faults(found, plan, 1))


@pytest.mark.planted
def test_a_turn_without_its_barrier_is_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what orders two arrays in the same bytes is left out."""

    def nothing(lives: Lives, one: Buffer, other: Buffer) -> Iterator[Turn]:
        yield from ()

    turns = Lives.turns
    told = 0
    for seed in (4, 5, 7):
        found = function(seed)
        less = tight(kernel_of(found)[1])
        right, _ = kernel_of(found, less)
        monkeypatch.setattr(Lives, "turns", nothing)
        plan, _ = kernel_of(found, less)
        monkeypatch.setattr(Lives, "turns", turns)
        counts = [sum(isinstance(s, k.Barrier) for x in k.kernels(p.steps) for s in k.walk(x.body)) for p in (right, plan)]
        if counts[1] < counts[0]:
            told += any(faults(found, plan, seed))
    assert told >= 2


PHASES = """
fn f(x: i32[n, {size}], inout y: i64[n, {size}], count: i32[m]) {{
    par n |i| {{
        new a: i32[{size}]
        par {size} |p| {{ a[p] = x[i, p] }}
        new b: i32[{size}]
        par {size} |q| {{ b[q] = a[{size} - 1 - q] }}
        new c: i32[{size}]
        par {size} |r| {{ c[r] = b[(r + 1) % {size}] }}
        par {size} |s| {{ y[i, s] += i64(c[{size} - 1 - s]{also}) }}
    }}
}}
"""


@pytest.mark.parametrize(("size", "also", "spaces", "bytes"), [
    (64, "", "sss", 512), (4000, "", "sss", 32000), (4096, " + a[s]", "sss", 49152), (4100, " + a[s]", "ssg", 32800),
    (6144, "", "sss", 49152), (6150, "", "sgs", 24600), (64, " + b[s]", "sss", 512), (64, " + a[s]", "sss", 768),
])  # fmt: skip
def test_what_fits(size: int, also: str, spaces: str, bytes: int) -> None:
    """What would need more than there is goes to global memory, and what shares does not."""
    plan, kernel = kernel_of(parse(PHASES.format(size=size, also=also), "phases.te").functions[0])
    shared = {array.buffer.name for array in kernel.arrays if array.space is Space.SHARED}
    assert "".join("s" if name in shared else "g" for name in "abc") == spaces
    assert {b.name for b in plan.workspace} == set("abc") - shared
    assert shared_bytes(kernel) == bytes


def test_a_barrier_is_not_paid_for_what_fits() -> None:
    """In a loop the last reader of one array would have to wait for the first writer of another."""
    text = """fn f(x: i32[n, 64], inout y: i64[n, 64], count: i32[m]) {
        par n |i| {
            seq m |t| {
                new a: i32[64]
                par 64 |p| { a[p] = x[i, p] + t }
                new b: i32[64]
                par 64 |q| { b[q] = a[63 - q] }
                par 64 |s| { y[i, s] += i64(b[63 - s]) }
            }
        }
    }"""
    found = parse(text, "loop.te").functions[0]
    plan, kernel = kernel_of(found)
    assert apart(kernel) == shared_bytes(kernel) and not any(faults(found, plan, 2))


def test_notes_say_who_lies_where() -> None:
    _, kernel = kernel_of(parse(PHASES.format(size=64, also=""), "phases.te").functions[0])
    assert [(a.buffer.name, a.at, a.reason) for a in kernel.arrays] == [
        ("a", 0, "threads of one block touch it; lives in lines 5 to 7"),
        ("b", 256, "threads of one block touch it; lives in lines 7 to 9"),
        ("c", 0, "threads of one block touch it; lives in lines 9 to 10"),
    ]
    covered = [c.buffer for s in k.walk(kernel.body) if isinstance(s, k.Barrier) for c in s.covers]
    assert "a, where c lies" in covered


def test_what_shares_bytes_is_proved() -> None:
    plan, kernel = kernel_of(found := parse(PHASES.format(size=64, also=""), "phases.te").functions[0])
    assert any(overlaps(kernel))
    counts = proved(found, plan).counts
    assert (counts["undecided"], counts["refused"]) == (0, 0)


@pytest.mark.parametrize(("name", "at"), [("a", 64), ("a", 256), ("b", 0), ("b", 64), ("c", 128), ("c", 256)])
def test_what_is_still_wanted_is_not_to_be_overwritten(name: str, at: int) -> None:
    plan, kernel = kernel_of(found := parse(PHASES.format(size=64, also=""), "phases.te").functions[0])
    moved = tuple(replace(a, at=at) if a.buffer.name == name else a for a in kernel.arrays)
    refused = proved(found, replace(plan, steps=(k.Launch(replace(kernel, arrays=moved)),))).of(Verdict.REFUSED)
    assert {each.what for each in refused} == {"apart in memory"}
    assert all("thread◁" in each.how for each in refused)


@pytest.mark.parametrize("seed", [2, 5, 8, 13])
def test_chains_in_the_same_bytes_are_proved(seed: int) -> None:
    _, kernel = kernel_of(found := function(seed))
    plan, kernel = kernel_of(found, tight(kernel))
    assert any(overlaps(kernel))
    counts = proved(found, plan).counts
    assert (counts["undecided"], counts["refused"]) == (0, 0)


def test_a_read_of_what_is_gone_is_told_by_name() -> None:
    plan, kernel = kernel_of(found := parse(PHASES.format(size=64, also=""), "phases.te").functions[0])
    first = next(a for a in kernel.arrays if a.buffer.name == "a")
    moved = tuple(replace(a, at=64) if a.buffer.name == "b" else a for a in kernel.arrays)
    assert first.at == 0
    wrong = replace(plan, steps=(k.Launch(replace(kernel, arrays=moved)),))
    arguments = {**data(0), "x": data(0)["x"]}
    run = emulated.run_plan(found, wrong, arguments)
    assert {(r.fault, r.buffer) for r in run.reports} & {(Fault.RACE, "b"), (Fault.UNINITIALISED, "a")}
