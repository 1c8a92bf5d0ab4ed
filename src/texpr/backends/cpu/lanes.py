"""A loop over lanes as operations on whole vectors, if every lane does the same arithmetic on neighbouring elements.

    for (int j = 0; j < 32; ++j) c[32 * i + j] += a[i] * b[j];

    for (int j = 0; j < 32; j += TX_LANES(float)) tx_row(c[32 * i + j]) += a[i] * tx_row(b[j]);

The results are equal to the bit: each lane rounds as before. Compilers keep arrays that are accessed as vectors from the start
in registers, when unrolled loops index them; arrays that they vectorise later stay in memory.

If only the first lanes are active, the rest of a vector is neither read nor written, except in local memory of the core, which
contains it: there it is written back unchanged.

    if (i < m && j < n) c[i * n + j] = b[j];

    int const left = tx_max(tx_min(n, 32), 0) - j;
    if (i < m && left > 0) tx_store_some(c[i * n + j], tx_some(b[j], left), left);
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import expr
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, binary
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import addend, element_text, value_text
from texpr.ir.kernel import For
from texpr.ir.kernel.vector.lanes import Lanes, is_same
from texpr.ir.program.updates import sum_and_product
from texpr.ir.value import Buffer, Cast, Load, Op, Value, walk
from texpr.support.record import Record

_OPERATORS = {"add": ("+", Binds.ADD), "sub": ("-", Binds.ADD), "mul": ("*", Binds.MULTIPLY), "div": ("/", Binds.MULTIPLY)}


def head(lanes: Lanes) -> tuple[int, str]:
    """The greatest number of vectors, for 16 bytes each; and the number of lanes of a vector, as C text."""
    return lanes.loop.hi.constant * lanes.dtype.bytes // 16, f"TX_LANES({C_NAMES[lanes.dtype]})"


def rows(lanes: Lanes, scope: Scope, near: frozenset[Buffer]) -> Iterator[str]:
    """The statements for all lanes of a vector. `scope`: inside the loop; `near`: arrays that are local to the core."""
    if lanes.first is None and lanes.test is None:
        yield from (_Row(lanes.loop, scope, near).store(stmt.target, stmt.value, stmt.fused) for stmt in lanes.stores)
        return
    left = scope.taken.take("left")
    yield f"int const {left} = {index_text(lanes.left, scope)};"
    asked = "" if lanes.test is None else f"{value_text(lanes.test, scope).at(Binds.AND)} && "
    yield f"if ({asked}{left} > 0) {{"
    yield from (
        f"    {_Row(lanes.loop, scope, near, left).store(stmt.target, stmt.value, stmt.fused)}" for stmt in lanes.stores
    )
    yield "}"


class _Row(Record):
    """Prints the operations on a vector. `left`: the variable with the number of active lanes, "" if all are active."""

    loop: For
    scope: Scope
    near: frozenset[Buffer]
    left: str = ""

    def store(self, place: Load, new: Value, fused: bool) -> str:
        """One statement."""
        target = f"tx_row({element_text(place, self.scope)})"
        parts = sum_and_product(new) if fused else None
        added = addend(place, new)
        if parts is not None:
            before, a, b = map(self.vector, parts)
            value = f"tx_muladd_rows({a}, {b}, {before})"
        elif added is not None and not self.left:
            return f"{target} += {self.text(added)};"
        else:
            value = self.vector(new)
        if not self.left:
            return f"{target} = {value};"
        if self.is_held(place):
            return f"{target} = tx_choose({self.left}, {value}, {target});"
        return f"tx_store_some({element_text(place, self.scope)}, {value}, {self.left});"

    def vector(self, value: Value) -> str:
        """`value` for each lane, as a vector even if it is uniform."""
        same = all(is_same(node, self.loop.sym) for node in walk(value) if isinstance(node, Load))
        return f"tx_same({value_text(value, self.scope)})" if same else str(self.text(value))

    def text(self, value: Value) -> Text:
        """`value` for each lane as a vector, or as a scalar if it is uniform."""
        match value:
            case Op("neg", (arg,)):
                return Text(f"-{self.text(arg).at(Binds.PRIMARY)}", Binds.UNARY)
            case Op(name, args) if name in _OPERATORS:
                return binary(*_OPERATORS[name], *map(self.text, args))
            case Load() if not is_same(value, self.loop.sym):
                element = element_text(value, self.scope)
                whole = not self.left or self.is_held(value)
                return Text(f"tx_row({element})" if whole else f"tx_some({element}, {self.left})")
            case Cast(arg=Load() as narrow) if not is_same(narrow, self.loop.sym):
                element = element_text(narrow, self.scope)
                whole = not self.left or self.is_held(narrow)
                return Text(f"tx_wide({element})" if whole else f"tx_wide_some({element}, {self.left})")
            case _:
                return value_text(value, self.scope)

    def is_held(self, load: Load) -> bool:
        """Whether the elements of all lanes are in bounds of an array that is local to the core."""
        if load.buffer not in self.near:
            return False
        low, high = self.scope.bounds(load.index[-1] - expr(self.loop.sym))
        return (
            low is not None and low >= 0 and high is not None and high + self.loop.hi.constant <= load.buffer.shape[-1].constant
        )
