"""Rows that sum up what keys have, as their maximum decides, in one form: before, turns over the same iterations, after.

Before: par M |i| {                                    After:  par M |i| {
            top = -inf                                             top = -inf   total = 0   par D |d| { acc[d] = 0 }
            par L |j| reduce(top) { top max= s[j] }                par L |j| reduce(top) { top max= s[j] }
            total = 0                                              par L |j| reduce(total) { total += exp(s[j] - top) }
            par L |j| reduce(total) { … }                          par D |d| { par L |j| reduce(acc) { acc[d] += … } }
            par D |d| {                                            par D |d| { y[i, d] = acc[d] / total }
                new sum: f32 = 0
                par L |j| reduce(sum) { sum += … }
                y[i, d] = sum / total                  }
            } }

Loops over keys have one statement each (fission, with an element of locals for each iteration); what no turn needs comes
behind them. A row may have no maximum. It is a reordering of statements alone. Nobody has to believe that this is right: the
proof that follows a schedule compares this form with the program as written (`texpr.proof.schedule.sweeps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads, substitute_block, with_blocks
from texpr.ir.program.uses import loads, symbols, touched, written
from texpr.ir.value import Buffer, Load, Ref, Value
from texpr.support.record import Mutable, Record, field, replace

Body = tuple[ir.Stmt, ...]


class Fault(Exception):
    """Why a loop has no such row: at a statement."""

    def __init__(self, reason: str, stmt: ir.Stmt):
        self.reason, self.stmt = reason, stmt
        super().__init__(reason)


class Turn(Record, eq=False):
    """`around` a loop over keys, whose body is one statement."""

    around: tuple[ir.Par, ...]
    loop: ir.Loop
    stmt: ir.Stmt

    @property
    def nest(self) -> ir.Stmt:
        """As a statement."""
        made: ir.Stmt = replace(self.loop, body=(self.stmt,))
        for each in reversed(self.around):
            made = replace(each, body=(made,))
        return made


class Row(Record, eq=False):
    """The statements in the loop `parent` of `function` (or of that itself): locals, what comes `before`, `turns`, `after`.

    `top`: the maximum; `at`: the number of the turn that has it; None where there is none. `streams`: locals with an element
    for each key, and in which dimension.
    """

    function: ir.Function
    parent: ir.Loop | None
    news: tuple[ir.New, ...]
    before: Body
    turns: tuple[Turn, ...]
    after: Body
    top: Buffer | None
    at: int | None
    streams: dict[Buffer, int]

    @property
    def lead(self) -> ir.Loop:
        """The loop of the maximum, or the first one over keys."""
        return self.turns[self.at or 0].loop

    @property
    def extent(self) -> Expr:
        """How many keys there are."""
        return self.lead.extent

    def having(self, body: Body) -> ir.Function:
        """The function with another body of the row."""
        parent = self.parent
        if parent is None:
            return replace(self.function, body=body)
        return replace(self.function, body=_replaced(self.function.body, parent, replace(parent, body=body)))

    @property
    def canonical(self) -> ir.Function:
        """The function in this form."""
        return self.having((*self.news, *self.before, *(turn.nest for turn in self.turns), *self.after))


def row_of(function: ir.Function, name: str) -> Row:
    """The row around the loop `name`, which is that of its maximum, if it has one. Raises Fault."""
    loop = next(s for s in loops(function.body) if s.sym.name == name)
    path = _path_to(function.body, loop)
    parent = path[-2] if len(path) > 1 else None
    if isinstance(parent, ir.If | ir.Instruction):
        raise Fault("the loop is in a branch", parent)
    body = function.body if not isinstance(parent, ir.Par | ir.Seq) else parent.body
    maker = _Rows(function, loop, body, _maximum(loop, body))
    maker.choose()
    items = [each for stmt in body for each in maker.split(stmt, ())]
    before, turns, after = _ordered(items)
    found = [at for at, turn in enumerate(turns) if maker.top in written((turn.stmt,))]
    if maker.top is not None and len(found) != 1:
        raise Fault(f"`{maker.top.name}` is written in several loops", loop)
    kept = parent if isinstance(parent, ir.Par | ir.Seq) else None
    at, streams = next(iter(found), None), dict(maker.streams)
    _require_along(turns, (*before, *after), streams)
    return Row(function, kept, tuple(maker.news), before, turns, after, maker.top, at, streams)


def _require_along(turns: tuple[Turn, ...], others: Body, streams: dict[Buffer, int]) -> None:
    """Raises Fault where a key has to do with what is of another one."""
    for turn in turns:
        for load in (load for stmt in ir.walk((turn.stmt,)) for load in loads(stmt) if load.buffer in streams):
            key, at = expr(turn.loop.sym), streams[load.buffer]
            if load.data or load.index[at] is not key or any(turn.loop.sym in e.syms() for e in load.index if e is not key):
                raise Fault(f"a key reads what another one has of `{load.buffer.name}`", turn.loop)
    for stream in streams.keys() & touched(others):
        raise Fault(f"`{stream.name}` is touched outside of the loops over keys", turns[0].loop)


def loops(body: Body) -> tuple[ir.Loop, ...]:
    """Every loop, outermost first, in textual order."""
    return tuple(s for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq))


def _path_to(body: Body, wanted: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """The statements from the outermost one down to a statement."""
    for stmt in body:
        if stmt is wanted:
            return (stmt,)
        for block in ir.blocks(stmt):
            if rest := _path_to(block, wanted):
                return (stmt, *rest)
    return ()


def _replaced(body: Body, wanted: ir.Stmt, new: ir.Stmt) -> Body:
    def of(stmt: ir.Stmt) -> ir.Stmt:
        return new if stmt is wanted else with_blocks(stmt, tuple(tuple(map(of, block)) for block in ir.blocks(stmt)))

    return tuple(map(of, body))


def _maximum(loop: ir.Loop, body: Body) -> Buffer | None:
    """The local that the loop makes a maximum, if it makes one."""
    own = {s.buffer for s in body if isinstance(s, ir.New) and not s.buffer.shape}
    for stmt in loop.body:
        if isinstance(stmt, ir.Bind) and stmt.update == "max" and len(stmt.targets) == 1 and stmt.targets[0].buffer in own:
            return stmt.targets[0].buffer
    return None


class _Rows(Mutable):
    """`loop` over keys, in `body`. `chosen`: all loops over keys; `news`: locals, some of which got dimensions."""

    function: ir.Function
    loop: ir.Loop
    body: Body
    top: Buffer | None
    chosen: set[Sym] = field(default_factory=set[Sym])
    streams: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    news: list[ir.New] = field(default_factory=list[ir.New])
    names: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        inside = (*ir.walk(self.function.body),)
        self.names = {s.sym.name for s in inside if isinstance(s, ir.Par | ir.Seq | ir.Let)}
        self.names |= {s.buffer.name for s in inside if isinstance(s, ir.New)}
        self.names |= {b.name for b in (*self.function.params, *self.function.results)}
        self.names |= {s.name for s in (*self.function.sizes, *(s for s, _ in self.function.consts))} | {self.function.name}

    def fresh(self, base: str) -> str:
        """A free name."""
        plain = base.partition("'")[0]
        found = next(each for n in count(1) if (each := f"{plain}_{n}") not in self.names)
        self.names.add(found)
        return found

    def choose(self) -> None:
        """Finds the loops over keys: those that go along locals along which others go, or sum up by the maximum."""
        own = {s.buffer for s in self.body if isinstance(s, ir.New)}
        left = [s for s in loops(self.body) if s.extent is self.loop.extent and s is not self.loop]
        found: ir.Loop | None = self.loop
        while found is not None:
            self.chosen.add(found.sym)
            inner = {*loops(found.body)}
            left = [s for s in left if s is not found and s not in inner]
            for load in (each for stmt in ir.walk(found.body) for each in loads(stmt)):
                at = [n for n, e in enumerate(load.index) if e is expr(found.sym)]
                if load.buffer in own and at and self.streams.setdefault(load.buffer, at[0]) not in at:
                    raise Fault(f"`{load.buffer.name}` has keys in two dimensions", found)
            found = next((each for each in left if self._goes_along(each)), None)

    def _goes_along(self, loop: ir.Loop) -> bool:
        every = [load for stmt in ir.walk(loop.body) for load in loads(stmt)]
        is_along = any(load.buffer in self.streams and expr(loop.sym) in load.index for load in every)
        if is_along or self.top not in {load.buffer for load in every}:
            return is_along
        targets = [t for s in ir.walk(loop.body) if isinstance(s, ir.Bind) for t in s.targets]
        own = {s.buffer for s in self.body if isinstance(s, ir.New)}
        return bool(loop.reduce) or all(t.buffer in own and expr(loop.sym) in t.index for t in targets)

    def split(self, stmt: ir.Stmt, around: tuple[ir.Par, ...]) -> Iterator[Turn | ir.Stmt]:
        """The turns of a statement, and what it does beside them."""
        if isinstance(stmt, ir.New):
            self.news.append(stmt)
        elif isinstance(stmt, ir.Par | ir.Seq) and stmt.sym in self.chosen:
            for loop, each in self._pieces(stmt, is_key=True):
                yield Turn(around, loop, each)
        elif not any(s.sym in self.chosen for s in loops((stmt,))):
            yield _within(around, stmt)
        elif isinstance(stmt, ir.Par) and not (stmt.reduce or stmt.fully or stmt.directives):
            for loop, each in self._pieces(stmt, is_key=False):
                assert isinstance(loop, ir.Par)
                yield from self.split(each, (*around, loop))
        else:
            raise Fault("a loop over keys stands in what is no plain `par`", stmt)

    def _pieces(self, loop: ir.Loop, *, is_key: bool) -> Iterator[tuple[ir.Loop, ir.Stmt]]:
        """A loop for each statement of one."""
        body = self._expanded(loop, is_key)
        if len(body) > 1 and not isinstance(loop, ir.Par):
            raise Fault(f"the loop over `{loop.sym.base}` is in order, and has several statements", loop)
        for n, stmt in enumerate(body):
            sym = loop.sym if n == len(body) - 1 else Sym(self.fresh(loop.sym.name))
            (moved,) = substitute_block((stmt,), {loop.sym: expr(sym)}) if sym is not loop.sym else (stmt,)
            yield replace(loop, sym=sym, body=(), label=None, reduce=_reduced(loop, moved)), moved

    def _expanded(self, loop: ir.Loop, is_key: bool) -> Body:
        """The statements of a loop, whose locals have an element for each iteration, and so have its `let`s."""
        body = tuple(s for s in loop.body if not isinstance(s, ir.New))
        if len(body) < 2:
            return loop.body if len(loop.body) == 1 else self._fault_of_news(loop)
        places: dict[Buffer | Sym, Buffer] = {}
        for stmt in loop.body:
            match stmt:
                case ir.New(buffer):
                    places[buffer] = replace(buffer, name=self.fresh(buffer.name), shape=(loop.extent, *buffer.shape))
                case ir.Let(sym, value) if value.dtype.is_float:
                    places[sym] = Buffer(self.fresh(sym.name), value.dtype, (loop.extent,), "local", span=stmt.span)
                case ir.Let():
                    raise Fault("a `let` of integers is read in several loops", stmt)
                case _:
                    pass
        self.news += (ir.New(buffer, span=buffer.span) for buffer in places.values())
        if is_key:
            self.streams |= dict.fromkeys(places.values(), 0)
        return tuple(_placed(stmt, loop.sym, places) for stmt in body)

    def _fault_of_news(self, loop: ir.Loop) -> Body:
        raise Fault("a local of each iteration is nested in what one statement does", loop)


def _placed(stmt: ir.Stmt, sym: Sym, places: dict[Buffer | Sym, Buffer]) -> ir.Stmt:
    """A statement with elements of locals for each iteration."""

    def load(old: Load) -> Load | None:
        made = places.get(old.buffer)
        return None if made is None else replace(old, buffer=made, index=(expr(sym), *old.index))

    def ref(old: Value) -> Value | None:
        made = places.get(old.sym) if isinstance(old, Ref) else None
        return None if made is None else Load(made, (expr(sym),))

    def value(old: Value) -> Value:
        return map_value(replace_loads(old, load), ref)

    def target(old: Load) -> Load:
        made = value(old)
        assert isinstance(made, Load)
        return made

    if isinstance(stmt, ir.Let) and stmt.sym in places:
        at = Load(places[stmt.sym], (expr(sym),), span=stmt.span)
        return ir.Bind((at,), (value(stmt.value),), None, stmt.span, stmt.instance)
    return Rewriter(value=value, target=target, buffer=lambda b: places.get(b, b)).stmt(stmt)


def _reduced(loop: ir.Loop, stmt: ir.Stmt) -> tuple[Buffer, ...]:
    """The sums of a loop that are left in one of its pieces."""
    return tuple(b for b in loop.reduce if b in written((stmt,)))


def _within(around: tuple[ir.Par, ...], stmt: ir.Stmt) -> ir.Stmt:
    for each in reversed(around):
        stmt = replace(each, body=(stmt,))
    return stmt


def _ordered(items: list[Turn | ir.Stmt]) -> tuple[Body, tuple[Turn, ...], Body]:
    """What comes before the turns, the turns, and what comes behind. Raises Fault."""
    before, turns, after = list[ir.Stmt](), list[Turn](), list[ir.Stmt]()
    made, read = frozenset[Buffer](), frozenset[Buffer]()  # by turns
    late, seen, named = frozenset[Buffer](), frozenset[Buffer](), frozenset[Sym]()  # what comes behind writes, touches, names
    for item in items:
        stmt = item.nest if isinstance(item, Turn) else item
        touches, writes = touched((stmt,)), written((stmt,))
        waits = bool(touches & late or writes & seen or symbols((stmt,)) & named)
        if isinstance(item, Turn):
            if waits:
                raise Fault("a loop over keys needs what is only there behind all keys", item.loop)
            turns.append(item)
            made, read = made | writes, read | touches
        elif waits or touches & made or writes & read:
            after.append(stmt)
            late, seen = late | writes, seen | touches
            named |= {s.sym for s in ir.walk((stmt,)) if isinstance(s, ir.Let)}
        else:
            before.append(stmt)
    return tuple(before), tuple(turns), tuple(after)
