"""The body of `texpr_NAME_validate`: assumptions about data, copied from the device and checked on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import assert_never

from texpr.affine.expr import Expr
from texpr.backends.c.arguments import arguments
from texpr.backends.c.checks import argument_scope
from texpr.backends.c.headers import check_headers
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.status import ASSUMPTION_FAILS, NO_MEMORY
from texpr.backends.c.text import comment
from texpr.ir.kernel import Plan
from texpr.ir.program import Assume, Injective, InRange, Monotone
from texpr.ir.program.promises import assume_text
from texpr.ir.value import Buffer
from texpr.ir.value.types import Kind


def validate_headers() -> dict[str, str]:
    """File name and text of the headers that the body includes."""
    name = "texpr_validate.h"
    return {name: (files("texpr.backends.cuda") / name).read_text(encoding="utf-8"), **check_headers()}


def validation(plan: Plan) -> list[str]:
    """Statements for a function with the parameters `stream` and `arguments(plan)`, which have been checked."""
    given = arguments(plan)
    scope = argument_scope(plan, given, checked=True)
    names = {a.key: a.name for a in given if isinstance(a.key, Buffer)}
    return [line for assume in plan.assumes for line in _one(assume, names[assume.buffer], scope.inner())]


def _one(assume: Assume, pointer: str, scope: Scope) -> Iterator[str]:
    buffer = assume.buffer
    shape, stride, array, copy, holds = (scope.taken.take(n) for n in ("shape", "stride", "array", "copy", "holds"))
    yield f"{{ /* {comment(assume_text(assume))} */"
    yield f"    texpr_wide const {shape}[] = {{{_listed(buffer.shape, scope) or '1'}}};"
    strides = "0"
    if buffer.strides is not None:
        strides = stride
        yield f"    texpr_wide const {stride}[] = {{{_listed(buffer.strides, scope)}}};"
    bytes_ = f"texpr_span({buffer.rank}, {shape}, {strides}, {buffer.dtype.bytes})"
    yield f"    void *{copy} = NULL;"
    yield f"    TEXPR_TRY(tx_fetch(stream, {pointer}, {bytes_}, &{copy}));"
    item = -buffer.dtype.bytes if buffer.dtype.kind is Kind.INT else buffer.dtype.bytes
    yield f"    struct tx_integers const {array} = {{{copy}, {item}, {buffer.rank}, {shape}, {strides}}};"
    yield f"    int const {holds} = {_test(assume, array, scope)};"
    yield f"    free({copy});"
    yield f"    if ({holds} < 0) return {NO_MEMORY.macro};"
    yield f"    if (!{holds}) return {ASSUMPTION_FAILS.macro};"
    yield "}"


def _test(assume: Assume, array: str, scope: Scope) -> str:
    match assume:
        case InRange():
            return f"tx_in_range(&{array}, {index_text(assume.lo, scope)}, {index_text(assume.hi, scope)})"
        case Injective():
            return f"tx_injective(&{array})"
        case Monotone():
            return f"tx_monotone(&{array})"
        case _:
            assert_never(assume)


def _listed(values: Sequence[Expr], scope: Scope) -> str:
    return ", ".join(str(index_text(value, scope)) for value in values)
