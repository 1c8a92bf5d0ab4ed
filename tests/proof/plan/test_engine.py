"""Bugs put into copies of tiles, their barriers, fences and waits: refused, or shown to be none by the emulator."""

import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.rings import MATMUL
from tests.proof.plan.engine_mutants import Planted, planted
from tests.proof.plan.verdicts import is_proved
from tests.schedule.laid import Laid, laid, wrong

from texpr import driver
from texpr.affine.expr import Sym
from texpr.emulator import LOCKSTEP
from texpr.interp.dtypes import numpy_dtype
from texpr.ir.program import Function
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.record import Record

TMA = Path(__file__).parents[3] / "examples" / "tma"

EQUIVALENT = {
    ("later", "* barrier"): "the thread that makes the barriers is the one that first uses them; others wait behind",
    ("later", "* barrierwait"): "what stands between uses nothing of the tile",
    ("guard dropped", "* if"): "all threads may ask for a map, and wait for groups that they have none of",
    ("waits for reads alone", "* waitbulk"): "the kernel ends there, and what it stored is there when it has ended",
    ("map: another fill", "* [CY]_map"): "a store fills nothing",
    (
        "* turn dropped",
        "* else: *for",
    ): "rows are four numbers, or a multiple: what no whole vector takes is outside of the matrix",
    ("map: a step off", "* [ACK]_map"): "a box has one element along that dimension",
    ("map: a size off", "* [AC]_map"): "blocks are as many as the tensor has elements along that dimension, and a box has one",
}
"""Changes that change nothing, by patterns for class and place, each with the reason; the emulator agrees."""

UNDECIDED = {
    ("guard dropped", "* if"): "threads compute what lies outside, in memory of their own that nobody wrote, or reads",
}
"""The same of changes that are no instances of statements everywhere, and so not proved."""

SHORT = ("copy", "stencil", "reduce_add")
LONG = ("matmul_ring", "cluster", "im2col_conv", "strided_copy", "transpose", "padded_batch")

SIZES = {
    "copy": {"M": 45, "K": 132},
    "stencil": {"M": 19, "N": 68},
    "reduce_add": {"M": 21, "K": 70, "N": 36},
    "matmul_ring": {"M": 70, "K": 196, "N": 68},
    "cluster": {"M": 70, "K": 68, "N": 132},
    "im2col_conv": {"B": 2, "C": 36, "F": 36},
    "strided_copy": {"H": 19, "W": 18, "C": 40},
    "transpose": {"M": 45, "N": 68},
    "padded_batch": {"B": 2, "M": 37, "K": 68, "N": 36},
}
"""What is run: loops have several turns, and neither tiles nor clusters divide the sizes."""


def bugs(name: str) -> Iterator[tuple[Planted, Function]]:
    """Every bug in the schedules of a program."""
    for function in driver.load(TMA / f"{name}.te").functions:
        for schedule in function.schedules:
            compiled = driver.lower(function, "sm_90a", schedule=schedule)
            yield from ((bug, compiled.function) for bug in planted(compiled.plan))


class Found(Record, dict=True):
    """How many bugs of each class are refused; those that are only undecided, and those that are neither."""

    refused: Counter[str]
    undecided: tuple[tuple[Planted, Function], ...]
    left: tuple[tuple[Planted, Function], ...]


@cache
def verdicts(name: str) -> Found:
    """What becomes of all bugs in a program."""
    refused, undecided, left = Counter[str](), list[tuple[Planted, Function]](), list[tuple[Planted, Function]]()
    for bug, function in bugs(name):
        proof = proved(function, bug.plan)
        if found := proof.of(Verdict.REFUSED):
            refused[bug.kind] += 1
            assert all(each.how for each in found)
        else:
            (undecided if proof.of(Verdict.UNDECIDED) else left).append((bug, function))
    return Found(refused, tuple(undecided), tuple(left))


def changing(name: str) -> list[str]:
    """The bugs that are not refused, and for which there is no reason, or whose kernel gives another result."""
    random, sizes, wrongs = np.random.default_rng(0), SIZES[name], list[str]()
    values = {Sym(size): value for size, value in sizes.items()}
    found = verdicts(name)
    for (bug, function), reasons in (*((e, EQUIVALENT) for e in found.left), *((e, UNDECIDED) for e in found.undecided)):
        arrays = {
            p.name: random.integers(-4, 5, [e.evaluate(values) for e in p.shape]).astype(numpy_dtype(p.dtype))
            for p in function.params
        }
        known = any(fnmatch(bug.kind, kind) and fnmatch(bug.name, place) for kind, place in reasons)
        made, allowed = Laid(function, function, bug.plan), "uninitialised" if reasons is UNDECIDED else None
        if not known or wrong(made, arrays, sizes, (None, LOCKSTEP, 0, 1), allowed=allowed) is not None:
            wrongs.append(f"{bug.kind} in {bug.name}")
    return wrongs


def table(counts: Counter[str]) -> str:
    """Classes with their counts."""
    return "\n".join(f"{kind:40} {count}" for kind, count in sorted(counts.items()))


def test_bugs_in_copies_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    total = sum((verdicts(name).refused for name in SHORT), Counter[str]())
    with capsys.disabled():
        sys.stdout.write(f"\n{table(total)}\n")
    assert sum(total.values()) >= 100
    assert {"other parity", "fewer bytes expected", "fence dropped: async", "one group less waited for", "barrierwait dropped",
            "commitbulk dropped", "coordinates swapped", "map: a box off", "tile off"} <= total.keys()  # fmt: skip


@pytest.mark.parametrize("name", SHORT)
def test_what_is_not_refused_changes_nothing(name: str) -> None:
    assert verdicts(name).left
    assert not changing(name)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_bugs_in_larger_kernels_are_refused(name: str) -> None:
    found = verdicts(name)
    assert not changing(name)
    assert sum(found.refused.values()) >= 25


def test_a_refusal_names_two_instances() -> None:
    found = [
        each.how
        for bug, function in bugs("copy")
        if bug.kind in ("barrierwait dropped", "fence dropped: async")
        for each in proved(function, bug.plan).of(Verdict.REFUSED)
        if each.what == "in order"
    ]
    assert found
    assert all("thread◁" in how and "▷" in how for how in found)


UNFENCED = "fence dropped: async"
TESTED = """
fn f(A: f32[N, 64] align(16)): f32[N]
{
    new y: f32[N]
    par 1 |g| { par 64 |j| { seq N |i| { if A[i, j] > 0.0 { if j == 0 { y[i] = A[i, (j + 1) % 64] } else { y[i] = y[i] } } } } }
    return y
}
"""
"""A test of data reads the slot, too."""


def test_parities_of_a_ring_in_a_loop() -> None:
    schedule = """
        split(i, 8) -> (bi, ti)  split(j, 32) -> (bj, tj)  split(k, 8) -> (ko, ki)
        reorder(bi, bj, ko, ti, tj, ki)
        bind(bi, grid.x)
        stage(A, at=ko, in=shared, via=tma, fill=zero) -> As
        stage(B, at=ko, in=shared, via=tma, fill=zero) -> Bs
        pipeline(ko, stages=3)"""
    made = laid(MATMUL, schedule)
    assert is_proved(proved(made.function, made.plan))
    found = [bug for bug in planted(made.plan) if "parity" in bug.kind or "stage" in bug.kind or bug.kind == UNFENCED]
    assert len(found) >= 5
    assert UNFENCED in {bug.kind for bug in found}
    assert not [bug.kind for bug in found if is_proved(proved(made.function, bug.plan))]
