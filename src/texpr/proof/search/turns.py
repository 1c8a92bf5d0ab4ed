"""Relations of signals at barriers, and completion of copies: the arrival, wait or fence of each, by shifts of loop indices.

Two operations of a loop are related in iterations whose distance makes their subscripts equal. The first iteration of an inner
loop follows the last one of the previous iteration of the outer loop, at the same barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product, takewhile

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.operation import Arrives, Awaits, Brings, Closes, Commits, Fences, Group, Makes, Waits
from texpr.ir.ops.columns import BEFORE, FENCED
from texpr.ir.ops.warpgroup import REGISTERS
from texpr.ir.proof.tags import TURNS, End, Instance, Parcel, Turn
from texpr.ir.value import Load, Ref, walk
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq, Ge, holds, rename, syms
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import flat
from texpr.proof.plan.landing import located, same, there
from texpr.proof.read.events import Event, Reading, Signal, Site, Step, read_by
from texpr.proof.search.inverse import inverse
from texpr.support.record import replace

_FENCED = {"async": Space.SHARED, REGISTERS: Space.LANES, FENCED[BEFORE]: Space.TENSOR}
"""What a fence of a kind is about."""

FAR = 64
"""The greatest number of iterations for which a copy may be in flight."""

Values = Mapping[Sym, Expr]


def turns(reading: Reading) -> tuple[Turn, ...]:
    """The relations of each signal to others."""
    found = _Turns(reading, {s: at for at, s in enumerate(reading.signals)})
    return tuple(map(found.turn, reading.signals))


def ends(reading: Reading) -> tuple[tuple[End, ...], ...]:
    """Where each event's copy ends, or what it reads and writes is behind a fence, ahead of what the engine does."""
    kinds = {step.what.kind: _FENCED[step.what.kind] for step in reading.steps if isinstance(step.what, Fences)
             and step.what.kind in _FENCED}  # fmt: skip
    found = ((event, [*_ends(event, reading, kinds)]) for event in reading.events)
    return tuple(tuple(e if event.group is Group.TENSOR else _sure(e, event.site, reading)) for event, e in found)


def _sure(ends: Sequence[End], copy: Site, reading: Reading) -> Iterator[End]:
    """Those of `ends` that are always executed, and data-dependent ones that no such end precedes."""
    sites = {end: reading.steps[end.step.of].site for end in ends}
    sure = [site for site in sites.values() if {*site.tests} <= {*copy.tests}]
    yield from (end for end, site in sites.items() if site in sure or not any(_precedes(other, site) for other in sure))


class _Turns:
    def __init__(self, reading: Reading, numbers: Mapping[Signal, int]) -> None:
        self.reading, self.numbers = reading, numbers

    def turn(self, signal: Signal) -> Turn:
        """The relations of `signal` to others at its barrier."""
        every = [
            s for s in self.reading.signals if s.barrier.buffer is signal.barrier.buffer and s.site.launch is signal.site.launch
        ]
        arrivals = [s for s in every if isinstance(s.what, Arrives)]
        if isinstance(signal.what, Makes):
            fences = [(at, step.site) for at, step in enumerate(self.reading.steps) if _is_fence(step, "init")]
            known = [(at, site, next(_next(signal.site, site), None)) for at, site in fences]
            return Turn(seen=tuple(Instance(at, _at(site, found)) for at, site, found in known if found is not None))
        copies = [s for s in every if isinstance(s.what, Brings)]
        parts = [*dict.fromkeys(_part(copy.site) for copy in copies)]
        if isinstance(signal.what, Arrives):
            waits = [(w, v) for w in every if isinstance(w.what, Waits) if (v := self.waited(signal, w)) is not None]
            first = self.begins(signal, 0)
            inits = (self.instance(s, self.by_slot(s, signal)) for s in every if isinstance(s.what, Makes))
            made = (replace(init, where=first) for init in inits)
            seen = tuple(self.instance(wait, values) for wait, values in waits)
            own = [c for c in copies if any(each.of == self.numbers[signal] for each in self.phases(c, arrivals))]
            parcels = [self.parcel([c for c in own if _part(c.site) == part], signal) for part in parts]
            return Turn((*self.before(signal, arrivals), *made), seen, tuple(parcels))
        begun = self.phases(signal, arrivals)
        if not isinstance(signal.what, Brings):
            return Turn(begun)
        around = [self.reading.signals[each.of].site for each in begun[:1]]
        turns = (
            (expr(loop.sym) - signal.site.bounds[loop][0]) // loop.step
            for site in around
            for loop in _turning(signal.site, site)
        )
        return Turn(begun, turn=(expr(parts.index(_part(signal.site))), *turns))

    def phases(self, user: Signal, arrivals: Sequence[Signal]) -> tuple[Instance, ...]:
        """The arrivals for a copy or a wait, the likeliest first."""
        found = [each for s in arrivals for each in (self.begun(user, s), *self.latest(user, s)) if each is not None]
        every = [self.instance(s, values) for _, s, values in sorted(found, key=lambda each: each[0])]
        return tuple(each for each in every if not self.never(user, each))

    def never(self, user: Signal, phase: Instance) -> bool:
        """Whether a signal cannot have this phase: it begins in another arm of a branch, or in a loop without known
        iterations."""
        site = self.reading.signals[phase.of].site
        try:
            return refuted((*user.site.where, there(site, located(site, phase.at, same(user.site), user.site))))
        except ValueError:
            return True

    def parcel(self, copies: Sequence[Signal], arrival: Signal) -> Parcel:
        """The bytes of a phase by some copies, one at each point of a box; unequal copies leave the number open."""
        found, alike = list[Instance](), set[tuple[Expr, ...]]()
        for site, copy in ((copy.site, copy) for copy in copies):
            values, box = _fixed(site, {loop.sym for loop in arrival.site.loops}), list[Expr]()
            for loop, turn in zip(_turning(site, arrival.site), TURNS, strict=False):
                lo, hi = (bound.substitute(values) for bound in site.bounds[loop])
                values[loop.sym] = lo + loop.step * turn
                box.append((hi - lo + loop.step - 1) // loop.step)
            alike.add((copy.bytes.substitute(values), *box))
            found.append(Instance(self.numbers[copy], _at(site, values, own=True)))
        bytes, *box = alike.pop() if len(alike) == 1 else (ZERO, expr(Sym("open")))
        return Parcel(tuple(found), tuple(box) if copies else (ZERO,), bytes)

    def instance(self, signal: Signal, values: Values) -> Instance:
        return Instance(self.numbers[signal], _at(signal.site, values))

    def begun(self, user: Signal, arrival: Signal) -> tuple[tuple[int, int], Signal, Values] | None:
        """The arrival for a copy or a wait: the latest, in as many common loops as possible."""
        common = _common(user.site, arrival.site)
        first = isinstance(user.what, Brings) or _precedes(arrival.site, user.site)
        for turns in range(0 if first else 1, FAR if common else 1):
            values = _shifted(common, -turns)
            if _slot(arrival, values) is _slot(user, {}):
                return (-len(common), turns), arrival, values
        if len(common) < len(arrival.site.loops):
            return (-len(common), FAR), arrival, {**self.by_slot(arrival, user), **_shifted(common, 0 if first else -1)}
        return None

    def latest(self, user: Signal, arrival: Signal) -> Iterator[tuple[tuple[int, int], Signal, Values]]:
        """The arrivals in the last turns of loops behind which a wait stands."""
        common = _common(user.site, arrival.site)
        if isinstance(user.what, Waits) and isinstance(arrival.what, Commits) and _is_behind(user.site, arrival.site):
            every = _last(arrival.site, common, _shifted(common, 0))
            yield from (((-len(common), FAR + 1 + tests), arrival, values) for tests, values in every)

    def waited(self, arrival: Signal, wait: Signal) -> Values | None:
        """The wait for an arrival."""
        common = _common(arrival.site, wait.site)
        first = _precedes(arrival.site, wait.site)
        for turns in range(0 if first else 1, FAR if common else 1):
            values = {**_first(wait.site, common), **_shifted(common, turns)}
            if _slot(wait, values) is _slot(arrival, {}):
                return values
        if isinstance(arrival.what, Commits) and _is_behind(wait.site, arrival.site):
            return _shifted(common, 0)
        if len(common) < len(wait.site.loops):
            return {**self.by_slot(wait, arrival), **_shifted(common, 0 if first else 1)}
        return None

    def by_slot(self, target: Signal, user: Signal) -> Values:
        """The loop indices of a signal, by the subscript of its barrier."""
        which = Sym("which barrier")
        found = inverse(target.site, {which: _slot(target, {})})
        values = dict(zip(target.site.dims, found, strict=True))
        return {loop.sym: values[loop.sym].substitute({which: _slot(user, {})}) for loop in target.site.loops}

    def begins(self, arrival: Signal, depth: int) -> tuple[Expr, ...]:
        """An arrival in the first iterations of its inner loops."""
        inner = [loop for loop in arrival.site.loops[depth:] if loop.sym not in _slot(arrival, {}).syms()]
        first = {loop.sym: next(_bounds(arrival.site, loop.sym, 1), arrival.site.bounds[loop][0]) for loop in inner}
        return tuple(first.get(s, expr(s)) for s in arrival.site.dims) if inner else ()

    def before(self, arrival: Signal, arrivals: Sequence[Signal]) -> Iterator[Instance]:
        """The candidate predecessors of an arrival, latest first: by iterations of an inner loop, then of outer ones."""
        found: list[tuple[int, int, int, Signal, Values]] = []
        for other in arrivals:
            common, period = _common(arrival.site, other.site), 1
            earlier = other is not arrival and _precedes(other.site, arrival.site)
            for turns in range(0 if earlier else 1, FAR if common else 1):
                every = _last(other.site, common, _shifted(common, -turns))
                fitting = [values for _, values in every if _slot(other, values) is _slot(arrival, {})]
                found += [(-len(common), turns, 0, other, values) for values in fitting]
                if fitting and turns:
                    period = turns
                    break
            for depth in range(len(common) - 1, 0, -1):
                last = _last(other.site, common[:depth], _shifted(common[:depth], -1), {common[-1]: period})
                # an arrival in another arm of a branch may come after the iterations that the test leaves of the loop
                found += [(-depth, 1, tests if len(arrivals) > 1 else 0, other, values) for tests, values in last]
        for depth, _, _, other, values in sorted(found, key=lambda each: each[:3]):
            yield replace(self.instance(other, values), where=self.begins(arrival, -depth))


def _ends(event: Event, reading: Reading, kinds: Mapping[str, Space]) -> Iterator[End]:
    if event.signal is not None:
        return
    if event.kind != "async":
        for kind, space in kinds.items():
            yield from dict.fromkeys(_fences(event, reading, kind, space))
        return
    for number, signal in enumerate(reading.signals):
        if isinstance(signal.what, Commits) and signal.what.group is event.group:
            commits = (End(Instance(number, _at(signal.site, found))) for found in _next(event.site, signal.site))
            yield from (end for end in commits if signal.site.launch is event.site.launch)
    for number, step in enumerate(reading.steps):
        if step.site.launch is event.site.launch and isinstance(step.what, Awaits) and step.what.group is event.group:
            yield from _waited(event.site, number, step.what, reading)


def _fences(event: Event, reading: Reading, kind: str, space: Space) -> Iterator[End]:
    """The next fence of a kind behind what an event touches of some memory, wherever that is read."""
    places = [(event.target, event.site)] if isinstance(event.target, Load) else []
    values = [(event.value, event.site), *event.site.tests]
    for value, site in values:  # grows by the values of registers
        places += [(load, site) for load, _ in read_by(value, site)]
        named = (reading.variables.get(ref.sym) for ref in walk(value) if isinstance(ref, Ref))
        values += [(v.value, v.site) for v in named if v is not None and v.value is not None]
    sites = {at.time: at for load, at in places if reading.spaces.get(load.buffer) is space}
    for site in sites.values():
        for number, step in enumerate(reading.steps):
            if _is_fence(step, kind):
                yield from (End(Instance(number, _at(step.site, found))) for found in _next(site, step.site))
            if _is_fence(step, kind) and kind == REGISTERS:  # which may stand in a test that leaves out the first turns
                yield from (End(Instance(number, _at(step.site, found))) for found in _entering(site, step.site))


def _is_fence(step: Step, kind: str) -> bool:
    return isinstance(step.what, Fences) and step.what.kind == kind


def _next(a: Site, b: Site) -> Iterator[Values]:
    """The candidate instances of `b` that follow one of `a`: in this iteration, in the next, in those of outer loops."""
    common = _common(a, b)
    if b.launch is not a.launch:
        return
    if _precedes(a, b):
        yield {**_first(b, common), **_shifted(common, 0)}
        if {*flat(b.domain)} <= {*flat(a.domain)}:
            return  # it is executed wherever `a` is
    for outer in (common[:depth] for depth in range(len(common), 0, -1)):
        yield {**_first(b, outer), **_shifted(outer, _taken(a, b, outer, 1))}


def _entering(a: Site, b: Site) -> Iterator[Values]:
    """The first instance of `b` in loops behind `a`, or in those that an outer loop enters anew, of those turns that a test
    around it leaves."""
    common = _common(a, b)
    if b.launch is not a.launch:
        return
    behind = [(len(common), 0)] if _precedes(a, b) else []
    for depth, turns in (*behind, *((depth, _taken(a, b, common[:depth], 1)) for depth in range(len(common), 0, -1))):
        if inner := b.loops[depth:]:
            first = {loop.sym: next(_bounds(b, loop.sym, 1), b.bounds[loop][0]) for loop in inner}
            yield {**_shifted(common[:depth], turns), **first}


def _waited(copy: Site, number: int, what: Awaits, reading: Reading) -> Iterator[End]:
    """The waits after which a copy is complete: in the iteration by which enough groups are closed in between; or, where that
    would be behind the last one of its loop, in the next ones of outer loops, as a store is waited for where its memory is
    written again. (What is brought is read in the same loop.)"""
    wait, pending = reading.steps[number].site, what.pending
    common = _common(copy, wait)
    closing = ((at, step.site) for at, step in enumerate(reading.steps) if step.what == Closes(what.group))
    every = [(at, site) for at, site in closing if site.launch is copy.launch]
    fitting = [(at, site) for at, site in every if len(_common(copy, site)) == len(site.loops)]
    groups: list[tuple[int, int, Site]] = []
    for turns in range(FAR if common else 1):
        for at, site in fitting:
            if _precedes(copy, site) if not turns else len(site.loops) == len(common):
                groups.append((turns, at, site))
        if len(groups) > pending:
            break
    if len(groups) <= pending:
        entered = None if common else _entered(number, [at for _, at, _ in groups], pending, reading, every)
        yield from () if entered is None else (entered,)
        return
    last, _, site = groups[pending]
    after = last if _precedes(site, wait) else last + 1
    if after and not common:
        return
    after = _taken(copy, wait, common, after)
    said = tuple(Instance(at, _at(site, _shifted(common, turns))) for turns, at, site in groups[: pending + 1])
    yield End(Instance(number, _at(wait, {**_first(wait, common), **_shifted(common, after)})), said)
    for outer in (common[:depth] for depth in range(len(common) - 1, 0, -1) if after and not last and what.read):
        later = _shifted(outer, _taken(copy, wait, outer, 1))
        yield End(Instance(number, _at(wait, {**_first(wait, outer), **later})), said)


def _entered(
    number: int, before: Sequence[int], pending: int, reading: Reading, every: Iterable[tuple[int, Site]]
) -> End | None:
    """A wait in a loop after which a copy before the loop is complete: groups of the loop's first iterations are counted,
    too."""
    wait = reading.steps[number].site
    inside = [(at, site) for at, site in every if site.loops == wait.loops]
    if len(wait.loops) != 1 or not inside:
        return None
    (loop,) = wait.loops
    turns, left = divmod(pending - len(before), len(inside))
    ended = [(turn, at) for turn in range(turns + 1) for at, _ in inside][: pending + 1 - len(before)]
    turns += not _precedes(inside[left][1], wait)

    def turn(which: int) -> Values:
        return {loop.sym: wait.bounds[loop][0] + loop.step * which}

    outer = (Instance(at, _at(reading.steps[at].site, {})) for at in before)
    inner = (Instance(at, _at(reading.steps[at].site, turn(which))) for which, at in ended)
    return End(Instance(number, _at(wait, turn(turns))), (*outer, *inner))


def _common(a: Site, b: Site) -> tuple[k.For, ...]:
    return tuple(x for x, _ in takewhile(lambda pair: pair[0] is pair[1], zip(a.loops, b.loops, strict=False)))


def _precedes(a: Site, b: Site) -> bool:
    """Whether `a` precedes `b` in the text."""
    for (one, at), (other, to) in zip(a.path, b.path, strict=False):
        if one is not other or at != to:
            return one is other and at < to
    return False


def _is_behind(a: Site, b: Site) -> bool:
    """Whether `a` is behind loops that `b` is in, in no others."""
    return len(_common(a, b)) == len(a.loops) < len(b.loops) and _precedes(b, a)


def _shifted(common: Sequence[k.For], turns: int) -> Values:
    values = {loop.sym: expr(loop.sym) for loop in common}
    return values | {loop.sym: expr(loop.sym) + loop.step * turns for loop in common[-1:]}


def _taken(a: Site, b: Site, common: Sequence[k.For], turns: int) -> int:
    """The least number of turns, from this one on, after which the thread of `a` is at `b` again, where threads of a role take
    the turns of a loop in groups; as it is where they do not."""
    threads, loop = {*b.launch.threads}, common[-1] if common and b.role is not None else None
    facts = [f for f in flat(b.domain) if loop and isinstance(f, Eq) and loop.sym in f.expr.syms() and threads & f.expr.syms()]
    for later in range(turns, FAR if facts and loop else turns):
        if loop and not refuted((*a.where, *(rename(f, {loop.sym: expr(loop.sym) + loop.step * later}) for f in facts))):
            return later
    return turns


def _first(site: Site, common: Sequence[k.For]) -> Values:
    """The first iterations of the loops that are not common."""
    return {loop.sym: site.bounds[loop][0] for loop in site.loops[len(common) :]}


def _last(
    site: Site, common: Sequence[k.For], outer: Values, periods: Mapping[k.For, int] | None = None
) -> list[tuple[int, dict[Sym, Expr]]]:
    """The last iterations of the loops that are not common, by each bound, in the iterations `outer` of the common loops; some
    are multiples of a period from this one. Each has the number of loops whose end a test determines."""
    every: list[tuple[int, dict[Sym, Expr]]] = [(0, {**outer})]
    for loop in site.loops[len(common) :]:
        lo, hi = site.bounds[loop]
        period = loop.step * (periods or {}).get(loop, 1)
        ends, more = dict.fromkeys((*_bounds(site, loop.sym), hi)), list[tuple[int, dict[Sym, Expr]]]()
        for end, (tests, values) in product(ends, every):
            start = expr(loop.sym) if loop in (periods or {}) else lo.substitute(values)
            last = start + (end.substitute(values) - 1 - start) // period * period
            more.append((tests + (end is not hi), {**values, loop.sym: last}))
        every = more
    return every


def _bounds(site: Site, sym: Sym, sign: int = -1) -> Iterator[Expr]:
    """Upper bounds of an index by tests, or with 1 lower ones; the range of its loop comes last."""
    for fact in reversed(list(flat(site.domain))):
        left, signs = (fact.expr, (1, -1) if isinstance(fact, Eq) else (sign,)) if isinstance(fact, Ge | Eq) else (ZERO, ())
        for own in (c for monomial, c in left.terms if monomial == (sym,) and c in signs):
            end = (expr(sym) * own - left) * own
            if sym not in end.syms():
                yield end if sign == 1 else end + 1


def _slot(signal: Signal, values: Values) -> Expr:
    return signal.barrier.index[0].substitute(values)


def _at(site: Site, values: Values, own: bool = False) -> tuple[Expr, ...]:
    """Coordinates: threads where a test selects one, and loops by `values`, or unchanged."""
    fixed = {} if own else _fixed(site, ())
    threads = [fixed.get(s, expr(s)) for s in site.launch.threads]
    return (*threads, *(values.get(loop.sym, expr(loop.sym)) for loop in site.loops))


def _fixed(site: Site, but: Sequence[Sym] | set[Sym]) -> dict[Sym, Expr]:
    """Coordinates for which a test leaves one value."""
    found: dict[Sym, Expr] = {}
    for fact in flat(site.domain):
        own = {s for s in syms(fact) if s not in but}
        if len(syms(fact)) == 1 and own:
            (sym,) = own
            ends = next((site.bounds[loop] for loop in site.loops if loop.sym == sym), None)
            if (
                isinstance(fact, Eq)
                and sym in site.launch.threads
                and (fact.expr - fact.expr.constant) in (expr(sym), -expr(sym))
            ):
                found[sym] = expr(-fact.expr.constant * fact.expr.terms[0][1])
            elif ends is not None and all(e.is_constant for e in ends):
                left = [n for n in range(ends[0].constant, ends[1].constant) if holds(fact, {sym: n})]
                if len(left) == 1:
                    found[sym] = expr(left[0])
    return found


def _brings(stmt: k.Operation, site: Site) -> bool:
    """Whether it is a copy whose bytes a barrier counts."""
    return isinstance(stmt.completion({map.name: map for map in site.launch.kernel.maps}), Brings)


def _turning(copy: Site, arrival: Site) -> list[k.For]:
    """The loops over copies of one phase."""
    around = {loop.sym for loop in arrival.loops}
    fixed = _fixed(copy, around)
    return [loop for loop in copy.loops if loop.sym not in around and loop.sym not in fixed]


def _part(site: Site) -> tuple[object, ...]:
    """The position of a copy, with the arms of one branch identified; a branch in an arm is represented by its first test."""
    found: list[object] = []
    for at, (block, place) in enumerate(site.path):
        above, around = (site.path[up - 1][0][site.path[up - 1][1]] if up > 0 else None for up in (at, at - 1))
        copies = sum(isinstance(s, k.If | k.For) or _brings(s, site) for s in block[:place])
        if copies or not (isinstance(above, k.If) and isinstance(around, k.If)):
            found.extend((id(above), copies) if isinstance(above, k.If) else (id(block), place))
    return tuple(found)
