"""Fresh names that do not collide with the program's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

from texpr.affine.expr import Sym
from texpr.ir import program as ir

_NUMBER = re.compile(r"_[0-9]+$")

PLAIN = frozenset({"anchored", "group", "lane", "next", "other", "step", "tested", "turn", "warp"})
"""Base names of registers and loops that emission creates, where they are not derived from another name."""


class Names:
    """Provides names that no statement, buffer or size of a function has, each once."""

    def __init__(self, function: ir.Function):
        self._taken = {b.name for b in ir.buffers(function)} | {function.name}
        self._taken |= {s.name for s in function.sizes} | {s.name for s, _ in function.consts}
        self._taken |= {s.sym.name for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq | ir.Let)}

    @classmethod
    def beside(cls, taken: Iterable[str]) -> Names:
        """A source of names that differ from those `taken`."""
        made = object.__new__(cls)
        made._taken = set(taken)
        return made

    @property
    def plain(self) -> frozenset[str]:
        """The taken names that emission might also choose."""
        return frozenset(name for name in self._taken if _NUMBER.sub("", name) in PLAIN)

    def fork(self) -> Names:
        """A source of names for one kernel; the names that it takes remain free for others."""
        return Names.beside(self._taken)

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
