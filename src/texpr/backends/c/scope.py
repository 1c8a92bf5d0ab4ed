"""The scope at a point of emitted code: names, C types and ranges of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Fact
from texpr.affine.ranges import Range
from texpr.affine.typed import Knowledge
from texpr.backends.c.names import Taken
from texpr.backends.c.text import Binds, Text
from texpr.ir.kernel.knowledge import data_knowledge
from texpr.ir.operation.maps import TensorMap
from texpr.ir.value import Buffer
from texpr.ir.value.types import DType
from texpr.support.limits import Width
from texpr.support.record import Record, field, replace

CTYPES = {Width.INT: "int", Width.LONG: "long long", Width.WIDE: "tx_int128"}
"""The C types of variables, and of data."""


class Variable(Record):
    """An integer variable in C text."""

    text: Text
    width: Width

    @property
    def ctype(self) -> str:
        """Its C type."""
        return CTYPES[self.width]


class Scope(Record):
    """The names in scope, and the knowledge about their values.

    `named`: names of buffers (arrays, pointers, scalars), maps and register variables; `scalars`: the buffers that are plain
    values; `parts`: the buffers in cluster memory, with the coordinate that is the rank of a block; `quotients`: texts that are
    written instead of a division.
    """

    taken: Taken
    names: Mapping[Sym, Text]
    named: Mapping[Sym | Buffer | TensorMap, str]
    scalars: frozenset[Buffer]
    here: Knowledge
    parts: Mapping[Buffer, Sym] = field(default_factory=dict[Buffer, Sym])
    quotients: Mapping[Expr, Text] = field(default_factory=dict[Expr, Text])

    @staticmethod
    def empty(here: Knowledge | None = None) -> Scope:
        """A scope without names."""
        return Scope(Taken(), {}, {}, frozenset(), here or Knowledge())

    def inner(self) -> Scope:
        """The scope of a nested block."""
        return self._with(taken=self.taken.inner())

    def name(self, key: Sym | Buffer | TensorMap, wanted: str | None = None) -> tuple[Scope, str]:
        """The scope with a fresh name for `key`, a register variable, a buffer or a map; and that name."""
        text = self.taken.take(wanted or key.name)
        return self._with(named={**self.named, key: text}), text

    def also_named(self, key: Sym, text: str) -> Scope:
        """The scope in which an integer variable is also a register variable with the value `text`, a name or a cast of one."""
        return self._with(named={**self.named, key: text})

    def scalar(self, buffer: Buffer) -> tuple[Scope, str]:
        """The scope with `buffer` as a plain value; and its name."""
        scope, text = self.name(buffer)
        return scope._with(scalars=self.scalars | {buffer}), text

    def part(self, buffer: Buffer, rank: Sym) -> tuple[Scope, str]:
        """The scope with `buffer` as this block's part of cluster memory; and its name."""
        scope, text = self.name(buffer)
        return scope._with(parts={**self.parts, buffer: rank}), text

    def variable(self, sym: Sym) -> Variable:
        """The variable for `sym`."""
        return Variable(self.names[sym], self.here.widths[sym])

    def integer(self, sym: Sym, ends: Range, facts: Iterable[Fact] = (), past: Range | None = None) -> tuple[Scope, Variable]:
        """The scope with `sym` as an integer variable in the range `ends`; and that variable; see `Knowledge.integer`."""
        return self.known_as(sym, self.here.integer(sym, ends, facts, past))

    def known_as(self, sym: Sym, here: Knowledge) -> tuple[Scope, Variable]:
        """The scope with `sym`, which `here` knows, as a variable of its name; and that variable."""
        scope = self.stands_for(sym, Text(self.taken.take(sym.name)), here)
        return scope, scope.variable(sym)

    def stands_for(self, sym: Sym, text: Text, here: Knowledge) -> Scope:
        """The scope with `text` for `sym`, which `here` knows."""
        return self._with(names={**self.names, sym: text}, here=here)

    def data(self, sym: Sym, text: Text, dtype: DType, source: Buffer | None) -> Scope:
        """The scope with `text`, an integer of type `dtype` from `source`, for `sym` in index expressions."""
        here = data_knowledge(sym, dtype, self.here, source)
        width = here.widths[sym]
        wide = width is not Width.INT
        return self.stands_for(sym, Text(f"({CTYPES[width]}){text.at(Binds.UNARY)}", Binds.UNARY) if wide else text, here)

    def dividing(self, quotients: Mapping[Expr, Text]) -> Scope:
        """The scope in which these divisions are written otherwise."""
        return self._with(quotients={**self.quotients, **quotients})

    def knowing(self, here: Knowledge) -> Scope:
        """The same names with other knowledge."""
        return self._with(here=here)

    def given(self, facts: Iterable[Fact]) -> Scope:
        """The scope with further `facts`."""
        return self._with(here=self.here.also(facts=facts))

    def bounds(self, value: Expr) -> Range:
        """The range of an index expression here."""
        return self.here.bounds(value)

    def _with(self, **changes: object) -> Scope:
        return replace(self, **changes)
