"""The rewrite of a row into one sweep over blocks of keys (`texpr.schedule.directives.online`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads, substitute_block, with_blocks
from texpr.ir.program.rows.factors import NEW, OLD
from texpr.ir.program.rows.keyed import Fault, Row, Turn
from texpr.ir.program.uses import written
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, conjunction
from texpr.ir.value.structure import same
from texpr.ir.value.types import BOOL, I64
from texpr.schedule.sums.rescaled import Added, Terms, added, of_elements, read_by_sums, undivided
from texpr.schedule.tree import Body
from texpr.support.record import Mutable, field, replace

Many = tuple[ir.Loop, ...]


class Sweep(Mutable, eq=False):
    """`row` in blocks of `size` keys, by a loop over `block`. `whole`: all blocks have so many keys. `fresh`: a free name from
    another one."""

    row: Row
    size: int
    block: Sym
    whole: bool
    fresh: Callable[[str], str]
    sums: tuple[Added, ...] = field(init=False)
    scaled: frozenset[Turn] = field(init=False)
    """Turns whose elements are 0 where there is no key: those that depend on the maximum; without one, that sums read."""
    peak: Buffer = field(init=False)
    """The maximum so far, and `now`, what is subtracted instead: the same, or 0 before there is a number."""
    now: Buffer = field(init=False)
    streams: dict[Buffer, Buffer] = field(init=False)
    masked: set[Buffer] = field(default_factory=set[Buffer])

    def __post_init__(self) -> None:
        self.row = undivided(self.row, self.fresh)
        row, top = self.row, self.row.top
        self.sums = added(row)
        old, new = Terms(row, OLD.name), Terms(row, NEW.name)
        if top is None:
            self.scaled = read_by_sums(row, self.sums, old)
            if not self.scaled:
                raise Fault("it makes no maximum of a row, in a `new` of it, and no sum needs what it has of a key", row.lead)
        elif all(each.factor is None for each in self.sums):
            raise Fault("no sum depends on the maximum", row.lead)
        else:
            self.scaled = frozenset(turn for turn, value in old.streams.items() if value != new.streams[turn])
            self.peak, self.now = (replace(top, name=self.fresh(f"{top.name}_{each}")) for each in ("next", "now"))
        self.streams = {stream: self._of_block(stream, at) for stream, at in row.streams.items()}

    def _of_block(self, stream: Buffer, at: int) -> Buffer:
        shape = tuple(expr(self.size) if n == at else each for n, each in enumerate(stream.shape))
        return replace(stream, name=self.fresh(stream.name), shape=shape)

    def body(self) -> Body:
        """The statements of the row."""
        row = self.row
        rest = tuple(new for new in row.news if new.buffer not in row.streams)
        streams = (ir.New(each, span=each.span) for each in self.streams.values())
        turns = map(self.turn, row.turns) if row.top is None or row.at is None else self._peaked(row.top, row.at)
        many = (row.extent + (self.size - 1)) // self.size
        sweep = ir.Seq(self.block, many, (*streams, *turns), span=row.lead.span)
        return (*rest, *row.before, sweep, *self._ended(), *row.after)

    def _peaked(self, buffer: Buffer, at: int) -> Iterator[ir.Stmt]:
        """The turns, and between them what a greater maximum does to sums."""
        turns, factors = self.row.turns, self._factors(buffer)
        top, peak = Load(buffer, ()), Load(self.peak, ())
        single = {made.buffer: self.bind(made, value) for made, value in factors.values()}
        yield from (ir.New(each, span=each.span) for each in (self.peak, self.now, *single))
        yield from (self.turn(each) for each in turns[:at])
        yield self.bind(peak, top)
        yield self.turn(turns[at])
        yield self.bind(Load(self.now, ()), self.select(self.is_least(peak), self.number(0), peak))
        yield from single.values()
        yield self.bind(top, peak)
        yield from self._scaled(factors)
        yield from (self.turn(each) for each in turns[at + 1 :])

    def bind(self, target: Load, value: Value) -> ir.Bind:
        """A statement of the sweep."""
        return ir.Bind((target,), (value,), span=self.row.lead.span)

    def number(self, value: float) -> Literal:
        """A number of the maximum's type."""
        return Literal(float(value), self.peak.dtype)

    def select(self, condition: Value, first: Value, second: Value) -> Value:
        """One of two values."""
        return Op("select", (condition, first, second), second.dtype)

    def is_least(self, value: Value) -> Value:
        """Whether there is no number yet."""
        return Op("eq", (value, self.number(float("-inf"))), BOOL)

    def _factors(self, peak: Buffer) -> dict[Turn, tuple[Load, Value]]:
        """For each sum that depends on the maximum its factor, and that as a value."""
        found, top, now = dict[Turn, tuple[Load, Value]](), Load(peak, ()), Load(self.now, ())
        before = self.select(self.is_least(top), now, top)
        for each in self.sums:
            if each.factor is not None:
                value = _with(each.factor, {OLD: before, NEW: now})
                known = next((made for made, other in found.values() if same(other, value)), None)
                name = self.fresh(f"{peak.name}_keep") if known is None else ""
                found[each.turn] = (known or Load(replace(peak, name=name), ()), value)
        return found

    def _scaled(self, factors: dict[Turn, tuple[Load, Value]]) -> Iterator[ir.Stmt]:
        """The sums so far, times their factors."""
        for each in self.sums:
            if each.turn in factors:
                factor, _ = factors[each.turn]
                yield self.of_elements(each, lambda old, by=factor: Op("mul", (old, by), old.dtype))

    def _ended(self) -> Iterator[ir.Stmt]:
        """Sums of no number at all are none, as they are where −∞ is subtracted from −∞."""
        for each in self.sums:
            if each.factor is not None:
                yield self.of_elements(each, self._none)

    def _none(self, old: Load) -> Value:
        """A sum at the end: none where there are keys, and no number."""
        extent, none, top = self.row.extent, self.number(float("nan")), self.row.top
        assert top is not None, "as it has a factor"
        is_one = extent.is_constant and extent.constant > 0
        some = none if is_one else self.select(_compared("lt", expr(0), extent), none, old)
        return self.select(self.is_least(Load(top, ())), some, old)

    def of_elements(self, found: Added, change: Callable[[Load], Value]) -> ir.Stmt:
        """Each element of a sum, changed."""
        return of_elements(found, change, self.fresh, self.row.lead.span)

    def turn(self, turn: Turn) -> ir.Stmt:
        """The turn of a block's keys."""
        loop, row = turn.loop, self.row
        sym = expr(loop.sym)
        key = expr(self.block) * self.size + sym
        inside = _compared("lt", key, row.extent)
        (stmt,) = substitute_block((turn.stmt,), {loop.sym: key})

        def place(old: Load) -> Load | None:
            made = self.streams.get(old.buffer)
            if made is None:
                return Load(self.now, (), span=old.span) if old.buffer is row.top else None
            at = row.streams[old.buffer]
            return replace(old, buffer=made, index=(*old.index[:at], sym, *old.index[at + 1 :]))

        def value(old: Value) -> Value:
            named = replace_loads(old, lambda load: self.named(load, loop.sym) if load.data else None)
            return replace_loads(named if self.whole else self.padded(named, loop.sym), place)

        def target(old: Load) -> Load:
            moved = Load(self.peak, (), span=old.span) if old.buffer is row.top else value_of(old)
            assert isinstance(moved, Load)
            return moved

        def value_of(old: Load) -> Value:
            return replace_loads(old, place)

        if not self.whole:
            stmt = self._masked(turn, stmt, inside)
        peaks = {row.top: self.peak} if row.top is not None and self.is_top(turn) else {}
        made = Rewriter(value=value, target=target, buffer=lambda b: peaks.get(b, self.streams.get(b, b))).stmt(stmt)
        reduce = tuple(peaks.get(b, self.streams.get(b, b)) for b in loop.reduce)
        nest: ir.Stmt = replace(loop, extent=expr(self.size), body=(made,), reduce=reduce)
        for each in reversed(turn.around):
            nest = replace(each, body=(nest,))
        return nest

    def named(self, load: Load, key: Sym) -> Load:
        """An element whose place data say, as in pages, with subscripts as all keys of a block have them: where j < 64,
        `table[(64 * b + j) / 64]` is `table[b]`."""
        simple = Simplifier(Known({key: (0, self.size - 1)}))

        def inner(found: Load) -> Load:
            data = tuple((sym, replace_loads(meaning, inner)) for sym, meaning in found.data)
            return replace(found, index=tuple(map(simple, found.index)), data=data)

        return inner(load)

    def is_top(self, turn: Turn) -> bool:
        """Whether a turn makes the maximum."""
        return self.row.at is not None and turn is self.row.turns[self.row.at]

    def _masked(self, turn: Turn, stmt: ir.Stmt, inside: Value) -> ir.Stmt:
        """The statement with what is neutral for keys that there are not."""
        is_added = next((each for each in self.sums if each.turn is turn), None)
        self.masked -= written((turn.stmt,))
        if self.is_top(turn):
            assert isinstance(stmt, ir.Bind)
            return replace(stmt, values=(self.select(inside, stmt.values[0], self.number(float("-inf"))),))
        if is_added is None and turn not in self.scaled:
            return stmt
        values = _innermost(stmt).values
        if not self.vanishes(values[0]):
            values = (self.select(inside, values[0], Literal(0.0, values[0].dtype)),)
        if is_added is None:
            self.masked.add(_innermost(stmt).targets[0].buffer)
        return _having(stmt, values)

    def vanishes(self, value: Value) -> bool:
        """Whether a value is 0 where what is masked is 0."""
        match value:
            case Load():
                return value.buffer in self.masked
            case Cast(arg) | Op("neg", (arg,)):
                return self.vanishes(arg)
            case Op("mul", args):
                return any(map(self.vanishes, args))
            case Op("add" | "sub", args) | Op("select", (_, *args)):
                return all(map(self.vanishes, args))
            case _:
                return False

    def padded(self, value: Value, key: Sym) -> Value:
        """The value with 0 for elements that there are not, of what keys say."""

        def leaf(node: Value) -> Value | None:
            load = node.arg if isinstance(node, Cast) else node
            if not isinstance(load, Load) or load.buffer in self.streams:
                return None
            tests = conjunction(tuple(_inside(load, key, self.size)))
            return None if tests is None else self.select(tests, node, Literal(0.0 if node.dtype.is_float else 0, node.dtype))

        return map_value(value, leaf)


def _inside(load: Load, key: Sym, size: int) -> Iterator[Value]:
    """That the subscripts that keys of a block of so many say are those of elements; what data say is promised, or tested."""
    within = Known({key: (0, size - 1)})
    if any(key in {s for node in _parts(value) for s in node.syms()} for _, value in load.data):
        raise Fault("data say what a key reads, and the last block has keys that there are not", ir.Anchor(load))
    for index, bound in zip(load.index, load.buffer.shape, strict=True):
        steps = {factor for monomial, factor in index.terms if monomial == (key,)}
        is_linear = key not in (index - sum((expr(key) * step for step in steps), expr(0))).syms()
        if key in index.syms() and not (load.data and within.nonnegative(index) and within.nonnegative(bound - 1 - index)):
            if not is_linear or min(steps, default=0) < 0:
                yield _compared("le", expr(0), index)
            if not is_linear or max(steps, default=0) > 0:
                yield _compared("lt", index, bound)


def _parts(value: Value) -> Iterator[Expr]:
    match value:
        case Index(index):
            yield index
        case Load():
            yield from value.index
            for _, meaning in value.data:
                yield from _parts(meaning)
        case Op(_, args):
            for each in args:
                yield from _parts(each)
        case Cast(arg):
            yield from _parts(arg)
        case Literal() | Ref():
            pass


def _compared(name: str, first: Expr, second: Expr) -> Value:
    return Op(name, (Index(first, I64), Index(second, I64)), BOOL)


def _with(value: Value, known: dict[Sym, Value]) -> Value:
    return map_value(value, lambda node: known.get(node.sym) if isinstance(node, Ref) else None)


def _innermost(stmt: ir.Stmt) -> ir.Bind:
    while isinstance(stmt, ir.Par | ir.Seq):
        (stmt,) = stmt.body
    assert isinstance(stmt, ir.Bind)
    return stmt


def _having(stmt: ir.Stmt, values: tuple[Value, ...]) -> ir.Stmt:
    if isinstance(stmt, ir.Bind):
        return replace(stmt, values=values)
    ((inner,),) = ir.blocks(stmt)
    return with_blocks(stmt, ((_having(inner, values),),))
