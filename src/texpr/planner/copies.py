"""Scripts for products of tiles: operands that are copied to shared memory, and what has to hold in the end."""

from __future__ import annotations

from texpr.affine.expr import Expr
from texpr.ir import program as ir
from texpr.ir.value import Load
from texpr.isa.cuda import ASYNC_COPY
from texpr.planner.follow import Refused, Value
from texpr.planner.strategy import Script
from texpr.schedule.apply import laid_out
from texpr.support.diagnostic import TexprError
from texpr.support.record import field

COPIED = (16, 8, 4)
"""Bytes of one copy, the widest first: what `cp.async` moves at once (PTX ISA, "cp.async")."""


class Copies(Script, kw_only=True):
    """A script that gives products to instructions. `along`: for an operand of an array that both are parts of, the loop with
    which it varies, by its place in the nest."""

    along: dict[tuple[Expr, ...], str] = field(default_factory=dict[tuple[Expr, ...], str])

    def require_laid_out(self) -> None:
        """That all around a product can be told by lanes, which shows when a schedule ends. Raises Refused."""
        try:
            laid_out(self.state)
        except TexprError as reason:
            raise Refused(next(each for each in self.directives if each.name == "mma"), reason, None) from None

    def to_shared(self, load: Load, at: str) -> None:
        """Copies an operand, asynchronously where that is possible, with vectors where rows begin at multiples of them."""
        buffer = load.buffer
        (name,) = self.fresh(buffer.name, "s")
        state, directives, ways = self.state, list(self.directives), list[tuple[str, int]]()
        if ASYNC_COPY in self.state.target.features:
            ways += [("cp_async", size) for size in COPIED]
        ways += [("ld", size) for size in COPIED]
        for via, size in ways:
            lanes = size // buffer.dtype.bytes
            self.state, self.directives = state, list(directives)
            self._staged(load, name, at, via)
            last = f"{name}_{self.last(name)}"
            if lanes < 2 or self.may("vectorize", last, lanes, results=self.fresh(last, "o", "v")):
                break
            self.dropped.pop()
        else:
            self.state, self.directives = state, list(directives)
            self._staged(load, name, at, "ld")
        pad = COPIED[0] // buffer.dtype.bytes
        self.may("resize", f"{name}.d{self.last(name)}", 0, pad)

    def _staged(self, load: Load, name: str, at: str, via: str) -> None:
        keys: dict[str, Value] = {"at": at, "in": "shared", **self.which(load)}
        if via != "ld":
            keys = {"via": via, **keys}
        self.must("stage", load.buffer.name, results=(name,), of=load.buffer, **keys)

    def which(self, load: Load) -> dict[str, Value]:
        """What tells an operand from another one of the same array."""
        name = self.along.get(load.index)
        return {} if name is None else {"along": name}

    def last(self, name: str) -> int:
        """The last dimension of a staged buffer."""
        made = (s.buffer for s in ir.walk(self.state.function.body) if isinstance(s, ir.New))
        return next(buffer for buffer in made if buffer.name == name).rank - 1
