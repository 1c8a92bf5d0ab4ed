"""The host's part: division into kernels, with host loops and branches around them.

Before: the body of a function. After: nests (each becomes a kernel) in host loops and branches. Statements outside every
`par`, and `par`s that are not mapped to the grid, execute in one block; adjacent ones share a kernel. A `let` outside every
`par` is stored in a workspace element, from which each kernel that uses it loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.uses import loads, symbols
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.ir.value.types import BOOL
from texpr.lowering.names import Names
from texpr.support.diagnostic import limitation
from texpr.support.record import Mutable, Record, replace
from texpr.support.span import Span

_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_SYMBOL = {"lt": "<", "ge": ">=", "le": "<=", "gt": ">", "eq": "==", "ne": "!="}


class Piece(Record, eq=False):
    """The statements of one kernel: a `par` for the grid, or several statements for a single block."""

    body: tuple[ir.Stmt, ...]


class Repeat(Record, eq=False):
    """Items that are executed once for each iteration of a host loop."""

    stmt: ir.Seq
    items: tuple[Item, ...]


class Choose(Record, eq=False):
    """Items that are executed if facts about sizes and host loop indices hold."""

    conditions: tuple[ir.Compare, ...]
    items: tuple[Item, ...]


Item: TypeAlias = Piece | Repeat | Choose
ForGrid: TypeAlias = Callable[[ir.Par, frozenset[Sym]], bool]


class Host(Mutable):
    """The host's items, and the workspace for kernels: `locals`, and `lets` by symbol."""

    items: tuple[Item, ...]
    locals: tuple[Buffer, ...]
    lets: Mapping[Sym, Buffer]


def divide(function: ir.Function, names: Names, for_grid: ForGrid) -> Host:
    """The host's part of `function`. `for_grid`: whether a `par` is mapped to the grid, given the symbols that the host
    knows."""
    divider = _Divider(names, set(function.sizes), for_grid)
    items = tuple(divider.items(function.body))
    return Host(items, tuple(divider.locals), divider.lets)


class _Divider:
    def __init__(self, names: Names, known: set[Sym], for_grid: ForGrid):
        self.names = names
        self.known = known
        self.for_grid = for_grid
        self.locals: list[Buffer] = []
        self.lets: dict[Sym, Buffer] = {}
        self.keeps: set[ir.Stmt] = set()

    def items(self, body: tuple[ir.Stmt, ...]) -> Iterator[Item]:
        """The items for statements outside every `par`."""
        run: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.New():
                    _require_memory(stmt)
                    self.locals.append(stmt.buffer)
                case ir.Let():
                    yield from self._append(self._keep(stmt), run)
                case ir.Par() if self.for_grid(stmt, frozenset(self.known)):
                    if not self._independent(tuple(run), stmt):
                        yield from _closed(run)
                    yield Piece((stmt,))
                case _ if self._is_single(stmt):
                    yield from self._append(stmt, run)
                case _:
                    yield from self._parallel(stmt, run)
        yield from _closed(run)

    def _append(self, stmt: ir.Stmt, run: list[ir.Stmt]) -> Iterator[Item]:
        """Appends `stmt` to `run`, which becomes a kernel first if `stmt` may not share one with it."""
        if self._must_follow(stmt, run):
            yield from _closed(run)
        run.append(stmt)

    def _must_follow(self, stmt: ir.Stmt, run: list[ir.Stmt]) -> bool:
        """Whether `stmt` needs a kernel boundary before it: it uses a `let` that `run` stores, or one of them stores a value
        that depends on writes of the other's threads (the relation does not include these stores, so no barrier would be
        placed)."""
        if _touched(tuple(run))[1] & self._lets_of(stmt):
            return True
        if stmt in self.keeps:
            return not self._independent(tuple(s for s in run if _has_par(s)), stmt)
        return _has_par(stmt) and not self._independent(tuple(s for s in run if s in self.keeps), stmt)

    def _lets_of(self, stmt: ir.Stmt) -> set[Buffer]:
        used = symbols((stmt,))
        return {buffer for sym, buffer in self.lets.items() if sym in used}

    def _independent(self, run: tuple[ir.Stmt, ...], stmt: ir.Stmt) -> bool:
        """Whether `run` may be executed after `stmt`: neither accesses a buffer that the other writes, stored lets included."""
        one, other = _touched(run), _touched((stmt,))
        return not (one[1] & (other[0] | other[1] | self._lets_of(stmt)) or other[1] & one[0])

    def _is_single(self, stmt: ir.Stmt) -> bool:
        """Whether one block executes `stmt`: no loop in it is mapped to the grid, given the indices of host loops in it."""

        def has_grid(stmt: ir.Stmt, known: frozenset[Sym]) -> bool:
            if isinstance(stmt, ir.Par) and self.for_grid(stmt, known):
                return True
            if isinstance(stmt, ir.Seq) and stmt.extent.syms() <= known:
                known |= {stmt.sym}
            return any(has_grid(inner, known) for block in ir.blocks(stmt) for inner in block)

        return not has_grid(stmt, frozenset(self.known))

    def _keep(self, let: ir.Let) -> ir.Bind:
        self.lets[let.sym] = buffer = self._kept(let.sym.base, let.value, let.span)
        return self._bind(buffer, let.value)

    def _kept(self, name: str, value: Value, span: Span) -> Buffer:
        buffer = Buffer(self.names.name(name), value.dtype, (), "local", span=span)
        self.locals.append(buffer)
        return buffer

    def _bind(self, buffer: Buffer, value: Value) -> ir.Bind:
        bind = ir.Bind((Load(buffer, ()),), (value,), span=buffer.span)
        self.keeps.add(bind)
        return bind

    def _parallel(self, stmt: ir.Stmt, run: list[ir.Stmt]) -> Iterator[Item]:
        """The items of `stmt`, which contains a `par`. `run` comes before it, ending with values that must be computed before
        it."""
        match stmt:
            case ir.Seq() if stmt.extent.syms() <= self.known:
                yield from _closed(run)
                self.known.add(stmt.sym)
                yield Repeat(stmt, tuple(self.items(stmt.body)))
                self.known.discard(stmt.sym)
            case ir.If():
                yield from self._branch(stmt, run)
            case ir.Instruction():
                yield from _closed(run)
                yield from self.items(stmt.body)
            case _:
                yield from _closed(run)
                yield Piece((stmt,))

    def _branch(self, stmt: ir.If, run: list[ir.Stmt]) -> Iterator[Item]:
        choices = self._choices(stmt)
        if choices is not None:
            yield from _closed(run)
            for facts, body in choices:
                yield Choose(facts, tuple(self.items(body)))
            return
        test = stmt.condition
        if not _is_of_indices(test):
            decided = self._kept("decided", test, stmt.span)
            yield from self._append(self._bind(decided, test), run)
            test = Load(decided, ())
        yield from _closed(run)
        known = frozenset(self.known)
        yield from self._guarded(tuple(self.items(stmt.then)), test, known)
        yield from self._guarded(tuple(self.items(stmt.orelse)), Op("not", (test,), BOOL), known)

    def _choices(self, stmt: ir.If) -> tuple[tuple[tuple[ir.Compare, ...], tuple[ir.Stmt, ...]], ...] | None:
        """The arms of `stmt` with the facts that select them on the host, or None where only a kernel can evaluate the
        condition."""
        facts = _facts(stmt.condition)
        if facts is None or not all(f.left.syms() | f.right.syms() <= self.known for f in facts):
            return None
        if not stmt.orelse:
            return ((facts, stmt.then),)
        opposite = _opposite(facts)
        return None if opposite is None else ((facts, stmt.then), ((opposite,), stmt.orelse))

    def _guarded(self, items: tuple[Item, ...], condition: Value, known: frozenset[Sym]) -> Iterator[Item]:
        """Items whose kernels do nothing if `condition` is false."""
        for item in items:
            match item:
                case Piece(body):
                    yield Piece(self._inward(body, condition, known))
                case Repeat(stmt, inner):
                    yield Repeat(stmt, tuple(self._guarded(inner, condition, known | {stmt.sym})))
                case Choose(conditions, inner):
                    yield Choose(conditions, tuple(self._guarded(inner, condition, known)))

    def _inward(self, body: tuple[ir.Stmt, ...], condition: Value, known: frozenset[Sym]) -> tuple[ir.Stmt, ...]:
        """Moves the condition into the loops of the grid, so that they stay outermost; loops of a team are unchanged."""
        stmt = body[0]
        if len(body) == 1 and isinstance(stmt, ir.Par) and self.for_grid(stmt, known):
            return (replace(stmt, body=self._inward(stmt.body, condition, known)),)
        return (ir.If(condition, body, span=stmt.span),)


def _closed(run: list[ir.Stmt]) -> Iterator[Item]:
    """The kernel of `run`, if that is not empty; clears `run`."""
    if run:
        yield Piece(tuple(run))
        run.clear()


def _require_memory(new: ir.New) -> None:
    """A local outside of kernels is in the workspace, as it lives across kernels. Raises Limitation E0913 for other memory."""
    if new.space in ("shared", "cluster", "registers", "lanes"):
        reason = f"`{new.buffer.name}` cannot live in {new.space}: it is kept from one kernel to the next"
        raise limitation(
            "E0913", new.span, reason, help="such a local is declared inside of the loops that are bound to the grid"
        )


def _has_par(stmt: ir.Stmt) -> bool:
    return any(isinstance(s, ir.Par) for s in ir.walk((stmt,)))


def _is_of_indices(condition: Value) -> bool:
    """Whether a test depends on sizes, loop indices and stored `let`s only, so that each thread can evaluate it."""
    match condition:
        case Op(name, args) if name in ("and", "or", "not", *_SYMBOL):
            return all(map(_is_of_indices, args))
        case _:
            return isinstance(condition, Index)


def _facts(condition: Value) -> tuple[ir.Compare, ...] | None:
    """A conjunction of affine comparisons as facts, else None."""
    match condition:
        case Op("and", (left, right)):
            first, second = _facts(left), _facts(right)
            return None if first is None or second is None else (*first, *second)
        case Op(name, (Index(left), Index(right))) if name in _SYMBOL:
            return (ir.Compare(_SYMBOL[name], left, right),)
        case _:
            return None


def _opposite(facts: tuple[ir.Compare, ...]) -> ir.Compare | None:
    if len(facts) != 1:
        return None
    names = {symbol: name for name, symbol in _SYMBOL.items()}
    return replace(facts[0], op=_SYMBOL[_NEGATED[names[facts[0].op]]])


def _touched(body: tuple[ir.Stmt, ...]) -> tuple[set[Buffer], set[Buffer]]:
    every = {load.buffer for s in ir.walk(body) for load in loads(s)}
    return every, {t.buffer for s in ir.walk(body) if isinstance(s, ir.Bind) for t in s.targets}
