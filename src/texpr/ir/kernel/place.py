"""The context of a statement of a kernel, for its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

from texpr.affine.expr import Sym, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.uniformity import Meanings, Threads
from texpr.ir.operation import BLOCK, CLUSTER, Operation
from texpr.ir.operation.maps import TensorMap
from texpr.ir.value import Buffer
from texpr.ir.value.verify import Scope
from texpr.isa.levels import Space
from texpr.support.record import Record, field


class Place(Record):
    """The context of a statement: scope, enclosing loops and branches (outermost first), and the values of variables."""

    kernel: k.Kernel
    threads: Threads
    scope: Scope
    around: tuple[k.For | k.If, ...] = ()
    meanings: Meanings = field(default_factory=Meanings)
    assigned: frozenset[Sym] = frozenset()
    """The variables of the kernel that are assigned."""

    @property
    def simd(self) -> k.For | None:
        """The enclosing loop over vector lanes, if any."""
        return next((s for s in self.around if isinstance(s, k.For) and s.kind == "simd"), None)

    @property
    def loops(self) -> tuple[k.For, ...]:
        """The enclosing loops, outermost first."""
        return tuple(s for s in self.around if isinstance(s, k.For))

    @property
    def role(self) -> k.Role | None:
        """The role around, if there is one."""
        return next((s.role for s in self.around if isinstance(s, k.If) and s.role), None)

    def array(self, buffer: Buffer) -> k.Array | None:
        """The kernel's array for a buffer, None for global memory."""
        return next((array for array in self.kernel.arrays if array.buffer is buffer), None)

    def space(self, buffer: Buffer) -> Space | None:
        """The memory space of a buffer that the kernel allocates; None for global memory."""
        found = self.array(buffer)
        return None if found is None else found.space

    def map(self, name: str) -> TensorMap | None:
        """The kernel's map of that name, if any."""
        return next((map for map in self.kernel.maps if map.name == name), None)

    def has(self, kind: type[k.Stmt]) -> bool:
        """Whether the kernel contains a statement of that kind."""
        return any(isinstance(stmt, kind) for stmt in k.walk(self.kernel.body))

    @property
    def operations(self) -> Iterator[Operation]:
        """All of the kernel's."""
        return (stmt for stmt in k.walk(self.kernel.body) if isinstance(stmt, Operation))

    def declared(self, loop: k.For) -> frozenset[Sym]:
        """The variables that are declared in the body of a loop."""
        return _declared(loop)

    def parted(self, group: int) -> Iterator[str]:
        """The complaint if the threads of a group that must all reach the statement may diverge."""
        apart = self.disagreement(group)
        if apart is not None:
            who = {BLOCK: "threads of a block", CLUSTER: "blocks of a cluster"}.get(group, f"{group} lanes")
            what = f"loop over {apart.sym}" if isinstance(apart, k.For) else "branch"
            yield f"{who} may part at the {what} around it"

    def inside(self, stmt: k.For | k.If) -> Place:
        """The context of the statements directly in `stmt`."""
        around = (*self.around, stmt)
        if isinstance(stmt, k.If):
            return Place(self.kernel, self.threads, self.scope, around, self.meanings, self.assigned)
        turn = expr(Sym(f"turn of {stmt.sym}"))  # a loop that starts at a thread-dependent bound has a thread-dependent index
        meanings = self.meanings.index(stmt.sym, stmt.lo + stmt.step * turn)
        return Place(self.kernel, self.threads, self.scope.with_indices(stmt.sym), around, meanings, self.assigned)

    def after(self, stmt: k.Stmt) -> Place:
        """The context after `stmt`, in the same block."""
        if not isinstance(stmt, Operation) or not stmt.bound:
            return self
        scope, meanings = self.scope, self.meanings
        for new in stmt.bound:
            scope = scope.with_variable(new.sym, new.dtype)
            known = new.value is not None and new.sym not in self.assigned
            meanings = meanings.variable(new.sym, new.value) if known and new.value else meanings.lacking(new.sym)
        return self._knowing(scope, meanings)

    def _knowing(self, scope: Scope, meanings: Meanings) -> Place:
        return Place(self.kernel, self.threads, scope, self.around, meanings, self.assigned)

    def disagreement(self, group: int) -> k.For | k.If | None:
        """The enclosing statement at which threads of a group may diverge; where that is undecided, `uniform` is trusted.

        `uniform` is about the threads of a block, so it is not trusted for a cluster.
        """
        for stmt in self.around:
            if isinstance(stmt, k.For):
                alike = self.threads.loop_alike(stmt, group, self.meanings)
            elif stmt.role is not None:
                ends = (stmt.role.first, stmt.role.first + stmt.role.warps)
                alike = group > 0 and all(end * self.kernel.warp % group == 0 for end in ends)
            else:
                alike = self.threads.value_alike(stmt.condition, group, self.meanings)
            if not (stmt.uniform and group != CLUSTER if alike is None else alike):
                return stmt
        return None


Rule: TypeAlias = Callable[[k.Stmt, Place], Iterator[str]]
"""Yields the complaints about one statement, without its nested ones."""


@lru_cache(maxsize=16)
def _declared(loop: k.For) -> frozenset[Sym]:
    return frozenset(new.sym for s in k.walk(loop.body) if isinstance(s, Operation) for new in s.bound)
