"""Value flow: an element that is read was written to its place, or copied there, and not changed since.

Most memory is the only one that holds its elements, each at a place of its own: then nothing has to be proved. An element may
be in several memories. One of them is its home, if it has a place of its own there and is copied back after each change
elsewhere. In any other memory it has to be stored before it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations_with_replacement, repeat

from texpr.affine.expr import Number, Sym, expr
from texpr.ir.value import Buffer
from texpr.presburger.existential import ExistsWitness, everywhere, nowhere
from texpr.presburger.formula import TRUE, Formula, between, conj, differ, syms
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, is_false, is_quickly_refuted, witness
from texpr.presburger.solve.digits import in_rows
from texpr.presburger.solve.relaxed import flat
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.read.program_order import precedes
from texpr.proof.schedule.accesses import Access, Home, Named, named, nearest, placed, same, there
from texpr.proof.schedule.families import pairs
from texpr.proof.schedule.numbers import within
from texpr.proof.schedule.order import any_of, legal, meeting
from texpr.support.record import Mutable, field, replace

END = (1 << 30,)
"""The end of the program."""


class ValueFlow(Mutable):
    """The flow of values. `given`: parameters; `results`: buffers that callers read in the end."""

    accesses: Sequence[Access]
    given: Mapping[Buffer, Buffer]
    results: Sequence[Buffer]
    premises: Formula
    by_home: dict[Home, list[Access]] = field(default_factory=lambda: defaultdict(list[Access]))
    by_stored: dict[Home, list[Access]] = field(default_factory=lambda: defaultdict(list[Access]))
    own: dict[Home, bool] = field(default_factory=dict[Home, bool])
    known: dict[tuple[str, Access, Access], bool] = field(default_factory=dict[tuple[str, Access, Access], bool])

    def __post_init__(self) -> None:
        for access in self.accesses:
            self.by_home[access.home].append(access)
            if access.stored is not None:
                self.by_stored[access.stored].append(access)

    def questions(self) -> Iterator[Asked]:
        """The obligations: reads see their elements; iterations of a `par` have no conflicts that the order does not
        exclude."""
        for home, accesses in self.by_home.items():
            alone = self.alone(home)
            for a, b in pairs([a for a in accesses if not a.is_own]):
                in_order = (alone or home in self.given) and a.does is not None and b.does is not None
                if (a.write or b.write) and (not in_order or (a.is_update and b.is_update)):
                    told = Claim("apart", f"{a} and {b}", "iterations of a par meet nowhere", a.action.span)
                    yield told, meeting, (named(a, "◁"), named(b, "▷"), home, self.premises)
        for stored, accesses in self.by_stored.items():
            for read in chain((a for a in accesses if not a.write and not self.alone(a.home)), self.ends(stored)):
                told = Claim(
                    "what is read is there", f"{read}, of {stored.name}", "written, or copied, before", read.action.span
                )
                yield told, self.stale, (named(read, "▷"),)

    def ends(self, stored: Home) -> Iterator[Access]:
        """The reads of a result at the end."""
        for home in (b for b in self.results if self.given[b] == stored and not (self.by_home[b] and self.alone(b))):
            dims = tuple(Sym(f"element {n}") for n in range(home.rank))
            place = tuple(map(expr, dims))
            there = tuple(flat(between(0, dim, extent) for dim, extent in zip(dims, home.shape, strict=True)))
            yield Access(self.accesses[-1].action, dims, there, home, place, False, END, stored, place)

    def alone(self, home: Home) -> bool:
        """Whether the elements of one memory are only in this one, each at a place of its own, and nothing else is in it."""
        accesses = self.by_home[home]
        stored = accesses[0].stored if accesses else None
        here = stored is not None and len(self.by_stored[stored]) == len(accesses)
        return not accesses or (
            here and any(a.does is not None for a in accesses if a.write or home in self.given) and self.belongs(home)
        )

    def belongs(self, home: Home) -> bool:
        """Whether a memory only holds elements of one other memory, each at a place of its own."""
        if home not in self.own:
            accesses = self.by_home[home]
            plain = len({a.stored for a in accesses}) == 1 and accesses[0].stored is not None
            plain = plain and all(is_named(a) for a in accesses)
            some = combinations_with_replacement(_largest(accesses), 2)
            try:
                self.own[home] = plain and (
                    all(a.place == a.element for a in accesses)
                    or all(self.parted(named(a, "◁"), named(b, "▷")) is None for a, b in some)
                )
            except Undecided:
                self.own[home] = False
        return self.own[home]

    def parted(self, a: Named, b: Named) -> Point | None:
        """One place with two elements, or one element at two places. Raises Undecided."""
        one = conj((*same(a.place, b.place), differ(a.element, b.element)))
        two = conj((*same(a.element, b.element), differ(a.place, b.place)))
        return any_of((*a.where, *b.where), (one, two), self.premises)

    def stale(self, read: Named) -> Point | None:
        """An instance of a read that may not see the value of the written program. Raises Undecided."""
        home, stored = read.access.home, read.access.stored
        read = replace(read, where=(*read.where, *self.legal(read)))
        own = self.by_stored[stored] if stored is not None else []
        moved = [w for w in own if w.write and w.does is not None and w.home != home]
        if home in self.given:
            return self.not_back(read, moved)
        put = [w for w in own if w.write and w.home == home]
        ways = [lambda: self.not_put(read, moved, [w for w in put if w.is_certain])]
        if any(w.does is not None for w in put):
            back = moved and any(w.does is None for w in put)  # it is copied back, so this memory is probably its home
            ways.insert(0 if back else 1, lambda: self.not_back(read, moved))
        *others, last = ways
        return None if any(self.is_shown(way) for way in others) else last()

    def legal(self, read: Named) -> Iterator[Formula]:
        """That there is an element whose number data say: of a statement of the written program, which is legal."""
        stored = read.access.stored
        own = read.element[len(read.element) - stored.rank :] if isinstance(stored, Buffer) else ()
        if read.access.does is None or not isinstance(stored, Buffer):
            return
        said = (*(s for e in own for s in e.syms()), *(s for fact in read.where for s in syms(fact)))
        if any(isinstance(sym, Number) for sym in said):
            yield from flat(within(own, stored.shape, exactly=True))

    def is_shown(self, way: Callable[[], Point | None]) -> bool:
        """Whether one of the possible arguments finds no counter-example."""
        try:
            return way() is None
        except Undecided:
            return False

    def is_same(self, write: Named, read: Named) -> bool:
        """Whether it is quickly proved that a write to the place of a read is of the same element."""
        apart = differ(write.element, read.element) if write.access.stored == read.access.stored else TRUE
        return self.is_never("same", write, read, [*same(write.place, read.place), *flat((apart,))])

    def is_there(self, write: Named, read: Named) -> bool:
        """Whether it is quickly proved that an element that is written and read in one memory is at one place."""
        apart = [*same(write.element, read.element), *flat((differ(write.place, read.place),))]
        return is_named(write.access) and self.is_never("there", write, read, apart)

    def is_never(self, what: str, write: Named, read: Named, wrong: Sequence[Formula]) -> bool:
        """Whether it is quickly proved that `wrong` holds nowhere for a write and a read, mostly without the loops' domains."""
        key = what, write.access, read.access
        if key not in self.known:
            shown = is_quickly_refuted(wrong, self.premises)
            every = () if shown else in_rows((*write.where, *read.where, *wrong), self.premises)
            self.known[key] = shown or is_quickly_refuted(every, self.premises)
        return self.known[key]

    def not_back(self, read: Named, moved: Sequence[Access]) -> Point | None:
        """An element that was changed elsewhere, and not copied back before it is read. Raises Undecided."""
        home, stored = read.access.home, read.access.stored
        copies = [w for w in self.by_home[home] if w.write and w.does is None]
        if not self.belongs(home) or self.by_home[home][0].stored != stored:
            raise Undecided("something else may be there")
        if home not in self.given and isinstance(stored, Buffer) and stored.role in ("input", "inout"):
            point = self.not_begun(read)
            if point is not None:
                return point
        for change in (named(other, "◁") for other in moved):
            facts = [*read.where, *change.where, *same(change.element, read.element), precedes(change.time, read.time, None)]
            back = [self.comes_back(named(copy, "○"), change, read) for copy in copies]
            point = nowhere(facts, back, self.premises, solving=True)
            if point is not None:
                return point
        return None

    def not_begun(self, read: Named) -> Point | None:
        """An element of a parameter that was not copied to where it is read. Raises Undecided."""
        puts = [named(w, "○") for w in self.by_home[read.access.home] if w.write and w.is_certain]
        pairs = ([*zip(put.place, read.place, strict=True)] for put in puts)
        before = ((precedes(put.time, read.time, None),) for put in puts)
        return nowhere(read.where, [*map(there, puts, repeat(read), pairs, before)], self.premises, solving=True)

    def comes_back(self, copy: Named, change: Named, read: Named) -> ExistsWitness:
        """The existence of a copy that brings a changed element back before it is read."""
        source = next((a for a in self.accesses if a.action is copy.access.action and not a.write), None)
        pairs = [*zip(copy.element, change.element, strict=True)]  # which is the element that is read
        if source is not None and source.home == change.access.home:
            pairs = [*zip(map(copy.names, source.place), change.place, strict=True), *pairs]
        return there(copy, change, pairs, (precedes(change.time, copy.time, None), precedes(copy.time, read.time, None)))

    def not_put(self, read: Named, moved: Sequence[Access], writes: Sequence[Access]) -> Point | None:
        """An element that was not stored where it is read, or changed since. Raises Undecided."""
        good, why = list[ExistsWitness](), None
        for write in writes:
            each = named(write, "○")
            pairs = [*zip(each.place, read.place, strict=True), *zip(each.element, read.element, strict=True)]
            if each.hole and len(each.hole) == len(read.hole):
                pairs += zip(each.hole, read.hole, strict=True)
            turns = nearest(each.place, read.place, {each.only(s): read.only(s) for s in write.dims if s in read.access.dims})
            for guess in (None, turns) if turns else (None,):
                before = there(each, read, pairs, (precedes(each.time, read.time, None),), guess)
                if any(map(is_false, before.at(0))):
                    continue
                broken = self.spoiled(write, before, read, moved)
                if broken is not None:
                    why = broken
                    continue
                good.append(before)
                if everywhere(read.where, good, self.premises):
                    return None
        left = nowhere(read.where, good, self.premises)  # at the coordinates that were examined
        return left and (why or left)

    def spoiled(self, write: Access, before: ExistsWitness, read: Named, moved: Sequence[Access]) -> Point | None:
        """An access between a write and a read that stores something else at that place, or changes the element elsewhere."""
        begun = placed(write, dict(zip(write.dims, before.said[0], strict=True))).time
        known = [*read.where, *before.at(0)]
        for its, wrong in self.spoils(read, moved):
            between = precedes(begun, its.time, None), precedes(its.time, read.time, None)
            point = witness(in_rows((*known, *its.where, *wrong, *between), self.premises), self.premises)
            if point is not None:
                return point
        return None

    def spoils(self, read: Named, moved: Sequence[Access]) -> Iterator[tuple[Named, list[Formula]]]:
        """The writes that invalidate a read, with their conditions: of another element there, or of the element elsewhere."""
        home, stored = read.access.home, read.access.stored
        for its in (named(other, "◁") for other in self.by_home[home] if other.write):
            of_it = its.access.stored == stored
            if not self.is_same(its, read):
                apart = [differ(its.element, read.element)] if of_it else []
                yield its, [*same(its.place, read.place), *apart]
            if of_it and its.access.does is not None and not self.is_there(its, read):
                yield its, [*same(its.element, read.element), differ(its.place, read.place), *legal(its, read, self.premises)]
        for its in (named(other, "◁") for other in moved):
            yield its, [*same(its.element, read.element)]


def _largest(accesses: Iterable[Access]) -> list[Access]:
    """Of accesses with the same elements at the same places, those that no other one covers: it is under fewer conditions."""
    alike = defaultdict[tuple[object, object], dict[frozenset[Formula], Access]](dict)
    for each in accesses:
        plain = placed(each, {sym: expr(Sym(f"{at}○")) for at, sym in enumerate(each.dims)})
        alike[plain.place, plain.element].setdefault(frozenset(plain.where), each)
    return [each for them in alike.values() for where, each in them.items() if not any(other < where for other in them)]


def is_named(access: Access) -> bool:
    """Whether the element may determine its place: it depends on each loop that the place depends on."""
    said = {s for e in access.element for s in e.syms()}
    return all(e.as_sym not in access.dims or e.as_sym in said for e in access.place)
