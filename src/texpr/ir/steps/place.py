"""The place of a local in a kernel, and the mapping of its indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir.kernel import Space
from texpr.ir.value import Buffer, Load, Ref
from texpr.support.record import Record, field, replace


class Parts(Record):
    """The distribution of a local over the `blocks` of a cluster: runs of `run` consecutive indices of `dim`, cyclically.

    Without a dimension all elements are in the first block. `rank`: the rank of a block. `known`: for subscripts of the
    program, the simplified rank and index, computed before.
    """

    dim: int | None
    run: int
    blocks: int
    rank: Sym
    known: Mapping[tuple[Expr, ...], tuple[Expr, ...]] = field(default_factory=dict[tuple[Expr, ...], "tuple[Expr, ...]"])

    def block(self, own: Sequence[Expr]) -> Expr:
        """The rank of the block that has the element `own`."""
        return ZERO if self.dim is None else own[self.dim] // self.run % self.blocks

    def index(self, own: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The rank of the block that has the element `own`, then the index in that block."""
        if own in self.known:
            return self.known[own]
        if self.dim is None:
            return (ZERO, *own)
        at = own[self.dim]
        place = at // (self.run * self.blocks) * self.run + at % self.run
        return (self.block(own), *own[: self.dim], place, *own[self.dim + 1 :])

    def shape(self, whole: Sequence[Expr]) -> tuple[Expr, ...]:
        """The extents of the part in one block of an array of extents `whole`."""
        if self.dim is None:
            return tuple(whole)
        round = self.run * self.blocks
        part = (whole[self.dim] + (round - 1)) // round * self.run
        return (*whole[: self.dim], part, *whole[self.dim + 1 :])


class RegisterLayout(Record):
    """The distribution of elements over lanes. `thread` and `slots` are over `names`, the subscripts; `shape`: extents of
    slots."""

    names: tuple[Sym, ...]
    thread: Expr
    slots: tuple[Expr, ...]
    shape: tuple[int, ...]

    def same(self, one: Mapping[Sym, Sym], other: Mapping[Sym, Sym]) -> Iterator[tuple[Expr, Expr]]:
        """Pairs that are equal where two elements, with other names for their subscripts, are in one place."""
        for value in (self.thread, *self.slots):
            yield value.substitute(one), value.substitute(other)


class Place(Record):
    """The place of one buffer.

    `register`: the variable of a single element. Otherwise `space` and `buffer`, the memory that has it: the index is
    `leading`, then the program's index with dimension d divided by `slots[d]` (a thread stores its own elements only), then
    `trailing`. With `parts` it is in cluster memory: the rank of the block, then the index in it. In lanes it is a slot of a
    thread, by the layout `dealt`.
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
        """Whether the threads that access the element `own` are in the block that has it, by what `parts` knows."""
        return self.parts is not None and self.index(own)[:1] == (expr(self.parts.rank),)

    def element(self, load: Load) -> Load | Ref:
        """The element of the kernel for one of the program: a variable, or an element of memory. Not for elements in lanes."""
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
