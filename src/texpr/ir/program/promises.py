"""The promises of a function's callers: evaluation of `where` at given sizes, and the text of an `assume`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import assert_never

from texpr.affine.expr import Sym
from texpr.ir.program import Assume, Compare, Injective, InRange, Monotone
from texpr.support.diagnostic import Diagnostic, Note

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def broken_where(fact: Compare, sizes: Mapping[Sym, int]) -> Diagnostic | None:
    """The error E0710 if `fact` is false at `sizes`, which have every size in it; None if it holds."""
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


def assume_text(assume: Assume) -> str:
    """`I in 0..n`, `injective(I)`, `monotone(I)`: an assumption as in the text."""
    match assume:
        case InRange():
            return f"{assume.buffer.name} in {assume.lo}..{assume.hi}"
        case Injective():
            return f"injective({assume.buffer.name})"
        case Monotone():
            return f"monotone({assume.buffer.name})"
        case _:
            assert_never(assume)
