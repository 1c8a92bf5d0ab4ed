"""What a function's `where` promises of its sizes, checked at given ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from texpr.affine.expr import Sym
from texpr.ir.program import Compare
from texpr.support.diagnostic import Diagnostic, Note

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def broken_where(fact: Compare, sizes: Mapping[Sym, int]) -> Diagnostic | None:
    """What says that `fact` does not hold at `sizes` (E0710), which give every size in it; None where it holds."""
    text = f"{fact.left} {fact.op} {fact.right}"
    syms = sorted(fact.left.syms() | fact.right.syms(), key=str)
    notes = tuple(Note(f"{s} = {sizes[s]}") for s in syms)
    try:
        left, right = fact.left.evaluate(sizes), fact.right.evaluate(sizes)
    except ZeroDivisionError:
        return Diagnostic("E0710", fact.span, f"`where {text}` divides by zero", notes)
    if _COMPARE[fact.op](left, right):
        return None
    return Diagnostic("E0710", fact.span, f"`where {text}` does not hold: it is {left} {fact.op} {right}", notes)
