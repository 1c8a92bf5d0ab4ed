"""Every name in a steps form."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Steps, leaves, program
from texpr.ir.steps.work import Decide, Does


def names_in(steps: Steps) -> Iterator[str]:
    """The names of memory, maps, variables and indices, and of the function."""
    yield steps.function
    for buffer in (*steps.buffers, *(array.buffer for array in steps.arrays), *(buffer for buffer, _ in steps.places)):
        yield buffer.name
    yield from (map.name for map in steps.maps)
    yield from (instr.name for instr in steps.instrs)
    yield from (str(sym) for sym in _syms(steps))


def _syms(steps: Steps) -> Iterator[Sym]:
    yield from (*steps.sizes, *(sym for sym, _ in steps.hosts), *(let.sym for let in steps.lets))
    yield from (sym for axis in steps.axes for sym in (axis.sym, axis.base) if sym is not None)
    yield from (sym for along in steps.grid for sym in (along.loop.sym, along.block))
    yield from (place.register for _, place in steps.places if place.register is not None)
    yield from (ref.sym for reduction in steps.reductions for own in reduction.own for ref in own)
    yield from (s.sym for s in ir.walk(program(steps.nodes)) if isinstance(s, ir.Par | ir.Seq | ir.Let))
    works = [step.work for step in leaves(steps.nodes)]
    yield from (work.symbol for work in works if isinstance(work, Decide))
    operations = (op for work in works if isinstance(work, Does) for op in k.walk(work.does))
    for op in (*k.walk(steps.coordinates), *operations):
        if isinstance(op, k.For):
            yield op.sym
        elif isinstance(op, k.Operation):
            yield from (new.sym for new in op.bound)
