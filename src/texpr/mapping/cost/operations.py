"""Counts of operations on indices, from expressions.

A factor or divisor that is a power of two is a shift or a mask; a remainder whose division is computed anyway takes two more
operations; common subexpressions are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from texpr.affine.expr import Expr, FloorDiv, Max, Min, Mod, Sym, Xor, children
from texpr.mapping.cost.weights import INSTRUCTIONS
from texpr.support.record import Record, names

REMEMBERED = 1 << 12


class Operations(Record):
    """Counts by kind. `pairs`: remainders whose division is computed anyway; `open`: divisions and remainders by sizes."""

    additions: int = 0
    multiplications: int = 0
    shifts: int = 0
    divisions: int = 0
    remainders: int = 0
    pairs: int = 0
    open: int = 0

    def __add__(self, other: Operations) -> Operations:
        return Operations(*(getattr(self, name) + getattr(other, name) for name in names(self)))

    @property
    def instructions(self) -> int:
        """The number of instructions: see `weights`."""
        return sum(getattr(self, name) * weight for name, weight in zip(names(self), INSTRUCTIONS, strict=True))


def is_power(number: int) -> bool:
    """Whether `number` is a power of two."""
    return number > 0 and not number & (number - 1)


@lru_cache(REMEMBERED)
def operations(values: tuple[Expr, ...]) -> Operations:
    """The operations that evaluate all of `values`, common subexpressions once."""
    seen: dict[Expr | FloorDiv | Mod | Min | Max | Xor, None] = {}
    for value in values:
        _gather(value, seen)
    divided = {(part.num, part.den) for part in seen if isinstance(part, FloorDiv)}
    total = Operations()
    for part in seen:
        total += _of(part, divided)
    return total


def _gather(value: Expr, seen: dict[Expr | FloorDiv | Mod | Min | Max | Xor, None]) -> None:
    """The sums and operations below `value`, each once."""
    if value in seen:
        return
    seen[value] = None
    for monomial, _ in value.terms:
        for atom in monomial:
            if not isinstance(atom, Sym) and atom not in seen:
                seen[atom] = None
                for part in children(atom):
                    _gather(part, seen)


def _of(part: Expr | FloorDiv | Mod | Min | Max | Xor, divided: set[tuple[Expr, Expr]]) -> Operations:
    """The operations of `part`, given its operands."""
    match part:
        case Expr():
            factors = [abs(c) for _, c in part.terms if abs(c) != 1]
            shifts = sum(map(is_power, factors))
            products = sum(len(monomial) - 1 for monomial, _ in part.terms)
            sums = max(0, len(part.terms) - 1) + bool(part.constant and part.terms)
            return Operations(sums, len(factors) - shifts + products, shifts)
        case FloorDiv(_, den):
            return divisions(den.constant if den.is_constant else None)
        case Mod(num, den):
            return remainders(den.constant if den.is_constant else None, (num, den) in divided)
        case Min() | Max():
            return Operations(len(part.args) - 1)
        case Xor():
            return Operations(shifts=2)  # masking the low bits, and the exclusive or


def divisions(by: int | None) -> Operations:
    """One division by a constant, or by a size."""
    if by is None:
        return Operations(open=1)
    return Operations() if by == 1 else Operations(shifts=1) if is_power(by) else Operations(divisions=1)


def remainders(by: int | None, paired: bool) -> Operations:
    """One remainder; `paired`: the same division is computed, too."""
    if by == 1:
        return Operations()
    if by is not None and is_power(by):
        return Operations(shifts=1)
    return Operations(pairs=1) if paired else Operations(open=1) if by is None else Operations(remainders=1)


def addressed(indices: Iterable[Expr], strides: Iterable[Expr]) -> int:
    """Instructions for the address of one element, from the indices of loops."""
    index, by = tuple(indices), tuple(strides)
    factors = [s for s in by if not (s.is_constant and s.constant == 1)]
    shifts = sum(1 for s in factors if s.is_constant and is_power(s.constant))
    flat = Operations(max(0, len(index) - 1), len(factors) - shifts, shifts)
    return (operations(index) + flat).instructions
