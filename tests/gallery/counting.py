"""What one turn of a kernel's loop costs besides its arithmetic: comparisons, and integer operations for indices.

Loops inside that are unrolled are written out. What stands in an `else` is the way of the rare turn, and is left out. Of index
expressions (flattened as printers do it), each counts once however often it is used, those that differ by a constant count as
one, as a constant is part of an access, and those that do not change in the loop count nothing: a compiler moves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import ZERO, Expr, Sym, children, expr
from texpr.ir import kernel as k
from texpr.ir.program.rewrite import substitute_value
from texpr.ir.value import Index, Load, Op, Value, walk
from texpr.ir.value.types import Kind
from texpr.schedule.rewrite.vectors import row_major
from texpr.support.record import Mutable, field

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
ARITHMETIC = ("add", "sub", "mul", "div", "fma", "max", "min", "exp")


class Turn(Mutable, dict=True):
    """One turn: comparisons of indices, integer operations, and operations on data."""

    arithmetic: int = 0
    indices: set[Expr] = field(default_factory=set[Expr])
    compared: set[Value] = field(default_factory=set[Value])

    @property
    def comparisons(self) -> int:
        """Comparisons of indices, each counted once."""
        return len(self.compared)

    @property
    def integers(self) -> int:
        """Integer operations of all indices."""
        return sum(map(operations, self.indices))


def turn(kernel: k.Kernel, loop: str | None) -> Turn:
    """One turn of the loop over `loop`, the first of that name, or one run of a thread."""
    found = Turn()
    if loop is None:
        _read(found, kernel.body, {}, frozenset(s for a in kernel.axes for s in (a.sym,)))
    else:
        chosen = next(s for s in k.walk(kernel.body) if isinstance(s, k.For) and s.sym.name == loop)
        _read(found, chosen.body, {}, frozenset({chosen.sym}))
    return found


def operations(index: Expr) -> int:
    """Additions, multiplications, divisions of an expression without its constant."""
    total = max(0, len(index.terms) - 1)
    for monomial, coefficient in index.terms:
        total += len(monomial) - 1 + (abs(coefficient) != 1)
        for atom in monomial:
            if not isinstance(atom, Sym):
                total += 1 + sum(map(operations, children(atom)))
    return total


def _read(found: Turn, body: tuple[k.Stmt, ...], known: Mapping[Sym, Expr], moving: frozenset[Sym]) -> None:
    known = dict(known)
    for stmt in body:
        match stmt:
            case k.For() if stmt.kind == "unroll" and not stmt.factor:
                lo, hi, step = (e.substitute(known).constant for e in (stmt.lo, stmt.hi, stmt.step))
                for value in range(lo, hi, step):
                    _read(found, stmt.body, {**known, stmt.sym: expr(value)}, moving)
            case k.For():
                _read(found, stmt.body, known, moving | {stmt.sym})
            case k.If():
                _values(found, (stmt.condition,), known, moving)
                _read(found, stmt.then, known, moving)
            case k.Declare(sym, _, Index(index)):
                known[sym] = index.substitute(known)
            case _:
                _values(found, _operands(stmt), known, moving)


def _operands(stmt: k.Stmt) -> Iterator[Value]:
    match stmt:
        case k.Declare() | k.Assign():
            yield stmt.value
        case k.Store() | k.Atomic():
            yield from (stmt.target, stmt.value)
        case k.LoadVector():
            yield stmt.source
        case k.StoreVector():
            yield from (stmt.target, *stmt.stored)
        case k.CopyAsync():
            yield from (stmt.target, stmt.source)
        case _:
            return


def _values(
    found: Turn, values: Iterator[Value] | tuple[Value, ...], known: Mapping[Sym, Expr], moving: frozenset[Sym]
) -> None:
    for value in values:
        for node in walk(substitute_value(value, dict(known))):
            if isinstance(node, Op) and node.name in COMPARISONS and all(isinstance(a, Index) for a in node.args):
                found.compared.add(node)
            elif isinstance(node, Op) and node.name in ARITHMETIC and node.dtype.kind is Kind.FLOAT:
                found.arithmetic += 1
            elif isinstance(node, Load):
                _index(found, flat(node), moving)
            elif isinstance(node, Index):
                _index(found, node.expr, moving)


def _index(found: Turn, index: Expr, moving: frozenset[Sym]) -> None:
    if index.syms() & moving:
        found.indices.add(index - index.constant)


def flat(load: Load) -> Expr:
    """The element's place from the start of its buffer."""
    strides = load.buffer.strides or row_major(load.buffer.shape)
    return sum((i * s for i, s in zip(load.index, strides, strict=True)), start=ZERO)
