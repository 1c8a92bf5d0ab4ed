"""Helps for errors and undecided findings: promises and changes of loops, tried on the function before they are given.

A rule offers candidates, best first, as changes of the function with their text; `tried` keeps the first with which the rule
no longer reports the finding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program
from texpr.ir.program import Assume, Compare, Function, Par, Stmt, blocks, in_turn, walk
from texpr.ir.program.promises import assume_text
from texpr.ir.program.rewrite import Rewriter, map_value, specialize
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value import walk as walk_value
from texpr.ir.value.types import I64
from texpr.presburger.formula import compare, holds
from texpr.support.diagnostic import Clause, Diagnostic, Edit, Offer, Proposal
from texpr.support.record import replace
from texpr.support.span import NOWHERE, Span

_TRIALS = ((2, 3, 5, 4, 7), (1, 1, 1, 1, 1), (3, 2, 4, 5, 2), (4, 4, 4, 4, 4), (0, 1, 2, 3, 4))
"""Sizes, in order of appearance, at which an undecided rule is repeated: there products are constants."""

MOST_TRIED = 12
"""The number of helps tried for one function; later findings get none."""


def where(function: Function, *facts: tuple[Expr, str, int], help: str = "add") -> Iterator[Offer]:
    """The offer of a `where` clause; none where something other than sizes is compared."""
    known = {*function.sizes, *(sym for sym, _ in function.consts)}
    if facts and all(value.syms() and value.syms() <= known for value, _, _ in facts):
        text = "where " + ", ".join(f"{value} {op} {number}" for value, op, number in facts)
        clauses = tuple(Compare(op, value, expr(number)) for value, op, number in facts)
        yield Offer(Proposal(f'{help} "{text}"', Clause(text)), lambda given: replace(given, where=(*given.where, *clauses)))


def promised(function: Function, assume: Assume, help: str) -> Iterator[Offer]:
    """The offer of an `assume` clause about an input's elements; `help` is its text."""
    if assume.buffer in function.params and assume.buffer.role == "input":
        clause = Clause(f"assume {assume_text(assume)}")
        yield Offer(Proposal(help, clause), lambda given: replace(given, assumes=(*given.assumes, assume)))


def reduced(loop: Par, buffer: Buffer, help: str) -> Iterator[Offer]:
    """The offer of a `reduce` clause for a buffer."""
    place = _head(loop, "reduce(" if loop.reduce else "{")
    if place is not None:
        edit = Edit(f"…{buffer.name}, " if loop.reduce else f"reduce({buffer.name}) …", place)
        both = (*loop.reduce, buffer)
        yield Offer(Proposal(help, edit), lambda given: _changed(given, loop, lambda s: replace(s, reduce=both)))


def in_order(loop: Par, help: str) -> Iterator[Offer]:
    """The offer to make a loop sequential."""
    start = loop.span.start
    if loop.span is not NOWHERE and loop.span.source.text[start : start + 3] == "par":
        edit = Edit("seq", Span(loop.span.source, start, start + 3))
        yield Offer(Proposal(help, edit), lambda given: _changed(given, loop, in_turn))


def wider(function: Function, tables: Collection[Buffer]) -> Iterator[Offer]:
    """The offers to compute in 64 bits what a comparison adds to an element of `tables`, of a type that may wrap."""
    values = [each for stmt in walk(function.body) for value in program.values(stmt) for each in walk_value(value)]
    lets = {stmt.sym: stmt.value for stmt in walk(function.body) if isinstance(stmt, program.Let)}
    for test in (each for each in values if isinstance(each, Op) and each.name in COMPARED):
        leaves = [each for each in walk_value(test) if not isinstance(each, Op)]
        data = [each for each in leaves if not isinstance(each, Index | Literal)]
        read = lets.get(data[0].sym) if len(data) == 1 and isinstance(data[0], Ref) else None
        if isinstance(read, Load) and read.buffer in tables and read.dtype.bits < I64.bits and len(leaves) > 2:
            new = Op(test.name, tuple(map(_widened, test.args)), test.dtype, test.span)
            place = _only(read.span.text, test.span)
            if place is not None:
                proposal = Proposal("compute it in 64 bits, `i64(…)`: a sum wraps", Edit("i64(…)", place))
                yield Offer(proposal, partial(_with, test, new))


def _only(text: str, span: Span) -> Span | None:
    """The position of `text` in a part of a program, if it is unique."""
    if not text or span is NOWHERE or span.text.count(text) != 1:
        return None
    start = span.start + span.text.index(text)
    return Span(span.source, start, start + len(text))


COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
"""Comparisons, of operands of one type."""


def _widened(value: Value) -> Value:
    """`value`, made of array elements, numbers and indices, in 64 bits."""
    match value:
        case Op(name, args):
            return Op(name, tuple(map(_widened, args)), I64, value.span)
        case Index(number):
            return Index(number, I64, value.span)
        case Literal(number):
            return Literal(number, I64)
        case _:
            return Cast(value, I64)


def _with(old: Value, new: Value, given: Function) -> Function:
    """`given` with the value `old` replaced by `new`."""
    rewriter = Rewriter(value=lambda value: map_value(value, lambda each: new if each == old else None))
    return replace(given, body=rewriter.block(given.body))


_SIZES_FIXED = Edit("…")
"""No change of the text: sizes are fixed at build."""


def fixed(function: Function) -> Iterator[Offer]:
    """The offer to fix the sizes, tried at some sizes."""
    each = next(trials(function), None)
    if each:
        names = " ".join(f"--size {sym}=…" for sym in function.sizes)
        help = f"fix the sizes that are multiplied, as in `{names}`, or write one subscript for each dimension"
        yield Offer(Proposal(help, _SIZES_FIXED), lambda given: specialize(given, each))


def trials(function: Function) -> Iterator[dict[Sym, int]]:
    """Small sizes that `where` admits; consts keep their defaults where they have one."""
    names = (*function.sizes, *(sym for sym, _ in function.consts))
    defaults = {sym: value for sym, value in function.consts if value is not None}
    for trial in _TRIALS:
        sizes = {name: trial[at % len(trial)] for at, name in enumerate(names)} | defaults
        if all(holds(compare(c.op, c.left, c.right), sizes) for c in function.where):
            yield sizes


def _head(loop: Par, word: str) -> Span | None:
    """A word in the head of a loop as written; `{`, which no head contains, ends it."""
    if loop.span is NOWHERE:
        return None
    text, start = loop.span.source.text, loop.span.start
    at = text.find(word, start, text.find("{", start) + 1)
    return None if at < 0 else Span(loop.span.source, at, at + len(word))


def _changed(function: Function, loop: Par, change: Callable[[Par], Stmt]) -> Function:
    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(stmt(s) for s in body)

    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, Par) and s.span == loop.span and s.sym == loop.sym:
            return change(s)
        inner = blocks(s)
        if not inner:
            return s
        made = [block(each) for each in inner]
        return replace(s, then=made[0], orelse=made[1]) if len(made) == 2 else replace(s, body=made[0])

    return replace(function, body=block(function.body))


_OF_OFFERS = ("E0412", "E0413", "E0414", "E0415", "E0420")
"""The codes with which an `assume` without effect, and a misplaced `reduce`, are refused."""


class Trials:
    """Tries offers for one function, a limited number of them; `find` is a rule."""

    def __init__(self, function: Function):
        self.function = function
        self.left = MOST_TRIED

    def tried(self, found: Diagnostic, find: Callable[[Function], Iterable[Diagnostic]]) -> Diagnostic:
        """`found` with the first of its offers that works as its help, otherwise with its own help."""
        for offer in found.offers:
            if self.left == 0:
                break
            self.left -= 1
            try:
                after = list(find(offer.change(self.function)))
            except ZeroDivisionError:  # a size that divides in an index, fixed at 0
                continue
            if not any(_same(found, other) or other.code in _OF_OFFERS for other in after):
                fix = offer.proposal.fix
                kept = None if fix is _SIZES_FIXED else fix
                return replace(found, help=offer.proposal.text, fix=kept, offers=())
        return replace(found, offers=())


def _same(one: Diagnostic, other: Diagnostic) -> bool:
    """Whether two findings have one place and one kind (error or undecided): turning one kind into the other is no remedy."""
    places = [(-1, -1) if d.span is None else (d.span.start, d.span.end) for d in (one, other)]
    return places[0] == places[1]
