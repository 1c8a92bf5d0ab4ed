"""What lanes of a warp get from each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir import operation
from texpr.ir.operation import Bound, Operation
from texpr.ir.operation.form import Indexed, Maybe, Number, Symbol, Variable, Word, reads
from texpr.ir.value import Load, Ref
from texpr.isa.levels import WARP, Space
from texpr.support.diagnostic import CompilerBug

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.printing import Printing


def exchange_is_within_a_warp(stmt: Stmt, at: Place) -> Iterator[str]:
    """Groups are powers of two of lanes, and the other lane is another one of the group, in each turn of an unrolled loop."""
    if isinstance(stmt, Exchange):
        shifts = {expr(s.sym): s.hi for s in at.loops if s.kind == "unroll" and s.lo is ZERO}
        last = {ZERO: ONE, **shifts}.get(stmt.shift)
        if last is None or not last.is_constant or 0 < stmt.mask < 1 << max(last.constant - 1, 0):
            yield f"lane ^ {stmt.mask} >> {stmt.shift} is perhaps no other lane"
        if not 2 <= stmt.width <= at.kernel.warp or stmt.width & (stmt.width - 1):
            yield f"{stmt.width} lanes are no power of two from 2 to {at.kernel.warp}"
        if not 1 <= stmt.mask < stmt.width:
            yield f"lane ^ {stmt.mask} is no other lane of {stmt.width}"


def exchange_is_in_whole_groups(stmt: Stmt, at: Place) -> Iterator[str]:
    """A block is groups of lanes."""
    if isinstance(stmt, Exchange) and at.kernel.threads % stmt.width:
        yield f"{at.kernel.threads} threads are no groups of {stmt.width} lanes"


def shuffle_is_of_lanes(stmt: Stmt, at: Place) -> Iterator[str]:
    """What lanes read of each other is in registers that are there for it."""
    if isinstance(stmt, Shuffle) and at.space(stmt.source.buffer) is not Space.LANES:
        yield f"{stmt.source.buffer.name} is in no registers that other lanes may read"


class Exchange(Operation, eq=False):
    """`target = value of source in lane (lane ^ mask >> shift)` within groups of `width` lanes.

    All lanes of the warp take part. `target` is declared by this statement.
    """

    FORM = (
        Word("exchange"),
        Symbol("target"),
        Word("="),
        Variable("source"),
        Word("^"),
        Number("mask"),
        Maybe("shift", ZERO, "shift", (Indexed("shift"),)),
        Maybe("width", WARP, "width", (Number("width"),)),
    )
    RULES = (exchange_is_within_a_warp, exchange_is_in_whole_groups)

    target: Sym
    source: Ref
    mask: int
    width: int = WARP
    shift: Expr = ZERO

    @property
    def masks(self) -> tuple[int, ...]:
        """In turns that join what all lanes have, of every turn up to the last."""
        return (self.mask,) if self.shift is ZERO else tuple(range(1, 2 * self.mask))

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    @property
    def bound(self) -> tuple[Bound, ...]:
        """What the other lane holds, which is no value of this one."""
        return (Bound(self.target, self.source.dtype),)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A shuffle among all lanes of the warp; a block of fewer threads has fewer lanes."""
        threads, warp = to.kernel.threads, to.kernel.warp
        if threads % warp and threads > warp:
            raise CompilerBug(f"an exchange in blocks of {threads} threads, whose last warp is not whole")
        mask, source = (1 << min(threads, warp)) - 1, to.variable(self.source.sym)
        other = str(self.mask) if self.shift is ZERO else f"{self.mask} >> {to.index(self.shift)}"
        target = to.new(self.target)
        yield f"{to.type(self.source.dtype)} const {target} = __shfl_xor_sync({mask:#x}u, {source}, {other}, {self.width});"

    def does(self, effects: Effects) -> None:
        """Lanes come together, and each has what another had."""
        effects.meets()
        effects.exchanges(self.target, self.source, self.shift)


class Shuffle(Operation, eq=False):
    """`target = source as the thread in `lane` of the warp has it`; all lanes of the warp take part.

    `source` is an element of an array in LANES, the same one in all of them when loops are unrolled. `lane` counts modulo those
    of a warp; what a lane gets that does not exist is of no use. `target` is declared by this statement.
    """

    FORM = (Word("shuffle"), Symbol("target"), Word("="), reads("source"), Word("lane"), Indexed("lane"))
    RULES = (shuffle_is_of_lanes,)

    target: Sym
    source: Load
    lane: Expr

    @property
    def by(self) -> str:
        """From which lane."""
        return f"shuffle, lane {self.lane}"

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    @property
    def bound(self) -> tuple[Bound, ...]:
        """What another lane keeps, which is no value of this one."""
        return (Bound(self.target, self.source.dtype),)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A shuffle among the lanes that the warp has: the last one of a block may have fewer than others."""
        threads, warp, source, lane = to.kernel.threads, to.kernel.warp, to.element(self.source), to.index(self.lane)
        alike = threads < warp or threads % warp == 0
        mask = f"{(1 << min(threads, warp)) - 1:#x}u" if alike else f"tx_lanes({threads})"
        target = to.new(self.target)
        yield f"{to.type(self.source.dtype)} const {target} = __shfl_sync({mask}, {source}, {lane});"

    def does(self, effects: Effects) -> None:
        """Lanes come together, and each has what the named one keeps."""
        effects.meets()
        effects.takes(self.target, self.source, effects.thread // effects.warp * effects.warp + self.lane % effects.warp)
