"""Partial sums: updates that are accumulated in a memory of their own, and then combined with the element.

Such memory holds no element of the written program but a part of its updates. If it is initialised with the neutral value, if
all updates in it are of one element, and if it is combined with that element once, after all of them, then each update is
applied in the end; and as their order is free, each may be taken to be applied at the combination. It may be copied to other
memory before, after all updates, and the copy be combined. Updates beyond those of the written program change nothing, or are
in memory that is combined with nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.program.updates import neutral
from texpr.ir.value import Literal
from texpr.presburger.existential import nowhere
from texpr.presburger.formula import Formula, conj, differ, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.read.actions import Action
from texpr.proof.read.program_order import When, precedes
from texpr.proof.schedule.accesses import Access, Named, found, named, placed, same, there
from texpr.proof.schedule.order import strict
from texpr.support.record import Mutable, field, replace


class Part(Mutable):
    """A memory, with all its accesses `touched`, that holds a partial sum; `join` is the write of the combination with an
    element; `read` its read of the partial sum, and `own` its read of the element. `copy`: the read and the write by which
    it is copied to where it is combined, if it is. `spare`: updates of which some are for elements that there are not, and what
    holds of those that there are."""

    touched: Sequence[Access]
    join: Access
    own: Access
    read: Access
    premises: Formula
    copy: tuple[Access, ...] = ()
    spare: Mapping[Action, Sequence[Formula]] = field(default_factory=dict[Action, Sequence[Formula]])

    @property
    def at(self) -> Access | None:
        """The read of the partial sum as one of the memory of the updates; None where the place of a copy does not tell it."""
        if not self.copy:
            return self.read
        of, to = self.copy
        each, own = named(to, "○"), placed(self.read, {s: expr(s) for s in self.read.dims})
        known = found(each, [*zip(each.place, own.place, strict=True)])
        names = {s: known[each.only(s)] for s in of.dims if each.only(s) in known}
        if not {s for e in of.place for s in e.syms()} & {*of.dims} <= names.keys():
            return None
        return replace(self.read, home=of.home, place=tuple(e.substitute(names) for e in of.place))

    @property
    def updates(self) -> list[Access]:
        """The writes of updates."""
        return [a for a in self.touched if a.write and a.does is not None]

    @property
    def fills(self) -> list[Access]:
        """The writes of neutral values."""
        return [a for a in self.touched if a.write and a.does is None]

    def is_one(self) -> bool:
        """Whether all accesses are updates in any order of what the combination updates, and initialisations with neutral
        values."""
        update, updates, target = self.join.action.update, self.updates, self.join.action.target
        if not isinstance(update, str) or update == "sub" or not updates or not self.fills:  # differences would be added
            return False
        nothing = neutral(update, target.dtype)
        free = all(a.is_update and a.does and a.does.update == update and self._free(a) for a in updates)
        plain = all(isinstance(a.action.value, Literal) and a.action.value.value == nothing for a in self.fills)
        others = any(not a.write and not a.is_own for a in self.touched)
        of_one = len({(a.does, a.stored) for a in updates}) == 1
        return self.at is not None and free and plain and not others and of_one and self._is_timed(updates[0])

    def _free(self, update: Access) -> bool:
        return len(strict(update.meant, update.stored)) < len(update.meant)

    def accesses(self) -> Iterator[Access]:
        """The accesses as those of a partial sum, with the element at its combination."""
        part, at = Sym(f"part in {self.read.home.name}"), self._at
        places = [(a, a.place) for a in (*self.touched, *self.copy[:1])]
        places += [*((a, self.copy[0].place) for a in self.copy[1:]), (self.read, at.place)]
        for access, place in places:
            yield replace(access, stored=part, element=place, meant=(), does=None, legal=(), is_one=())
        update = self.updates[0]
        here = placed(update, {s: expr(0) for s in update.dims} | self._known(update))
        of = {"stored": update.stored, "element": here.element, "meant": strict(here.meant, update.stored)}
        yield replace(self.own, **of, does=update.does, is_update=True, is_own=True)
        yield replace(self.join, **of, does=update.does, is_update=True)

    @property
    def _at(self) -> Access:
        assert self.at is not None, "as `is_one`"
        return self.at

    def _known(self, update: Access) -> dict[Sym, Expr]:
        """The coordinates of an update that its place determines, over those of the combination."""
        each, own = named(update, "○"), placed(self._at, {s: expr(s) for s in self.read.dims})
        known = found(each, [*zip(each.place, own.place, strict=True)])
        return {s: known[each.only(s)] for s in update.dims if each.only(s) in known}

    def _is_timed(self, update: Access) -> bool:
        """Whether the place of an update determines its element and time, except for the order that is free."""
        said = {s for e in (*update.element, *_turns(strict(update.meant, update.stored))) for s in e.syms()}
        return said & {*update.dims} <= self._known(update).keys()

    def questions(self) -> Iterator[Asked]:
        """The obligations of a partial sum."""
        span, about, at = self.join.action.span, str(self.join), self._at
        for update in self.updates:
            args = named(update, "◁"), named(at, "▷")
            yield Claim("a part is of one element", about, "what is added is for that", span), self.mixed, args
            yield Claim("a part is joined", about, "behind what is added", span), self.lost, (named(update, "◁"),)
            if update.action in self.spare:
                yield Claim("a part is no more", about, "what is added beyond is not joined", span), self.more, args
        twice = named(at, "◁"), named(at, "▷")
        yield Claim("a part is joined once", about, "places differ", span), self.joined_twice, twice
        ends = self.copy[0] if self.copy else self.read
        steps = [*product(self.fills, self.updates), *product((*self.fills, *self.updates), [ends])]
        for one, other in steps:
            told = Claim("a part is whole", f"{one} and {other}", "it begins, and grows, before it is joined", span)
            yield told, self.late, (named(one, "◁"), named(other, "▷"))

    def mixed(self, update: Named, read: Named) -> Point | None:
        """An update at a place whose combination is of another element or time. Raises Undecided."""
        first = self.updates[0]
        joined = placed(first, {s: expr(0) for s in first.dims} | {s: read.names(e) for s, e in self._known(first).items()})
        times = (_turns(strict(each.meant, first.stored)) for each in (update, joined))
        apart = differ((*update.element, *next(times)), (*joined.element, *next(times)))
        return self.both(update, read, apart)

    def lost(self, update: Named) -> Point | None:
        """An update of the written program that no later combination includes. Raises Undecided."""
        read = named(self._at, "○")
        pairs = [*zip(read.place, update.place, strict=True)]
        behind = there(read, update, pairs, (precedes(update.time, read.time, None),))
        return nowhere((*update.where, *update.is_one), [behind], self.premises, solving=True)

    def more(self, update: Named, read: Named) -> Point | None:
        """An update for an element that there is not, at a place that is combined. Raises Undecided."""
        facts = [rename(fact, update.names) for fact in self.spare[update.access.action]]
        return self.both(update, read, negate(conj(facts)))

    def joined_twice(self, a: Named, b: Named) -> Point | None:
        """A place that is combined twice. Raises Undecided."""
        loops = a.access.dims
        return self.both(a, b, differ(map(a.names, loops), map(b.names, loops)))

    def late(self, a: Named, b: Named) -> Point | None:
        """An update of a place after its combination. Raises Undecided."""
        return self.both(a, b, negate(precedes(a.time, b.time, None)))

    def both(self, a: Named, b: Named, wrong: Formula) -> Point | None:
        """Two accesses at one place for which `wrong` holds. Raises Undecided."""
        return witness((*a.where, *b.where, *same(a.place, b.place), wrong), self.premises)


def _turns(time: When) -> tuple[Expr, ...]:
    """The indices of loops in a time."""
    return tuple(step[1] for step in time if not isinstance(step, int))
