"""Rows that are too long for the shared memory of a block, and read more than once: a cluster of blocks keeps them.

    par M |i| { par N |j| reduce(m) { m max= X[i, j] }  …  par N |l| { Y[i, l] = X[i, l] - m } }

A single block has to read such a row from global memory each time. Instead each block of a cluster keeps a part of it, read
once, and every loop over the row is distributed over the blocks in the same way; sums are combined across blocks. It is
applied where all parts fit, with the fewest blocks that suffice: no other schedule reads less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from texpr.affine.expr import Expr
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.isa.registry import DEVICES
from texpr.isa.target import Target
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.support.record import Record

RESIDENT = 8
"""Blocks that a multiprocessor holds by default: of `mapping.default.THREADS` each."""

BESIDE = 4
"""Blocks that a multiprocessor is to hold at least, if it can: one brings a row while others compute."""

VECTOR = 4
"""Elements that a thread moves at once."""

SCRATCH = 4096
"""The bytes of a block's shared memory that are reserved for the partial sums of warps."""


class Rows(Record):
    """`outer`: the loops of the grid; `inner`: bands over elements of rows. `kept`: inputs whose rows are kept, with the
    number of their reads. `blocks`: the size of the cluster."""

    outer: tuple[ir.Par, ...]
    inner: tuple[ir.Par, ...]
    kept: tuple[tuple[Buffer, int], ...]
    blocks: int

    def __str__(self) -> str:
        """The summary for `explain`."""
        told = ", ".join(f"`{buffer.name}` (read once, not {times} times)" for buffer, times in self.kept)
        return f"{self.blocks} blocks of a cluster keep rows of {told or 'what it makes'}"


def rows(par: ir.Par, target: Target) -> Rows | None:
    """The rows of a nest that do not fit a block of `target`, but a cluster of blocks."""
    outer, body = _grid(par)
    if target.max_cluster < 2 or any(p.reduce or p.fully for p in outer):
        return None
    inner = tuple(_bands(body))
    if not inner or not all(p.extent.is_constant for p in inner):
        return None
    locals_ = {s.buffer for s in ir.walk(body) if isinstance(s, ir.New)}
    made = [size for b in locals_ if (size := _bytes(b.shape, b)) is not None]
    kept = tuple((b, times) for b, times in _read(body, inner).items() if times > 1 and b not in locals_)
    sizes = [*made, *(max(p.extent.constant for p in inner) * b.dtype.bytes for b, _ in kept)]
    if max(sizes, default=0) <= _cached(target):
        return None
    large = sum(size for size in sizes if size > SCRATCH)
    fit = [n for n in (2, 4, 8) if n <= target.max_cluster and -(-large // n) + SCRATCH <= target.shared]
    blocks = next((n for n in fit if -(-large // n) + SCRATCH <= target.shared // BESIDE), fit[-1] if fit else None)
    if blocks is None or (max(sizes) <= target.shared and any(p.extent.constant % (VECTOR * blocks) for p in inner)):
        return None  # a block could do such rows alone, and issues fewer instructions than blocks with other parts
    return Rows(outer, inner, kept, blocks)


def _cached(target: Target) -> int:
    """Bytes of a row that are still in a cache when it is read again, while all multiprocessors read such rows."""
    device = DEVICES.get(target.name)
    if device is None or device.cache.value is None or device.multiprocessors.value is None:
        return target.shared
    return int(device.cache.value / (device.multiprocessors.value * RESIDENT))


def _grid(par: ir.Par) -> tuple[tuple[ir.Par, ...], tuple[ir.Stmt, ...]]:
    """`par` and the loops perfectly nested in it, and the body of the innermost."""
    found = [par]
    while len(found[-1].body) == 1 and isinstance(inner := found[-1].body[0], ir.Par):
        found.append(inner)
    return tuple(found), found[-1].body


def _bands(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Par]:
    """The outermost loops that are distributed over threads."""
    for stmt in body:
        if isinstance(stmt, ir.Par):
            yield stmt
        else:
            for block in ir.blocks(stmt):
                yield from _bands(block)


def _read(body: tuple[ir.Stmt, ...], inner: tuple[ir.Par, ...]) -> dict[Buffer, int]:
    """For each buffer that is only read, the number of bands that read a row of it, element by element."""
    written = {t.buffer for s in ir.walk(body) if isinstance(s, ir.Bind) for t in s.targets}
    found: dict[Buffer, int] = {}
    for par in inner:
        here = {
            load.buffer
            for stmt in ir.walk(par.body)
            for load in loads(stmt)
            if load.buffer.rank and load.index[-1].as_sym is par.sym and not load.data
        }
        for buffer in sorted(here - written, key=lambda b: b.name):
            found[buffer] = found.get(buffer, 0) + 1
    return found


def _bytes(shape: tuple[Expr, ...], buffer: Buffer) -> int | None:
    if not all(e.is_constant for e in shape):
        return None
    return prod(e.constant for e in shape) * buffer.dtype.bytes


class Long(Script, kw_only=True):
    """Distributes the rows over the blocks of a cluster."""

    rows: Rows

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        at = self.rows.outer[-1].sym.name
        for buffer, _ in self.rows.kept:
            (name,) = self.fresh(buffer.name, "row")
            self.must("stage", buffer.name, results=(name,), of=buffer, at=at, space="cluster")
            self.shared_out(f"{name}_{buffer.rank - 1}", buffer)
        for par in self.rows.inner:
            self.shared_out(par.sym.name, None)
        return ()

    def shared_out(self, loop: str, buffer: Buffer | None) -> None:
        """Distributes a loop over the blocks, by vectors where that can be proved."""
        block, part = self.fresh(loop, "c", "p")
        self.must("split", loop, results=(block, part), of=buffer, parts=self.rows.blocks)
        self.must("bind", block, "cluster.x")
        quad, lane = self.fresh(part, "q", "l")
        self.may("vectorize", part, VECTOR, results=(quad, lane))


def _applies(subject: Subject) -> bool:
    return isinstance(subject.nest, NoPlan)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    kept = None if refused else rows(subject.par, subject.state.target)
    return None if kept is None else Proposal(Long(subject.state, subject.span, rows=kept), said=str(kept))


STRATEGY = Strategy(Rank.CLUSTER, _applies, _propose)
