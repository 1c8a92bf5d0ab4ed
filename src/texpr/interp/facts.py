"""Promises of the text about sizes and data (`where`, `assume`), and of types about their elements, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

import numpy as np

from texpr.affine.expr import Sym
from texpr.interp.arguments import Bound
from texpr.interp.dtypes import Array
from texpr.interp.rounding import round_tf32
from texpr.ir.program import Assume, Function, Injective, InRange, Monotone
from texpr.ir.program.promises import broken_where
from texpr.ir.value import Buffer
from texpr.ir.value.types import TF32
from texpr.support.diagnostic import Diagnostic, TexprError


def check_facts(function: Function, bound: Bound) -> None:
    """Raises `TexprError` with everything that `broken_facts` finds, if anything."""
    found = list(broken_facts(function, bound))
    if found:
        raise TexprError(found)


def broken_facts(function: Function, bound: Bound) -> Iterator[Diagnostic]:
    """One diagnostic for each `where` (E0710) and `assume` (E0711) that these arguments break, and for each array of tf32 that
    holds numbers which are not tf32 (E0712)."""
    for fact in function.where:
        found = broken_where(fact, bound.sizes)
        if found is not None:
            yield found
    for assume in function.assumes:
        found = _broken_assume(assume, bound.arrays[assume.buffer.name], bound.sizes)
        if found is not None:
            yield found
    for param in function.params:
        if param.dtype == TF32:
            yield from _not_tf32(param, bound.arrays[param.name])


def _broken_assume(assume: Assume, array: Array, sizes: Mapping[Sym, int]) -> Diagnostic | None:
    name = assume.buffer.name
    match assume:
        case InRange(lo=lo, hi=hi):
            low, high = lo.evaluate(sizes), hi.evaluate(sizes)
            bad = np.argwhere(~((array >= low) & (array < high)))
            if len(bad) == 0:
                return None
            at = tuple(int(i) for i in bad[0])
            text = f"`assume {name} in {lo}..{hi}` does not hold: {element(name, at)} = {array[at]}, not in {low}..{high}"
            return Diagnostic("E0711", assume.span, text)
        case Injective():
            return _repeated(assume, array)
        case Monotone():
            return _falling(assume, array)
        case _:
            assert_never(assume)


def _repeated(assume: Injective, array: Array) -> Diagnostic | None:
    flat = array.reshape(-1)
    order = np.argsort(flat, kind="stable")
    repeats = np.flatnonzero(flat[order][1:] == flat[order][:-1])
    if len(repeats) == 0:
        return None
    pair = sorted(int(order[repeats[0] + k]) for k in (0, 1))
    name = assume.buffer.name
    first, second = (element(name, tuple(int(i) for i in np.unravel_index(p, array.shape))) for p in pair)
    text = f"`assume injective({name})` does not hold: {first} and {second} are both {flat[pair[0]]}"
    return Diagnostic("E0711", assume.span, text)


def _falling(assume: Monotone, array: Array) -> Diagnostic | None:
    falls = np.flatnonzero(array[1:] < array[:-1])
    if len(falls) == 0:
        return None
    at, name = int(falls[0]), assume.buffer.name
    said = f"{element(name, (at + 1,))} = {array[at + 1]} is less than {element(name, (at,))} = {array[at]}"
    return Diagnostic("E0711", assume.span, f"`assume monotone({name})` does not hold: {said}")


def _not_tf32(param: Buffer, array: Array) -> Iterator[Diagnostic]:
    bad = np.argwhere(~((round_tf32(array) == array) | np.isnan(array)))
    if len(bad):
        at = tuple(int(i) for i in bad[0])
        text = f"`{param!r}` takes tf32 numbers (10 bits of fraction), and {element(param.name, at)} = {array[at]!r} is not one"
        yield Diagnostic("E0712", param.span, text, help="round it first: `texpr.interp.rounding.round_tf32(x)`")


def element(name: str, index: tuple[int, ...]) -> str:
    """An element as the language writes it: `A[3, 4]`, or `s` for a scalar."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name
