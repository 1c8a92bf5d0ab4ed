"""Numbers that data say in the loop at which something is staged: read once, in front of it, or first in it.

    seq … |ko| { … A[first[e] + i, k] … }        becomes        let first_from = first[e]
                                                                seq … |ko| { … A[first_from + i, k] … }

So a region has a base that its loop does not change, whatever says it. A table that is only read has the same number there;
that it has one, though nothing inside may be executed, is proved.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_load
from texpr.ir.value import Buffer, Load, Value
from texpr.ir.value.structure import same
from texpr.schedule.rewrite.lets import is_there
from texpr.schedule.stage.region import table_of
from texpr.schedule.state import State
from texpr.schedule.tree import replaced
from texpr.support.record import Mutable, field, replace


def settled(state: State, buffer: Buffer, outer: Sequence[ir.Loop], whole: bool = False) -> State:
    """The same with what subscripts of `buffer` add, inside of the last loop of `outer`, read in front of that, or first in
    it; the same state where they add nothing of the kind. `whole`: and with what they are, as that of a page."""
    offsets, at = _Offsets(state, buffer, tuple(outer), whole), outer[-1]
    rewriter = Rewriter(value=lambda value: replace_loads(value, offsets.load), target=lambda load: offsets.load(load) or load)
    body = rewriter.block(at.body)
    if not offsets.lets:
        return state
    before = tuple(let for let in offsets.lets if is_there(state, let.value, outer[:-1]))
    made = replace(at, body=(*(let for let in offsets.lets if let not in before), *body))
    return state.with_body(replaced(state.function.body, at, lambda _: (*before, made)))


class _Offsets(Mutable):
    """Subscripts of `buffer` in the loops `around`, and the `lets` that they name instead of data."""

    state: State
    buffer: Buffer
    around: tuple[ir.Loop, ...]
    whole: bool
    lets: list[ir.Let] = field(default_factory=list[ir.Let])

    def load(self, load: Load) -> Load | None:
        """An element of the buffer."""
        return self.named(load) if load.buffer is self.buffer else None

    def named(self, load: Load) -> Load:
        """The same element; rows that a table names keep their table, whose own subscripts may add such numbers."""
        left, told = list[tuple[Sym, Value]](), dict[Sym, Expr]()
        for sym, meaning in load.data:
            is_named = not self.whole and any(e.as_sym is sym for e in load.index)
            if is_named or not is_there(self.state, meaning, self.around):
                left.append((sym, replace_loads(meaning, self.named)))
            else:
                told[sym] = expr(self.let(meaning))
        return substitute_load(replace(load, data=tuple(left)), told) if load.data else load

    def let(self, meaning: Value) -> Sym:
        """What stands for a number in front of the loop."""
        found = next((let.sym for let in self.lets if same(let.value, meaning)), None)
        if found is None:
            table = table_of(meaning)
            assert table is not None, "as it is there"
            number = f"_{len(self.lets)}" if self.lets else ""
            found = Sym(self.state.fresh(f"{table.buffer.name}_from{number}"))
            self.lets.append(ir.Let(found, meaning, span=table.span))
        return found
