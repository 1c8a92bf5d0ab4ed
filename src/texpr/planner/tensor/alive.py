"""What a row keeps at once: its locals, each from the first statement of a turn that touches it to the last one.

seq n |b| { s = Q · K   g = G · V   p = exp(s)   acc += p · G   q = s * (g - d)   sum += q · Q }

s, g, p are there at once, and then s, g, q; acc and sum all along.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from texpr.ir import program as ir
from texpr.ir.program.uses import touched
from texpr.ir.value import Buffer
from texpr.planner.nest import NOMINAL

WORD = 4
"""Bytes of a register."""


def registers(body: Sequence[ir.Stmt], rows: int, lanes: int) -> int:
    """The most registers of a lane for locals that are there at once, in the body of a row, or of a turn of it, where so many
    lanes have so many rows."""
    own = [s.buffer for s in body if isinstance(s, ir.New)]
    statements = [s for s in body if not isinstance(s, ir.New)]
    spans = {buffer: at for buffer in own if (at := _span(buffer, statements)) is not None}
    most = 0
    for now, stmt in enumerate(statements):
        here = sum(-(-_bytes(each) * rows // (WORD * lanes)) for each, (first, last) in spans.items() if first <= now <= last)
        most = max(most, here + (registers(stmt.body, rows, lanes) if isinstance(stmt, ir.Seq) else 0))
    return most


def _bytes(buffer: Buffer) -> int:
    """Of a row's part."""
    return prod(e.constant if e.is_constant else NOMINAL for e in buffer.shape) * buffer.dtype.bytes


def _span(buffer: Buffer, statements: Sequence[ir.Stmt]) -> tuple[int, int] | None:
    """The first and the last statement that touch it."""
    found = [at for at, stmt in enumerate(statements) if buffer in touched((stmt,))]
    return (found[0], found[-1]) if found else None
