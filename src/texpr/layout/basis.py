"""Strides: integers, and scaled basis elements of arithmetic tuples.

`E(0)` is (1, 0, …), `E(1)` is (0, 1, 0, …), `E(0, 1)` is ((0, 1, 0, …), 0, …). Text has the innermost index first, as CuTe's:
`3@1@0` is `3 * E(0, 1)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

from texpr.affine.expr import Expr, IntoExpr
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntTree, tidy, times
from texpr.support.record import Record

Path: TypeAlias = tuple[int, ...]
"""The entry of an arithmetic tuple, the outermost index first; empty for plain integers."""


class Basis(Record):
    """`coefficient` as the entry `path` of an arithmetic tuple, and 0 elsewhere."""

    coefficient: Int
    path: Path

    def __mul__(self, factor: IntoExpr) -> Basis:
        """Scaled. An `Expr` must stand on the right: `E(0) * n`."""
        return Basis(times(self.coefficient, tidy(factor)), self.path)

    __rmul__ = __mul__

    def __str__(self) -> str:
        value = self.coefficient
        bare = isinstance(value, int) or value.as_sym is not None
        return "@".join((str(value) if bare else f"({value})", *map(str, reversed(self.path))))


Stride: TypeAlias = Int | Basis
StrideTree: TypeAlias = "Stride | tuple[StrideTree, ...]"
IntoStrideTree: TypeAlias = "IntoExpr | Basis | tuple[IntoStrideTree, ...]"


def E(*path: int) -> Basis:
    """The basis element at `path`; `E()` is the integer 1. Raises LayoutError for a negative index."""
    if any(index < 0 for index in path):
        raise LayoutError("basis", f"indices of entries are not negative: {path}")
    return Basis(1, path)


def stride(coefficient: Int, path: Path) -> Stride:
    """The stride with this coefficient; a plain integer if it is 0, or the path is empty."""
    return coefficient if not path or coefficient == 0 else Basis(coefficient, path)


def tidy_stride(value: IntoExpr | Basis) -> Stride:
    """`value` in canonical form."""
    return stride(tidy(value.coefficient), value.path) if isinstance(value, Basis) else tidy(value)


def coefficient_of(value: Stride) -> Int:
    """The coefficient; an integer stride itself."""
    return value.coefficient if isinstance(value, Basis) else value


def path_of(value: Stride) -> Path:
    """The entry that the stride moves; empty for integers."""
    return value.path if isinstance(value, Basis) else ()


def scaled(value: Stride, factor: Int) -> Stride:
    """value · factor."""
    return stride(times(coefficient_of(value), factor), path_of(value))


def check_entries(paths: Iterable[Path]) -> None:
    """Raises LayoutError where one entry contains another: a number cannot be added to a tuple."""
    ordered = sorted(set(paths))
    for outer, inner in pairwise(ordered):
        if inner[: len(outer)] == outer:
            raise LayoutError(
                "layout",
                f"strides {Basis(1, outer)} and {Basis(1, inner)} cannot be added: one is a number where the other is a tuple",
                help="give each number an entry of its own",
            )


def assembled(parts: Mapping[Path, Int], missing: int = 0) -> IntTree:
    """The arithmetic tuple with these entries and `missing` in the others; a plain number for the empty path."""
    if not parts:
        return missing
    if () in parts:
        return parts[()]
    width = 1 + max(path[0] for path in parts)
    below: list[dict[Path, Int]] = [{} for _ in range(width)]
    for path, value in parts.items():
        below[path[0]][path[1:]] = value
    return tuple(assembled(each, missing) for each in below)


def is_symbolic(value: Stride) -> bool:
    """Whether it contains an expression."""
    return isinstance(coefficient_of(value), Expr)
