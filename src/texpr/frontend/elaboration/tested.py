"""Elements that are tested before they are used as an index are loaded once: then the test constrains the index.

if col[i] >= 0 { y[i] = x[col[i]] }    →    let p = col[i];  if p >= 0 { y[i] = x[p] }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import Sym, expr
from texpr.frontend.elaboration.typing import COMPARISONS, index_of, unsigned
from texpr.ir.program import Anchor, Bind, If, Instruction, Let, Par, Seq, Stmt, values, walk
from texpr.ir.program.rewrite import Rewriter, map_value, substitute_load
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, operands
from texpr.ir.value.types import I64, U64, widens
from texpr.support.record import Record, replace


def read_once_where_tested(body: tuple[Stmt, ...], symbol: Callable[[str], Sym]) -> tuple[Stmt, ...]:
    """`body` with a `let` before each statement for the elements that its conditions test and its subscripts use.

    `symbol` makes a fresh one from a name. An element that is written under the test may have changed, and is left as it is.
    """
    return tuple(made for stmt in body for made in _stmt(stmt, symbol))


def _stmt(stmt: Stmt, symbol: Callable[[str], Sym]) -> Iterator[Stmt]:
    for load in [*dict.fromkeys(_tested(stmt))]:
        if load.buffer not in _written(stmt) and load in _subscripts(stmt):
            name = symbol(load.buffer.name)
            yield Let(name, load, stmt.span)
            stmt = _Named(load, name).stmt(stmt)
    match stmt:
        case Par() | Seq() | Instruction():
            yield replace(stmt, body=read_once_where_tested(stmt.body, symbol))
        case If():
            then, orelse = (read_once_where_tested(arm, symbol) for arm in (stmt.then, stmt.orelse))
            yield replace(stmt, then=then, orelse=orelse)
        case _:
            yield stmt


def _tested(stmt: Stmt) -> Iterator[Load]:
    """The integer elements that a statement tests unconditionally."""
    match stmt:
        case If():
            yield from _asked(stmt.condition, test=True)
        case Bind() | Let() | Anchor():
            for value in values(stmt):
                yield from _asked(value, test=False)
        case _:
            return


def _asked(value: Value, *, test: bool) -> Iterator[Load]:
    """The elements loaded unconditionally in the condition of a `select` or, with `test`, in a condition itself.

    Shared subexpressions are visited once: written out, the value may be too long.
    """
    rest, seen = [(value, test)], set[tuple[int, bool]]()
    while rest:
        node, test = rest.pop()
        if (id(node), test) in seen:
            continue
        seen.add((id(node), test))
        match node:
            case Load():
                if test and node.dtype.is_integer and not node.data:
                    yield node
            case Op("select", (chooser, *_)):
                rest.append((chooser, True))
            case _:
                rest += [(each, test) for each in reversed([*operands(node)])]


def _written(stmt: Stmt) -> set[Buffer]:
    """The buffers that a statement writes before it uses what it tested."""
    inside = [each for each in walk((stmt,)) if each is not stmt]
    targets = [target for each in inside if isinstance(each, Bind) for target in each.targets]
    return {target.buffer for target in targets}


def _subscripts(stmt: Stmt) -> set[Load]:
    """The elements that are data in subscripts of a statement and of those nested in it, widening conversions aside."""
    found: set[Load] = set()
    rest: list[Value] = []
    for each in walk((stmt,)):
        rest += values(each)
        rest += each.targets if isinstance(each, Bind) else ()
    seen: set[int] = set()
    while rest:
        node = rest.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        rest += operands(node)
        meanings = [_narrow(meaning) for _, meaning in node.data] if isinstance(node, Load) else []
        found |= {meaning for meaning in meanings if isinstance(meaning, Load)}
    return found


def _narrow(value: Value) -> Value:
    """A value without the conversions that preserve it."""
    while isinstance(value, Cast) and value.dtype.is_integer and widens(value.arg.dtype, value.dtype):
        value = value.arg
    return value


class _Named(Record):
    """Replaces the element by its name; in subscripts as an index."""

    element: Load
    name: Sym

    def stmt(self, stmt: Stmt) -> Stmt:
        """`stmt` and the statements nested in it, rewritten."""
        return Rewriter(value=self.value, target=self.load).stmt(stmt)

    def value(self, value: Value) -> Value:
        """`value` rewritten; comparisons with the name are comparisons of indices, as those of a `let`."""

        def leaf(node: Value) -> Value | None:
            match node:
                case Load():
                    return Ref(self.name, node.dtype) if node == self.element else self.load(node)
                case Op(name, (left, right)) if name in COMPARISONS.values():
                    made = Op(name, (self.value(left), self.value(right)), node.dtype, node.span)
                    sides = tuple(index for arg in made.args if (index := self.index(arg)) is not None)
                    told = any(self.name in each.expr.syms() for each in sides)
                    return Op(name, self.typed(sides), node.dtype, node.span) if told and len(sides) == 2 else made
                case _:
                    return None

        return map_value(value, leaf)

    def typed(self, sides: Sequence[Index]) -> tuple[Value, ...]:
        """Both sides of a comparison, of the type in which a `let` is compared."""
        wide = any(unsigned(one.expr, self.element.dtype, other.expr) for one, other in (sides, sides[::-1]))
        return tuple(index_of(each.expr, U64, each.span) for each in sides) if wide else tuple(sides)

    def index(self, value: Value) -> Index | None:
        """A value as an index: a number, an index expression, or the element by its name."""
        match _narrow(value):
            case Ref(sym) if sym == self.name:
                return Index(expr(sym), I64)
            case Index() as found:
                return Index(found.expr, I64, found.span)
            case Literal(number, dtype) if dtype.is_integer:
                return Index(expr(int(number)), I64)
            case _:
                return None

    def load(self, load: Load) -> Load:
        """A load with subscripts that contain no element twice."""
        data = [(sym, self.value(meaning)) for sym, meaning in load.data]
        own = [sym for sym, meaning in data if _narrow(meaning) == Ref(self.name, self.element.dtype)]
        if not own:
            return replace(load, data=tuple(data)) if data else load
        rest = replace(load, data=tuple((sym, meaning) for sym, meaning in data if sym not in own))
        return substitute_load(rest, {sym: expr(self.name) for sym in own})
