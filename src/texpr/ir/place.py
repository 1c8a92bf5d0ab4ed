"""Where a statement of a kernel stands, as its rules see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from texpr.affine.expr import Sym, expr
from texpr.ir import kernel as k
from texpr.ir.uniformity import CLUSTER, Meanings, Threads
from texpr.ir.value_verify import Scope
from texpr.support.record import Record, field


class Place(Record):
    """Where a statement stands: what it may name, and what lies around it, outermost first."""

    kernel: k.Kernel
    threads: Threads
    scope: Scope
    around: tuple[k.For | k.If, ...] = ()
    meanings: Meanings = field(default_factory=Meanings)
    assigned: frozenset[Sym] = frozenset()
    """Variables of the kernel that some statement assigns."""

    @property
    def simd(self) -> k.For | None:
        """The loop over vector lanes that this stands in."""
        return next((s for s in self.around if isinstance(s, k.For) and s.kind == "simd"), None)

    def inside(self, stmt: k.For | k.If) -> Place:
        """Directly below `stmt`."""
        around = (*self.around, stmt)
        if isinstance(stmt, k.If):
            return Place(self.kernel, self.threads, self.scope, around, self.meanings, self.assigned)
        turn = expr(Sym(f"turn of {stmt.sym}"))  # a loop that starts at the thread has the thread in its index
        meanings = self.meanings.index(stmt.sym, stmt.lo + stmt.step * turn)
        return Place(self.kernel, self.threads, self.scope.with_indices(stmt.sym), around, meanings, self.assigned)

    def after(self, stmt: k.Stmt) -> Place:
        """Behind `stmt`, in the same block."""
        match stmt:
            case k.Declare():
                changes = stmt.sym in self.assigned
                meanings = self.meanings.lacking(stmt.sym) if changes else self.meanings.variable(stmt.sym, stmt.value)
                return self._knowing(self.scope.with_variable(stmt.sym, stmt.dtype), meanings)
            case k.Exchange() | k.Shuffle():
                scope = self.scope.with_variable(stmt.target, stmt.source.dtype)
                return self._knowing(scope, self.meanings.lacking(stmt.target))
            case k.LoadVector():
                return self._behind_vector(stmt)
            case _:
                return self

    def _behind_vector(self, stmt: k.LoadVector) -> Place:
        scope, meanings = self.scope, self.meanings
        for sym, element in zip(stmt.targets, k.consecutive(stmt.source, len(stmt.targets)), strict=True):
            scope = scope.with_variable(sym, element.dtype)
            meanings = meanings.lacking(sym) if sym in self.assigned else meanings.variable(sym, element)
        return self._knowing(scope, meanings)

    def _knowing(self, scope: Scope, meanings: Meanings) -> Place:
        return Place(self.kernel, self.threads, scope, self.around, meanings, self.assigned)

    def disagreement(self, group: int | None) -> k.For | k.If | None:
        """The statement around this one at which threads of a group part; where nothing is known, `uniform` is believed.

        That word speaks of a block: of a cluster nothing is believed.
        """
        for stmt in self.around:
            if isinstance(stmt, k.For):
                alike = self.threads.loop_alike(stmt, group, self.meanings)
            else:
                alike = self.threads.value_alike(stmt.condition, group, self.meanings)
            if not (stmt.uniform and group != CLUSTER if alike is None else alike):
                return stmt
        return None


Rule: TypeAlias = Callable[[k.Stmt, Place], Iterator[str]]
"""Yields what is wrong with one statement; those below it are not its business."""

VALUED = (
    k.If, k.Declare, k.Assign, k.Store, k.Atomic, k.Exchange, k.Shuffle, k.LoadVector, k.StoreVector, k.CopyAsync, k.CopyTensor,
    k.StoreTensor, k.CopyBulk, k.BarrierInit, k.BarrierExpect, k.BarrierArrive, k.BarrierWait,
)  # fmt: skip
"""The kinds of statements that hold values (`kernel.values`)."""
