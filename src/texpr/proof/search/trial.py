"""Trials: where a proof is undecided, some elements of the results are evaluated symbolically at small sizes, on both sides.

The operands of an element are traced back, write by write, from the result to the inputs: in the program, and in the kernels in
textual order, all threads in lockstep, in ascending or descending order, with copies complete at once. These are possible
orders of execution. So where the program's element has other operands, the kernels are wrong, whatever their tags are. Where
both have the same operands nothing is decided: operations are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Number, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.proof import Obligation, Verdict
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.isa.levels import Level
from texpr.presburger.formula import Eq, Formula, Ge, between, conj, disj, holds, negate, rename, syms
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.presburger.questions import Point, witness
from texpr.presburger.solve.first import Ends, Space, Unclear
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import relaxed
from texpr.proof.plan import Question
from texpr.proof.plan.flow import Flow, Home
from texpr.proof.plan.match import home_of
from texpr.proof.read.actions import Program
from texpr.proof.read.conditions import test
from texpr.proof.read.events import Site, in_arms
from texpr.support.limits import LARGEST_INT
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import NOWHERE

MOST = 40000
"""The greatest number of queries about one plan."""

LEAST = (1, 2, 20, 5, 40)
"""The lower bounds of sizes that are tried: one, two, some, and several tiles. Each has its share of the queries."""

LAST = LARGEST_INT + 1
"""A number greater than any trip count."""

_PLACES = tuple(Sym(f"place {at}") for at in range(64))
"""Symbols for the subscripts of a written element."""

WAYS = 6
"""The number of elements of each result."""

PRODUCTS = ("mul", "div")
"""Operations whose operands form one term. For other operations the operands are alternatives."""

Numbers: TypeAlias = Mapping[Sym, int]
Time: TypeAlias = tuple["int | Expr", ...]
"""Textual positions and loop indices of a statement, followed by blocks and threads."""

Term: TypeAlias = tuple[str, ...]
"""The factors of a product, as text; undefined ones are in brackets. The result of a maximum or minimum is a different term."""


class Made(Record):
    """The terms of a value; or its number."""

    of: frozenset[Term] = frozenset()
    number: float | None = None


class Stand(Record, eq=False):
    """A program point: its time, over coordinates `dims`. `whose`: the coordinates that select the instance of a memory."""

    line: int
    time: Time
    dims: tuple[Sym, ...]
    whose: Callable[[Home], tuple[Sym, ...]]
    site: Site | None = None


class Writer(Record, eq=False):
    """A write to one element or variable."""

    stand: Stand
    where: tuple[Formula, ...]
    target: Load | Ref
    value: Value
    tests: tuple[Value, ...]
    stmt: object


class Common(Mutable):
    """Shared by both sides, at some sizes: the remaining queries, and names of sums."""

    left: int = MOST // len(LEAST)
    sums: dict[frozenset[Term], str] = field(default_factory=dict[frozenset["Term"], str])


class Side(Mutable):
    """The program, or the kernels, at some sizes. `meaning`: the value of a named integer."""

    writers: Sequence[Writer]
    meaning: Callable[[Sym], tuple[Value, Stand] | None]
    sizes: Numbers
    common: Common
    known: dict[tuple[object, ...], Made] = field(default_factory=dict[tuple[object, ...], "Made"])
    readers: dict[Term, str] = field(default_factory=dict["Term", str])
    homes: dict[Home, Sequence[Writer]] = field(default_factory=dict["Home", Sequence["Writer"]])
    spaces: dict[Writer, Space | None] = field(default_factory=dict["Writer", "Space | None"])

    def made(self, value: Value, stand: Stand, at: Numbers) -> Made:
        """The terms of `value`. Raises Undecided."""
        match value:
            case Literal(number):
                return Made(number=float(number))
            case Index(index):
                return Made(number=index.evaluate(at))
            case Cast():
                return self.made(value.arg, stand, at)
            case Load():
                return self.read(value, stand, at)
            case Ref():
                found = self.meaning(value.sym)
                return self.read(value, stand, at) if found is None else self.made(*found, at)
            case Op("select", (asked, *arms)) if (fact := test(asked)) is not None:
                return self.made(arms[0] if holds(fact, at) else arms[1], stand, at)
            case Op():
                parts = list[Made]()
                for arg in value.args:  # few nested calls: a sum is as deep as it is long
                    parts.append(self.read(arg, stand, at) if isinstance(arg, Load) else self.made(arg, stand, at))
                if value.name == "mul" and any(part.number == 0 for part in parts):
                    return Made(number=0)
                parts += [self.term((value.name,), stand, at)] if value.name in ("max", "min") else []
                return self.multiplied(parts, stand, at) if value.name in PRODUCTS else _joined(parts)

    def multiplied(self, parts: Sequence[Made], stand: Stand, at: Numbers) -> Made:
        """The product of values that are no numbers; a sum in it gets a name."""
        factors = [each for each in parts if each.of]
        if len(factors) < 2:
            return _joined(factors)
        found: list[str] = []
        for each in factors:
            (one, *more) = each.of
            found += [self.common.sums.setdefault(each.of, f"sum {len(self.common.sums)}")] if more else one
        return self.term(tuple(sorted(found)), stand, at)

    def term(self, term: Term, stand: Stand, at: Numbers) -> Made:
        """A term by itself, with the first point that uses it."""
        self.readers.setdefault(term, f"line {stand.line}{_told(at, stand.dims)}")
        return Made(frozenset((term,)))

    def read(self, place: Load | Ref, stand: Stand, at: Numbers) -> Made:
        """The contents of `place` just before the point. Raises Undecided."""
        home, index = home_of(place), tuple[int, ...]()
        if isinstance(place, Load):
            data = {sym: self.made(meaning, stand, at).number for sym, meaning in place.data}
            if None in data.values():
                raise Undecided("data says which element it is")
            index = tuple(e.evaluate({**at, **{sym: int(n or 0) for sym, n in data.items()}}) for e in place.index)
        found = self.last(home, index, stand, at)
        if found is None:
            given = isinstance(home, Buffer) and home.role in ("input", "inout")
            name = home.name.split("#")[0] + (f"[{', '.join(map(str, index))}]" if index else "")
            return self.term((name if given else f"[{name}]",), stand, at)
        writer, there = found
        key = (writer, *there.values())
        if key not in self.known:
            plain, there = not writer.tests and not _masks(writer.stmt), {**self.sizes, **there}
            self.known[key] = self.made(writer.value, writer.stand, there) if plain else self.written(writer, there)
        return self.known[key]

    def written(self, writer: Writer, at: Numbers) -> Made:
        """The value of a write; if it depends on data whether it executes, also the previous contents. Raises Undecided."""
        stmt, site = writer.stmt, writer.stand.site
        if (masks := _masks(stmt)) and site is not None:
            lanes = (_lane(site, site.launch.thread.evaluate(at) ^ mask) for mask in masks)
            made = [self.made(writer.value, writer.stand, {**at, **lane}) for lane in lanes]
            return made[0] if len(made) == 1 else _joined(made)
        found = self.made(writer.value, writer.stand, at)
        if not writer.tests:
            return found
        asked = (self.made(each, writer.stand, at) for each in writer.tests)
        before = self.read(writer.target, writer.stand, at)
        before = replace(before, of=frozenset(t for t in before.of if not t[0].startswith("[")))  # a test guards these
        return _joined((found, before, *asked))

    def last(self, home: Home, index: Sequence[int], stand: Stand, at: Numbers) -> tuple[Writer, Numbers] | None:
        """The last write to a place before the point. Raises Undecided."""
        own, end, best, latest = [at[s] for s in stand.whose(home)], _time(stand, at), None, tuple[int, ...]()
        for writer in self.writing(home):
            mark = writer.stand.whose(home)
            if isinstance(writer.target, Load) and writer.target.data:
                raise Undecided("data says which element it is")
            self.common.left -= 1
            if self.common.left < 0:
                raise Undecided("too much for a trial")
            try:
                found = self.soon(writer, index, dict(zip(mark, own, strict=True)), end)
            except Unclear:
                found = self.late(writer, index, dict(zip(mark, own, strict=True)), end)
            if found is None:
                continue
            if _in_arms(writer.stand.site, stand.site, mark):
                raise Undecided("arms of a branch, of which one may wait for the other")
            if best is None or _time(writer.stand, found) > latest:
                best, latest = (writer, found), _time(writer.stand, found)
        return best

    def writing(self, home: Home) -> Sequence[Writer]:
        """The writes to a memory."""
        if home not in self.homes:
            self.homes[home] = [each for each in self.writers if home_of(each.target) == home]
        return self.homes[home]

    def soon(self, writer: Writer, index: Sequence[int], own: Numbers, end: Sequence[int]) -> Numbers | None:
        """The last instance of a write to this place, in this instance of its memory, before this time. Raises Unclear."""
        if writer not in self.spaces:
            self.spaces[writer] = _space(writer, self.sizes)
        space = self.spaces[writer]
        if space is None:
            raise Unclear
        numbers = space.numbers
        fixed = [(numbers[s], n) for s, n in own.items()]
        ends = space.at([*fixed, *((numbers[_PLACES[at]], n) for at, n in enumerate(index))])
        if ends is None:
            return None
        dims = list(zip(numbers, space.upward, *ends, strict=False))
        if any(least < 0 if upward else most > LAST for _, upward, least, most in dims):
            raise Unclear
        for case in reversed([*_cases(writer.stand.time, end, numbers)]):  # a longer common prefix of the time is later
            found = _within(space, ends, case)
            if found is not None:
                return dict(zip(numbers, found, strict=False))
        return None

    def late(self, writer: Writer, index: Sequence[int], own: Numbers, end: Sequence[int]) -> Numbers | None:
        """The same by a solver. Raises Undecided."""
        names = dict[Sym, Expr]()
        for sym, upward in _upward(writer.stand).items():
            name = expr(Sym(f"{sym.name}↓"))  # the nearest to 0 is the last
            names[sym] = name if upward else LAST - name
        values = {**self.sizes, **names}
        places = writer.target.index if isinstance(writer.target, Load) else ()
        facts = [Eq(e.substitute(values) - n) for e, n in zip(places, index, strict=True)]
        facts += [Eq(names[s] - n) for s, n in own.items()]
        facts += [rename(f, values) for f in writer.where]
        facts.append(disj(_before([e if isinstance(e, int) else e.substitute(names) for e in writer.stand.time], end)))
        if refuted(facts):
            return None
        if any(isinstance(sym, Number) for fact in facts for sym in syms(fact)):
            raise Undecided("data says whether it is written")
        dims = [next(iter(e.syms())) for e in names.values()]
        point = Set.of(dims, relaxed(conj(facts))).sample()
        return None if point is None else {s: e.evaluate(point) for s, e in names.items()}


def _upward(stand: Stand) -> dict[Sym, bool]:
    """The coordinates in a time, with whether the least value of each is the last."""
    return {sym: e - sym is not ZERO for e in stand.time if not isinstance(e, int) for sym in e.syms()}


def _space(writer: Writer, sizes: Numbers) -> Space | None:
    """The domain of a write, and its places."""
    places = writer.target.index if isinstance(writer.target, Load) else ()
    marks = _PLACES[: len(places)]
    upward = _upward(writer.stand)
    values = {sym: n for sym, n in sizes.items() if sym not in upward}
    facts = [rename(f, values) for f in writer.where]
    facts += [Eq(e.substitute(values) - mark) for e, mark in zip(places, marks, strict=True)]
    return Space.of(upward, facts, marks)


def _cases(
    time: Sequence[int | Expr], end: Sequence[int], numbers: Mapping[Sym, int]
) -> Iterator[tuple[tuple[int, int, bool], ...]]:
    """`_before` with numbers: coordinates with one value, and finally one that is less than another."""
    same: list[tuple[int, int, bool]] = []
    for x, y in zip(time, end, strict=False):
        if isinstance(x, int):
            if x != y:
                if x < y:
                    yield tuple(same)
                return
            continue
        sym = next(iter(x.syms()))
        forward = x - sym is ZERO
        yield (*same, (numbers[sym], y - 1 if forward else 1 - y, True))
        same.append((numbers[sym], y if forward else -y, False))


def _within(space: Space, ends: tuple[Ends, Ends], case: Sequence[tuple[int, int, bool]]) -> tuple[int, ...] | None:
    """The first point of a case. Raises Unclear."""
    least, most = ends[0].copy(), ends[1].copy()
    for number, value, beyond in case:
        upward = space.upward[number]
        if not beyond or upward:
            least[number] = max(least[number], value)
        if not beyond or not upward:
            most[number] = min(most[number], value)
        if least[number] > most[number]:
            return None
    return space.first(least, most)


def trials(asked: Question) -> Iterator[Obligation]:
    """The first element whose operands in the kernels differ from those in the program, or that is out of bounds."""
    function = asked.program.function
    results = (*function.results, *(b for b in function.params if b.role == "inout"))
    if asked.reading.strange:  # an opaque statement may be the missing write
        return
    events, names = asked.reading.events, (v for v in asked.reading.variables.values() if v.value is not None)
    touched = [(at, e.site, e.span) for e in events for at in ((e.target, ()), *_read(e.value))]
    touched += [(at, v.site, NOWHERE) for v in names if v.value is not None for at in _read(v.value)]
    for (place, facts), site, span in touched:
        if (point := _outside(place, (*site.where, *facts), asked)) is not None and not site.tests:
            about, how = _name(place), _told(point, tuple(point), "not at")
            yield Obligation(site.launch.kernel.name, "in bounds", about, Verdict.REFUSED, how, span)
            return
    sides = dict[tuple[int, int], tuple[Side, Side]]()
    tried = {least: sizes for least in LEAST if (sizes := _sizes(asked, least)) is not None}
    for least, sizes in tried.items():
        common = Common()
        theirs = _program(asked.program, sizes, common)
        for turn in (1, -1):
            sides[least, turn] = _kernels(asked, sizes, turn, common), theirs
    for way, result, key in product(range(WAYS), results, sides):
        left, right = sides[key]
        place, end = _element(result, way, left.sizes), Stand(0, (1 << 30,), (), lambda _: ())
        try:
            mine, theirs = (side.read(place, end, side.sizes).of for side in (left, right)) if place else (None, None)
        except (Undecided, NotAffine, ValueError, KeyError, RecursionError):
            continue
        if place is not None and mine is not None and theirs is not None and mine != theirs:
            how = _differing(left, right, mine, theirs)
            yield Obligation("", "a result is right", _name(place), Verdict.REFUSED, how, function.span)
            return


def _read(value: Value, facts: tuple[Formula, ...] = ()) -> Iterator[tuple[Load | Ref, tuple[Formula, ...]]]:
    """The places that a value always reads, each with the conditions."""
    match value:
        case Load() | Ref():
            yield value, facts
        case Cast():
            yield from _read(value.arg, facts)
        case Op("select", (asked, *arms)):
            yield from _read(asked, facts)
            fact = test(asked)
            for arm, taken in zip(arms, (fact, negate(fact)), strict=True) if fact is not None else ():
                yield from _read(arm, (*facts, taken))
        case Op():
            for arg in value.args:
                yield from _read(arg, facts)
        case _:
            return


def _outside(place: Load | Ref, where: Sequence[Formula], asked: Question) -> Point | None:
    """An access out of bounds of program memory or of an array."""
    if not isinstance(place, Load) or place.data:
        return None
    inside = conj(between(0, e, n) for e, n in zip(place.index, place.buffer.shape, strict=True))
    try:
        return witness((*where, negate(inside)), asked.premises)
    except (Undecided, NotAffine):
        return None


def _differing(left: Side, right: Side, mine: frozenset[Term], theirs: frozenset[Term]) -> str:
    """The operands of an element that only the kernels have; else those that only the program has."""
    parts: list[str] = []
    for what, side, terms in (("the kernels make it", left, mine - theirs), ("the program makes it", right, theirs - mine)):
        term = min(terms, default=())
        parts.append(f"{what} of {' * '.join(term)}, by {side.readers[term]}" if term else f"{what} of nothing else")
    return f"{'; '.join(parts)}{_told(left.sizes, tuple(left.sizes), ', where')}"


def _kernels(asked: Question, sizes: Numbers, turn: int, common: Common) -> Side:
    """The kernels at some sizes, with blocks and threads in this order."""
    flow = Flow(asked.program, asked.reading, asked.premises)

    def stand(site: Site, line: int) -> Stand:
        launch = site.launch
        steps = (s if isinstance(s, int) else expr(s.sym) for s in (*launch.time, *site.time))
        time = (*steps, *(expr(s) * turn for s in (*launch.blocks, *launch.threads)))
        return Stand(line, time, site.dims, lambda home: flow.instance(home, site), site)

    def meaning(sym: Sym) -> tuple[Value, Stand] | None:
        found = asked.reading.variables.get(sym)
        return None if found is None or found.value is None else (found.value, stand(found.site, 0))

    writers = [
        Writer(stand(e.site, e.span.line), e.site.where, e.target, e.value, tuple(t for t, _ in e.site.tests), e.stmt)
        for e in asked.reading.events
    ]
    return Side(writers, meaning, sizes, common)


def _program(program: Program, sizes: Numbers, common: Common) -> Side:
    """The program at some sizes."""
    stands: dict[object, Stand] = {}
    writers: list[Writer] = []
    for action in program.actions:
        loops = tuple(loop.sym for loop in action.spot.loops)

        def whose(home: Home, loops: tuple[Sym, ...] = loops) -> tuple[Sym, ...]:
            return loops[: program.scopes[home]]

        steps = tuple(s if isinstance(s, int) else expr(s.sym) for s in action.spot.time)
        stands[action.stored] = stand = Stand(action.span.line, steps, loops, whose)
        tests = tuple(asked for asked, _ in action.spot.tests)
        writers.append(Writer(stand, action.spot.domain, action.target, action.value, tests, action.stmt))

    def meaning(sym: Sym) -> tuple[Value, Stand] | None:
        let = program.lets.get(sym)
        return None if let is None else (let.value, stands[sym])

    return Side(writers, meaning, sizes, common)


def _sizes(asked: Question, least: int) -> Numbers | None:
    """Small sizes that are all at least `least` and satisfy the promises."""
    function = asked.program.function
    for most in (least + 3, 2 * least + 8, 1 << 20):
        point = witness([between(least, size, most) for size in function.sizes], asked.premises)
        if point is not None:
            bases = {axis.base for launch in asked.reading.launches for axis in launch.kernel.axes if axis.base is not None}
            return {**{size: point[size] for size in function.sizes}, **dict.fromkeys(bases, 0)}
    return None


def _element(result: Buffer, way: int, sizes: Numbers) -> Load | None:
    """One of some elements of a result: corners, and in between; None if it has none."""
    shape = [e.evaluate(sizes) for e in result.shape]
    last = [n - 1 for n in shape]
    ways = (
        last,
        [n * (at % 2) for at, n in enumerate(last)],
        [n * ((at + 1) % 2) for at, n in enumerate(last)],
        [min(n, at + 1) for at, n in enumerate(last)],
        [n // 2 for n in last],
        [0 for _ in last],
    )
    return Load(result, tuple(map(expr, ways[way]))) if all(n > 0 for n in shape) else None


def _name(place: Load | Ref) -> str:
    return f"{place.buffer.name}[{', '.join(map(str, place.index))}]" if isinstance(place, Load) else place.sym.name


def _joined(parts: Sequence[Made]) -> Made:
    return Made(frozenset[Term]().union(*(part.of for part in parts)))


def _told(at: Numbers, dims: Sequence[Sym], word: str = ", at") -> str:
    return f"{word} {', '.join(f'{s} = {at[s]}' for s in dims)}" if dims else ""


def _time(stand: Stand, at: Numbers) -> tuple[int, ...]:
    return tuple(step if isinstance(step, int) else step.evaluate(at) for step in stand.time)


def _before(time: Sequence[int | Expr], end: Sequence[int]) -> Iterator[Formula]:
    """The condition that a time is before another, case by case."""
    same: list[Formula] = []
    for x, y in zip(time, end, strict=False):
        if isinstance(x, int) and x != y:
            if x < y:
                yield conj(same)
            return
        if not isinstance(x, int):
            yield conj((*same, Ge(y - 1 - x)))
            same.append(Eq(x - y))


def _in_arms(a: Site | None, b: Site | None, mark: Sequence[Sym]) -> bool:
    """Whether two that may be in different threads are in two arms of a branch."""
    return a is not None and b is not None and not {*a.launch.threads} <= {*mark} and in_arms(a, b)


def _lane(site: Site, number: int) -> Numbers:
    """The coordinates of a thread."""
    found: dict[Sym, int] = {}
    for axis in sorted((a for a in site.launch.kernel.axes if a.level is Level.BLOCK), key=lambda axis: axis.dim):
        number, found[axis.sym] = divmod(number, axis.extent.constant)
    return found


def _masks(stmt: object) -> tuple[int, ...]:
    """The xor-differences between a lane and those that its value comes from, for an exchange."""
    return stmt.masks if isinstance(stmt, k.Operation) else ()
