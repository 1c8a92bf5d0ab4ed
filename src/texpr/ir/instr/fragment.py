"""Fragments: the lane and the register of each element of an operand.

    ((4,8),(2,2)):((2@1,1@0),(1@1,8@0))        (lane, register) → (row, column), of c of mma.m16n8k16

The first mode is the lane's number, the second the register's; a fragment with a single mode has one register in each lane. A
mode of stride 0 makes copies: several lanes, or registers, have the same element. Apart from these a fragment is a bijection,
so that each dimension of the operand is a number whose digits are the modes along it: the lane and the register of an element
are computed by `/` and `%` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from texpr.affine.expr import ZERO, Expr, IntoExpr, expr
from texpr.layout import Layout, LayoutError
from texpr.layout.text import parse_layout
from texpr.support.record import Record


class Misfit(Exception):
    """A layout is no fragment of an operand; the message has the reason."""


class Digit(Record):
    """A mode: a digit of the number of the lane, or of the register, with weight `weight` and radix `size`, whose stride is
    `step` along dimension `dim`; None for a mode that makes copies."""

    of_lane: bool
    weight: int
    size: int
    dim: int | None
    step: int

    def of(self, number: Expr, below: int) -> Expr:
        """The digit of the number of a lane, or of a register, which is less than `below`."""
        value = number // self.weight
        return value if self.weight * self.size == below else value % self.size

    def at(self, index: Expr, extent: int) -> Expr:
        """The digit of an element's subscript along its dimension, which has that extent."""
        value = index // self.step
        return value if self.step * self.size == extent else value % self.size


class Fragment(Record):
    """A fragment of an operand of `shape`."""

    layout: str
    shape: tuple[int, ...]
    lanes: int
    registers: int
    digits: tuple[Digit, ...]

    @property
    def copies(self) -> tuple[Digit, ...]:
        """The modes that make copies."""
        return tuple(digit for digit in self.digits if digit.dim is None)

    @property
    def copied(self) -> int:
        """The number of copies of each element."""
        return _product(self.copies)

    @property
    def is_run(self) -> bool:
        """Whether the elements of a lane are consecutive in one row, and begin at a multiple of their number."""
        along = [digit for digit in self.digits if not digit.of_lane]
        last = len(self.shape) - 1
        rest = [digit for digit in self.digits if digit.of_lane and digit.dim == last]
        return all(digit.dim == last and digit.step == digit.weight for digit in along) and all(
            digit.step % self.registers == 0 for digit in rest
        )

    def element(self, lane: Expr, register: Expr) -> tuple[Expr, ...]:
        """The element of a lane in a register."""
        found = [ZERO for _ in self.shape]
        for digit in self.digits:
            if digit.dim is not None:
                number, below = (lane, self.lanes) if digit.of_lane else (register, self.registers)
                found[digit.dim] += digit.of(number, below) * digit.step
        return tuple(found)

    def lane(self, index: Sequence[Expr], copy: IntoExpr = 0) -> Expr:
        """The lane that has an element, or its copy number `copy`."""
        return self._number(True, index, expr(copy))

    def register(self, index: Sequence[Expr], copy: IntoExpr = 0) -> Expr:
        """The register that has an element, or its copy number `copy`."""
        return self._number(False, index, expr(copy))

    def _number(self, of_lane: bool, index: Sequence[Expr], copy: Expr) -> Expr:
        total, weight = ZERO, 1
        for digit in self.digits:
            if digit.dim is None:
                value, weight = copy // weight % digit.size, weight * digit.size
            else:
                value = digit.at(index[digit.dim], self.shape[digit.dim])
            total += value * digit.weight if digit.of_lane == of_lane else ZERO
        return total


def fragment(text: str, shape: tuple[int, ...]) -> Fragment:
    """Parses a fragment. Raises Misfit."""
    try:
        layout = parse_layout(text)
    except LayoutError as wrong:
        raise Misfit(str(wrong)) from None
    first, *rest = layout.modes
    if len(rest) > 1:
        raise Misfit(f"it has {1 + len(rest)} modes, and one of lanes and one of registers are meant")
    lanes = _digits(first, True, len(shape))
    registers = tuple(digit for mode in rest for digit in _digits(mode, False, len(shape)))
    digits = (*lanes, *registers)
    for dim, extent in enumerate(shape):
        _require_digits([digit for digit in digits if digit.dim == dim], dim, extent)
    return Fragment(text, shape, _product(lanes), _product(registers), digits)


def core_matrix(text: str, rank: int) -> Fragment:
    """What a text says of a core matrix of an operand in shared memory: (row, element in it) → element. Raises Misfit."""
    try:
        first, *rest = parse_layout(text).modes
    except LayoutError as wrong:
        raise Misfit(str(wrong)) from None
    digits = (*_digits(first, True, rank), *(digit for mode in rest for digit in _digits(mode, False, rank)))
    sizes = [prod(digit.size for digit in digits if digit.dim == dim) for dim in range(rank)]
    found = fragment(text, tuple(sizes))
    if len(digits) != 2 or digits[0].of_lane == digits[1].of_lane or digits[0].dim == digits[1].dim:
        raise Misfit("a core matrix is rows along one dimension, of elements along another one")
    return found


def _product(digits: tuple[Digit, ...]) -> int:
    return prod(digit.size for digit in digits)


def _digits(mode: Layout, of_lane: bool, rank: int) -> tuple[Digit, ...]:
    found, weight = list[Digit](), 1
    for leaf in mode.flat:
        if not isinstance(leaf.size, int) or not isinstance(leaf.step, int):
            raise Misfit(f"`{leaf}` is of a size that is not known")
        if leaf.size > 1:
            found.append(Digit(of_lane, weight, leaf.size, *_along(leaf.step, leaf.path, rank)))
        weight *= leaf.size
    return tuple(found)


def _along(step: int, path: tuple[int, ...], rank: int) -> tuple[int | None, int]:
    """The dimension of a stride, None for 0, and its size. Raises Misfit."""
    if step == 0:
        return None, 0
    if step < 0:
        raise Misfit(f"the stride {step} goes back")
    dim = path[0] if path else 0
    if len(path) > 1 or dim >= rank or (not path and rank != 1):
        raise Misfit(
            f"the stride {'@'.join(map(str, (step, *reversed(path))))} is along none of the operand's {rank} dimensions"
        )
    return dim, step


def _require_digits(digits: list[Digit], dim: int, extent: int) -> None:
    """Checks that modes along a dimension are the digits of a number below its extent: each element once. Raises Misfit."""
    reach = 1
    for digit in sorted(digits, key=lambda digit: digit.step):
        if digit.step < reach:
            raise Misfit(f"two places hold one element: strides along dimension {dim} overlap at {digit.step}")
        if digit.step > reach:
            raise Misfit(f"element {reach} along dimension {dim} is held by no lane")
        reach *= digit.size
    if reach < extent:
        raise Misfit(f"element {reach} along dimension {dim} is held by no lane")
    if reach > extent:
        raise Misfit(f"{reach} elements along dimension {dim} are held, and there are {extent}")
