"""Where copies that go on by themselves have surely landed, and which threads reach a barrier together.

A thread's copies since its last commit are a group, and a wait leaves at most so many groups, the latest ones, on their way. So
a copy has landed at a wait with more commits than that in between, all of which the thread surely passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.presburger.formula import Eq, Formula, conj, differ, disj, equal, negate, rename
from texpr.verifier.events import Site
from texpr.verifier.logic import Point, witness
from texpr.verifier.match import Match
from texpr.verifier.order import Sides, equal_all, unordered

AHEAD = 64
"""The most turns of a loop that a copy may be on its way."""


@dataclass(frozen=True, slots=True, eq=False)
class Landing:
    """A wait behind which a copy has landed, `turns` turns of the innermost loop around the wait after it was started."""

    wait: Site
    loop: k.For | None
    turns: int


def landings(copy: Site, waits: Iterable[tuple[int, Site]]) -> Iterator[Landing]:
    """Where a copy has landed. `waits`: how many groups they leave, and where they are."""
    for pending, wait in waits:
        depth = len(wait.path) - 1
        if wait.launch is not copy.launch or len(copy.path) <= depth or not _same(copy.path[:depth], wait.path[:depth]):
            continue
        (block, at), (other, to) = copy.path[depth], wait.path[depth]
        if block is not other:
            continue
        around = copy.path[depth - 1][0][copy.path[depth - 1][1]] if depth else None
        tail = sum(_commits(inner[place + 1 :]) for inner, place in copy.path[depth + 1 :])
        if at < to and tail + _commits(block[at + 1 : to]) > pending:
            yield Landing(wait, around if isinstance(around, k.For) else None, 0)
        elif isinstance(around, k.For):
            passed = tail + _commits(block[at + 1 :]) + _commits(block[:to])
            turn = _commits(block)
            for turns in range(1, AHEAD if turn else 2):
                if passed + (turns - 1) * turn > pending:
                    yield Landing(wait, around, turns)
                    break


def _same(a: Sequence[tuple[tuple[k.Stmt, ...], int]], b: Sequence[tuple[tuple[k.Stmt, ...], int]]) -> bool:
    return all(x is y and i == j for (x, i), (y, j) in zip(a, b, strict=True))


def _commits(stmts: Iterable[k.Stmt]) -> int:
    """How many groups are surely made."""
    total = 0
    for stmt in stmts:
        match stmt:
            case k.CommitAsync():
                total += 1
            case k.If():
                total += min(_commits(stmt.then), _commits(stmt.orelse))
            case k.For() if stmt.lo.is_constant and stmt.hi.is_constant and stmt.step.is_constant:
                total += _commits(stmt.body) * len(range(stmt.lo.constant, stmt.hi.constant, stmt.step.constant))
            case _:
                pass
    return total


def not_landed(a: Site, b: Site, found: Sequence[Landing], sides: Sides, *, shared_only: bool, later: bool) -> Formula:
    """When the copy `a` has perhaps not landed where `b` runs: each wait is missed, or `b` does not surely come behind it."""
    missed: list[Formula] = []
    for landing in found:
        moved = moved_to(landing, sides.left)
        there = conj(rename(f, moved) for f in landing.wait.domain)
        late = unordered(landing.wait, b, Sides(moved, sides.right), shared_only=shared_only, private=False, later=later)
        missed.append(disj((negate(there), *late)))
    return conj(missed)


def moved_to(landing: Landing, names: Mapping[Sym, Sym | Expr]) -> Mapping[Sym, Sym | Expr]:
    """The indices of a wait, in those of the copy."""
    moved = {sym: expr(names[sym]) for sym in landing.wait.dims}
    if landing.loop is not None:
        moved[landing.loop.sym] = moved[landing.loop.sym] + landing.loop.step * landing.turns
    return moved


def never_lands(copy: Site, found: Sequence[Landing], premises: Formula) -> Point | None:
    """A copy that is not waited for before its thread ends. Raises Undecided."""
    names = {sym: sym for sym in copy.dims}
    missed = [negate(conj(rename(f, moved_to(each, names)) for f in each.wait.domain)) for each in found]
    return witness((*copy.where, *missed), premises)


def diverging(site: Site, width: int, matches: Sequence[Match], premises: Formula) -> Point | None:
    """Two threads of a group of `width`, 0 for a block, of which one reaches `site` and the other not, or not as often.

    Raises Undecided, or ValueError where a test of data is in the way that no statement of the program has.
    """
    launch = site.launch
    sides = Sides({s: Sym(f"{s.name}◁") for s in site.dims}, {s: Sym(f"{s.name}▷") for s in site.dims})
    here: list[Formula] = [*(rename(f, sides.left) for f in launch.domain), *(rename(f, sides.right) for f in launch.domain)]
    here += equal_all((*launch.host, *launch.blocks), sides)
    if width:
        here.append(Eq(sides.a(launch.thread) // width - sides.b(launch.thread) // width))
    wrong: list[Formula] = []
    for loop in site.loops:
        for bound in site.bounds[loop]:
            wrong.append(differ([sides.a(bound)], [sides.b(bound)]))
        here += equal_all([loop.sym], sides)
    for fact in site.domain:
        wrong.append(conj((rename(fact, sides.left), negate(rename(fact, sides.right)))))
    for test in site.tests:
        wrong.append(_unlike(test, matches, sides))
    if not wrong:
        return None
    return witness((*here, disj(wrong)), premises)


def _unlike(test: tuple[object, Site], matches: Sequence[Match], sides: Sides) -> Formula:
    """That two threads ask different instances of a test of the program."""
    for match in matches:
        found = match.event.site.tests
        if test in found and len(match.action.spot.tests) == len(found):
            _, spot = match.action.spot.tests[found.index(test)]
            values = [match.indices[loop.sym] for loop in spot.loops]
            return negate(equal(map(sides.a, values), map(sides.b, values)))
    raise ValueError("a test of data decides, which no statement of the program has")
