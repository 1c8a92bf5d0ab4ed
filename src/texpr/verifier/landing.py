"""Where copies that go on by themselves have surely landed, and which threads reach a barrier together.

A thread's copies since its last commit are a group, and a wait leaves at most so many groups, the latest ones, on their way. So
a copy has landed at a wait with more commits than that in between, all of which the thread surely passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.presburger.formula import Eq, Formula, conj, differ, disj, equal, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.reading.events import Site
from texpr.verifier.match import Match
from texpr.verifier.order import Sides, equal_all, launched_later, unordered

Names: TypeAlias = Mapping[Sym, "Sym | Expr"]

AHEAD = 64
"""The most turns of a loop that a copy may be on its way."""


@dataclass(frozen=True, slots=True, eq=False)
class Landing:
    """A wait behind which a copy has landed. `turns`: its indices of loops, in those of the copy, where they are not the same.

    `anyone`: any thread of the block may wait for it, not only the one that started it; where both of `same` are equal.
    """

    wait: Site
    turns: Mapping[Sym, Expr]
    anyone: bool = False
    same: tuple[tuple[Expr, Expr], ...] = ()


def landings(copy: Site, waits: Iterable[tuple[k.Stmt, Site]], write: bool = True) -> Iterator[Landing]:
    """Where a copy has landed whose thread puts it into a group, or, without `write`, where it has read what it stores."""
    for stmt, wait in waits:
        if isinstance(stmt, k.WaitBulk) and stmt.read and write:
            continue
        kind = k.CommitBulk if isinstance(stmt, k.WaitBulk) else k.CommitAsync
        pending = stmt.pending if isinstance(stmt, k.WaitBulk | k.WaitAsync) else -1
        yield from _landings(copy, wait, kind, pending)


def fences(write: Site, kind: str, every: Iterable[tuple[str, Site]]) -> tuple[Landing, ...]:
    """Where what a thread wrote is known to the engine, if it issues a copy after that."""
    return tuple(found for each, fence in every if each == kind for found in _landings(write, fence, k.Fence, -1))


def _landings(copy: Site, wait: Site, kind: type[k.Stmt], pending: int) -> Iterator[Landing]:
    depth = sum(1 for _ in takewhile(lambda pair: _same(*pair), zip(copy.path, wait.path, strict=False)))
    if wait.launch is not copy.launch or depth >= min(len(copy.path), len(wait.path)):
        return
    (block, at), (other, to) = copy.path[depth], wait.path[depth]
    if block is not other or any(isinstance(inner[place], k.For) for inner, place in wait.path[depth:-1]):
        return
    around = copy.path[depth - 1][0][copy.path[depth - 1][1]] if depth else None
    tail = sum(_commits(inner[place + 1 :], kind) for inner, place in copy.path[depth + 1 :])
    tail += sum(_commits(inner[:place], kind) for inner, place in wait.path[depth + 1 :])
    if at < to and tail + _commits(block[at + 1 : to], kind) > pending:
        yield Landing(wait, {})
    elif isinstance(around, k.For):
        passed = tail + _commits(block[at + 1 :], kind) + _commits(block[:to], kind)
        turn = _commits(block, kind)
        for turns in range(1, AHEAD if turn else 2):
            if passed + (turns - 1) * turn > pending:
                yield Landing(wait, {around.sym: expr(around.sym) + around.step * turns})
                break


def _same(a: tuple[tuple[k.Stmt, ...], int], b: tuple[tuple[k.Stmt, ...], int]) -> bool:
    return a[0] is b[0] and a[1] == b[1]


def _commits(stmts: Iterable[k.Stmt], kind: type[k.Stmt]) -> int:
    """How many groups are surely made."""
    total = 0
    for stmt in stmts:
        match stmt:
            case k.If():
                total += min(_commits(stmt.then, kind), _commits(stmt.orelse, kind))
            case k.For() if stmt.lo.is_constant and stmt.hi.is_constant and stmt.step.is_constant:
                total += _commits(stmt.body, kind) * len(range(stmt.lo.constant, stmt.hi.constant, stmt.step.constant))
            case _:
                total += isinstance(stmt, kind)
    return total


def not_landed(a: Site, b: Site, found: Sequence[Landing], sides: Sides, *, shared_only: bool, later: bool) -> Formula:
    """When the copy `a` has perhaps not landed where `b` runs: each wait is missed, or `b` does not surely come behind it."""
    missed: list[Formula] = [conj(Eq(sides.a(s) - sides.b(s)) for s in a.launch.host)]
    for landing in found:
        moved = moved_to(landing, sides.left, sides.right)
        there = conj((*(rename(f, moved) for f in landing.wait.where), *_alike(landing, moved, sides.left)))
        late = unordered(landing.wait, b, Sides(moved, sides.right), shared_only=shared_only, private=False, later=later)
        missed.append(disj((negate(there), *late)))
    return disj((*launched_later(a, b, sides), conj(missed)))


def _alike(landing: Landing, moved: Names, names: Names) -> list[Formula]:
    return [Eq(mine.substitute(moved) - theirs.substitute(names)) for mine, theirs in landing.same]


def moved_to(landing: Landing, names: Names, others: Names) -> Names:
    """The indices of a wait, in those of the copy, and of another instance whose thread waits."""
    moved: dict[Sym, Sym | Expr] = {}
    for sym in landing.wait.dims:
        first, then = (others, names) if landing.anyone and sym in landing.wait.launch.threads else (names, others)
        if sym in landing.turns:
            moved[sym] = landing.turns[sym].substitute(names)
        elif sym in first or sym in then:
            moved[sym] = first.get(sym, then.get(sym, sym))
        else:
            moved[sym] = next(landing.wait.bounds[loop][0] for loop in landing.wait.loops if loop.sym == sym)
    return moved


def never_lands(copy: Site, found: Sequence[Landing], premises: Formula) -> Point | None:
    """A copy that is not waited for before its thread ends. Raises Undecided."""
    names = {sym: sym for sym in copy.dims}
    missed: list[Formula] = []
    for each in found:
        moved = moved_to(each, names, names)
        missed.append(negate(conj((*(rename(f, moved) for f in each.wait.domain), *_alike(each, moved, names)))))
    return witness((*copy.where, *missed), premises)


def diverging(site: Site, width: int, matches: Sequence[Match], premises: Formula) -> Point | None:
    """Two threads of `width` neighbours, of a block if that is 0, of a cluster if −1, of which one reaches `site` more often.

    Raises Undecided, or ValueError where a test of data is in the way that no statement of the program has.
    """
    launch = site.launch
    sides = Sides({s: Sym(f"{s.name}◁") for s in site.dims}, {s: Sym(f"{s.name}▷") for s in site.dims})
    here: list[Formula] = [*(rename(f, sides.left) for f in launch.domain), *(rename(f, sides.right) for f in launch.domain)]
    here += equal_all(launch.host, sides)
    if width < 0:  # of a cluster
        sizes = {a.sym: n for a, n in _clustered(launch.kernel)}
        here += [Eq(sides.a(s) // sizes.get(s, 1) - sides.b(s) // sizes.get(s, 1)) for s in launch.blocks]
    else:
        here += equal_all(launch.blocks, sides)
    if width > 0:
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


def _clustered(kernel: k.Kernel) -> Iterator[tuple[k.Axis, int]]:
    for axis in kernel.axes:
        if axis.level is k.Level.GRID:
            yield axis, kernel.cluster["xyz".index(axis.dim)]


def _unlike(test: tuple[object, Site], matches: Sequence[Match], sides: Sides) -> Formula:
    """That two threads ask different instances of a test of the program."""
    for match in matches:
        found = match.event.site.tests
        if test in found and len(match.action.spot.tests) == len(found):
            _, spot = match.action.spot.tests[found.index(test)]
            values = [match.indices[loop.sym] for loop in spot.loops]
            return negate(equal(map(sides.a, values), map(sides.b, values)))
    raise ValueError("a test of data decides, which no statement of the program has")
