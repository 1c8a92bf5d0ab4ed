"""Checks of an emitted function's arguments before it starts, as plain C, for every backend.

In this order: ranges of sizes, every `where`, the bytes of every array, pointers and their alignment. The text needs
texpr_checks.h and the macros of `texpr.backends.c.status`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import mul

from texpr.affine.expr import Expr, Sym, expr, term
from texpr.affine.typed import in_order
from texpr.backends.c.arguments import Argument, arguments
from texpr.backends.c.index import index_text
from texpr.backends.c.names import Taken
from texpr.backends.c.scope import Scope
from texpr.backends.c.status import BAD_SIZE, MISALIGNED, NULL_POINTER, WHERE_FAILS
from texpr.backends.c.text import Binds, Text
from texpr.ir.kernel import Plan
from texpr.ir.kernel.knowledge import host_knowledge
from texpr.ir.program import Compare
from texpr.ir.value import Buffer
from texpr.support.limits import LARGEST_SIZE, Width
from texpr.support.record import replace


def argument_checks(plan: Plan) -> list[str]:
    """Statements for a function whose parameters are `arguments(plan)`, as declared there; a failed check returns its
    status."""
    given = arguments(plan)
    scope, lines = argument_scope(plan, given), size_checks(plan)
    for argument in given:
        if isinstance(argument.key, Buffer) and argument.is_pointer:
            lines += _pointer(argument, argument.key, scope)
    return lines


def size_checks(plan: Plan) -> list[str]:
    """The statements that check sizes alone: ranges, bounds, every `where`, and the bytes of the workspace."""
    given = arguments(plan)
    scope, sizes = argument_scope(plan, given), [a.name for a in given if isinstance(a.key, Sym)]
    lines = [f"if ({name} < 0 || {name} > {LARGEST_SIZE}) return {BAD_SIZE.macro};" for name in sizes]
    lines += [f"if ({_saturating(b.left, scope)} > {b.right.constant}LL) return {BAD_SIZE.macro};" for b in plan.bounds]
    lines += [f"if (!({condition_text([fact], scope)})) return {WHERE_FAILS.macro};" for fact in plan.requires]
    for buffer in plan.workspace:
        lines += ["{", *(f"    {line}" for line in _span(buffer, scope.inner(), written=False)[1]), "}"]
    return lines


def bytes_text(buffer: Buffer, scope: Scope) -> Text:
    """The bytes of a buffer whose sizes were checked to be within 63 bits."""
    return index_text(buffer.room * buffer.dtype.bytes, scope)


def count_text(buffer: Buffer, scope: Scope, each: int = 1) -> Text:
    """The elements of a dense buffer, times `each`."""
    return index_text(reduce(mul, buffer.shape, expr(each)), scope)


def argument_scope(plan: Plan, given: Iterable[Argument], *, checked: bool = False) -> Scope:
    """The scope of a function with these parameters, with sizes as `int64_t` in their range; `checked`: they also satisfy the
    plan's requirements."""
    found = tuple(given)
    here = host_knowledge(plan, Width.LONG, checked=checked)
    scope = replace(Scope.empty(here), taken=Taken(a.name for a in found))
    for argument in found:
        if isinstance(argument.key, Sym):
            scope = scope.stands_for(argument.key, Text(argument.name), here)
    return scope


def _saturating(value: Expr, scope: Scope) -> str:
    """A polynomial of sizes with positive coefficients, saturated at 2¹²⁶."""
    terms: list[str] = []
    for monomial, coefficient in in_order(value):
        factors = [str(index_text(term((atom,)), scope)) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(index_text(expr(coefficient), scope)))
        terms.append(reduce(lambda a, b: f"texpr_times({a}, {b})", factors))
    return reduce(lambda a, b: f"texpr_plus({a}, {b})", terms)


def condition_text(facts: Sequence[Compare], scope: Scope) -> Text:
    """A conjunction of facts about sizes."""
    if not facts:
        return Text("1")
    texts = [_comparison(fact, scope) for fact in facts]
    return Text(" && ".join(texts), Binds.AND if len(texts) > 1 else Binds.EQUAL)


def _comparison(fact: Compare, scope: Scope) -> str:
    left, right = (index_text(side, scope).at(Binds.SHIFT) for side in (fact.left, fact.right))
    return f"{left} {fact.op} {right}"


def _pointer(argument: Argument, buffer: Buffer, scope: Scope) -> Iterator[str]:
    """The checks of a pointer, in a C block of their own, so that their names are local."""
    bytes_, lines = _span(buffer, scope.inner(), argument.written)
    align = buffer.align or buffer.dtype.bytes
    yield "{"
    yield from (f"    {line}" for line in lines)
    yield f"    if ({bytes_} > 0 && {argument.name} == 0) return {NULL_POINTER.macro};"
    if align > 1:
        yield f"    if ((uintptr_t){argument.name} % {align} != 0) return {MISALIGNED.macro};"
    yield "}"


def _span(buffer: Buffer, scope: Scope, written: bool) -> tuple[str, list[str]]:
    """Statements that compute a buffer's bytes, or return an error for its sizes, and the variable with the result.

    Elements that are written must not overlap, which is checked for strides from a caller.
    """
    shape, stride, bytes_ = (scope.taken.take(name) for name in ("shape", "stride", "bytes"))
    if not buffer.shape:
        return bytes_, [f"int64_t const {bytes_} = {buffer.dtype.bytes};"]
    lines = [_array(shape, buffer.shape, scope)]
    if buffer.strides is not None:
        lines.append(_array(stride, buffer.strides, scope))
    strides = "0" if buffer.strides is None else stride
    lines.append(f"int64_t const {bytes_} = texpr_span({buffer.rank}, {shape}, {strides}, {buffer.dtype.bytes});")
    bad = f"{bytes_} < 0"
    if written and buffer.strides is not None:
        bad += f" || !texpr_distinct({buffer.rank}, {shape}, {stride})"
    return bytes_, [*lines, f"if ({bad}) return {BAD_SIZE.macro};"]


def _array(name: str, values: Sequence[Expr], scope: Scope) -> str:
    return f"texpr_wide const {name}[] = {{{', '.join(str(index_text(value, scope)) for value in values)}}};"
