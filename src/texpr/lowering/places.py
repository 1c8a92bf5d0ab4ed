"""Where a buffer of the program lives in a kernel, and how its indices change on the way."""

from __future__ import annotations

from dataclasses import dataclass

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir.kernel import Space
from texpr.ir.value import Buffer


@dataclass(frozen=True, slots=True)
class Place:
    """One buffer's place.

    `register`: a single element kept in the variable of that name. Otherwise `space` and `buffer`, the memory it lives in: its
    index is `leading`, then the program's own index with dimension d divided by `slots[d]` (a thread keeps only its own
    elements), then `trailing`.
    """

    space: Space
    buffer: Buffer
    register: Sym | None = None
    leading: tuple[Expr, ...] = ()
    trailing: tuple[Expr, ...] = ()
    slots: tuple[int, ...] = ()
    reason: str = ""

    def index(self, own: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The index in `buffer` of the program's element `own`."""
        if self.slots:
            shape = self.buffer.shape[len(self.leading) :]
            own = tuple(ZERO if n is ONE else e // s for e, s, n in zip(own, self.slots, shape, strict=False))
        index = (*self.leading, *own, *self.trailing)
        return index if index or not self.buffer.shape else tuple(expr(0) for _ in self.buffer.shape)
