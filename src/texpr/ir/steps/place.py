"""Where a buffer of the program lives in a kernel, and how its indices change on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir.kernel import Space
from texpr.ir.value import Buffer, Load, Ref
from texpr.support.record import Record, field, replace


class Parts(Record):
    """How elements of a local lie in the `blocks` of a cluster: runs of `run` consecutive ones along `dim` go round them.

    With no dimension all lie in the first block. `rank`: which of the blocks a block is. `known`: of subscripts that the
    program has, the block and the place there, found before.
    """

    dim: int | None
    run: int
    blocks: int
    rank: Sym
    known: Mapping[tuple[Expr, ...], tuple[Expr, ...]] = field(default_factory=dict[tuple[Expr, ...], "tuple[Expr, ...]"])

    def block(self, own: Sequence[Expr]) -> Expr:
        """The block that has the element `own`."""
        return ZERO if self.dim is None else own[self.dim] // self.run % self.blocks

    def index(self, own: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The block that has the element `own`, and where it lies there."""
        if own in self.known:
            return self.known[own]
        if self.dim is None:
            return (ZERO, *own)
        at = own[self.dim]
        place = at // (self.run * self.blocks) * self.run + at % self.run
        return (self.block(own), *own[: self.dim], place, *own[self.dim + 1 :])

    def shape(self, whole: Sequence[Expr]) -> tuple[Expr, ...]:
        """Extents of what lies in one block of an array of extents `whole`."""
        if self.dim is None:
            return tuple(whole)
        round = self.run * self.blocks
        part = (whole[self.dim] + (round - 1)) // round * self.run
        return (*whole[: self.dim], part, *whole[self.dim + 1 :])


class RegisterLayout(Record):
    """How elements are dealt out. `thread` and `slots` are over `names`, the subscripts; `shape`: how many slots there are."""

    names: tuple[Sym, ...]
    thread: Expr
    slots: tuple[Expr, ...]
    shape: tuple[int, ...]

    def same(self, one: Mapping[Sym, Sym], other: Mapping[Sym, Sym]) -> Iterator[tuple[Expr, Expr]]:
        """What is equal where two elements, by other names of their subscripts, are in one place."""
        for value in (self.thread, *self.slots):
            yield value.substitute(one), value.substitute(other)


class Place(Record):
    """One buffer's place.

    `register`: a single element kept in the variable of that name. Otherwise `space` and `buffer`, the memory it lives in: its
    index is `leading`, then the program's own index with dimension d divided by `slots[d]` (a thread keeps only its own
    elements), then `trailing`. With `parts`, it is the block that has the element, in the memory of a cluster, then where it
    lies there. In lanes it is a slot of a thread, as elements are `dealt` out.
    """

    space: Space
    buffer: Buffer
    register: Sym | None = None
    leading: tuple[Expr, ...] = ()
    trailing: tuple[Expr, ...] = ()
    slots: tuple[int, ...] = ()
    reason: str = ""
    parts: Parts | None = None
    dealt: RegisterLayout | None = None

    def is_own(self, own: tuple[Expr, ...]) -> bool:
        """Whether those who touch the element `own` have it in their own block, by what was found before."""
        return self.parts is not None and self.index(own)[:1] == (expr(self.parts.rank),)

    def element(self, load: Load) -> Load | Ref:
        """An element of the program where it lives: in the variable, or in memory. Not of one that lanes keep."""
        if self.register is not None:
            return Ref(self.register, load.dtype)
        return replace(load, buffer=self.buffer, index=self.index(load.index))

    def index(self, own: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The index in `buffer` of the program's element `own`."""
        if self.parts is not None:
            index = self.parts.index(own)
            return index if self.space is Space.CLUSTER else index[1:]
        if self.slots:
            shape = self.buffer.shape[len(self.leading) :]
            own = tuple(ZERO if n is ONE else e // s for e, s, n in zip(own, self.slots, shape, strict=False))
        index = (*self.leading, *own, *self.trailing)
        return index if index or not self.buffer.shape else tuple(expr(0) for _ in self.buffer.shape)
