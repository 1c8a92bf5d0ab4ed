"""Sums that threads make in parts: that each update of the program ends up, exactly once, in the element that it is meant for.

A *part* is memory that the program does not have: a register or an array that starts at the identity, takes updates (*leaves*),
and is joined with other parts, until a *final* joins it into an element of the program. Which leaves a part holds is followed
step by step over all threads of a block, each thread's own leaves being one unit: copies, joins and exchanges between lanes are
executed on sets of units. That the units hold the right updates, and all of them, is a question for the solver. Parts that one
launch stores and a later one joins are followed through both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.rewrite import map_value
from texpr.ir.structure import same
from texpr.ir.updates import EXACTLY_ONCE_FREE, combine, identity
from texpr.ir.value import Literal, Load, Op, Ref, Value
from texpr.isa.levels import Space
from texpr.presburger.formula import TRUE, Formula, holds, rename
from texpr.reading.actions import Action
from texpr.reading.events import Event, Launch, Reading
from texpr.verifier.flow import Flow, Home
from texpr.verifier.match import Match, home_of, memory_in, memory_of
from texpr.verifier.tags import Joined, Leaf, Step, Tag

Unit = tuple[Home, int, int]
Held = frozenset[Unit]


class Wrong(Exception):
    """A reduction that is not one; says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """An event that joins `source` into its target, by `update`."""

    event: Event
    update: ir.Update
    source: Load | Ref


@dataclass(slots=True)
class Reductions:
    """The parts of a plan, and what joins them, as its tags say. `of`: which sums a join ends, with the indices around them."""

    reading: Reading
    flow: Flow
    joins: dict[Event, Join] = field(default_factory=dict[Event, Join])
    of: dict[Event, tuple[Match, ...]] = field(default_factory=dict[Event, tuple[Match, ...]])
    inverses: dict[Event, tuple[Expr, ...]] = field(default_factory=dict[Event, tuple[Expr, ...]])
    parts: set[Home] = field(default_factory=set[Home])
    leaves: dict[Event, Match] = field(default_factory=dict[Event, Match])

    def take(self, tagged: Iterable[tuple[Event, Tag | None]], leaves: Mapping[Event, Match]) -> None:
        """Takes what tags say of parts. Raises Wrong where it cannot be so."""
        actions = self.flow.program.actions
        own = {a.stored for a in actions} | {*self.flow.program.function.params}
        for event, tag in tagged:
            home = home_of(event.target)
            match tag:
                case Leaf():
                    self.parts.add(home)
                case Step(inverse):
                    self.parts.add(home)
                    self.inverses[event] = inverse
                case Joined(update, of, inverse):
                    self.inverses[event] = inverse
                    self.joins[event] = self.join(event, update)
                    self.of[event] = tuple(Match(event, a := actions[s.action], named(a, s.indices), (), s.inverse) for s in of)
                    if not of:
                        self.parts.add(home)
                case _:
                    pass
        self.leaves.update(leaves)
        wrong = next((home for home in self.parts if home in own), None)
        if wrong is not None:
            raise Wrong(f"{_name(wrong)} is memory of the program")
        for event, tag in tagged:
            if home_of(event.target) in self.parts and not isinstance(tag, Leaf | Step | Joined):
                raise Wrong(f"{_name(home_of(event.target))} is part of a sum, and something else is stored there")
        for join in self.joins.values():
            if home_of(join.source) not in self.parts:
                raise Wrong(f"{_name(home_of(join.source))} is joined, and is no part of a sum")

    def source(self, event: Event) -> Load | Ref | None:
        """What an event copies or joins, None where it computes something else."""
        join = self.joins.get(event)
        return join.source if join is not None else memory_of(self.resolved(event.value))

    def resolved(self, value: Value) -> Value:
        """`value` with registers that never change written out."""

        def leaf(node: Value) -> Value | None:
            variable = self.reading.variables.get(node.sym) if isinstance(node, Ref) else None
            return None if variable is None or variable.value is None else self.resolved(variable.value)

        return map_value(value, leaf)

    def join(self, event: Event, update: ir.Update) -> Join:
        """`event` as a join of two places by `update`. Raises Wrong."""
        value = self.resolved(event.value)
        for source in dict.fromkeys(memory_in(value)):
            if source != event.target and same(value, combine(update, (event.target,), (source,))[0]):
                return Join(event, update, source)
        source = memory_of(value)
        if (
            source is not None
            and event.site.tests
            and isinstance(update, str)
            and update in ("max", "min")
            and self._taken(event, update)
        ):
            return Join(event, update, source)
        raise Wrong(f"{_name(home_of(event.target))} is not joined with another by what the program updates with")

    def _taken(self, event: Event, update: str) -> bool:
        """Whether an element of a tuple is stored where the tuple wins."""
        condition = self.resolved(event.site.tests[-1][0])
        together = self.together(event)
        olds = [e.target for e in together]
        news = [self.resolved(e.value) for e in together]
        wanted = combine(update, olds, news)
        return len(together) > 1 and all(isinstance(w, Op) and same(w.args[0], condition) for w in wanted)

    def together(self, event: Event) -> list[Event]:
        """The events of the arm of a branch that `event` stands in: the elements of a tuple."""
        block = event.site.path[-1][0]
        return [e for e in self.reading.events if e.site.path[-1][0] is block and e.site.launch is event.site.launch]

    def finals(self) -> Iterator[Join]:
        """Joins into memory of the program."""
        yield from (join for event, join in self.joins.items() if home_of(event.target) not in self.parts)

    def is_stored(self, home: Home) -> bool:
        """Whether a part is kept from one launch to the next."""
        return home in self.parts and self.flow.space(home) is Space.GLOBAL

    def groups(self, launch: Launch) -> list[list[Event]]:
        """The events of a launch that touch parts, those together whose parts are joined or copied."""
        groups: list[tuple[set[Home], list[Event]]] = []
        for event in self.concerned(launch):
            source = self.source(event)
            homes = {home for place in (event.target, source) if place is not None and (home := home_of(place)) in self.parts}
            homes = {home for home in homes if not self.is_stored(home)} or homes
            met = [group for group in groups if group[0] & homes]
            groups = [group for group in groups if group not in met]
            groups.append((homes.union(*(h for h, _ in met)), [*(e for _, events in met for e in events), event]))
        place = {event: at for at, event in enumerate(self.reading.events)}
        return [sorted(events, key=lambda e: place[e]) for _, events in groups]

    def concerned(self, launch: Launch) -> list[Event]:
        """The events of a launch that touch parts, in textual order."""
        finals = {join.event for join in self.finals()}
        return [
            e for e in self.reading.events
            if e.site.launch is launch and (home_of(e.target) in self.parts or e in finals)
        ]  # fmt: skip


def _place(value: Value) -> Load | Ref:
    assert isinstance(value, Load | Ref)
    return value


@dataclass(slots=True)
class Follower:
    """Executes the steps of one launch on sets of units. `parts`: those whose leaves are units."""

    reductions: Reductions
    launch: Launch
    events: list[Event]
    common: frozenset[Formula] = field(init=False)
    loops: tuple[k.For, ...] = field(init=False)
    units: dict[Unit, int] = field(default_factory=dict[Unit, int])
    state: dict[Unit, int] = field(default_factory=dict[Unit, int])
    """What each part holds: a bit for each of `units`."""
    final: dict[Event, dict[int, int]] = field(default_factory=dict[Event, dict[int, int]])
    symbolic: set[Event] = field(default_factory=set[Event])

    def __post_init__(self) -> None:
        joins = self.reductions.joins
        self.symbolic |= {e for e in self.events if e in joins and self.reductions.is_stored(home_of(joins[e].source))}
        steps = [e for e in self.events if not self.is_leaf(e)]
        first = steps[0].site.domain if steps else ()
        self.common = frozenset(f for f in first if all(f in e.site.domain for e in steps))
        shared = steps[0].site.loops if steps else ()
        for event in steps:
            kept = [a for a, b in zip(shared, event.site.loops, strict=False) if a is b]
            shared = shared[: len(kept)] if list(shared[: len(kept)]) == kept else ()
        self.loops = tuple(shared)

    def is_leaf(self, event: Event) -> bool:
        return event in self.reductions.leaves or event in self.symbolic

    def threads(self) -> Iterator[tuple[int, dict[Sym, int]]]:
        """The threads of a block, by number and by coordinates."""
        axes = [a for dim in "xyz" for a in self.launch.kernel.axes if a.level is k.Level.BLOCK and a.dim == dim]
        extents = [range(a.extent.constant) for a in reversed(axes)]
        for number, at in enumerate(product(*extents)):
            yield number, dict(zip((a.sym for a in reversed(axes)), at, strict=True))

    def run(self) -> None:
        """Follows all steps. Raises Wrong where one is not understood, or joins something twice."""
        everyone = list(self.threads())
        steps: list[tuple[tuple[int, ...], int, Event, dict[Sym, int]]] = []
        depth = len(self.loops)
        for number, event in enumerate(self.events):
            inner = () if self.is_leaf(event) else event.site.loops[depth:]
            for at in product(*(self._turns(event, loop) for loop in inner)):
                env = dict(zip((loop.sym for loop in inner), at, strict=True))
                steps.append((self._key(event, env), number, event, env))
        for _, _, event, env in sorted(steps, key=lambda s: (s[0], s[1])):
            self.step(event, env, everyone)

    def _turns(self, event: Event, loop: k.For) -> range:
        lo, hi = event.site.bounds[loop]
        if not (lo.is_constant and hi.is_constant and loop.step.is_constant) or hi.constant - lo.constant > 1024:
            raise Wrong(f"the loop over {loop.sym} has no constant bounds")
        return range(lo.constant, hi.constant, loop.step.constant)

    def _key(self, event: Event, env: Mapping[Sym, int]) -> tuple[int, ...]:
        return tuple(t if isinstance(t, int) else env.get(t.sym, 0) for t in event.site.time)

    def step(self, event: Event, env: Mapping[Sym, int], everyone: Sequence[tuple[int, dict[Sym, int]]]) -> None:
        """One step of all threads that take it, what they read being read before anything is written."""
        if self.is_leaf(event):
            self._leaf(home_of(event.target))
            return
        if self._asked(event) != self._asked(next(e for e in self.events if not self.is_leaf(e))):
            raise Wrong(f"whether {_name(home_of(event.target))} is given something depends on data")
        takers = self._takers(event, env, everyone)
        made = self._made(event, env, takers)
        ended = self.reductions.joins.get(event) is not None and home_of(event.target) not in self.reductions.parts
        stored = self.reductions.flow.space(home_of(event.target)) is Space.GLOBAL and made is not None
        if ended or stored:
            self.final.setdefault(event, {}).update({n: held for (n, _), held in zip(takers, made or (), strict=True)})
        if not ended:
            places = self._places(event.target, env, takers)
            for at, place in enumerate(places):
                if made is None:
                    self.state.pop(place, None)
                else:
                    self.state[place] = made[at]

    def _asked(self, event: Event) -> list[int]:
        """The tests of data under which a step is done, without that by which one of two tuples is chosen."""
        join, tests = self.reductions.joins.get(event), event.site.tests
        chosen = join is not None and memory_of(self.reductions.resolved(event.value)) is not None
        return [id(test) for test in (tests[:-1] if chosen else tests)]

    def _takers(
        self, event: Event, env: Mapping[Sym, int], everyone: Sequence[tuple[int, dict[Sym, int]]]
    ) -> Sequence[tuple[int, dict[Sym, int]]]:
        facts = [g for f in event.site.domain if f not in self.common and (g := rename(f, env)) != TRUE]
        try:
            return [each for each in everyone if all([holds(f, each[1]) for f in facts])] if facts else everyone
        except KeyError as unknown:
            raise Wrong(f"whether a thread takes part depends on {unknown.args[0]}") from None

    def _leaf(self, home: Home) -> None:
        """Each thread's own updates are its unit; nothing may have been joined into the part before."""
        for place, held in list(self.state.items()):
            if place[0] == home:
                own = self._unit(place)
                if held & ~own:
                    raise Wrong(f"{_name(home)} takes updates after it was joined")
                self.state[place] = own

    def _unit(self, place: Unit) -> int:
        return 1 << self.units.setdefault(place, len(self.units))

    def _made(self, event: Event, env: Mapping[Sym, int], takers: Sequence[tuple[int, dict[Sym, int]]]) -> list[int] | None:
        """What each thread's target holds then, None for nothing that is known."""
        join, source = self.reductions.joins.get(event), self.reductions.source(event)
        if event.kind == "exchange":
            assert isinstance(event.stmt, k.Exchange)
            if event.stmt.width != 32 or not 0 < event.stmt.mask < 32:
                raise Wrong(f"lanes are exchanged by {event.stmt.mask} of {event.stmt.width}")
            others = [(number ^ event.stmt.mask, at) for number, at in takers]
            return self._held(_place(event.value), env, others)
        if join is not None:
            added = self._held(join.source, env, takers)
            if home_of(event.target) not in self.reductions.parts:
                return added
            old = self._held(event.target, env, takers)
            again = next((at for at, (x, y) in enumerate(zip(old, added, strict=True)) if x & y), None)
            if again is not None and (join.update not in EXACTLY_ONCE_FREE or isinstance(join.update, ir.Combiner)):
                raise Wrong(f"something is joined twice in thread {takers[again][0]}")
            return [x | y for x, y in zip(old, added, strict=True)]
        if source is not None:
            return self._held(source, env, takers)
        return [0] * len(takers) if self._starts(event) else None

    def _starts(self, event: Event) -> bool:
        """Whether a value is the identity of every update that this part takes."""
        home = home_of(event.target)
        taken = {j.update for e, j in self.reductions.joins.items() if home_of(e.target) == home}
        taken |= {u for e, m in self.reductions.leaves.items() if home_of(e.target) == home and (u := m.action.update)}
        value = self.reductions.resolved(event.value)
        return bool(taken) and all(self._is_identity(event, value, "add" if u == "sub" else u) for u in taken)

    def _is_identity(self, event: Event, value: Value, update: ir.Update) -> bool:
        dtype = event.target.dtype
        first, second = (identity(update, dtypes)[-1] for dtypes in ((dtype,), (dtype, dtype)))
        usual = [first] if isinstance(update, ir.Combiner) or update not in ("max", "min") else [first, second]
        return any(same(value, other) or _equal(value, other) for other in usual)

    def _places(self, target: Load | Ref, env: Mapping[Sym, int], takers: Sequence[tuple[int, dict[Sym, int]]]) -> list[Unit]:
        """Which element of which thread's memory each of `takers` means."""
        home = home_of(target)
        space = self.reductions.flow.space(home)
        number = expr(0)
        if isinstance(target, Load) and space is not Space.GLOBAL:
            for extent, index in zip(target.buffer.shape, target.index, strict=True):
                number = number * (extent.constant if extent.is_constant else 1) + index.substitute(env)
        private = space is Space.LOCAL
        if number.is_constant:
            return [(home, thread if private else 0, number.constant) for thread, _ in takers]
        try:
            return [(home, thread if private else 0, number.evaluate(at)) for thread, at in takers]
        except KeyError:
            raise Wrong(f"which element of {_name(home)} is meant is not known") from None

    def _held(self, source: Load | Ref, env: Mapping[Sym, int], takers: Sequence[tuple[int, dict[Sym, int]]]) -> list[int]:
        held = [self.state.get(place) for place in self._places(source, env, takers)]
        found = [each for each in held if each is not None]
        if len(found) < len(held):
            raise Wrong(f"{_name(home_of(source))} is joined in thread {takers[held.index(None)][0]} before it holds anything")
        return found

    def holding(self, held: Mapping[int, int]) -> dict[int, Held]:
        """What threads hold, as sets of units."""
        sets = {mask: frozenset(unit for unit, at in self.units.items() if mask >> at & 1) for mask in set(held.values())}
        return {number: sets[mask] for number, mask in held.items()}


def _name(home: Home) -> str:
    return home.name.split("#")[0]


def _equal(a: Value, b: Value) -> bool:
    return (
        isinstance(a, Literal)
        and isinstance(b, Literal)
        and a.dtype == b.dtype
        and float(a.value).hex() == float(b.value).hex()
    )


def named(action: Action, indices: Sequence[Expr]) -> dict[Sym, Expr]:
    """Indices by the loops that they are of."""
    return {loop.sym: e for loop, e in zip(action.spot.loops, indices, strict=False)}


def outer_loops(action: Action) -> tuple[ir.Loop, ...]:
    """The loops around those whose order is free for what `action` updates."""
    for at, loop in enumerate(action.spot.loops):
        if action.stored in loop.reduce:
            return action.spot.loops[:at]
    raise Wrong(f"the order of the updates of `{action.stored.name}` is not free")
