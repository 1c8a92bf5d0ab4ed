"""Checks against programs that are run step by step: a finding exactly where small sizes show the mistake."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from tests.relation.oracle import Trace, holes, inside, races, undefined_reads
from tests.relation.programs import M, N, programs

from texpr.affine.expr import Sym
from texpr.checks import check
from texpr.ir.program import Function, If, Par, Seq, walk

SIZES = [{N: n, M: m} for n, m in ((0, 1), (1, 0), (1, 2), (2, 1), (3, 2), (4, 3), (5, 1))]


CLAUSES = ("E0412", "E0413", "E0414")
"""About the words of a `reduce` clause, which a run does not show."""

Mistake = tuple[str, str]
"""A code, and the loop or buffer it speaks of."""


def mistakes(function: Function, sizes: dict[Sym, int]) -> set[Mistake]:
    """The mistakes that a run at these sizes shows."""
    trace = Trace(function, sizes)
    found = {("E0401", e.load.buffer.name) for e in trace.events if not inside(trace, e)}
    found |= {("E0402", sym.name) for sym in races(trace)}
    found |= {("E0403", name) for name in undefined_reads(trace)}
    return found | ({("E0404", "R")} if holes(trace) else set())


def findings(function: Function) -> set[Mistake]:
    """What the checks say; each finding is confirmed by a run at the sizes of its witness.

    What concerns the words of a `reduce` clause is left out.
    """
    found: set[Mistake] = set()
    for diagnostic in check(function):
        if diagnostic.code not in CLAUSES:
            match = re.search(r"(\w+) = " if diagnostic.code == "E0402" else r"`(\w+)", diagnostic.message)
            assert match is not None, diagnostic
            mistake = (diagnostic.code, match[1])
            witness = {Sym(name): int(value) for name, value in re.findall(r"\b([nm]) = (\d+)", diagnostic.message)}
            assert mistake in mistakes(function, {N: 0, M: 0} | witness), diagnostic
            found.add(mistake)
    return found


def agree(function: Function) -> set[Mistake]:
    """Checks that no mistake is missed and none is made up; gives the findings."""
    found = findings(function)
    faulty = any(d.code in CLAUSES for d in check(function))
    for sizes in SIZES:
        shown = mistakes(function, sizes)
        # what meets in a buffer of a faulty clause is not reported a second time
        assert {m for m in shown if not (faulty and m[0] == "E0402")} <= found
    return found


@given(programs(results=True))
@settings(max_examples=15)
def test_findings_are_the_mistakes_of_a_run(function: Function) -> None:
    agree(function)


@pytest.mark.long
def test_findings_are_the_mistakes_of_a_run_at_length() -> None:
    seen: Counter[str] = Counter()

    @given(programs(results=True))
    @settings(max_examples=500)
    def run(function: Function) -> None:
        seen.update({code for code, _ in agree(function)} or {"legal"})
        stmts = list(walk(function.body))
        seen.update({"guard": any(isinstance(s, If) for s in stmts), "deep": _depth(function.body) >= 3})

    run()
    assert all(seen[what] >= 10 for what in ("E0401", "E0402", "E0403", "E0404", "guard", "deep")), seen
    assert seen["legal"] >= 10, seen


def _depth(body: tuple[object, ...]) -> int:
    inner = (_depth(s.body) for s in body if isinstance(s, Par | Seq))
    return 1 + max(inner, default=-1) if any(isinstance(s, Par | Seq) for s in body) else 0
