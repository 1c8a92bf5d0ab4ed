"""Value flow: every read sees the right write, for all pairs of accesses of a plan.

Let each event be an instance of a statement that computes the same from the same elements. If any two instances that access one
place of memory, one of them a write, are in program order; if a place holds one element of the program at a time; and if what
was written before a read was written to the place that is read: then every read sees the value that it sees in the program.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation import Group
from texpr.ir.ops.collective import Held
from texpr.ir.ops.columns import BEFORE, FENCED
from texpr.ir.ops.warpgroup import REGISTERS
from texpr.ir.proof.tags import ELEMENTS, End, Tags
from texpr.ir.value import Buffer, Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.existential import ExistsWitness, is_plain, nowhere
from texpr.presburger.formula import FALSE, TRUE, Eq, Formula, between, compare, conj, differ, disj, negate, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, is_false, witness
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import flat
from texpr.proof.plan.landing import Landing, entered, known, landed, not_landed, pipelined, same
from texpr.proof.plan.match import Match, element, home_of, subscripts
from texpr.proof.plan.phases import Phases, carried
from texpr.proof.plan.places import COPY, ELEMENT, PLACE, THREAD, Address, address, follows
from texpr.proof.read import order, program_order
from texpr.proof.read.actions import Action, Program, Spot
from texpr.proof.read.events import Event, Launch, Reading, Site, plainly, ranged
from texpr.proof.read.order import Names, Sides
from texpr.proof.read.pairs import led
from texpr.proof.read.program_order import When, when
from texpr.support.record import Mutable, Record, field

Home: TypeAlias = "Buffer | Sym"

TENSOR_CORES = (Group.WGMMA, Group.TENSOR)
"""What goes on while threads do, and reads shared memory through the async proxy."""

HOLE = Sym("hole")
"""The element of a hole, which is never read."""


class Access(Record, eq=False):
    """An access of an event to one element: the place in memory, `meant` the element of the program, and both times.

    `copies`: the instance of the program's memory, by the indices of the loops around its declaration. `does`: the statement
    that it is part of, with `indices`; None for a copy. `said`: the inverse, over the program's loops, and over `ELEMENTS` for
    a copy.
    """

    event: Event
    site: Site
    home: Home
    index: tuple[Expr, ...]
    write: bool
    when: When
    stored: Buffer | Sym
    meant: tuple[Expr, ...]
    copies: tuple[Expr, ...]
    does: Action | None = None
    indices: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    said: tuple[Expr, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether a `reduce` relaxes the order of this update."""
        return any(self.stored in step[0].reduce for step in self.when if not isinstance(step, int))

    @property
    def ordered(self) -> When:
        """Its time in the program, without the order that a `reduce` relaxes."""
        return tuple(takewhile(lambda step: isinstance(step, int) or self.stored not in step[0].reduce, self.when))

    @property
    def is_plain(self) -> bool:
        """Whether it is of the same element, in memory of the program's shape, or of all its instances."""
        extents = tuple([step[0].extent for step in self.when if not isinstance(step, int)][: len(self.copies)])
        shape = self.stored.shape if isinstance(self.stored, Buffer) else ()
        one = self.meant, shape
        ways = one, ((*self.copies, *self.meant), (*extents, *shape)), ((*self.meant, *self.copies), (*shape, *extents))
        return isinstance(self.home, Buffer) and (self.index, self.home.shape) in ways

    def __str__(self) -> str:
        return element(self.home, self.index)


def at_end(result: Buffer, event: Event) -> Access:
    """The read of any element of a result, after everything."""
    launch = Launch(event.site.launch.kernel, (), (), (), ())
    place = tuple(expr(Sym(f"element {n}")) for n in range(result.rank))
    return Access(event, Site(launch), result, place, False, (1 << 30,), result, place, ())


class Flow(Mutable):
    """The accesses of a plan, and the obligations on pairs of them."""

    program: Program
    reading: Reading
    premises: Formula
    tags: Tags = field(default_factory=lambda: Tags(()))
    phases: Phases = field(init=False)
    ends: Mapping[object, Sequence[End]] = field(init=False)
    addresses: dict[Access, Address] = field(default_factory=dict[Access, Address])
    numbers: dict[Address, int] = field(default_factory=dict[Address, int])
    by_home: dict[object, list[Access]] = field(default_factory=lambda: defaultdict(list[Access]))
    turns: dict[tuple[Home, Launch], int] = field(default_factory=dict["tuple[Home, Launch]", int])
    ended: dict[object, tuple[Landing, ...]] = field(default_factory=dict[object, tuple[Landing, ...]])
    plain: dict[Buffer | Sym, list[Action]] = field(default_factory=lambda: defaultdict(list[Action]))
    """By what they write: `plain`, statements that do not depend on data; `giving`, all statements."""
    giving: dict[Buffer | Sym, list[Action]] = field(default_factory=lambda: defaultdict(list[Action]))

    def __post_init__(self) -> None:
        self.phases = Phases(self.reading, self.premises, dict(zip(self.reading.signals, self.tags.turns, strict=False)))
        for action in self.program.actions:
            self.giving[action.stored].append(action)
            if not (action.spot.tests or getattr(action.target, "data", ())):
                self.plain[action.stored].append(action)
        self.ends = {ended(e): ends for e, ends in zip(self.reading.events, self.tags.ends, strict=False)}

    def accesses(self, match: Match) -> Iterator[Access]:
        """The accesses of a matched event."""
        event, action = match.event, match.action
        if any(loop.sym not in match.indices for loop in action.spot.loops):  # all iterations of a loop did this to one element
            yield self.access(match, event.target, event.site, action.target, action.spot, False)
        for operand in match.operands:
            yield self.access(match, operand.read, operand.site, operand.meant, operand.spot, False)
        yield self.access(match, event.target, event.site, action.target, action.spot, True)

    def access(self, match: Match, place: Load | Ref, site: Site, meant: Load | Ref, spot: Spot, write: bool) -> Access:
        found, stored = match.indices, home_of(meant)
        element = tuple(plainly(e.substitute(found), site) for e in subscripts(meant))
        copies = tuple(found[loop.sym] for loop in spot.loops[: self.program.scopes[stored]])
        if site.readers is not None and not write and self.space(home_of(place)) is Space.SHARED:
            site = site.readers
        index = tuple(plainly(e, site) for e in subscripts(place))
        times, does = when(spot, found, int(write)), match.action if write else None
        home = home_of(place)
        return Access(match.event, site, home, index, write, times, stored, element, copies, does, found, match.inverse)

    def holes(self, event: Event, site: Site, action: Action, indices: Mapping[Sym, Expr]) -> list[Access]:
        """The write of a hole, at the time of some statement. Only memory that a kernel allocates has holes."""
        home, loops = home_of(event.target), [loop.sym for loop in action.spot.loops]
        if self.space(home) is Space.GLOBAL or set(loops) - indices.keys():
            return []
        times, own = when(action.spot, indices, -1), tuple(indices[sym] for sym in loops[: self.program.scopes[action.stored]])
        index = tuple(plainly(e, site) for e in subscripts(event.target))
        return [Access(event, site, home, index, True, times, HOLE, (), own)]

    def spoiled(self, other: Access, r: Access, action: Action | None) -> Point | None:
        """A read of a place that was overwritten since `action` wrote the element, or since the start. Raises Undecided.

        As the program is legal, some statement wrote the element; that it wrote to this place is another obligation.
        """
        sides = self.sides(other, r)
        place = self.same_place(other, r, sides)
        if place is None:
            return None
        begun, ended = sides.a.times(other.when), sides.b.times(r.when)
        facts = [*place, program_order.precedes(begun, ended, None)]
        if action is not None:
            names = apart(action)
            facts += (rename(f, sides.right) for f in self.written(action, names, r))
            facts.append(program_order.precedes(when(action.spot, names, 1), begun, None))
        return witness((*order.domains(other.site, r.site, sides), *facts), self.premises)

    def faithful(self, a: Access, b: Access) -> int:
        """The common loop from which on accesses at one place are of one element, given the same iterations of outer loops."""
        if a.home != b.home or a.stored != b.stored or not self.same(a, b, (PLACE, COPY), ELEMENT):
            return sys.maxsize
        return 0 if self.same(a, b, (PLACE,), COPY) else len(a.copies)

    def space(self, home: Home) -> Space:
        """The space of a memory."""
        return self.reading.spaces.get(home, Space.GLOBAL) if isinstance(home, Buffer) else Space.LOCAL

    def same_place(self, a: Access, b: Access, sides: Sides) -> list[Formula] | None:
        """The condition that both are at one place, None if they never are; for shared storage, that they are in one block."""
        space, index = self.space(a.home), zip(a.index, b.index, strict=True) if a.home == b.home else ()
        found = [f for x, y in index for f in order.equals(sides.a(x), sides.b(y))]
        if any(map(is_false, found)) or (space is not Space.GLOBAL and a.site.launch is not b.site.launch):
            return None
        return found if space is Space.GLOBAL else [*order.equal_all(self.instance(a.home, a.site), sides), *found]

    def address(self, a: Access) -> Address:
        """The address expressions of an access."""
        if a not in self.addresses:
            own = map(expr, self.instance(a.home, a.site))
            threads = (*a.site.block, *map(expr, a.site.launch.threads))
            self.addresses[a] = address(a.site, ((*own, *a.index), a.copies, a.meant, threads))
            self.numbers.setdefault(self.addresses[a], len(self.numbers))
        return self.addresses[a]

    def same(self, a: Access, b: Access, given: tuple[int, ...], wanted: int) -> bool:
        """Whether it is proved that accesses to one memory which agree in `given` agree in `wanted`."""
        if self.space(a.home) is not Space.GLOBAL and a.site.launch is not b.site.launch:
            return PLACE in given  # they are never at one place
        one, two = sorted((self.address(a), self.address(b)), key=self.numbers.__getitem__)  # the relation is symmetric
        return follows(one, two, given, wanted, self.premises)

    def sides(self, a: Access, b: Access, alone: bool = False) -> Sides:
        """Names for two instances at one place; coordinates that are equal then have one name. `alone`: by one thread."""
        launch = a.site.launch
        own = (*launch.blocks, *launch.threads) if alone else ()
        said = (x.as_sym for x, y in zip(a.index, b.index, strict=False) if x is y and a.home == b.home)
        same = (*own, *self.instance(a.home, a.site), *(s for s in said if s is not None))
        return order.sides_of(a.site, b.site, same if launch is b.site.launch else ())

    def instance(self, home: Home, site: Site) -> tuple[Sym, ...]:
        """The coordinates that select the instance of a memory: of a block, a thread or an iteration."""
        space, launch = self.space(home), site.launch
        if space is Space.GLOBAL:
            return ()
        found = (*launch.host, *launch.blocks)
        if space is Space.CLUSTER:
            found = tuple(s for s in found if s not in order.within(launch))
        if space is Space.LOCAL:
            found = (*found, *launch.threads)
        if isinstance(home, Sym):
            found = (*found, *(loop.sym for loop in self.reading.variables[home].site.loops))
        return found

    def strayed(self, site: Site, index: Sequence[Expr], write: bool) -> Point | None:
        """A write to the memory of another block of the cluster, or a read of it after that block may have exited."""
        own = order.within(site.launch)  # if there is none, the owner is unknown
        other = disj(compare(op, index[0], expr(s)) for s in own for op in ("<", ">")) if own else TRUE
        return witness((*site.where, other, *(() if write else (order.unjoined(site),))), self.premises)

    def misordered(self, a: Access, b: Access) -> Point | None:
        """Two instances at one place, or of arrays with common bytes, whose order may differ from that of the program.

        That is, the first precedes the second in the program, and perhaps not in the kernels. Raises Undecided.
        """
        together = a.event.atomic and b.event.atomic and a.home == b.home  # a read-modify-write is one step
        first, second = (each.ordered if together else each.when for each in (a, b))
        freely = together and first == second and all(isinstance(step, int) for step in first)
        apart = not (a.write or b.write or self.lent(a, b))
        if apart or freely or (together and a.event is b.event and not (a.write and b.write)):
            return None
        if a.site.launch is not b.site.launch and self.space(a.home) is not Space.GLOBAL:
            return None  # they are never at one place
        sides, late = self.late(a, b, self.space(a.home) is Space.LOCAL and self.alone(a, b))
        if late and self.space(a.home) is not Space.LOCAL and self.alone(a, b):
            sides, late = self.late(a, b, True)
        if not late:
            return None
        times, plain, turned = (sides.a.times(first), sides.b.times(second)), self.faithful(a, b), self.turned(a, b)
        wanted: list[Formula] = []
        for depth, (free, formula) in enumerate(program_order.cases(*times, a.stored, either=turned)):
            if formula != FALSE and not (free and depth >= plain):
                wanted.append(conj((order.earlier(a.site, b.site, sides), formula)) if free and depth < turned else formula)
        place = self.same_place(a, b, sides) if wanted else None
        facts = *(place or ()), disj(wanted), disj(late)
        if place is None or refuted(facts):  # this often suffices
            return None
        return witness((*order.domains(a.site, b.site, sides), *facts), self.premises)

    def lent(self, a: Access, b: Access) -> bool:
        """Whether a tensor core that goes on by itself only reads registers, and the other one is what a lane does: until that
        has waited, they are not its own, not even to read (PTX ISA, "wgmma.wait_group")."""
        lanes = a.home == b.home and self.space(a.home) is Space.LANES
        started = [each.event for each in (a, b) if each.event.group is Group.WGMMA]
        return lanes and len(started) == 1 and home_of(started[0].target) != a.home

    def late(self, a: Access, b: Access, alone: bool) -> tuple[Sides, Sequence[Formula]]:
        """The conditions under which the first may not precede the second in the kernels; none if it is plain that it does.

        `alone`: one thread executes both, in its own order.
        """
        sides, space, later = self.sides(a, b, alone), self.space(a.home), b.write and not a.write
        times = sides.a.times(a.when), sides.b.times(b.when)

        def skipped(depth: int, loop: ir.Loop) -> bool:
            """Whether other iterations access other places, or instances of their own in the kernel's order."""
            kept = alone and all(sides.a(s) is sides.b(s) for s in a.site.launch.host) and depth < self.turned(a, b)
            return program_order.is_free(loop, a.stored) and (kept or depth >= self.faithful(a, b))

        if order.in_step(times, a.site, b.site, sides, skipped, alone=alone, later=later):
            return sides, []
        found = self.landings(a, b) if a.site.launch is b.site.launch else None
        if found is None:
            return sides, order.unordered(a.site, b.site, sides, space, later=later)
        settled = (a.event.engine or a.event.group in TENSOR_CORES) and b.event.engine
        entry = entered(b.site, self.reading) if space is Space.TENSOR else b.site
        if entry is None:
            return sides, [TRUE]
        entry = led(entry) if b.event.of_pair and space is Space.TENSOR else entry
        return sides, [not_landed(a.site, entry, found, sides, space, later=later, settled=settled)]

    def alone(self, a: Access, b: Access) -> bool:
        """Whether it is proved that accesses at one place are by one thread, in its own order."""
        if a.home != b.home or a.site.launch is not b.site.launch or self.landings(a, b) is not None:
            return False
        own, own_order = self.space(a.home) is Space.LOCAL, self.space(a.home) is not Space.LANES and not a.site.sender
        own_order &= not (a.site.joint or b.site.joint)
        return own or (own_order and self.same(a, b, (PLACE,), THREAD))

    def turned(self, a: Access, b: Access) -> int:
        """The number of outer loops of the program whose iterations have instances of the memory of their own, as the kernel's
        loops do.

        Iterations of a `par` may be in the order of the kernel if each has its own instance, and each instance is in one
        iteration of these loops. An instance in two iterations could be overwritten in between; an access outside of the loops
        would have its time in another order.
        """
        key = a.home, a.site.launch
        if a.copies and key not in self.turns:
            every = [x for x in self.by_home[a.home] if self.space(a.home) is Space.GLOBAL or x.site.launch is key[1]]
            loops = [x for x, *more in zip(*(e.site.loops for e in every), strict=False) if all(x is y for y in more)]
            own, used = self.instance(a.home, a.site), {s for e in a.copies for s in e.syms()}
            deep = max((depth for depth, loop in enumerate(loops, 1) if loop.sym in used), default=0)
            turns = (*key[1].host, *(loop.sym for loop in loops[:deep]))
            plain = all((e.copies, e.site.launch) == (a.copies, key[1]) for e in every) and used <= {*own, *turns}
            says = address(a.site, ((*map(expr, own), *a.copies), tuple(map(expr, turns))))
            plain = plain and all(x.kind != "simd" for x in loops) and follows(says, says, (0,), 1, self.premises)
            self.turns[key] = len(a.copies) if plain else 0
        return self.turns[key] if a.copies and a.home == b.home else 0

    def landings(self, a: Access, b: Access) -> Sequence[Landing] | None:
        """Behind what `a` has come about for `b`; None where that is when its thread does it, as it reads registers before."""
        lanes, columns = (self.space(a.home) is each for each in (Space.LANES, Space.TENSOR))
        if columns and (Group.TENSOR not in (a.event.group, b.event.group) or pipelined(a.event, b.event)):
            return None
        if isinstance(a.home, Sym) or (lanes and self.follow(a, b)):
            return None
        if a.event.kind == "async":
            if (b.event.engine or b.event.group in TENSOR_CORES) and not a.event.engine and a.write and not (lanes or columns):
                raise Undecided("a copy of the engine reads what another asynchronous copy wrote")
            own = self.landed(a.event, a.write, a.site, Load(a.home, a.index) if lanes else None)
            return (*own, *self.phases.of_pair(a.event, self.ends.get(ended(a.event), ()))) if a.event.of_pair else own
        if b.event.group is Group.WGMMA and lanes:  # what a lane did to registers ends at a fence of its own
            register = Load(a.home, a.index)
            return known(a.site, same(a.site), self.ends.get(ended(a.event), ()), self.reading, REGISTERS, register)
        if b.event.group in TENSOR_CORES and (a.write or columns):
            kind = FENCED[BEFORE] if columns else "async"
            return known(a.site, same(a.site), self.ends.get(ended(a.event), ()), self.reading, kind)
        if b.event.engine and (a.write or b.write):  # through different proxies: what the thread did ends at a fence of its own
            fences = known(a.site, same(a.site), self.ends.get(ended(a.event), ()), self.reading, "async")
            return fences if self.space(a.home) is Space.SHARED else ()
        return None

    def follow(self, a: Access, b: Access) -> bool:
        """Whether both are started on registers of a lane, and so keep their order: of one shape, the same ones (PTX ISA,
        "wgmma.fence"). Raises Undecided for others, between which a wait and a fence would have to be."""
        one, other = a.event.stmt, b.event.stmt
        if not isinstance(one, k.CollectiveAsync) or not isinstance(other, k.CollectiveAsync):
            return False
        own, theirs = ([h for h in s.registers if h.how is None] for s in (one, other))
        said = [[(h.first.buffer, h.first.index, h.count) for h in each] for each in (own, theirs)]
        whole = Known({}).multiple  # blocks of registers that begin at multiples of how many they are, are one or apart
        alike = [[(h.first.buffer, h.count) for h in each] for each in (own, theirs)]
        if one.name == other.name and alike[0] == alike[1]:
            if said[0] == said[1] and all(h.first.index[0].is_constant for h in own):
                return True
            if all(whole(h.first.index[0], h.count) for h in (*own, *theirs)):
                return True
        if any(x.first.buffer is y.first.buffer and _meet(x, y) for x in own for y in theirs):
            raise Undecided("products of different shapes may have a register in common")
        return False

    def landed(self, event: Event, write: bool, site: Site | None = None, register: Load | None = None) -> tuple[Landing, ...]:
        """Where a copy has landed, or, without `write`, where it has read what it stores. `site`, `register`: as `landed` has
        them."""
        if (signal := carried(event)) is not None:
            return tuple(self.phases.landings(self.phases.phases(signal)))
        if event.group is Group.TENSOR:
            if (event, True, None, None) not in self.ended:
                found = self.phases.committed(event, self.ends.get(ended(event), ()))
                self.ended[event, True, None, None] = tuple(each.settled(event.site, self.premises) for each in found)
            return self.ended[event, True, None, None]
        here, key = site or event.site, (event, write, site, None if register is None else register.index)
        if key not in self.ended:
            found = landed(event, here, self.ends.get(ended(event), ()), self.reading, write, register)
            self.ended[key] = tuple(each.settled(here, self.premises) for each in found)
        return self.ended[key]

    def confused(self, a: Access, b: Access) -> Point | None:
        """Two instances at one place that are of different elements of one instance of program memory. Raises Undecided."""
        if a.stored != b.stored or not a.meant or (a.index == a.meant and b.index == b.meant):
            return None  # accesses at one place are of one element
        if self.same(a, b, (PLACE, COPY), ELEMENT):
            return None
        sides = self.sides(a, b)
        place = self.same_place(a, b, sides)
        if place is None:
            return None
        copies = [Eq(sides.a(x) - sides.b(y)) for x, y in zip(a.copies, b.copies, strict=True)]
        apart = differ(map(sides.a, a.meant), map(sides.b, b.meant))
        return witness((*order.domains(a.site, b.site, sides), *place, *copies, apart), self.premises)

    def direct(self, r: Access, done: Collection[Access]) -> bool:
        """Whether all that a statement writes of a memory, by `done`, is surely where `r` reads it: each instance is
        executed."""
        near = self.space(r.home) is Space.GLOBAL or all(w.site.launch is r.site.launch for w in done)
        return near and all(w.home == r.home and self.same(w, r, (COPY, ELEMENT), PLACE) for w in done)

    def missing(self, r: Access, action: Action | None, writes: Sequence[Access]) -> Point | None:
        """An element that a statement wrote before `r`, and that is not where `r` reads. Raises Undecided.

        Without a statement: the initial contents of a parameter.
        """
        names, facts, begun = dict[Sym, Sym](), [*r.site.where], None
        if action is not None:
            begun = when(action.spot, names := apart(action), 1)
            before = [f for free, f in program_order.cases(begun, r.when, r.stored, whole=True) if not free and f != FALSE]
            if not before:
                return None
            facts += [*self.written(action, names, r), disj(before)]
        found = [each for w in writes if w.stored == r.stored for each in self._put(w, r, action, names, begun)]
        others = self.plain.get(r.stored, []) if begun else []
        with suppress(Undecided):
            if nowhere(facts, found, self.premises) is None:
                return None
        return nowhere(facts, [*found, *(self._since(a, begun or (), names, r) for a in others)], self.premises)

    def _since(self, action: Action, begun: When, names: Mapping[Sym, Sym], r: Access) -> ExistsWitness:
        """The existence of an instance of a statement that overwrote the element after `begun`."""
        own = {loop.sym: Sym(f"{loop.sym.name}◇") for loop in action.spot.loops}
        times, turns = when(action.spot, own, 1), {t[0].sym: t[1] for t in r.when if not isinstance(t, int)}
        between = program_order.precedes(begun, times, r.stored), program_order.precedes(times, r.when, r.stored)
        said = tuple(turns.get(sym, expr(names.get(sym, 0))) for sym in own)
        return ExistsWitness(own, (*self.written(action, own, r), *between), (said,))

    def written(self, action: Action, names: Mapping[Sym, Sym], r: Access) -> Iterator[Formula]:
        """Instances of a statement, by `names`, that write the element of the read."""
        yield from (rename(f, names) for f in action.spot.domain)
        yield from (Eq(e.substitute(names) - given) for e, given in zip(subscripts(action.target), r.meant, strict=True))
        yield from (Eq(expr(names[loop.sym]) - c) for loop, c in zip(action.spot.loops, r.copies, strict=False))

    def _put(
        self, w: Access, r: Access, action: Action | None, names: Mapping[Sym, Sym], begun: When | None
    ) -> Iterator[ExistsWitness]:
        """Writes by `w` to the place of the read `r`: of what `action` wrote, by it or, since `begun`, by a copy."""
        if self.space(r.home) is not Space.GLOBAL and w.site.launch is not r.site.launch:
            return
        own = zip(self.instance(w.home, w.site), self.instance(r.home, r.site), strict=True)
        pairs, more = [*((expr(t), expr(s)) for t, s in own), *zip(w.index, r.index, strict=True)], list[Formula]()
        if action is not None and w.does is action:
            pairs += ((w.indices[old], expr(new)) for old, new in names.items() if old in w.indices)
        elif action is None or w.does is None:
            pairs += zip((*w.meant, *w.copies), (*r.meant, *r.copies), strict=True)
            moved = Names(own_names(w.site)).times(w.when)
            more.append(program_order.precedes(moved, r.when, r.stored))
            more += [] if begun is None else [program_order.precedes(begun, moved, r.stored)]
        else:
            return
        known = dict(zip(ELEMENTS, r.meant, strict=False)) | {t[0].sym: t[1] for t in r.when if not isinstance(t, int)}
        values = {**known, **names}, {**names, **known}
        yield instances(w.site, pairs, dict.fromkeys(tuple(e.substitute(each) for e in w.said) for each in values), *more)

    def outside(self, home: Buffer, index: Sequence[Expr], site: Site) -> Point | None:
        """An instance at which an element is out of bounds. Raises Undecided."""
        inside, ranges = flat(between(0, e, n) for e, n in zip(index, home.shape, strict=True)), ranged(site).known
        left = [fact for fact in inside if not is_plain(fact, ranges)]
        return witness((*site.where, negate(conj(left))), self.premises) if left else None


def _meet(one: Held, other: Held) -> bool:
    """Whether two blocks of registers of one array perhaps have one in common."""
    apart = other.first.index[0] - one.first.index[0]
    return not apart.is_constant or not one.first.index[0].is_constant or -other.count < apart.constant < one.count


def ended(event: Event) -> object:
    """A key that an event shares with its parts."""
    return event.site.launch, event.stmt, event.target


def apart(action: Action) -> dict[Sym, Sym]:
    """Fresh names for the indices around a statement."""
    return {loop.sym: Sym(f"{loop.sym.name}●") for loop in action.spot.loops}


def own_names(site: Site) -> dict[Sym, Sym]:
    """Fresh names for the coordinates of a site."""
    return {sym: Sym(f"{sym.name}○") for sym in site.dims}


def instances(site: Site, pairs: Iterable[tuple[Expr, Expr]], said: Iterable[Sequence[Expr]], *more: Formula) -> ExistsWitness:
    """Instances of `site` for which the first of each pair, in its own coordinates, equals the second; `more` uses
    `own_names`."""
    names = own_names(site)
    facts = [*order.renamed(site, names), *more]
    facts += [Eq(mine.substitute(names) - asked) for mine, asked in pairs]
    return ExistsWitness(names, tuple(facts), tuple(map(tuple, said)))
