"""Sums in an `if` between the loops of a product, done ahead of it, so that the nest is tiled like any other.

    par N |i| { par N |j| { if j <= i { seq K |k| reduce(C) { … } } } }      hoist(k)

What is asked for, by the indices alone, is a part of all results, as a triangle. All are summed up, and those that are asked
for are added. It is not done where the `if` is for few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Index, Op, Value
from texpr.planner.follow import Refused
from texpr.planner.nest import NOMINAL, NoPlan, nests
from texpr.planner.strategies.phases import way_of
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.tree import loops
from texpr.support.record import replace

POINTS = 256
"""Results that are looked at."""

LEAST = 0.25
"""The share of results that are asked for, from which on all may be summed up."""

BASES = (2, 3, 5, 7, 11, 13)
"""Of the radical inverses by which points are spread over loops."""


class Hoisted(Script, kw_only=True):
    """Does `sum` ahead of the `if` around it."""

    subject: Subject
    sum: ir.Loop
    ahead: str = ""
    """What the sum goes to."""

    def run(self) -> Sequence[Subject]:
        """Applies the directive, and leaves the new nest to be tiled. Raises Refused, or NoPlan."""
        name = self.sum.sym.name
        (self.ahead,) = self.fresh("sum", "ahead")
        self.must("hoist", name, results=(self.ahead,))
        sym = self.subject.par.sym
        par, nest = next(found for found in nests(materialise(self.state).function) if found[0].sym is sym)
        return (replace(self.subject, par=par, nest=nest, tiles_only=True),)

    def finish(self) -> None:
        """Skips tiles of which nothing is asked for."""
        sums = (loop for loop in loops(self.state.function.body) if isinstance(loop, ir.Seq))
        ours = (loop for loop in sums if any(b.name == self.ahead for b in loop.reduce))
        outermost = next(ours, None)
        if outermost is not None:
            self.may("skip", outermost.sym.name)


def guarded(par: ir.Par) -> ir.Loop | None:
    """The only loop of sums in an `if` on indices in the nest of `par`, if the `if` holds for enough results."""
    way = way_of(par)
    if any(p.reduce or p.fully or p.directives for p in way):
        return None
    inside = [stmt for stmt in way[-1].body if any(isinstance(s, ir.Par | ir.Seq) for s in ir.walk((stmt,)))]
    found = _only_sum(inside[0]) if len(inside) == 1 else None
    if found is None:
        return None
    loop, tests = found
    asked = [all(test) for test in zip(*(_holds(test, way) for test in tests), strict=True)] if tests else []
    return loop if asked and sum(asked) >= LEAST * len(asked) else None


def _only_sum(stmt: ir.Stmt) -> tuple[ir.Loop, list[Value]] | None:
    """The loop that is all that there are of loops in `if`s without `else`, and their conditions."""
    tests = list[Value]()
    while isinstance(stmt, ir.If) and not stmt.orelse:
        tests.append(stmt.condition)
        inside = [s for s in stmt.then if any(isinstance(each, ir.Par | ir.Seq) for each in ir.walk((s,)))]
        if len(inside) != 1:
            return None
        (stmt,) = inside
    return (stmt, tests) if isinstance(stmt, ir.Par | ir.Seq) and stmt.reduce else None


def _holds(test: Value, way: Sequence[ir.Par]) -> Iterator[bool]:
    """Whether a condition holds at points that are spread over the loops, with unknown sizes alike; False where data decide."""
    for at in range(1, POINTS + 1):
        known: dict[Sym, int] = {}
        for base, loop in zip(BASES * len(way), way, strict=False):
            extent = loop.extent.evaluate({s: known.get(s, NOMINAL) for s in loop.extent.syms()})
            known[loop.sym] = int(_inverse(at, base) * max(1, extent))
        yield _is_so(test, known)


def _inverse(number: int, base: int) -> float:
    """The radical inverse: digits of a number behind the point."""
    found, part = 0.0, 1.0
    while number:
        number, digit = divmod(number, base)
        part /= base
        found += digit * part
    return found


def _is_so(test: Value, known: Mapping[Sym, int]) -> bool:
    match test:
        case Op("lt" | "le" | "gt" | "ge" | "eq" | "ne" as name, (Index(left), Index(right))):
            one, other = (e.evaluate({s: known.get(s, NOMINAL) for s in e.syms()}) for e in (left, right))
            return {
                "lt": one < other,
                "le": one <= other,
                "gt": one > other,
                "ge": one >= other,
                "eq": one == other,
                "ne": one != other,
            }[name]
        case Op("and", args):
            return all(_is_so(arg, known) for arg in args)
        case Op("or", args):
            return any(_is_so(arg, known) for arg in args)
        case _:
            return False


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_blocks and isinstance(subject.nest, NoPlan) and not subject.tiles_only


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = None if refused else guarded(subject.par)
    if found is None:
        return None
    return Proposal(Hoisted(subject.state, subject.span, subject=subject, sum=found))


STRATEGY = Strategy(Rank.TILE, _applies, _propose)
