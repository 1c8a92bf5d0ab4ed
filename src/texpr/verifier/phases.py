"""Barriers that count arrivals and bytes, phase by phase: what a wait for a parity waits for.

One thread arrives at a barrier, turn by turn; so its n-th arrival begins phase n, which completes when the bytes that are
expected have come. A wait sees no more than whether the phase that runs has another parity than the one that it names. That is
the phase of the arrival which it is said to wait for, if the parity of arrivals alternates, beginning with 0; if every earlier
phase was seen to complete where it waits; and if no later one begins before it has passed (PTX ISA, "mbarrier").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from texpr.affine.expr import ONE, ZERO, Expr, Mod, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Buffer, Load
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, conj, differ, disj, negate, rename, syms
from texpr.presburger.questions import Point, holds, points, witness
from texpr.presburger.raw import Undecided
from texpr.presburger.relaxed import flat
from texpr.reading.events import Reading, Signal, Site
from texpr.support.span import NOWHERE, Span
from texpr.verifier.asked import Asked
from texpr.verifier.landing import Landing, fences, never_lands, not_landed
from texpr.verifier.order import Sides, domains, equal_all, not_behind, sides_of, textual, unordered


@dataclass(frozen=True, slots=True, eq=False)
class Turns:
    """All that one array of barriers is there for. `arrival`: where, and at which barrier, its one thread arrives; by `arms`,
    of which one is taken. `before`: how many turns of the innermost loop around both ago a wait's arrival was.
    """

    barrier: Buffer
    made: tuple[Signal, ...]
    arrival: Signal
    arms: tuple[Signal, ...]
    copies: tuple[Signal, ...]
    before: Mapping[Signal, int]

    def at(self, wait: Signal, sign: int) -> dict[Sym, Expr]:
        """The loop around a wait whose turns are counted, at the arrival (−1) or, at the arrival, at the wait (1)."""
        common = [loop for loop in wait.site.loops if loop in self.arrival.site.loops]
        shift = self.before[wait] * sign
        return {common[-1].sym: expr(common[-1].sym) + common[-1].step * shift} if common and shift else {}


@dataclass(slots=True)
class Phases:
    """The barriers of a plan. `before`, for each wait: how many turns ago what it waits for was begun; not believed."""

    reading: Reading
    premises: Formula
    before: Sequence[int | None]

    def turns(self, barrier: Buffer, launch: object) -> Turns:
        """The use of a barrier. Raises ValueError where it is not understood."""
        every = [s for s in self.reading.signals if s.barrier.buffer is barrier and s.site.launch is launch]
        arms = tuple(s for s in every if isinstance(s.stmt, k.BarrierExpect | k.BarrierArrive))
        waits = [s for s in self.reading.signals if isinstance(s.stmt, k.BarrierWait)]
        if len(waits) != len(self.before):
            raise ValueError("tags of another plan")
        own = {s: n for s, n in zip(waits, self.before, strict=True) if s in every and n is not None}
        if len(own) != sum(isinstance(s.stmt, k.BarrierWait) for s in every):
            raise ValueError(f"a wait at {barrier.name} for no known phase")
        made = tuple(s for s in every if isinstance(s.stmt, k.BarrierInit))
        copies = tuple(s for s in every if isinstance(s.stmt, k.CopyTensor | k.CopyBulk))
        return Turns(barrier, made, _one(arms), arms, copies, own)

    def landings(self, copy: Site, barrier: Load) -> tuple[Landing, ...]:
        """The waits for the phase that begins in the same turns as `copy`, which brings it bytes."""
        turns = self.turns(barrier.buffer, copy.launch)
        return tuple(
            Landing(wait.site, turns.at(wait, 1), True, ((wait.barrier.index[0], barrier.index[0]),)) for wait in turns.before
        )

    def questions(self) -> Iterator[Asked]:
        """What is to be proved of all barriers."""
        for barrier, launch in dict.fromkeys((s.barrier.buffer, s.site.launch) for s in self.reading.signals):
            own = [s for s in self.reading.signals if s.barrier.buffer is barrier and s.site.launch is launch]
            told = launch.kernel.name, "phases", barrier.name, "", barrier.span
            try:
                yield from self._of(self.turns(barrier, launch))
            except ValueError as why:
                yield told, self.misused, (own, why)

    def misused(self, signals: Sequence[Signal], why: ValueError) -> Point | None:
        """A wait for what nobody begins, or two arrivals in one turn. Raises ValueError, `why`, where there is neither."""
        arms = [s for s in signals if isinstance(s.stmt, k.BarrierExpect | k.BarrierArrive)]
        if not arms:
            return next((p for s in signals if (p := witness(s.site.where, self.premises)) is not None), None)
        for at, one in enumerate(arms):
            for two in arms[at + 1 :]:
                sides = sides_of(one.site, two.site)
                turns = [loop.sym for loop in one.site.loops if loop in two.site.loops]
                facts = (*domains(one.site, two.site, sides), *_home(one, two, sides), *equal_all(turns, sides))
                if (found := witness(facts, self.premises)) is not None:
                    return found
        raise why

    def _of(self, turns: Turns) -> Iterator[Asked]:
        arrival, name, kernel = turns.arrival, turns.barrier.name, turns.arrival.site.launch.kernel.name

        def told(what: str, how: str, signal: Signal = arrival) -> tuple[str, str, str, str, Span]:
            return kernel, what, f"{name}[{signal.barrier.index[0]}]", how, getattr(signal.stmt, "span", NOWHERE)

        yield told("one arrival a phase", "one thread, one at a time"), self.alone, (turns,)
        for copy in turns.copies:
            yield told("bytes come in their phase", "begun by the same turn", copy), self.strays, (turns, copy)
        yield told("bytes of a phase", "as many as are expected"), self.unlike, (turns,)
        for user in (arrival, *turns.copies, *turns.before):
            yield told("a barrier is made", "once, before it is used", user), self.unmade, (turns, user)
        for user in (arrival, *turns.copies):
            yield told("phases begin in turn", "the one before was seen to complete", user), self.overlapping, (turns, user)
            for wait in turns.before:
                yield told("all have passed", "before the next phase begins", user), self.passed_by, (turns, wait, user)
        yield told("a phase is waited for", "before its thread ends"), never_lands, (
            arrival.site, self.landings(arrival.site, arrival.barrier), self.premises,
        )  # fmt: skip
        for wait in turns.before:
            yield told("a wait ends", "its phase was begun before", wait), self.endless, (turns, wait)
            yield told("parity", "that of the phase which is waited for", wait), self.misread, (turns, wait)
            yield told("no wait for a past phase", "the one before was seen to complete", wait), self.early, (turns, wait)

    def alone(self, turns: Turns) -> Point | None:
        """Two threads that arrive in one turn, or a barrier that waits for more arrivals than one."""
        if any(isinstance(s.stmt, k.BarrierInit) and s.stmt.count != 1 for s in turns.made):
            return {Sym(f"arrivals that {turns.barrier.name} waits for"): 2}
        site = turns.arrival.site
        sides = sides_of(site, site)
        here = equal_all([s for s in site.dims if s not in site.launch.threads], sides)
        return witness((*domains(site, site, sides), *here, _differ(site.launch.threads, sides)), self.premises)

    def strays(self, turns: Turns, copy: Signal) -> Point | None:
        """A copy in whose turn nothing arrives at its barrier."""
        site, arrival = copy.site, turns.arrival
        if site.loops[: len(arrival.site.loops)] != arrival.site.loops:
            raise ValueError("an arrival in a loop, and a copy outside of it")
        threads = {s: Sym(f"{s.name}○") for s in site.launch.threads}
        facts = [rename(f, threads) for f in arrival.site.where]
        facts.append(Eq(copy.barrier.index[0] - arrival.barrier.index[0]))
        needed = points(site.dims, site.where, (), self.premises)
        return needed.subtract(points(site.dims, facts, list(threads.values()), self.premises)).sample()

    def unlike(self, turns: Turns) -> Point | None:
        """A turn in which other bytes come than are expected."""
        for arm in turns.arms:
            expected = _expected(arm)
            always, sometimes = ZERO, dict[frozenset[Formula], Expr]()
            for copy in turns.copies:
                extra = self._extra(copy.site, arm.site)
                if extra is None:
                    continue
                if extra:
                    sometimes[extra] = sometimes.get(extra, ZERO) + self._bytes(copy, arm.site)
                else:
                    always += self._bytes(copy, arm.site)
            for extra, found in list(sometimes.items()):
                if extra not in sometimes:
                    continue
                other = next((o for o in sometimes if len(extra) == len(o) == 1 and _complements(*extra, *o)), None)
                if other is None or sometimes.pop(other) is not found:
                    raise ValueError("some bytes come under a test of their own")
                del sometimes[extra]
                always += found
            if always is expected:
                continue
            if not (always.is_constant and expected.is_constant):
                raise ValueError(f"{expected} bytes are expected, and {always} come")
            return {Sym("bytes expected"): expected.constant, Sym("bytes that come"): always.constant}
        return None

    def _bytes(self, copy: Signal, arrival: Site) -> Expr:
        """How many bytes a copy brings in a turn, holes included. Raises ValueError where loops do not say it."""
        stmt, total = copy.stmt, ZERO
        if isinstance(stmt, k.CopyBulk):
            total = expr(stmt.source.dtype.bytes) * (stmt.count if stmt.exactly is None else stmt.exactly)
        elif isinstance(stmt, k.CopyTensor):
            map = next(each for each in copy.site.launch.kernel.maps if each.name == stmt.map)
            total = expr(map.bytes * max(1, len(stmt.rows)))
        for loop in copy.site.loops[len(arrival.loops) :]:
            lo, hi = copy.site.bounds[loop]
            if lo.is_constant and hi.is_constant and loop.step.is_constant:
                total *= len(range(lo.constant, hi.constant, loop.step.constant))
                continue
            if loop.step is not ONE or witness((*arrival.where, Ge(lo - hi - 1)), self.premises) is not None:
                raise ValueError(f"how many bytes come depends on the loop over {loop.sym}")
            total *= hi - lo
        return total

    def _extra(self, copy: Site, arrival: Site) -> frozenset[Formula] | None:
        """What is tested of a copy beyond what is of an arrival; None where there is never such a copy."""
        inner = [loop for loop in copy.loops if loop not in arrival.loops]
        ranges = {f for loop in inner for f in _range(loop, copy)}
        mine, theirs = list(flat(copy.domain)), set(flat(arrival.domain))
        extra = [f for f in mine if f not in theirs and f not in ranges]
        known = [*arrival.where, *ranges]
        if any(holds(known, negate(f), self.premises) for f in extra):
            return None
        return frozenset(f for f in extra if not holds(known, f, self.premises))

    def unmade(self, turns: Turns, user: Signal) -> Point | None:
        """A barrier that is used and was not made before, or that is made twice."""
        site, left = user.site, points(user.site.dims, user.site.where, (), self.premises)
        for made in turns.made:
            names: dict[Sym, Sym | Expr] = {s: Sym(f"{s.name}○") for s in made.site.dims if s not in site.launch.blocks}
            here = [Eq(expr(names[s]) - s) for s in site.launch.host]
            facts = [*(rename(f, names) for f in made.site.where), *here]
            facts.append(Eq(made.barrier.index[0].substitute(names) - user.barrier.index[0]))
            own = [s for s in names.values() if isinstance(s, Sym)]
            left = left.subtract(points(site.dims, facts, own, self.premises))
            known = fences(made.site, "init", self.reading.fences)
            sides = sides_of(made.site, site)
            late = not_landed(made.site, site, known, sides, shared_only=True, later=False)
            found = witness((*domains(made.site, site, sides), *_home(made, user, sides), late), self.premises)
            if found is not None:
                return found
            for again in turns.made:
                pair = sides_of(made.site, again.site)
                apart = _differ(made.site.dims, pair) if again is made else TRUE
                found = witness((*domains(made.site, again.site, pair), *_home(made, again, pair), apart), self.premises)
                if found is not None:
                    return found
        return left.sample()

    def overlapping(self, turns: Turns, user: Signal) -> Point | None:
        """A phase that is begun, or brought bytes, before one begun earlier was seen to complete."""
        arrival = turns.arrival
        sides = sides_of(arrival.site, user.site)
        found = self.landings(arrival.site, arrival.barrier)
        late = not_landed(arrival.site, user.site, found, sides, shared_only=True, later=False)
        facts = (*domains(arrival.site, user.site, sides), *_home(arrival, user, sides), late)
        return witness((*facts, disj(textual(arrival.site, arrival.site, sides))), self.premises)

    def passed_by(self, turns: Turns, wait: Signal, user: Signal) -> Point | None:
        """A phase that is begun before all have passed a wait for an earlier one."""
        sides = sides_of(wait.site, user.site)
        ago = Sides({**sides.left, **{s: sides.a(e) for s, e in turns.at(wait, -1).items()}}, sides.right)
        earlier = textual(turns.arrival.site, turns.arrival.site, ago)
        late = unordered(wait.site, user.site, sides, shared_only=True, private=False, later=False)
        facts = (*domains(wait.site, user.site, sides), *_home(wait, user, sides), disj(earlier), disj(late))
        return witness(facts, self.premises)

    def endless(self, turns: Turns, wait: Signal) -> Point | None:
        """A wait for what never begins, or begins behind it."""
        ago = turns.at(wait, -1)
        site, arrival = wait.site, turns.arrival
        threads = {s: Sym(f"{s.name}○") for s in site.launch.threads}
        names: dict[Sym, Sym | Expr] = {**threads, **ago}
        inner = [loop for loop in arrival.site.loops if loop not in site.loops]
        names |= {loop.sym: Sym(f"{loop.sym.name}○") for loop in inner}
        facts = [rename(f, names) for f in arrival.site.where]
        facts.append(Eq(arrival.barrier.index[0].substitute(names) - wait.barrier.index[0]))
        facts.append(negate(disj(not_behind(arrival.site, site, Sides(names, {}), False))))
        own = [s for s in names.values() if isinstance(s, Sym)]
        needed = points(site.dims, site.where, (), self.premises)
        return needed.subtract(points(site.dims, facts, own, self.premises)).sample()

    def early(self, turns: Turns, wait: Signal) -> Point | None:
        """A wait at which an earlier phase was not seen to complete: it may end by the parity of that."""
        arrival = turns.arrival
        sides = sides_of(arrival.site, wait.site)
        ago = Sides(sides.left, {**sides.right, **{s: sides.b(e) for s, e in turns.at(wait, -1).items()}})
        found = self.landings(arrival.site, arrival.barrier)
        late = not_landed(arrival.site, wait.site, found, sides, shared_only=True, later=False)
        facts = (*domains(arrival.site, wait.site, sides), *_home(arrival, wait, sides), late)
        return witness((*facts, disj(textual(arrival.site, arrival.site, ago))), self.premises)

    def misread(self, turns: Turns, wait: Signal) -> Point | None:
        """An arrival whose parity, as a wait for it has it, is not 0 for the first at a barrier, or that of the one before."""
        assert isinstance(wait.stmt, k.BarrierWait)
        parity, site = wait.stmt.parity.substitute(turns.at(wait, 1)), turns.arrival.site
        slot = turns.arrival.barrier.index[0]
        if parity.syms() & {*wait.site.dims} - {*site.dims}:
            raise ValueError("the parity is one of loops that the arrival is not in")
        if slot.syms().isdisjoint(loop.sym for loop in site.loops) and _is_counted(site, parity):
            return None
        if any(self._is_proved(wrong) for wrong in _around(site, slot, parity)):
            return None
        return self._alternating(site, slot, parity)

    def _is_proved(self, wrong: Sequence[Formula]) -> bool:
        try:
            return witness(wrong, self.premises) is None
        except Undecided:
            return False

    def _alternating(self, site: Site, slot: Expr, parity: Expr) -> Point | None:
        one, two, mid = ({loop.sym: Sym(f"{loop.sym.name}{side}") for loop in site.loops} for side in "◁▷○")
        dims = (*one.values(), *two.values())

        def arrives(names: Mapping[Sym, Sym]) -> list[Formula]:
            return [rename(f, names) for f in site.where]

        def before(x: Mapping[Sym, Sym], y: Mapping[Sym, Sym]) -> list[Formula]:
            return [Eq(slot.substitute(x) - slot.substitute(y)), disj(textual(site, site, Sides(x, y)))]

        rest = [s for s in site.dims if s not in one]
        every, here = (*rest, *dims), (*rest, *one.values())
        pairs = points(every, [*arrives(one), *arrives(two), *before(one, two)], (), self.premises)
        parted = [*arrives(one), *arrives(two), *arrives(mid), *before(one, mid), *before(mid, two)]
        same = Eq(parity.substitute(one) - parity.substitute(two))
        found = pairs.subtract(points(every, parted, list(mid.values()), self.premises)).where(same).sample()
        if found is not None:
            return found
        later = points(here, [*arrives(one), *arrives(mid), *before(mid, one)], list(mid.values()), self.premises)
        odd = points(here, [*arrives(one), negate(Eq(parity.substitute(one)))], (), self.premises)
        return odd.subtract(later).sample()


def _one(arms: Sequence[Signal]) -> Signal:
    """An arrival in one arm or another of a test as one. Raises ValueError."""
    if not arms:
        raise ValueError("nothing arrives at the barrier")
    first, *others = arms
    if not others:
        return first
    if len(others) == 1 and first.site.loops == others[0].site.loops and first.barrier == others[0].barrier:
        mine, theirs = list(flat(first.site.domain)), list(flat(others[0].site.domain))
        common = [f for f in mine if f in theirs]
        one, two = ([f for f in facts if f not in common] for facts in (mine, theirs))
        if _complements(conj(one), conj(two)):
            path, time = first.site.path[:-1], first.site.time[:-2]
            return replace(first, site=replace(first.site, domain=tuple(common), path=path, time=time))
    raise ValueError("several statements arrive at the barrier")


def _complements(one: Formula, two: Formula) -> bool:
    return negate(one) == two or negate(two) == one


def _expected(arrival: Signal) -> Expr:
    """The bytes that a phase waits for."""
    stmt = arrival.stmt
    if not isinstance(stmt, k.BarrierExpect):
        return ZERO
    return expr(stmt.bytes) if stmt.exactly is None else stmt.exactly


def _is_counted(site: Site, parity: Expr) -> bool:
    """Whether it is plain that a parity is 0 in the first turn of all loops, and another one in each next turn.

    Turns of loops whose extents depend on no others are counted as the digits of a number are.
    """
    own = {loop.sym for loop in site.loops}
    ranges = {f for loop in site.loops for f in _range(loop, site)}
    others = {s for f in flat(site.domain) if f not in ranges for s in syms(f)}
    ends = {s for loop in site.loops for e in site.bounds[loop] for s in e.syms()}
    counted = parity.as_atom
    if own & (others | ends) or not isinstance(counted, Mod) or any(loop.step is not ONE for loop in site.loops):
        return False
    first = {loop.sym: site.bounds[loop][0] for loop in site.loops}
    if counted.den is not expr(2) or counted.num.substitute(first) % 2 is not ZERO:
        return False
    inner, last = dict[Sym, Expr](), dict[Sym, Expr]()
    for loop in reversed(site.loops):
        after = counted.num.substitute({**inner, loop.sym: expr(loop.sym) + 1})
        if (after - counted.num.substitute(last)) % 2 is not ONE:
            return False
        lo, hi = site.bounds[loop]
        inner[loop.sym], last[loop.sym] = lo, hi - 1
    return True


def _around(site: Site, slot: Expr, parity: Expr) -> Iterator[list[Formula]]:
    """Where a parity may be wrong for a ring whose slots are filled in turn, again in each turn of loops around.

    By one turn around more, an arrival counts as many more as there are arrivals at its slot in a turn; by as many turns of the
    ring as it has slots, one more. One proof that there is no such point is enough.
    """
    counted, ring = parity.as_atom, slot.as_atom
    if not isinstance(counted, Mod) or counted.den is not expr(2) or not isinstance(ring, Mod) or len(site.loops) < 2:
        return
    *outer, inner = site.loops
    turn, slots, number = expr(inner.sym), ring.den, counted.num
    own = {loop.sym for loop in outer}
    ranges = {f for loop in outer for f in _range(loop, site)}
    inside = [f for f in flat(site.domain) if f not in ranges]
    ends = {s for loop in site.loops for e in site.bounds[loop] for s in e.syms()}
    plain = not ring.num.syms() - {inner.sym} and (ring.num - turn).is_constant and slots.is_constant
    if not plain or own & (ends | {s for f in inside for s in syms(f)}) or any(loop.step is not ONE for loop in site.loops):
        return
    if (number.substitute({inner.sym: turn + slots}) - number) % 2 is not ONE:
        return
    first = {loop.sym: site.bounds[loop][0] for loop in outer}
    begun, last, more = dict[Sym, Expr](), dict[Sym, Expr](), list[Expr]()
    for loop in reversed(outer):
        more.append(number.substitute({**begun, loop.sym: expr(loop.sym) + 1}) - number.substitute(last))
        lo, hi = site.bounds[loop]
        begun[loop.sym], last[loop.sym] = lo, hi - 1
    if any((each - more[0]) % 2 is not ZERO for each in more):
        return

    def runs(at: Expr) -> Formula:
        return conj(rename(f, {inner.sym: at}) for f in inside)

    one, two = Sym("turns"), Sym("turns more")
    gap = (Ge(expr(one) - 1), Ge(expr(two) - 1), negate(runs(turn + slots * one)), runs(turn + slots * one + slots * two))
    for arrivals in (more[0] + 2 * most for most in range(4)):  # the parity says no more than whether they are even
        wrong = [negate(runs(turn + slots * (arrivals - 1))), runs(turn + slots * arrivals), Ge(-arrivals)]
        wrong.append(negate(Eq(number.substitute(first) % 2)))
        yield [*site.where, disj((conj(gap), conj((negate(runs(turn - slots)), disj(wrong)))))]


def _range(loop: k.For, site: Site) -> Iterator[Formula]:
    """The facts that say which turns a loop has."""
    lo, hi = site.bounds[loop]
    yield from flat((between(lo, loop.sym, hi), Ge(expr(loop.sym) - lo), Ge(hi - loop.sym - 1)))
    if loop.step is not ONE:
        yield Eq((expr(loop.sym) - lo) % loop.step)


def _home(a: Signal, b: Signal, sides: Sides) -> Iterator[Formula]:
    """That two instances are of one barrier."""
    yield from equal_all((*a.site.launch.host, *a.site.launch.blocks), sides)
    yield Eq(sides.a(a.barrier.index[0]) - sides.b(b.barrier.index[0]))


def _differ(of: Sequence[Sym], sides: Sides) -> Formula:
    return differ(map(sides.a, of), map(sides.b, of))
