"""The host's part: which statements make one kernel, and what repeats or chooses among kernels.

Before: the body of a function. After: nests (each becomes a kernel) in host loops and branches. Statements outside every
`par`, and `par`s that are not for the grid, run in one block; neighbouring ones share a kernel. A `let` outside every `par` is
kept in a workspace element, which each kernel that uses it loads first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.types import BOOL
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.lowering.names import Names
from texpr.mapping.bands import loads, symbols

_NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
_SYMBOL = {"lt": "<", "ge": ">=", "le": "<=", "gt": ">", "eq": "==", "ne": "!="}


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Statements that one kernel runs: a `par` for the grid, or a run of statements for a single block."""

    body: tuple[ir.Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """Items run once for each value of a host loop."""

    stmt: ir.Seq
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """Items run where facts about sizes and host loop indices hold."""

    conditions: tuple[ir.Compare, ...]
    items: tuple[Item, ...]


Item: TypeAlias = Piece | Repeat | Choose
ForGrid: TypeAlias = Callable[[ir.Par, frozenset[Sym]], bool]


@dataclass(slots=True)
class Host:
    """What the host runs, and what it keeps for kernels: `locals` in workspace, `lets` by symbol."""

    items: tuple[Item, ...]
    locals: tuple[Buffer, ...]
    lets: Mapping[Sym, Buffer]


def divide(function: ir.Function, names: Names, for_grid: ForGrid) -> Host:
    """The host's part of `function`. `for_grid`: whether a `par` is for the grid, given the symbols that the host knows."""
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

    def items(self, body: tuple[ir.Stmt, ...]) -> Iterator[Item]:
        run: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.New():
                    self.locals.append(stmt.buffer)
                case ir.Let():
                    run.append(self._keep(stmt))
                case ir.Par() if self.for_grid(stmt, frozenset(self.known)):
                    if not self._independent(tuple(run), stmt):
                        yield Piece(tuple(run))
                        run = []
                    yield Piece((stmt,))
                case _ if self._is_single(stmt):
                    run.append(stmt)
                case _:
                    items = tuple(self._parallel(stmt, run))
                    if run:
                        yield Piece(tuple(run))
                        run = []
                    yield from items
        if run:
            yield Piece(tuple(run))

    def _independent(self, run: tuple[ir.Stmt, ...], stmt: ir.Stmt) -> bool:
        """Whether `run` may be put after `stmt`: no buffer that either writes is touched by the other, kept lets included."""
        kept = {buffer for sym, buffer in self.lets.items() if sym in symbols((stmt,))}
        one, other = _touched(run), _touched((stmt,))
        return not (one[1] & (other[0] | other[1] | kept) or other[1] & one[0])

    def _is_single(self, stmt: ir.Stmt) -> bool:
        """Whether one block runs `stmt`: nothing in it is for the grid."""
        return not any(isinstance(s, ir.Par) and self.for_grid(s, frozenset(self.known)) for s in ir.walk((stmt,)))

    def _keep(self, let: ir.Let) -> ir.Bind:
        buffer = Buffer(self.names.name(let.sym.base), let.value.dtype, (), "local", span=let.span)
        self.locals.append(buffer)
        self.lets[let.sym] = buffer
        return ir.Bind((Load(buffer, ()),), (let.value,), span=let.span)

    def _parallel(self, stmt: ir.Stmt, run: list[ir.Stmt]) -> Iterator[Item]:
        """`stmt`, which holds a `par`. What must be computed before it is appended to `run`."""
        match stmt:
            case ir.Seq() if stmt.extent.syms() <= self.known:
                self.known.add(stmt.sym)
                yield Repeat(stmt, tuple(self.items(stmt.body)))
                self.known.discard(stmt.sym)
            case ir.If():
                yield from self._branch(stmt, run)
            case ir.Instruction():
                yield from self.items(stmt.body)
            case _:
                yield Piece((stmt,))

    def _branch(self, stmt: ir.If, run: list[ir.Stmt]) -> Iterator[Item]:
        facts = _facts(stmt.condition)
        if facts is not None and all(f.left.syms() | f.right.syms() <= self.known for f in facts):
            then = tuple(self.items(stmt.then))
            opposite = _opposite(facts)
            if not stmt.orelse:
                yield Choose(facts, then)
                return
            if opposite is not None:
                yield Choose(facts, then)
                yield Choose((opposite,), tuple(self.items(stmt.orelse)))
                return
        decided = Buffer(self.names.name("decided"), BOOL, (), "local", span=stmt.span)
        self.locals.append(decided)
        run.append(ir.Bind((Load(decided, ()),), (stmt.condition,), span=stmt.span))
        test = Load(decided, ())
        yield from _guarded(tuple(self.items(stmt.then)), test, stmt)
        yield from _guarded(tuple(self.items(stmt.orelse)), Op("not", (test,), BOOL), stmt)


def _guarded(items: tuple[Item, ...], condition: Value, stmt: ir.If) -> Iterator[Item]:
    """Items whose kernels do nothing where `condition` does not hold."""
    for item in items:
        match item:
            case Piece(body):
                yield Piece(tuple(_inward(s, condition, stmt) for s in body))
            case Repeat() | Choose():
                yield replace(item, items=tuple(_guarded(item.items, condition, stmt)))


def _inward(stmt: ir.Stmt, condition: Value, by: ir.If) -> ir.Stmt:
    """The condition goes below the outermost band, so that the band still becomes a grid."""
    if isinstance(stmt, ir.Par) and not stmt.reduce:
        return replace(stmt, body=tuple(_inward(s, condition, by) for s in stmt.body))
    return ir.If(condition, (stmt,), span=by.span)


def _facts(condition: Value) -> tuple[ir.Compare, ...] | None:
    """A conjunction of affine comparisons as facts, or None."""
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
