"""Emission of a kernel from its steps form alone.

Before: `ir.steps.Steps`, all of which is in its text. After: `ir.kernel.Kernel`, with the memory and sizes that its body uses.
Names of new registers and arrays differ from all names in the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import atomic_binds
from texpr.ir.steps import Steps, program
from texpr.ir.steps.names import names_in
from texpr.ir.value import Buffer
from texpr.lowering.emit import lanes, vectors
from texpr.lowering.emit.emitter import Emitter, free_sums
from texpr.lowering.emit.statements import Statements
from texpr.lowering.names import Names
from texpr.relation.collect import standing
from texpr.relation.standing import Standing
from texpr.support.record import Record, replace


def emit(steps: Steps) -> k.Kernel:
    """The kernel of `steps`."""
    names = Names.beside((*names_in(steps), *steps.avoid))
    emitter = _emitter(steps, names)
    statements = Statements(steps, names, emitter)
    emitter.within = statements.within_warp
    body = statements.all()
    return _finish(steps, (*steps.coordinates, *_lets(steps, body), *body), (*steps.arrays, *emitter.arrays))


def _emitter(steps: Steps, names: Names) -> Emitter:
    body, grid, facts = program(steps.nodes), tuple(along.loop for along in steps.grid), _Facts(steps)
    emitter = Emitter(dict(steps.places), names, simd=steps.vectors is not None, atomics={**atomic_binds(grid, body)})
    emitter.known, emitter.loops, emitter.free = facts.known, facts.loops, free_sums(grid, body)
    if steps.vectors is None:
        emitter.vector = vectors.in_lanes
    elif steps.team == 1:
        emitter.reduce = lanes.in_lanes(facts.around, steps.vectors)
    return emitter


class _Facts(Record, dict=True):
    """The facts at the statements of a form, from enclosing loops and tests, and from promises."""

    steps: Steps

    @cached_property
    def standing(self) -> Standing:
        """The positions of the statements: in loops of the host, of the grid, and their own."""
        steps = self.steps
        body: tuple[ir.Stmt, ...] = (*steps.lets, *program(steps.nodes))
        for along in reversed(steps.grid):
            body = (replace(along.loop, body=body),)
        for sym, extent in reversed(steps.hosts):
            body = (ir.Seq(sym, extent, body),)
        return standing(body, steps.sizes, steps.where, steps.assumes)

    def known(self, stmt: ir.Stmt) -> Known:
        """The facts at `stmt`."""
        return self.standing.known(stmt)

    def loops(self, stmt: ir.Stmt) -> tuple[ir.Loop, ...]:
        """The loops around a statement."""
        return self.standing.loops(stmt)

    def around(self, stmt: ir.Stmt) -> tuple[Expr, ...]:
        """Expressions that are non-negative where a statement begins."""
        return self.standing.around(stmt)


def _lets(steps: Steps, body: tuple[k.Stmt, ...]) -> Iterator[k.Stmt]:
    """The loads of values of earlier kernels that the body uses."""
    used = k.symbols(body)
    yield from (k.let(let.sym, let.value, let.span) for let in steps.lets if let.sym in used)


def _finish(steps: Steps, body: tuple[k.Stmt, ...], arrays: tuple[k.Array, ...]) -> k.Kernel:
    """A kernel whose arguments are those that its body uses."""
    own = {array.buffer for array in arrays}
    read, written = k.memory(body)
    touched = {load.buffer for load in (*read, *written)} - own
    buffers = tuple(b for b in steps.buffers if b in touched)
    scalars = tuple(b for b in buffers if b.rank == 0 and b.role == "input")
    memory = tuple(b for b in buffers if b not in scalars)
    used = k.symbols(body) | {s for b in memory for s in _layout_symbols(b)}
    used |= {s for a in steps.axes if a.level not in (k.Level.BLOCK, k.Level.GRID) for s in a.extent.syms()}
    bases = tuple(axis.base for axis in steps.axes if axis.base is not None)
    sizes = (*(s for s in (*steps.sizes, *(sym for sym, _ in steps.hosts)) if s in used), *bases)
    stored = frozenset(load.buffer.name for load in written if load.buffer not in own)
    return k.Kernel(
        steps.name, steps.axes, memory, scalars, sizes, arrays, body, stored | _through_maps(steps, body), steps.span,
        min_blocks=steps.min_blocks, maps=steps.maps, warp=steps.warp, instrs=steps.instrs,
    )  # fmt: skip


def _through_maps(steps: Steps, body: tuple[k.Stmt, ...]) -> frozenset[str]:
    """The buffers that are written through a map."""
    maps = {map.name: map for map in steps.maps}
    every = (stmt.moved(maps) for stmt in k.walk(body) if isinstance(stmt, k.Operation))
    return frozenset(moved.target.name for moved in every if moved and moved.tile and moved.tile.buffer is moved.source)


def _layout_symbols(buffer: Buffer) -> frozenset[Sym]:
    """The sizes that the address of an element depends on."""
    shape: tuple[Expr, ...] = buffer.shape[1:] if buffer.strides is None else buffer.strides
    return frozenset(s for e in shape for s in e.syms())
