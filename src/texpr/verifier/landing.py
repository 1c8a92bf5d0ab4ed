"""Where copies that go on by themselves have surely landed.

A thread's copies since it last ended a group are one, and a wait leaves at most so many groups, the latest ones, on their way.
So a copy has landed behind a wait of its thread with more ends of groups in between than that. What a thread wrote is known to
the engine behind a fence of that thread. Which wait or fence that is, tags say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.tags import End
from texpr.isa.levels import Space
from texpr.presburger.formula import FALSE, Eq, Formula, conj, differ, disj, negate, rename
from texpr.presburger.omega import refuted
from texpr.presburger.questions import Point, witness
from texpr.reading.events import Event, Reading, Site
from texpr.reading.order import Sides, launched_later, not_behind, unordered

Names: TypeAlias = Mapping[Sym, "Sym | Expr"]


def own_dims(site: Site) -> tuple[Sym, ...]:
    """The coordinates of an instance in its block."""
    return (*site.launch.threads, *(loop.sym for loop in site.loops))


def located(site: Site, at: Sequence[Expr], names: Names) -> dict[Sym, Expr]:
    """The coordinates of an instance of `site` in the block of another that has `names`, over whose coordinates `at` is."""
    if len(at) != len(own_dims(site)):
        raise ValueError("tags of another plan")
    block = {s: expr(names.get(s, s)) for s in (*site.launch.host, *site.launch.blocks)}
    return block | {s: e.substitute(names) for s, e in zip(own_dims(site), at, strict=True)}


def there(site: Site, names: Names) -> Formula:
    """That there is the instance of these coordinates."""
    return conj(rename(f, names) for f in site.where)


@dataclass(frozen=True, slots=True, eq=False)
class Landing:
    """A step behind which a copy has landed, but where `wrong`. `at`: its coordinates, over those of the copy; those of
    threads, with `anyone`, over those of who looks, as any thread of the block may wait. `sure`: that it is there."""

    step: Site
    at: tuple[Expr, ...]
    wrong: Formula
    anyone: bool = False
    sure: bool = False

    def located(self, sides: Sides) -> dict[Sym, Expr]:
        """The step's coordinates, for a copy and another instance, which looks."""
        looks = {s: sides.right.get(s, s) for s in self.step.launch.threads} if self.anyone else {}
        return located(self.step, self.at, {**sides.left, **looks})

    def missed(self, sides: Sides) -> Formula:
        """When it is not there."""
        return FALSE if self.sure else disj((rename(self.wrong, sides.left), negate(there(self.step, self.located(sides)))))

    def settled(self, copy: Site, premises: Formula) -> Landing:
        """The same, sure where it is shown once for all who look that it is there."""
        return replace(self, sure=not self.anyone and refuted((*copy.where, self.missed(Sides({}, {})), premises)))


def not_landed(a: Site, b: Site, found: Iterable[Landing], sides: Sides, space: Space, *, later: bool) -> Formula:
    """When the copy `a` has perhaps not landed where `b` runs: each wait is missed, or `b` does not surely come behind it."""
    missed: list[Formula] = [conj(Eq(sides.a(s) - sides.b(s)) for s in a.launch.host)]
    for each in found:
        at = Sides(each.located(sides), sides.right)
        late = unordered(each.step, b, at, space, later=later)
        missed.append(disj((each.missed(sides), *late)))
    return disj((*launched_later(a, b, sides), conj(missed)))


def never_lands(copy: Site, found: Iterable[Landing], premises: Formula) -> Point | None:
    """A copy that is not waited for before its thread ends. Raises Undecided."""
    return witness((*copy.where, *(each.missed(Sides({}, {})) for each in found)), premises)


def endings(first: Site, ends: Iterable[End], reading: Reading, fits: Callable[[k.Stmt], bool]) -> Iterator[Landing]:
    """Those of `ends` that fit: `first`, then enough ends of groups, then the step, all of one thread."""
    for end in ends:
        stmt, site = reading.steps[end.step.of]
        kind, pending = k.CommitBulk if isinstance(stmt, k.WaitBulk) else k.CommitAsync, getattr(stmt, "pending", -1)
        fitting = site.launch is first.launch and fits(stmt)
        if fitting and pending < len(end.groups) and all(type(reading.steps[each.of][0]) is kind for each in end.groups):
            wrong: list[Formula] = []
            before, own = first, dict[Sym, Expr]()
            for each in (*end.groups, end.step):
                after = reading.steps[each.of][1]
                names = located(after, each.at, {})
                wrong += [negate(there(after, names)), differ(first.launch.threads, [names[s] for s in first.launch.threads])]
                wrong += not_behind(before, after, Sides(own, names), False)
                before, own = after, names
            yield Landing(site, end.step.at, disj(wrong))


def known(write: Site, ends: Iterable[End], reading: Reading, kind: str) -> tuple[Landing, ...]:
    """The fences behind which a thread's write is known to the engine."""
    return tuple(endings(write, ends, reading, lambda stmt: isinstance(stmt, k.Fence) and stmt.kind == kind))


def landed(copy: Event, ends: Iterable[End], reading: Reading, write: bool) -> tuple[Landing, ...]:
    """The waits behind which a copy in a group has landed, or, without `write`, has read what it stores."""

    def fits(stmt: k.Stmt) -> bool:
        return isinstance(stmt, k.WaitBulk if copy.engine else k.WaitAsync) and not (write and getattr(stmt, "read", False))

    return tuple(endings(copy.site, ends, reading, fits))
