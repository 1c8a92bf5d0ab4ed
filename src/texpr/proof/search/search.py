"""The search for tags: event by event, in rounds, so that earlier results help later ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.proof.tags import ELEMENTS, Hole, Joined, Moved, Statement, Step, Tag
from texpr.ir.value import Buffer, Literal, Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.formula import compare
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import witness
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import flat
from texpr.proof.common.values import Unlike
from texpr.proof.plan import Question, Tags
from texpr.proof.plan.copies import copied, untouched
from texpr.proof.plan.flow import Flow
from texpr.proof.plan.match import Match, Operand, home_of
from texpr.proof.plan.sums import Sums, fixed
from texpr.proof.read.actions import Action, indices
from texpr.proof.read.events import Event, Launch, in_arms
from texpr.proof.search.indices import (
    Guess,
    Kept,
    by_registers,
    by_updates,
    enclosing,
    instance_of,
    is_read,
    keeps,
    laid_out_alike,
    named_alike,
    of_a_thread,
    rank,  # fmt: skip
    solutions,
    solve,
    strays,
    titles,
)
from texpr.proof.search.inverse import inverse, where_done
from texpr.proof.search.parts import Parts
from texpr.proof.search.turns import ends, turns
from texpr.support.record import Mutable, field


def search(asked: Question) -> Tags:
    """The tags of all events. An event for which nothing is found has no tag."""
    flow = Flow(asked.program, asked.reading, asked.premises)
    found = _Search(asked, flow)
    found.statements()
    found.consistent()
    parts = Parts(asked.reading, asked.program, Sums(flow))
    leaves = parts.settled(parts.find(found.matches), found.match)
    found.rest(parts)
    return Tags(
        tuple(found.tag(event, parts, leaves) for event in asked.reading.events), ends(asked.reading), turns(asked.reading)
    )


class _Search(Mutable):
    asked: Question
    flow: Flow
    matches: dict[Event, Match] = field(default_factory=dict[Event, Match])
    copies: dict[Event, Moved] = field(default_factory=dict[Event, Moved])
    parted: list[Kept] = field(default_factory=list[Kept])
    copied: dict[Buffer | Sym, Kept] = field(default_factory=dict["Buffer | Sym", Kept])
    registers: dict[Buffer | Sym, Kept] = field(default_factory=dict["Buffer | Sym", Kept])
    turns: dict[Launch, dict[tuple[Sym, Expr], None]] = field(default_factory=dict["Launch", "dict[tuple[Sym, Expr], None]"])
    named: dict[Buffer | Sym, Match] = field(default_factory=dict["Buffer | Sym", Match])
    unlike: set[tuple[Event, Action]] = field(default_factory=set[tuple[Event, Action]])
    lines: dict[int, dict[Action, None]] = field(default_factory=lambda: defaultdict(dict))
    done: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    stored: frozenset[Buffer | Sym] = field(init=False)
    names: frozenset[str] = field(init=False)
    round: int = 0
    numbers: dict[Action, int] = field(init=False)

    def __post_init__(self) -> None:
        actions = self.asked.program.actions
        self.stored, self.numbers = frozenset(a.stored for a in actions), {each: at for at, each in enumerate(actions)}
        self.names = frozenset(called for each in self.stored for called in titles(each))
        for action in actions:
            self.lines[action.span.line][action] = None

    def statements(self) -> None:
        """The statement of each event: by line, by name, then any that fits."""
        for self.round in range(4):
            for event in sorted(self.asked.reading.events, key=rank):
                if event.kind == "exchange" or event in self.matches:
                    continue
                found = self.match(event, self.candidates(event), partly=self.round == 3)
                if found is not None:
                    self.matches[event] = found
                    self.done.add(instance_of(found.event, found.action, found.indices))
                    if event.let:
                        self.named[home_of(event.target)] = found
                    known = [*keeps(found, self.asked.program.scopes)]
                    self.parted += [kept for kept in known if kept.in_parts]
                    for kept in known:
                        if kept.in_copies:
                            self.copied.setdefault(kept.home, kept)
                        if not kept.index and kept.home == home_of(event.target):
                            self.registers.setdefault(kept.home, kept)
                    turns = self.turns.setdefault(event.site.launch, {})
                    turns |= {(s, e): None for s, e in found.indices.items() if e.syms() and self.round < 2}

    def candidates(self, event: Event) -> list[Action]:
        """Candidate statements for an event, likely ones first."""
        reading, program, line = self.asked.reading, self.asked.program, event.span.line
        near = self.lines.get(line, {})
        every: Sequence[Action] = program.actions if self.round else [*near]
        if event.let and not isinstance(event.target, Load):
            let = program.lets.get(reading.variables[event.target.sym].name)
            own = [a for a in every if isinstance(a.target, Load) and a.target.buffer.role == "local"]
            every = own if let is None else [let]
        if isinstance(event.target, Load) and event.target.buffer in self.stored:
            every = [a for a in every if a.stored == event.target.buffer]
        elif isinstance(event.target, Load):  # memory of a kernel, or workspace of another shape than in the program
            called = event.target.buffer.name
            own = [a for a in every if a.stored.name == called]
            every = own or [a for a in every if any(called.startswith(f"{each}_") for each in titles(a.stored))] or every
        name = event.target.buffer.name if isinstance(event.target, Load) else reading.variables[event.target.sym].name.name
        first = event.first  # perhaps of a later assignment
        if self.round < 3 or first:
            every = [a for a in every if a in near or (self.round and name.startswith(a.stored.name))]
        # registers and workspace are named after the buffer that they hold
        home, copied = home_of(event.target), isinstance(event.value, Load | Ref)  # exchanges are of no other statement
        if home not in self.stored and home not in reading.spaces:
            longest = next((name[:end] for end in range(len(name), 0, -1) if name[:end] in self.names), None)
            part = longest is not None and name.startswith(f"{longest}_")
            if first or copied or part:
                every = [a for a in every if longest in titles(a.stored)] if longest or copied else every
        return sorted(every, key=lambda a: (a.span != event.span, a not in near, a.stored.name != name))

    def match(
        self, event: Event, candidates: Sequence[Action], known: Sequence[Kept] = (), *, partly: bool = False
    ) -> Match | None:
        """The first of `candidates` that `event` provably executes. `known`: the elements in its target, by other events.

        `partly`: the initial value of a register may also be of a statement that nothing else executes, for some threads.
        """
        found: list[tuple[Guess, Iterable[Mapping[Sym, Expr]]]] = []
        for action in candidates:
            if (event, action) in self.unlike:
                continue
            pairing = Guess(self.asked.program, self.asked.reading, event, action)
            try:
                pairing.run()
            except Unlike:
                self.unlike.add((event, action))
                continue
            wanted = indices(action.spot)
            around = wanted[: self.asked.program.scopes[action.stored]]
            pairing.hints = [*self.in_parts(pairing, wanted), *self.in_copies(pairing)]
            pairing.hints += by_registers(pairing, self.named, self.registers)
            places = [(event.target, action.target), *((o.read, o.meant) for o in pairing.operands)]
            pairing.hints += [pair for given, meant in places for pair in laid_out_alike(given, meant)]
            held = [*known, *([kept] if (kept := self.registers.get(home_of(event.target))) is not None else [])]
            pairing.hints += [pair for kept in held for pair in kept.applied(event.target, action.target, around)]
            found.append((pairing, self.solutions(pairing, wanted)))
        found.sort(key=lambda guess: self.unnamed(guess[0]))
        guesses: list[tuple[Guess, Mapping[Sym, Expr]]] = []
        again: list[tuple[Guess, Mapping[Sym, Expr]]] = []
        for pairing, solution in ((pairing, each) for pairing, every in found for each in every):
            # equal statements are matched one by one, in one memory, except out-of-bounds elements of a tile, of several cases
            is_done = not event.engine and instance_of(event, pairing.action, solution) in self.done
            if is_done or (again and pairing.action.stored is not again[0][0].action.stored):
                again.append((pairing, solution))
            elif not strays(event, solution) and self.plain(pairing, solution):
                return pairing.matched(solution)
            else:
                guesses.append((pairing, solution))
        for pairing, solution in (each for each in again if self.plain(*each)):
            return pairing.matched(solution)
        guesses += again
        for pairing, solution in guesses:  # plain solutions before those that need a proof
            if self.right(pairing, solution):
                return pairing.matched(solution)
        done = {match.action for match in self.matches.values()}
        partly = partly and event.first
        for pairing, solution in guesses if event.engine else [g for g in guesses if g[0].action not in done] if partly else ():
            pairing.partial = True
            if self.right(pairing, solution):
                return pairing.matched(solution)
        return None

    def solutions(self, pairing: Guess, wanted: Sequence[Sym]) -> Iterator[Mapping[Sym, Expr]]:
        """Candidate values of the indices `wanted`, likely ones first; other events of one copy by the engine have the same."""
        event = pairing.event
        for match in [m for m in self.matches.values() if m.event.stmt is event.stmt] if event.engine else ():
            same = match.event.target == event.target and {*wanted} <= match.indices.keys()
            if same and not refuted((*match.event.site.where, self.asked.premises)):
                yield {sym: match.indices[sym] for sym in wanted}
                break
        yield from solutions(pairing, wanted, self.turns.get(event.site.launch, ()), named=not self.round)

    def in_parts(self, pairing: Guess, wanted: Sequence[Sym]) -> list[tuple[Expr, Expr]]:
        """The equations by an event's reads of arrays that are distributed over a cluster."""
        read = [(o.read, o.meant) for o in pairing.operands if isinstance(o.meant, Load)]
        around = {meant: wanted[: self.asked.program.scopes[meant.buffer]] for _, meant in read}
        return [pair for kept in self.parted for given, meant in read for pair in kept.applied(given, meant, around[meant])]

    def in_copies(self, pairing: Guess) -> Iterator[tuple[Expr, Expr]]:
        """The equations by an event's places in arrays with an instance for each iteration: each is as written."""
        yield from self.in_copy(pairing.event.target, pairing.action.target, pairing.action)
        for operand in pairing.operands:
            yield from self.in_copy(operand.read, operand.meant, pairing.action)

    def in_copy(self, given: Load | Ref, meant: Load | Ref, action: Action) -> Iterator[tuple[Expr, Expr]]:
        """The equations by one place, as in `in_copies`; if nothing is known yet, by the extents of the array."""
        if not isinstance(given, Load) or not isinstance(meant, Load) or given.buffer.name != meant.buffer.name:
            return
        kept = self.copied.get(given.buffer)
        around = action.spot.loops[: self.asked.program.scopes[meant.buffer]]
        if kept is not None:
            yield from kept.applied(given, meant, [loop.sym for loop in around])
        elif around:
            copies, own = (
                [(loop.extent, expr(loop.sym)) for loop in around],
                [*zip(meant.buffer.shape, meant.index, strict=True)],
            )
            fitting = [each for each in ([*copies, *own], [*own, *copies]) if [e for e, _ in each] == [*given.buffer.shape]]
            if len(fitting) == 1:
                yield from zip((theirs for _, theirs in fitting[0]), given.index, strict=True)

    def unnamed(self, pairing: Guess) -> tuple[int, int]:
        """The number of names or elements that differ from the program's: iterations of a `static for` are alike.

        And the number of the statement's loops that the kernel lacks: boundary loops resemble the interior ones.
        """
        registers = self.asked.reading.variables
        homes = ((home_of(operand.read), home_of(operand.meant)) for operand in pairing.operands)
        named = sum((registers[h].name if isinstance(h, Sym) and h in registers else h).name != m.name for h, m in homes)
        named += pairing.renamed + sum(a.is_constant and b.is_constant and a is not b for a, b in pairing.hints)
        return named, len({*indices(pairing.action.spot)} - {*pairing.event.site.dims})

    def plain(self, pairing: Guess, solution: Mapping[Sym, Expr]) -> bool:
        """Whether an event is quickly shown to be a statement of these indices."""
        return refuted((*flat(pairing.doubts(solution)), self.asked.premises))  # as the proof asks it

    def right(self, pairing: Guess, solution: Mapping[Sym, Expr]) -> bool:
        """Whether an event is proved to be a statement of these indices."""
        try:
            return witness(pairing.doubts(solution), self.asked.premises) is None
        except Undecided:
            return False

    def consistent(self) -> None:
        """Removes matches that take a register or array for program memory that no other event stores there."""
        kept: dict[tuple[object, object], bool] = {}
        before = -1
        while before != len(self.matches):
            before, kept = len(self.matches), {}
            for event in self.asked.reading.events:
                match = self.matches.get(event)
                if match is not None:
                    kept[home_of(event.target), match.action.stored] = True
                elif isinstance(event.value, Load):
                    kept[home_of(event.target), event.value.buffer] = True
                elif isinstance(event.value, Ref):  # what a register gets from another one, it holds
                    held = [stored for home, stored in kept if home == home_of(event.value)]
                    kept |= {(home_of(event.target), stored): True for stored in held}
            for event, match in list(self.matches.items()):
                for operand in match.operands:
                    home, stored = home_of(operand.read), home_of(operand.meant)
                    if not named_alike(home, stored) and (home, stored) not in kept:
                        self.matches.pop(event, None)
        assigned = self.assigned()
        for event, match in list(self.matches.items()):
            constant = isinstance(event.value, Literal)  # the initial value of a later assignment is never read
            first = event.declares and (home_of(event.target), match.action) in assigned
            if constant and (first or (isinstance(event.target, Load) and self.is_elsewhere(match))):
                del self.matches[event]  # a constant does not determine its indices
        self.done = {instance_of(each.event, each.action, each.indices) for each in self.matches.values()}

    def assigned(self) -> frozenset[tuple[Buffer | Sym, Action]]:
        """The statements that are executed by events that do not declare their target."""
        found = ((e.target, m.action) for e, m in self.matches.items() if not e.declares)
        return frozenset((home_of(target), action) for target, action in found)

    def is_elsewhere(self, match: Match) -> bool:
        """Whether other events that store to the same array of a kernel have another element there."""
        event, action, scopes = match.event, match.action, self.asked.program.scopes
        around = indices(action.spot)[: scopes[action.stored]]
        others = (m for m in self.matches.values() if home_of(m.event.target) == home_of(event.target) != action.stored)
        found = (kept for m in others if not isinstance(m.event.value, Literal) for kept in keeps(m, scopes))
        pairs = (pair for kept in found for pair in kept.applied(event.target, action.target, around))
        known = ((theirs.substitute(match.indices), mine) for theirs, mine in pairs if mine.syms() <= {*event.site.dims})
        here = (*flat(event.site.where), self.asked.premises)
        return any(theirs is not mine and not refuted((compare("!=", theirs, mine), *here)) for theirs, mine in known)

    def rest(self, parts: Parts) -> None:
        """The events without a match, once the contents of memory and the partial sums are known."""
        scopes = self.asked.program.scopes
        known = [kept for match in self.matches.values() for kept in keeps(match, scopes)]
        loose = [e for e in self.asked.reading.events if e not in self.matches]
        loose = [e for e in loose if e not in parts.joins and home_of(e.target) not in parts.homes]
        for event in loose:  # a copy makes its target hold the element
            value, target = parts.source(event), event.target
            if isinstance(value, Load) and scopes.get(value.buffer) == 0 and home_of(target) not in scopes:
                index = target.index if isinstance(target, Load) else ()
                known.append(Kept(home_of(target), index, value.buffer, value.index))
        self.matched(loose, known)
        anchors = tuple(self.matches.values())
        for event in loose:
            source = None if event in self.matches else parts.source(event)
            if source is not None and (copy := self.copy(event, source, anchors)) is not None:
                self.copies[event] = copy
        self.matched([e for e in loose if self.copies and e not in self.matches and e not in self.copies], known)

    def matched(self, events: Iterable[Event], known: Sequence[Kept]) -> None:
        """Matches those of `events` whose operands hold the elements that they read."""
        assigned = self.assigned()
        for event in events:
            first = event.first
            wanted = [a for a in self.candidates(event) if not (first and (home_of(event.target), a) in assigned)]
            found = self.match(event, wanted, known)
            if found is not None and all(self.keeps(each, known) for each in found.operands):
                self.matches[event] = found
                self.done.add(instance_of(found.event, found.action, found.indices))

    def keeps(self, operand: Operand, known: Sequence[Kept]) -> bool:
        """Whether an operand is program memory, or known to hold the element."""
        home, stored = home_of(operand.read), home_of(operand.meant)
        kept = (m for m in self.matches.values() if home_of(m.event.target) == home and m.action.stored == stored)
        actions = self.asked.program.actions
        return (
            named_alike(home, stored)
            or next(kept, None) is not None
            or any(home_of(e.target) == home and actions[m.action].stored == stored for e, m in self.copies.items())
            or any((each.home, each.stored) == (home, stored) for each in known)
        )

    def copy(self, event: Event, source: Load | Ref, anchors: Sequence[Match]) -> Moved | None:
        """`event` as a copy of `source`, for one of `anchors`, the events that update the register; None if it is none.

        Statements of the other arm of a branch are not candidates.
        """
        anchors = [m for m in anchors if not in_arms(m.event.site, event.site)]
        outward = isinstance(event.target, Load) and self.kept(event.target.buffer)
        plain, held = (event.target, source) if outward else (source, event.target)
        stored = self.kept(plain.buffer) if isinstance(plain, Load) and not plain.data else ()
        if not stored or not isinstance(plain, Load):
            own = of_a_thread(event, source, self.asked.reading.spaces, self.asked.program.scopes)
            if (found := self.passed_on(event, source, anchors)) is not None or own is None:
                return found
            plain, held, stored, outward = own
        fitting = [m for m in anchors if m.action.stored in stored and home_of(m.event.target) == home_of(held)]
        actions = dict.fromkeys(m.action for m in sorted(fitting, key=lambda m: -len(m.action.spot.loops)))
        tags = (tag for action in actions for tag in self.moves(event, action, 1 if outward else -1, plain, (held, fitting)))
        first = next(tags, None)
        guarded = any(len(action.spot.domain) > len(action.spot.loops) for action in actions)  # or some loop has no iteration
        guarded |= any(not loop.extent.is_constant for action in actions for loop in action.spot.loops)
        if first is None or not guarded or self.keeps_to(event, source, first):
            return first
        return next((tag for tag in tags if self.keeps_to(event, source, tag)), first)

    def moves(
        self, event: Event, action: Action, side: int, plain: Load, by: tuple[Load | Ref, Sequence[Match]]
    ) -> Iterator[Moved]:
        """`event` as a copy before or after loops around `action`, for some of their indices, likely ones first. `by`: the
        other place, and the events that update it."""
        assert isinstance(action.target, Load)
        loops = [loop.sym for loop in action.spot.loops]
        fixed = {sym for e in action.target.index for sym in e.syms()} & set(loops)
        counts = range(enclosing(event, action, *by), -1, -1)
        for count in sorted(counts, key=lambda n: not fixed <= set(loops[:n])):  # otherwise the sum would be over all elements
            whole = fixed <= set(loops[:count]) or plain.buffer not in self.asked.reading.spaces
            found = self.outer(event, plain, action, loops[:count], by) if whole else None
            if found is not None:
                yield self.moved(event, action, found, side, plain)

    def keeps_to(self, event: Event, source: Load | Ref, tag: Moved) -> bool:
        """Whether a copy only moves elements that the program writes in the same iterations, which a test may restrict."""
        try:
            return any(untouched(copy, self.flow, (copy,)) is None for copy in copied(event, source, tag, self.flow)[1:])
        except Undecided:
            return False

    def passed_on(self, event: Event, source: Load | Ref, anchors: Sequence[Match]) -> Moved | None:
        """`event` as a copy between registers: to one updated next, unless it is read before that, or from one updated last."""
        events = self.asked.reading.events  # a match may have a narrower domain, without idle blocks
        place = {self.matches[e].event if e in self.matches else e: at for at, e in enumerate(events)}
        late = list[Moved]()
        for side, home, other in ((-1, home_of(event.target), home_of(source)), (1, home_of(source), home_of(event.target))):
            updates = (m for m in anchors if home_of(m.event.target) == home and (place[m.event] - place[event]) * side < 0)
            for match in sorted(updates, key=lambda m: abs(place[m.event] - place[event])):
                loops, known = indices(match.action.spot), {*event.site.dims, *self.asked.program.function.sizes}
                same = (m for m in anchors if home_of(m.event.target) == other and m.action.stored == match.action.stored)
                count = next((n for n, sym in enumerate(loops) if not match.indices[sym].syms() <= known), len(loops))
                called = isinstance(other, Sym) and self.asked.reading.variables[other].name.name == match.action.stored.name
                if called or next(same, None) is not None:
                    found = self.moved(event, match.action, tuple(match.indices[sym] for sym in loops[:count]), side)
                    if all(e.syms() <= known for e in found.element):  # otherwise the updates iterate over other elements
                        if side > 0 or not is_read(home, events[place[event] + 1 : place[match.event]]):
                            return found
                        late.append(found)
        return next(iter(late), None)

    def moved(self, event: Event, action: Action, values: tuple[Expr, ...], side: int, plain: Load | None = None) -> Moved:
        """`event` as a copy of the element that `action` writes, with these indices of the outermost loops around it.

        `plain`: the source or target, if it is program memory.
        """
        known = dict(zip(indices(action.spot), values, strict=False))
        meant = action.target.index if isinstance(action.target, Load) else ()
        meant = meant if plain is None or plain.buffer != action.stored else plain.index
        element = tuple(e.substitute(known) for e in meant)
        where = inverse(event.site, {**dict(zip(ELEMENTS, element, strict=False)), **known}, self.own(event))
        return Moved(self.numbers[action], values, side, element, where)

    def own(self, event: Event) -> tuple[Sym, ...]:
        """The coordinates that select the instance of the memory that an event writes."""
        return self.flow.instance(home_of(event.target), event.site)

    def kept(self, buffer: Buffer) -> Sequence[Buffer | Sym]:
        """The program memory that may be in `buffer`: itself, if there is one instance of it; the buffers that matched
        statements store there, or one of its name."""
        named = [stored for stored in self.asked.program.scopes if stored.name == buffer.name]
        if buffer not in self.asked.reading.spaces:
            copied = self.copied.get(buffer)
            alone = copied is None and buffer in self.asked.program.scopes
            return (buffer,) if alone else (copied.stored,) if copied else named
        if self.asked.reading.spaces[buffer] not in (Space.SHARED, Space.LANES):
            return ()
        return [*(m.action.stored for m in self.matches.values() if home_of(m.event.target) is buffer), *named]

    def outer(
        self, event: Event, place: Load | Ref, action: Action, loops: Sequence[Sym],
        by: tuple[Load | Ref, Sequence[Match]] | None = None,
    ) -> tuple[Expr, ...] | None:  # fmt: skip
        """The indices of some loops around `action` for an event at the element `place`, by the events `by` that update it."""
        pairing = Guess(self.asked.program, self.asked.reading, event, action)
        try:
            pairing.place(place, action.target, event.site, action.spot, reading=False)
            pairing.hints += (*laid_out_alike(place, action.target), *self.in_copy(place, action.target, action))
            pairing.hints += by_updates(event, action, *by) if by is not None else ()
        except Unlike:
            return None
        for names_first in (True, False, None):
            found = solve(pairing, loops, names_first, self.turns.get(event.site.launch, ()))
            if found is not None and all(
                meant.substitute(found) is given
                for meant, given in pairing.equations
                if meant.syms() <= {*found, *event.site.dims}
            ):
                return tuple(found[sym] for sym in loops)
        return None

    def tag(self, event: Event, parts: Parts, leaves: Mapping[Event, Match]) -> Tag | None:
        """The tag of an event."""
        match = self.matches.get(event) or leaves.get(event)
        if match is not None:
            found = {sym: where_done(match.indices[sym], event) for sym in indices(match.action.spot)}
            kept = ((match.indices[sym], e) for sym, e in found.items())
            own = tuple(e if e.is_linear else plain for e, plain in kept)  # products with sizes as in the program
            return Statement(self.numbers[match.action], own, inverse(event.site, found, self.own(event)), match.partial)
        if event in parts.joins:
            update, source = parts.joins[event]
            within = home_of(event.target) in parts.homes
            of = () if within else self.ended(event, leaves.values())
            if event.site.launch.host and not (within or of):
                return None
            return Joined(update, of, self.element(event, source))
        if home_of(event.target) in parts.homes:
            return Step(self.element(event, event.target))
        beside = [m for m in self.matches.values() if m.event.stmt is event.stmt] if event.engine else []
        whole = next((m for m in beside if m.event.target == event.target), None)
        if whole is not None and isinstance(event.value, Literal):
            return Hole(self.numbers[whole.action], tuple(whole.indices[sym] for sym in indices(whole.action.spot)))
        return self.copies.get(event)

    def element(self, event: Event, place: Load | Ref) -> tuple[Expr, ...]:
        """The coordinates of an event in terms of the element that it accesses, and those that are constant in a launch."""
        if not isinstance(place, Load):
            return ()
        host = {sym: expr(sym) for sym in event.site.launch.host}
        return inverse(event.site, {**host, **dict(zip(ELEMENTS, place.index, strict=False))})

    def ended(self, event: Event, leaves: Iterable[Match]) -> tuple[Statement, ...]:
        """The sums that a combination with program memory may complete."""
        found: list[Statement] = []
        # executed in each iteration of a loop, it completes no sum over all iterations
        host = {s.sym for s in event.site.launch.time if isinstance(s, k.HostLoop) and s.extent is not ONE}
        turns = host | {loop.sym for loop in event.site.loops}
        for action in dict.fromkeys(match.action for match in leaves):
            first = len(found)
            for outer in dict.fromkeys(fixed(action, depth) for depth in range(len(action.spot.loops) + 1)):
                values = self.outer(event, event.target, action, outer)
                said = {sym for e in values or () for sym in e.syms()}
                if values is not None and said >= (turns if found[first:] else host):
                    where = inverse(event.site, dict(zip(outer, values, strict=True)), self.own(event))
                    found[first:] = [Statement(self.numbers[action], values, where)]
                if said >= turns:
                    break
        return tuple(found)
