"""A function for callers who promise more: where arrays begin, and what holds of sizes.

It is the same function for fewer arguments, so that whatever is proved of it holds for those who keep the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads
from texpr.ir.value import Buffer, Load, Value
from texpr.support.record import replace


def promised(function: ir.Function, align: Mapping[str, int], where: Sequence[ir.Compare]) -> ir.Function:
    """`function` where the named parameters begin at multiples of so many bytes, and the facts hold, too; without schedules."""
    made = {b: replace(b, align=align[b.name]) for b in function.params if b.name in align}

    def buffer(old: Buffer) -> Buffer:
        return made.get(old, old)

    def load(old: Load) -> Load:
        return replace(old, buffer=buffer(old.buffer))

    def value(old: Value) -> Value:
        return replace_loads(old, load)

    def target(old: Load) -> Load:
        return replace(load(old), data=tuple((sym, value(meaning)) for sym, meaning in old.data))

    return replace(
        function,
        params=tuple(map(buffer, function.params)),
        results=tuple(map(buffer, function.results)),
        body=Rewriter(value=value, target=target, buffer=buffer).block(function.body),
        where=(*function.where, *where),
        assumes=tuple(replace(each, buffer=buffer(each.buffer)) for each in function.assumes),
        schedules=(),
    )
