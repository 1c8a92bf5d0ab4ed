"""Layouts as index expressions, and index expressions as layouts.

A layout *is* a quasi-affine function: `layout(i)` of a symbol i is its expression. The converse splits each index at the
radices of the expressions' own `/` and `%`; where the expressions are then linear in the digits, the coefficients are
strides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from texpr.affine.expr import Expr, FloorDiv, IntoExpr, Mod, Sym, children, expr, term, without
from texpr.affine.facts import Fact, Known
from texpr.affine.linear import coefficients
from texpr.affine.simplify import Simplifier
from texpr.layout.algebra.coalesce import from_modes
from texpr.layout.basis import Path, Stride, assembled, stride
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntoIntTree, IntTree, flatten, tidy, tidy_tree, times
from texpr.layout.layout import Layout, Mode
from texpr.layout.modes import flat
from texpr.layout.proof import NOTHING, Prover
from texpr.presburger.formula import between, conj
from texpr.presburger.isl.maps import Map
from texpr.presburger.isl.sets import Set

Axis: TypeAlias = tuple[Sym, IntoExpr]
"""An index and its extent."""


def as_map(layout: Layout, ins: Sequence[Sym]) -> Map:
    """{ coordinate → values, from left to right }: over the 1-D coordinate for one symbol, or one symbol a leaf.

    Raises LayoutError for another number of symbols, and NotAffine where sizes below the last, or strides, are symbolic.
    """
    one = len(ins) == 1
    if not one and len(ins) != len(layout.flat):
        raise LayoutError("map", f"{len(ins)} symbols are neither one nor the leaves of {layout}")
    sizes = [layout.size] if one else [mode.size for mode in layout.flat]
    values = flatten(layout(ins[0]) if one else flat(layout)(tuple(ins)))
    inside = Set.of(ins, conj(between(0, s, size) for s, size in zip(ins, sizes, strict=True)))
    return Map.function(ins, [Sym(f"value {k}") for k in range(len(values))], values, inside)


def from_expressions(values: IntoIntTree, axes: Sequence[Axis], known: Known = NOTHING) -> tuple[IntTree, Layout]:
    """`(base, layout)` with values = base + layout((index of each axis)): an index's mode for each axis, in order.

    `values` is an expression, or a tree of them: then strides are basis elements. Raises LayoutError where an index cannot be
    split into digits in which the values are linear, or one digit moves two entries of the tree.
    """
    simple = Simplifier(known.also(Fact(0, sym, extent) for sym, extent in axes))
    entries = {path: simple(value) for path, value in _entries(tidy_tree(values), ())}
    modes = [_cut(sym, tidy(extent), entries.values(), known) for sym, extent in axes]
    digits = [digit for mode in modes for digit in mode]
    cut = Simplifier(known.also(Fact(0, digit.sym, digit.size) for digit in digits))
    whole = {sym: sum((expr(d.sym) * d.weight for d in mode), expr(0)) for (sym, _), mode in zip(axes, modes, strict=True)}
    strides: dict[Sym, Stride] = {}
    base: dict[Path, Int] = {}
    for path, value in entries.items():
        linear = coefficients(cut(value.substitute(whole)), [digit.sym for digit in digits])
        if linear is None:
            raise LayoutError("from expressions", f"`{value}` is not shown to be linear in digits of its indices")
        base[path] = tidy(linear[1])
        for sym, factor in linear[0].items():
            if factor is not expr(0) and sym in strides:
                raise LayoutError("from expressions", f"one step of {sym} moves two entries of the values")
            if factor is not expr(0):
                strides[sym] = stride(tidy(factor), path)
    found = [from_modes(Mode(d.size, strides.get(d.sym, 0)) for d in mode) for mode in modes]
    return assembled(base), found[0] if len(found) == 1 else Layout.of(*found)


class _Digit:
    """A digit of an index: the term `weight` · sym, 0 ≤ sym < size."""

    __slots__ = ("size", "sym", "weight")

    def __init__(self, sym: Sym, weight: Int, size: Int):
        self.sym, self.weight, self.size = sym, weight, size


def _entries(tree: IntTree, path: Path) -> Iterator[tuple[Path, Expr]]:
    if isinstance(tree, tuple):
        for at, part in enumerate(tree):
            yield from _entries(part, (*path, at))
    else:
        yield path, expr(tree)


def _cut(sym: Sym, extent: Int, values: Iterable[Expr], known: Known) -> list[_Digit]:
    """The digits of an index, split at the radices of every floor and remainder that contains it."""
    prover = Prover(known, Layout(extent))
    radices: dict[Int, None] = {}
    for value in values:
        radices.update(dict.fromkeys(_radices(value, sym, prover)))
    found: list[_Digit] = []
    weight: Int = 1
    left = [radix for radix in radices if radix != 1 and not prover.at_most(extent, radix)]
    left.sort(key=lambda radix: (isinstance(radix, Expr), radix if isinstance(radix, int) else 0))
    while left:
        radix = next((each for each in left if _starts(each, weight, left, prover)), None)
        if radix is None:
            listed = ", ".join(map(str, (weight, *left)))
            raise LayoutError("from expressions", f"{sym} is cut at {listed}, which are no chain of multiples")
        left.remove(radix)
        found.append(_Digit(Sym(f"{sym}·{len(found)}"), weight, prover.quotient(radix, weight)))
        weight = radix
    if not prover.divides(weight, extent):
        raise LayoutError("from expressions", f"{sym} is cut at {weight}, which is not proved to divide its extent {extent}")
    return [*found, _Digit(Sym(f"{sym}·{len(found)}"), weight, prover.quotient(extent, weight))]


def _starts(radix: Int, weight: Int, others: Iterable[Int], prover: Prover) -> bool:
    """Whether `radix` is a multiple of `weight`, and all others are multiples of `radix`."""
    return prover.divides(weight, radix) and all(prover.divides(radix, each) for each in others)


def _radices(value: Expr, sym: Sym, prover: Prover) -> Iterator[Int]:
    """The radices at which floors and remainders in `value` split an index: the steps in which the dividend advances by the
    divisor."""
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv | Mod):
                for steps, moves in _rates(atom.num, sym):
                    whole = times(steps, tidy(atom.den))
                    if prover.divides(moves, whole):
                        yield prover.quotient(whole, moves)
            for part in children(atom):
                yield from _radices(part, sym, prover)


def _rates(value: Expr, sym: Sym) -> Iterator[tuple[Int, Int]]:
    """Pairs `(steps, moves)`: in `steps` steps of the index some term of `value` changes by `moves` in magnitude."""
    for monomial, coefficient in value.terms:
        for atom in monomial:
            factor = tidy(term(without(monomial, (atom,)) or (), abs(coefficient)))
            if atom == sym:
                yield 1, factor
            elif isinstance(atom, FloorDiv | Mod):
                for steps, moves in _rates(atom.num, sym):
                    yield times(steps, tidy(atom.den)) if isinstance(atom, FloorDiv) else steps, times(moves, factor)
