"""Shuffles: lanes of a warp read each other's registers."""

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
    """The group is a power of two of lanes, and in every iteration of an unrolled loop the other lane is a different one of
    it."""
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
    """The threads of a block form whole groups."""
    if isinstance(stmt, Exchange) and at.kernel.threads % stmt.width:
        yield f"{at.kernel.threads} threads are no groups of {stmt.width} lanes"


def shuffle_is_of_lanes(stmt: Stmt, at: Place) -> Iterator[str]:
    """The source of a shuffle is an array in lanes."""
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
        """The xor-differences between a lane and those that its value comes from, over the iterations of the loop up to this
        one."""
        return (self.mask,) if self.shift is ZERO else tuple(range(1, 2 * self.mask))

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The target: it has the value of another lane, so no value of this thread is given."""
        return (Bound(self.target, self.source.dtype),)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A shuffle of all lanes of the warp; a block of less than a warp has fewer lanes."""
        threads, warp = to.kernel.threads, to.kernel.warp
        if threads % warp and threads > warp:
            raise CompilerBug(f"an exchange in blocks of {threads} threads, whose last warp is not whole")
        mask, source = (1 << min(threads, warp)) - 1, to.variable(self.source.sym)
        other = str(self.mask) if self.shift is ZERO else f"{self.mask} >> {to.index(self.shift)}"
        target = to.new(self.target)
        yield f"{to.type(self.source.dtype)} const {target} = __shfl_xor_sync({mask:#x}u, {source}, {other}, {self.width});"

    def does(self, effects: Effects) -> None:
        """The lanes synchronise, and the target gets the value of another lane."""
        effects.meets()
        effects.exchanges(self.target, self.source, self.shift)


class Shuffle(Operation, eq=False):
    """`target = source`, as the thread in `lane` of the warp has it; all lanes of the warp take part.

    `source` is an element of an array in LANES, the same register in all lanes once loops are unrolled. `lane` counts modulo
    the size of a warp; a value from a lane that does not exist must not be used. `target` is declared by this statement.
    """

    FORM = (Word("shuffle"), Symbol("target"), Word("="), reads("source"), Word("lane"), Indexed("lane"))
    RULES = (shuffle_is_of_lanes,)

    target: Sym
    source: Load
    lane: Expr

    @property
    def by(self) -> str:
        """The operation and the lane that it reads from."""
        return f"shuffle, lane {self.lane}"

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The target: it has the value of another lane, so no value of this thread is given."""
        return (Bound(self.target, self.source.dtype),)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A shuffle of the lanes that exist: the last warp of a block may have fewer than the others."""
        threads, warp, source, lane = to.kernel.threads, to.kernel.warp, to.element(self.source), to.index(self.lane)
        alike = threads < warp or threads % warp == 0
        mask = f"{(1 << min(threads, warp)) - 1:#x}u" if alike else f"tx_lanes({threads})"
        target = to.new(self.target)
        yield f"{to.type(self.source.dtype)} const {target} = __shfl_sync({mask}, {source}, {lane});"

    def does(self, effects: Effects) -> None:
        """The lanes synchronise, and the target gets the register of the named lane."""
        effects.meets()
        effects.takes(self.target, self.source, effects.thread // effects.warp * effects.warp + self.lane % effects.warp)
