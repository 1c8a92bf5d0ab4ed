"""Completion of asynchronous copies.

A thread's copies since it last closed a group are one group, and a wait leaves at most a number of groups, the latest ones, in
flight. So a copy is complete after a wait of its thread if more groups are closed in between than that. A thread's accesses to
shared memory, reads included, are ordered before those of the engine after a fence of that thread. Tags give the wait or fence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.operation import Awaits, Closes, Fences, Group, Grouped
from texpr.ir.ops.columns import AFTER, FENCED
from texpr.ir.proof.tags import End
from texpr.ir.value import Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.formula import FALSE, TRUE, Eq, Formula, among, conj, disj, negate, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, witness
from texpr.presburger.solve.omega import refuted
from texpr.proof.read.events import Event, Reading, Site
from texpr.proof.read.order import Sides, equal_all, launched_later, not_behind, unordered
from texpr.support.record import Record, replace

Fits: TypeAlias = Callable[[Grouped], Formula]
"""When a step is of the kind, and about the place, that is asked for."""
Names: TypeAlias = Mapping[Sym, "Sym | Expr"]


def own_dims(site: Site) -> tuple[Sym, ...]:
    """The coordinates of an instance within its block."""
    return (*site.launch.threads, *(loop.sym for loop in site.loops))


def same(site: Site) -> dict[Sym, Expr]:
    """The coordinates of an instance with their own names."""
    return {s: expr(s) for s in site.dims}


def said(by: Sequence[Expr], names: Names, site: Site) -> list[Expr]:
    """The expressions of a tag, over coordinates that have `names`. Raises ValueError if they use other symbols."""
    if not {s for e in by for s in e.syms()} <= {*names, *site.launch.kernel.sizes}:
        raise ValueError("it is said in terms of what is not known")
    return [e.substitute(names) for e in by]


def located(site: Site, at: Sequence[Expr], names: Names, by: Site) -> dict[Sym, Expr]:
    """The coordinates of an instance of `site` in the block of an instance `by` with `names`, over whose coordinates `at` is.
    Tests of data around it must also be around that one. Raises ValueError."""
    block = {s: expr(names[s]) for s in (*site.launch.host, *site.launch.blocks)}
    found = block | dict(zip(own_dims(site), said(at, names, site), strict=True))
    if any(t not in by.tests or any(found[x.sym] is not expr(names[x.sym]) for x in t[1].loops) for t in site.tests):
        raise ValueError("data decides whether it runs")
    return found


def there(site: Site, names: Names) -> Formula:
    """The condition that the instance of these coordinates exists."""
    return conj(rename(f, names) for f in site.where)


class Landing(Record, eq=False):
    """A step after which an effect is complete, if it is `there`: its coordinates are `names` over those of the effect, and of
    `anyone`, the observing thread."""

    site: Site
    names: Names
    there: Formula

    def seen_by(self, one: Mapping[Sym, Expr]) -> Landing:
        """The same for a certain observer, whoever asks."""
        names = {sym: expr(value).substitute(one) for sym, value in self.names.items()}
        return Landing(self.site, names, rename(self.there, one))

    def settled(self, copy: Site, premises: Formula) -> Landing:
        """The same; if it is proved to always exist, without that condition for every observer."""
        return replace(self, there=TRUE) if refuted((*copy.where, negate(self.there), premises)) else self


def anyone(site: Site) -> dict[Sym, Sym]:
    """Any thread of a block, with new names."""
    return {s: Sym(f"{s.name}○") for s in site.launch.threads}


def entered(site: Site, reading: Reading) -> Site | None:
    """The last fence behind which a thread sees what others did in tensor memory that certainly comes before a site in its own
    thread: in the lists around it, in none of their inner ones."""
    fences = {id(step.stmt): step.site for step in reading.steps if step.what == Fences(FENCED[AFTER])}
    for block, at in reversed(site.path):
        for stmt in reversed(block[:at]):
            found = fences.get(id(stmt))
            if found is not None and found.launch is site.launch:
                return found
    return None


def pipelined(one: Event, other: Event) -> bool:
    """Whether one thread starts both in tensor memory, and they keep their order there: products of one shape, or a copy and
    then a product, but nothing and then a copy (PTX ISA, "tcgen05 memory consistency model": "Pipelined tcgen05 instructions").
    Raises Undecided for products of others."""
    if one.group is not Group.TENSOR or other.group is not Group.TENSOR or _copies(other):
        return False
    if _copies(one):
        return True
    if getattr(one.stmt, "name", one) != getattr(other.stmt, "name", other):
        raise Undecided("products of different shapes may have a column in common")
    return True


def _copies(event: Event) -> bool:
    """Whether it is a copy to tensor memory."""
    instr = event.site.launch.kernel.instr_of.get(getattr(event.stmt, "name", ""))
    return instr is not None and instr.is_copy


def not_landed(
    a: Site, b: Site, found: Iterable[Landing], sides: Sides, space: Space, *, later: bool, settled: bool = False
) -> Formula:
    """The condition that the copy `a` may be incomplete where `b` executes: `b` may not be ordered after any of the waits.

    `settled`: engines do both (`order.unordered`)."""
    missed: list[Formula] = [conj(Eq(sides.a(s) - sides.b(s)) for s in a.launch.host)]
    for each in found:
        names = {**sides.left, **{own: sides.b(s) for s, own in anyone(each.site).items()}}
        at = Sides({s: expr(e).substitute(names) for s, e in each.names.items()}, sides.right)
        late = unordered(each.site, b, at, space, later=later, settled=settled)
        missed.append(disj((negate(rename(each.there, names)), *late)))
    return disj((*launched_later(a, b, sides), conj(missed)))


def never_lands(copy: Event, found: Callable[[Event, bool], Iterable[Landing]], premises: Formula) -> Point | None:
    """A copy that its thread does not wait for. Raises Undecided."""
    itself = {other: own for own, other in anyone(copy.site).items()}
    waits = (rename(each.there, itself) for each in found(copy, False))
    return witness((*copy.site.where, *map(negate, waits)), premises)


def endings(first: Site, names: Names, ends: Iterable[End], reading: Reading, fits: Fits) -> Iterator[Landing]:
    """Those of `ends` that are valid: `first`, which has `names`, then enough closed groups, then the step, all of one
    thread."""
    for end in ends:
        last = reading.steps[end.step.of]
        what, step = last.what, last.site
        closing = [reading.steps[each.of].what for each in end.groups]
        enough = not closing if isinstance(what, Fences) else isinstance(what, Awaits) and _enough(what, closing)
        fitting = fits(what) if enough and step.launch is first.launch else FALSE
        if fitting != FALSE:
            facts, before, own = [rename(fitting, names)], first, names
            for each in (*end.groups, end.step):
                after = reading.steps[each.of].site
                sides = Sides(own, located(after, each.at, names, first))
                behind = negate(disj(not_behind(before, after, sides, False)))
                facts += [there(after, sides.b), *equal_all(first.launch.threads, sides), behind]
                before, own = after, sides.b
            yield Landing(step, own, conj(facts))


def _enough(wait: Awaits, closing: Sequence[Grouped]) -> bool:
    """Whether a wait leaves fewer groups in flight than are closed before it, all of its kind."""
    return wait.pending < len(closing) and all(isinstance(each, Closes) and each.group is wait.group for each in closing)


def known(
    touch: Site, names: Names, ends: Iterable[End], reading: Reading, kind: str, register: Load | None = None
) -> tuple[Landing, ...]:
    """The fences behind which what a thread touches, at coordinates that have `names`, comes before what the engine does.

    Of an event that touches memory at several places of the text, those that are said by the coordinates of this one.
    `register`: of a lane, which the fence has to name.
    """
    fitting = (end for end in ends if {s for e in end.step.at for s in e.syms()} <= {*names, *touch.launch.kernel.sizes})

    def fits(what: Grouped) -> Formula:
        if not isinstance(what, Fences) or what.kind != kind:
            return FALSE
        return TRUE if register is None else _named(register, what.registers)

    return tuple(endings(touch, names, fitting, reading, fits))


def landed(
    copy: Event, site: Site, ends: Iterable[End], reading: Reading, write: bool, register: Load | None = None
) -> tuple[Landing, ...]:
    """The waits behind which a copy in a group has landed, or, without `write`, has read what it stores.

    `site`: where it starts, or all do who start it. `register`: of a lane, which the wait has to name. Behind a wait for a
    register that was only read, not summed up in, nothing may be under way: ptxas before 13.3 does not keep it apart from what
    is left.
    """
    summed = register is not None and _is_same(register, copy.target)

    def fits(what: Grouped) -> Formula:
        if not isinstance(what, Awaits) or what.group is not copy.group or (write and what.read):
            return FALSE
        if register is None:
            return TRUE
        return _named(register, what.registers) if write or summed or not what.pending else FALSE

    return tuple(endings(site, same(site), ends, reading, fits))


def _is_same(register: Load, target: Load | Ref) -> bool:
    """Whether what is read is the element that is written, by the same coordinates."""
    return isinstance(target, Load) and (register.buffer, register.index) == (target.buffer, target.index)


def _named(register: Load, every: Iterable[Load]) -> Formula:
    """That a lane's register, in the row of its thread, is among some."""
    return among(register.index[-1], [each.index[0] for each in every if each.buffer.name == register.buffer.name])
