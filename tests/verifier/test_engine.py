"""Bugs put into copies of tiles, their barriers, fences and waits: refused, or shown to be none by the emulator."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.rings import MATMUL
from tests.schedule.laid import Laid, laid, wrong
from tests.verifier.engine_mutants import Planted, planted
from tests.verifier.verdicts import is_proved

from texpr import driver
from texpr.emulator import LOCKSTEP
from texpr.ir.program import Function
from texpr.verifier import Verdict
from texpr.witness import proved

TMA = Path(__file__).parents[2] / "examples" / "tma"

EQUIVALENT = {
    ("later", "barrier"): "the thread that makes the barriers is the one that first uses them; others wait behind",
    ("later", "barrierwait"): "what stands between uses nothing of the tile",
    ("guard dropped", "if"): "all threads may ask for a map, and wait for groups that they have none of",
    ("waits for reads alone", "waitbulk"): "the kernel ends there, and what it stored is there when it has ended",
    ("map: another fill", "C_map"): "a store fills nothing",
    ("last turn dropped", "for"): "what is left out lies outside of the matrix, as its rows are four numbers, or a multiple",
}
"""Changes that change nothing, by class and by what is changed, each with the reason; the emulator agrees."""

SHORT = ("copy", "stencil", "reduce_add")
LONG = ("matmul_ring", "cluster", "im2col_conv", "strided_copy", "transpose", "padded_batch")


def bugs(name: str) -> Iterator[tuple[Planted, Function]]:
    """Every bug in the schedules of a program."""
    for function in driver.load(TMA / f"{name}.te").functions:
        for schedule in function.schedules:
            compiled = driver.lower(function, "sm_90a", schedule=schedule)
            yield from ((bug, compiled.function) for bug in planted(compiled.plan))


def verdicts(name: str) -> tuple[Counter[str], Counter[str], list[tuple[str, str]]]:
    """How many bugs of each class are refused, how many are only undecided, and which are neither."""
    refused, undecided, left = Counter[str](), Counter[str](), list[tuple[str, str]]()
    for bug, function in bugs(name):
        proof = proved(function, bug.plan)
        if found := proof.of(Verdict.REFUSED):
            refused[bug.kind] += 1
            assert all(each.how for each in found)
        elif proof.of(Verdict.UNDECIDED):
            undecided[bug.kind] += 1
        else:
            left.append((bug.kind, bug.name.split()[-1]))
    return refused, undecided, left


def table(counts: Counter[str]) -> str:
    """Classes with their counts."""
    return "\n".join(f"{kind:40} {count}" for kind, count in sorted(counts.items()))


def test_bugs_in_copies_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    total, refusals = Counter[str](), 0
    for name in SHORT:
        refused, undecided, left = verdicts(name)
        assert not [each for each in left if each not in EQUIVALENT], name
        total += refused + undecided
        refusals += sum(refused.values())
    with capsys.disabled():
        sys.stdout.write(f"\n{table(total)}\n")
    assert sum(total.values()) >= 100
    assert refusals >= 80  # the others are not built like anything in the program, so that no instance can be named
    assert {"other parity", "fewer bytes expected", "fence dropped: async", "one group less waited for", "barrierwait dropped",
            "commitbulk dropped", "coordinates swapped", "map: a box off", "tile off"} <= total.keys()  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
def test_bugs_in_larger_kernels_are_refused(name: str) -> None:
    refused, undecided, left = verdicts(name)
    assert not [each for each in left if each not in EQUIVALENT]
    assert sum(undecided.values()) <= sum(refused.values()), undecided
    assert sum(refused.values()) >= 40


ARRAYS = {
    "copy": {"A": (45, 132), "a": ()},
    "stencil": {"x": (19, 68)},
    "reduce_add": {"A": (21, 70), "B": (70, 36), "C": (21, 36)},
}


@pytest.mark.parametrize("name", SHORT)
def test_what_is_not_refused_changes_nothing(name: str) -> None:
    random = np.random.default_rng(0)
    arrays = {a: random.integers(-4, 5, shape).astype(np.float32) for a, shape in ARRAYS[name].items()}
    shapes = {"copy": {"M": 45, "K": 132}, "stencil": {"M": 19, "N": 68}, "reduce_add": {"M": 21, "K": 70, "N": 36}}
    seen = set[tuple[str, str]]()
    for bug, function in bugs(name):
        key = (bug.kind, bug.name.split()[-1])
        if key not in EQUIVALENT or key in seen or not is_proved(proved(function, bug.plan)):
            continue
        seen.add(key)
        assert wrong(Laid(function, function, bug.plan), arrays, shapes[name], orders=(None, LOCKSTEP, 0, 1)) is None, key
    assert seen


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
    found = [bug for bug in planted(made.plan) if "parity" in bug.kind or "stage" in bug.kind]
    assert len(found) >= 4
    assert not [bug.kind for bug in found if is_proved(proved(made.function, bug.plan))]
