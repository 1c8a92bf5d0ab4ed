"""Writes that happen in both branches of an `if` on data.

if x[i] > 0 { y[i] = 1 } else { y[i] = 2 }      writes y[i] for certain, though neither side does
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import Expr, Sym
from texpr.ir.program import Anchor, Bind, If, Instruction, Let, Loop, New, Par, Seq, Stmt
from texpr.ir.value import Buffer
from texpr.presburger.isl.maps import Map
from texpr.relation.conditions import condition
from texpr.relation.model import Access, Branch, Model
from texpr.support.record import Record


class Join(Record, eq=False):
    """An `if` on data: its loops, what it certainly writes (loop indices → element), and the last instance inside."""

    loops: tuple[Loop, ...]
    written: Map
    last: int


def joins(model: Model, buffer: Buffer, shape: tuple[Expr, ...]) -> tuple[Join, ...]:
    """The outermost `if`s on data that write elements of `buffer`, in the view `shape`, in both branches."""
    writes: dict[Stmt, list[Access]] = {}
    for access in model.by_buffer.get(buffer, ()):
        if access.writes and access.draft.certain and not access.hidden and access.shape == shape:
            writes.setdefault(access.instance.stmt, []).append(access)
    reader = _Reader(model, writes)
    return tuple(reader.joins(model.function.body, ()))


class _Reader(Record, eq=False):
    model: Model
    writes: dict[Stmt, list[Access]]

    def joins(self, body: Sequence[Stmt], loops: tuple[Loop, ...]) -> Iterator[Join]:
        for stmt in body:
            match stmt:
                case Par() | Seq():
                    yield from self.joins(stmt.body, (*loops, stmt))
                case Instruction():
                    yield from self.joins(stmt.body, loops)
                case If():
                    if condition(stmt.condition).exact:
                        yield from self.joins((*stmt.then, *stmt.orelse), loops)
                    elif stmt.orelse:
                        found = self.certain(stmt, tuple(loop.sym for loop in loops))
                        if found is not None:
                            yield Join(loops, found, self._last(stmt))
                case New() | Let() | Bind() | Anchor():
                    pass

    def certain(self, stmt: Stmt, syms: tuple[Sym, ...]) -> Map | None:
        """Loop indices → elements that `stmt` certainly writes when it runs; None for none."""
        match stmt:
            case Par() | Seq():
                inner = self.block(stmt.body, (*syms, stmt.sym))
                return None if inner is None else inner.project_out(ins=[stmt.sym])
            case Instruction():
                return self.block(stmt.body, syms)
            case If():
                then, orelse = self.block(stmt.then, syms), self.block(stmt.orelse, syms)
                if condition(stmt.condition).exact:
                    return _union(then, orelse)
                return None if then is None or orelse is None else then.intersect(orelse)
            case Bind():
                found: Map | None = None
                for access in self.writes.get(stmt, ()):
                    found = _union(found, access.relation)
                return found
            case New() | Let() | Anchor():
                return None

    def block(self, body: Sequence[Stmt], syms: tuple[Sym, ...]) -> Map | None:
        """`certain` of a whole block."""
        found: Map | None = None
        for stmt in body:
            found = _union(found, self.certain(stmt, syms))
        return found

    def _last(self, stmt: If) -> int:
        """The number of the last instance inside `stmt`."""
        inside = (
            i for i in self.model.instances if i.stmt is stmt or any(isinstance(a, Branch) and a.stmt is stmt for a in i.path)
        )
        return max(i.number for i in inside)


def _union(a: Map | None, b: Map | None) -> Map | None:
    return b if a is None else a if b is None else a.union(b)
