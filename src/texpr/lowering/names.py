"""Fresh names that cannot collide with the program's own."""

from __future__ import annotations

from itertools import count

from texpr.affine.expr import Sym
from texpr.ir import program as ir


class Names:
    """Hands out names no statement, buffer or size of a function has, each once."""

    def __init__(self, function: ir.Function):
        self._taken = {b.name for b in ir.buffers(function)} | {function.name}
        self._taken |= {s.name for s in function.sizes} | {s.name for s, _ in function.consts}
        self._taken |= {s.sym.name for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq | ir.Let)}

    def fork(self) -> Names:
        """Names for one kernel: what it takes stays free for others."""
        copy = object.__new__(Names)
        copy._taken = set(self._taken)
        return copy

    def name(self, base: str) -> str:
        """`base`, or the first of `base_1`, `base_2`, … that is free."""
        for number in count():
            name = f"{base}_{number}" if number else base
            if name not in self._taken:
                self._taken.add(name)
                return name
        raise AssertionError("count() ended")

    def sym(self, base: str) -> Sym:
        """A fresh symbol."""
        return Sym(self.name(base))
