"""Accesses of several elements at once as C text, in the words of texpr_vector.h."""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Text
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import place_text, value_text
from texpr.ir.kernel import CopyAsync, LoadVector, StoreVector
from texpr.ir.value import Load


def load_vector(stmt: LoadVector, scope: Scope, assigned: frozenset[Sym]) -> tuple[Scope, str]:
    """`tx_vec<float, 4> const a = tx_load<4>(x, i);`, and the scope in which the variables are `a[0]`, `a[1]`, …"""
    ctype, count = C_NAMES[stmt.source.dtype], len(stmt.targets)
    value = f"tx_load<{count}>({_place(stmt.source, scope)})"
    first = stmt.targets[0]
    scope, name = scope.name(first, first.base.rstrip("_0123456789") or first.name)
    for lane, sym in enumerate(stmt.targets):
        text = f"{name}[{lane}]"
        scope = scope.also_named(sym, text)
        if stmt.source.dtype.is_integer and sym not in assigned:
            scope = scope.data(sym, Text(text), stmt.source.dtype, stmt.source.buffer)
    constant = "" if assigned.intersection(stmt.targets) else " const"
    return scope, f"tx_vec<{ctype}, {count}>{constant} {name} = {value};"


def store_vector(stmt: StoreVector, scope: Scope) -> str:
    """`tx_store(y, i, a, b, c, d);`"""
    values = ", ".join(str(value_text(value, scope)) for value in stmt.values)
    return f"tx_store({_place(stmt.target, scope)}, {values});"


def copy_async(stmt: CopyAsync, scope: Scope) -> str:
    """`tx_copy_async<4>(tile, i, x, j);`, with the condition last where there is one."""
    when = "" if stmt.when is None else f", {value_text(stmt.when, scope)}"
    source = _place(stmt.source, scope, inside=stmt.when is None)
    return f"tx_copy_async<{stmt.count}>({_place(stmt.target, scope)}, {source}{when});"


def _place(first: Load, scope: Scope, *, inside: bool = True) -> str:
    return f"{scope.named[first.buffer]}, {place_text(first, scope, inside=inside)}"
