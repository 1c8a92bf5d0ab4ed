"""Numbers at which a kernel is wrong: where a proof stays open, some elements of the results are worked out on both sides.

What an element is made of is followed back, write by write, from the result to what callers give: in the program, and in the
kernels in the order of their text, all threads in step, the first one first, or the last one, and copies landing at once. These
are orders in which they may run. So where the program makes the element of others, the kernels are wrong, whatever their tags
say. Where both make it of the same, nothing is said: what is done with them is not compared.
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
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import NOWHERE

MOST = 12000
"""The most questions that are asked about one plan."""

LEAST = (1, 2, 20, 5, 40)
"""The least sizes that are tried: one of all, two, some, and several tiles. Each has its part of the questions."""

LAST = 1 << 31
"""More turns than there are."""

_PLACES = tuple(Sym(f"place {at}") for at in range(64))
"""Names for the subscripts of what is written."""

WAYS = 6
"""How many elements of each result."""

PRODUCTS = ("mul", "div")
"""Operations whose operands belong together. What else is done with operands makes a value of either."""

Numbers: TypeAlias = Mapping[Sym, int]
Time: TypeAlias = tuple["int | Expr", ...]
"""The places of a statement among its neighbours, and the turns of the loops around, with blocks and threads behind."""

Term: TypeAlias = tuple[str, ...]
"""Elements that are multiplied, as text; what nobody wrote is in brackets. That something is the greatest, or the least, is
another."""


class Made(Record):
    """Of which terms a value is made; or which number it is."""

    of: frozenset[Term] = frozenset()
    number: float | None = None


class Stand(Record, eq=False):
    """Where something stands: its time, over its coordinates `dims`. `whose`: those that say which copy of a memory it sees."""

    line: int
    time: Time
    dims: tuple[Sym, ...]
    whose: Callable[[Home], tuple[Sym, ...]]
    site: Site | None = None


class Writer(Record, eq=False):
    """What writes one element or variable."""

    stand: Stand
    where: tuple[Formula, ...]
    target: Load | Ref
    value: Value
    tests: tuple[Value, ...]
    stmt: object


class Common(Mutable):
    """What both sides have, at some sizes: how many more questions may be asked, and names of sums."""

    left: int = MOST // len(LEAST)
    sums: dict[frozenset[Term], str] = field(default_factory=dict[frozenset["Term"], str])


class Side(Mutable):
    """The program, or the kernels, at some sizes. `meaning`: of a name that stands for a value."""

    writers: Sequence[Writer]
    meaning: Callable[[Sym], tuple[Value, Stand] | None]
    sizes: Numbers
    common: Common
    known: dict[tuple[object, ...], Made] = field(default_factory=dict[tuple[object, ...], "Made"])
    readers: dict[Term, str] = field(default_factory=dict["Term", str])
    homes: dict[Home, Sequence[Writer]] = field(default_factory=dict["Home", Sequence["Writer"]])
    spaces: dict[Writer, Space | None] = field(default_factory=dict["Writer", "Space | None"])

    def made(self, value: Value, stand: Stand, at: Numbers) -> Made:
        """What `value` is made of. Raises Undecided."""
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
                for arg in value.args:  # as few calls as may be: a sum is as deep as it is long
                    parts.append(self.read(arg, stand, at) if isinstance(arg, Load) else self.made(arg, stand, at))
                if value.name == "mul" and any(part.number == 0 for part in parts):
                    return Made(number=0)
                parts += [self.term((value.name,), stand, at)] if value.name in ("max", "min") else []
                return self.multiplied(parts, stand, at) if value.name in PRODUCTS else _joined(parts)

    def multiplied(self, parts: Sequence[Made], stand: Stand, at: Numbers) -> Made:
        """The product of what is no number; a sum in it has a name."""
        factors = [each for each in parts if each.of]
        if len(factors) < 2:
            return _joined(factors)
        found: list[str] = []
        for each in factors:
            (one, *more) = each.of
            found += [self.common.sums.setdefault(each.of, f"sum {len(self.common.sums)}")] if more else one
        return self.term(tuple(sorted(found)), stand, at)

    def term(self, term: Term, stand: Stand, at: Numbers) -> Made:
        """A term by itself, which something at these coordinates takes."""
        self.readers.setdefault(term, f"line {stand.line}{_told(at, stand.dims)}")
        return Made(frozenset((term,)))

    def read(self, place: Load | Ref, stand: Stand, at: Numbers) -> Made:
        """What is where `place` is, just before. Raises Undecided."""
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
        """What a writer puts there; where data decides whether it does, what was there before as well. Raises Undecided."""
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
        before = replace(before, of=frozenset(t for t in before.of if not t[0].startswith("[")))  # then a test keeps it unread
        return _joined((found, before, *asked))

    def last(self, home: Home, index: Sequence[int], stand: Stand, at: Numbers) -> tuple[Writer, Numbers] | None:
        """Who wrote a place last, before something at these coordinates. Raises Undecided."""
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
        """What writes to a memory."""
        if home not in self.homes:
            self.homes[home] = [each for each in self.writers if home_of(each.target) == home]
        return self.homes[home]

    def soon(self, writer: Writer, index: Sequence[int], own: Numbers, end: Sequence[int]) -> Numbers | None:
        """Where a writer is last at this place, in this copy of its memory, before this time. Raises Unclear."""
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
        for case in reversed([*_cases(writer.stand.time, end, numbers)]):  # what shares more of the time is later
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
    """The coordinates in a time, and whether the least value of one is the last."""
    return {sym: e - sym is not ZERO for e in stand.time if not isinstance(e, int) for sym in e.syms()}


def _space(writer: Writer, sizes: Numbers) -> Space | None:
    """Where a writer is, and which places it has there."""
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
    """`_before` with numbers: the coordinates that have one value, and the one that, at last, is before another."""
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
    """Elements that the kernels make of others than the program does, or that there are not; the first that is found."""
    function = asked.program.function
    results = (*function.results, *(b for b in function.params if b.role == "inout"))
    if asked.reading.strange:  # what is not understood may do what seems to be missing
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
        for turn in (1, -1):
            sides[least, turn] = _kernels(asked, sizes, turn, common), _program(asked.program, sizes, common)
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
    """The places that a value surely reads, and where it does."""
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
    """Where something is touched that is no element of memory of the program, or of an array."""
    if not isinstance(place, Load) or place.data:
        return None
    inside = conj(between(0, e, n) for e, n in zip(place.index, place.buffer.shape, strict=True))
    try:
        return witness((*where, negate(inside)), asked.premises)
    except (Undecided, NotAffine):
        return None


def _differing(left: Side, right: Side, mine: frozenset[Term], theirs: frozenset[Term]) -> str:
    """Of what the kernels make an element, and the program does not; and the other way round."""
    parts: list[str] = []
    for what, side, terms in (("the kernels make it", left, mine - theirs), ("the program makes it", right, theirs - mine)):
        term = min(terms, default=())
        parts.append(f"{what} of {' * '.join(term)}, by {side.readers[term]}" if term else f"{what} of nothing else")
    return f"{'; '.join(parts)}{_told(left.sizes, tuple(left.sizes), ', where')}"


def _kernels(asked: Question, sizes: Numbers, turn: int, common: Common) -> Side:
    """What kernels do at some sizes, blocks and threads in this order."""
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
    """What the program does at some sizes."""
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
    """Sizes of which each is at least so much, as few as there are in whole."""
    function = asked.program.function
    for most in (least + 3, 2 * least + 8, 1 << 20):
        point = witness([between(least, size, most) for size in function.sizes], asked.premises)
        if point is not None:
            bases = {axis.base for launch in asked.reading.launches for axis in launch.kernel.axes if axis.base is not None}
            return {**{size: point[size] for size in function.sizes}, **dict.fromkeys(bases, 0)}
    return None


def _element(result: Buffer, way: int, sizes: Numbers) -> Load | None:
    """One of some elements of a result: corners, and in between; None where it has none."""
    shape = [e.evaluate(sizes) for e in result.shape]
    last = [n - 1 for n in shape]
    ways = (
        last,
        [min(n, at + 1) for at, n in enumerate(last)],
        [n * (at % 2) for at, n in enumerate(last)],
        [n * ((at + 1) % 2) for at, n in enumerate(last)],
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
    """When a time is before another, case by case."""
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
    """Whether two that may be of different threads stand in two arms of a branch."""
    return a is not None and b is not None and not {*a.launch.threads} <= {*mark} and in_arms(a, b)


def _lane(site: Site, number: int) -> Numbers:
    """The coordinates of a thread."""
    found: dict[Sym, int] = {}
    for axis in sorted((a for a in site.launch.kernel.axes if a.level is Level.BLOCK), key=lambda axis: axis.dim):
        number, found[axis.sym] = divmod(number, axis.extent.constant)
    return found


def _masks(stmt: object) -> tuple[int, ...]:
    """Where lanes exchange what they hold, by what."""
    return stmt.masks if isinstance(stmt, k.Operation) else ()
