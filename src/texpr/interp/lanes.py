"""Lanes, the iterations that run together, and index expressions on them.

A lane is one iteration of the `par` loops around a statement. Lanes are numbered in the order of the sequential program. A
value of a lane (loop index, `let`, row of a local) is a column: one entry a lane, or a single one for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor
from texpr.interp.dtypes import Array
from texpr.ir.program import Par
from texpr.ir.value import Buffer
from texpr.support.diagnostic import error
from texpr.support.span import Span

Column: TypeAlias = "int | Array"
Key: TypeAlias = Sym | Buffer | Par
"""A symbol's value, the row of a local buffer, or the number of the lane that entered a `par`."""

_LIMIT = 2**63


class Lanes:
    """`count` lanes with their columns: those added here, and those of `parent`, whose lane `rows[k]` is lane k here."""

    __slots__ = ("_columns", "_parent", "_reach", "_rows", "count")

    def __init__(self, count: int, columns: dict[Key, Column], parent: Lanes | None = None, rows: Array | None = None):
        self.count = count
        self._columns = columns
        self._parent = parent
        self._rows = rows
        self._reach: dict[Sym, int] = {}

    def __getitem__(self, key: Key) -> Column:
        """The column of `key`: of shape (count,), or one entry for all. Raises KeyError."""
        found = self._columns.get(key)
        if found is not None:
            return found
        if self._parent is None:
            raise KeyError(key)
        above = self._parent[key]
        if self._rows is None:
            return above
        below = above if isinstance(above, int) or above.ndim == 0 else above[self._rows]
        self._columns[key] = below
        return below

    def reach(self, sym: Sym) -> int:
        """An upper bound of |`sym`| on these lanes."""
        if self._parent is not None and sym not in self._columns:
            return self._parent.reach(sym)
        if sym not in self._reach:
            column = self[sym]
            ends = (column,) if isinstance(column, int) else (column.min(initial=0), column.max(initial=0))
            self._reach[sym] = max(abs(int(end)) for end in ends)
        return self._reach[sym]

    def extend(self, key: Key, column: Column) -> Lanes:
        """The same lanes with one more column."""
        return Lanes(self.count, {key: column}, self)

    def take(self, rows: Array) -> Lanes:
        """Only the lanes `rows`."""
        return Lanes(len(rows), {}, self, rows)

    def groups(self, most: int) -> Iterator[Lanes]:
        """These lanes in groups of at most `most`, in order."""
        if self.count <= most:
            yield self
            return
        for start in range(0, self.count, most):
            yield self.take(np.arange(start, min(start + most, self.count)))

    def expand(self, par: Par, extent: Column, most: int) -> Iterator[Lanes]:
        """For each lane the iterations of `par`, `extent` of them: new lanes, at most `most` at once, in order."""
        extents = np.maximum(np.broadcast_to(np.asarray(extent, np.int64), (self.count,)), 0)
        ends = np.cumsum(extents)
        total = int(ends[-1]) if self.count else 0
        for start in range(0, total, most):
            lane = np.arange(start, min(start + most, total), dtype=np.int64)
            rows = np.searchsorted(ends, lane, side="right")
            index = lane - (ends - extents)[rows]
            yield Lanes(len(lane), {par.sym: index, par: np.arange(len(lane))}, self, rows)

    def active(self, extent: Column, step: int) -> Lanes:
        """The lanes whose loop of `extent` iterations reaches iteration `step`."""
        if isinstance(extent, int):
            return self
        going = np.flatnonzero(extent > step)
        return self if len(going) == self.count else self.take(going)


def evaluate(expr: Expr, lanes: Lanes, span: Span | None = None, *, unsigned: bool = False) -> Column:
    """An index expression on every lane, exactly: a single int if it is uniform. `unsigned`: results beyond 63 bits are u64.
    Raises `TexprError` E0724 on a division by zero and E0725 where a result needs more than 64 bits."""
    if expr.is_constant:
        return expr.constant
    fits = _reach(expr, lanes) < _LIMIT
    try:
        result = _sum(expr, lanes, fits)
    except ZeroDivisionError:
        raise error("E0724", span, f"`{expr}` divides by zero") from None
    if fits or isinstance(result, int):
        return result
    if unsigned and all(0 <= int(x) < 2 * _LIMIT for x in result):
        return result.astype(np.uint64)
    if any(not -_LIMIT <= int(x) < _LIMIT for x in result):
        raise error("E0725", span, f"`{expr}` needs more than 64 bits")
    return result.astype(np.int64)


def _sum(expr: Expr, lanes: Lanes, fits: bool) -> Column:
    """The sum, in 64 bits if every intermediate result `fits` there, else in Python's integers."""
    total: Column = expr.constant
    for monomial, coefficient in expr.terms:
        product: Column = coefficient
        for atom in monomial:
            factor = _atom(atom, lanes, fits)
            product = factor if isinstance(product, int) and product == 1 else product * factor
        total = product if isinstance(total, int) and total == 0 else total + product
    return total


def _atom(atom: Atom, lanes: Lanes, fits: bool) -> Column:
    match atom:
        case Sym():
            return _symbol(lanes[atom], fits)
        case FloorDiv(num, den):
            return _sum(num, lanes, fits) // _divisor(den, lanes, fits)
        case Mod(num, den):
            return _sum(num, lanes, fits) % _divisor(den, lanes, fits)
        case Min(args):
            return _fold(np.minimum, min, [_sum(a, lanes, fits) for a in args])
        case Max(args):
            return _fold(np.maximum, max, [_sum(a, lanes, fits) for a in args])
        case Xor(value, mask, bits):
            return _sum(value, lanes, fits) ^ _sum(mask, lanes, fits) % (1 << bits)


def _symbol(column: Column, fits: bool) -> Column:
    if isinstance(column, int):
        return column
    if column.ndim == 0:
        return int(column)
    return column.astype(np.int64, copy=False) if fits else column.astype(object)


def _divisor(expr: Expr, lanes: Lanes, fits: bool) -> Column:
    value = _sum(expr, lanes, fits)
    if value == 0 if isinstance(value, int) else (value == 0).any():
        raise ZeroDivisionError
    return value


def _fold(function: np.ufunc, of_two: Callable[[int, int], int], args: list[Column]) -> Column:
    """A minimum or maximum; uniform values may exceed 64 bits."""
    result = args[0]
    for arg in args[1:]:
        result = of_two(result, arg) if isinstance(result, int) and isinstance(arg, int) else function(result, arg)
    return result


def _reach(expr: Expr, lanes: Lanes) -> int:
    """An upper bound of the magnitude of every intermediate result."""
    total = abs(expr.constant)
    for monomial, coefficient in expr.terms:
        product = abs(coefficient)
        for atom in monomial:
            product *= max(_atom_reach(atom, lanes), 1)
        total += product
    return total


def _atom_reach(atom: Atom, lanes: Lanes) -> int:
    match atom:
        case Sym():
            return lanes.reach(atom)
        case FloorDiv(num, den) | Mod(num, den):
            return max(_reach(num, lanes), _reach(den, lanes))
        case Min(args) | Max(args):
            return max(_reach(a, lanes) for a in args)
        case Xor(value, mask, bits):
            return max(_reach(value, lanes) + (1 << bits), _reach(mask, lanes))
