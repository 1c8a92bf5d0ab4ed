"""The interface to islpy: one context, its numbers, its operation limit, and rows of integers → basic maps.

Dimensions are positional; only parameters have names. Names are set through the interface and never parsed, so `i'1` needs no
escape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeVar

from texpr.support.diagnostic import CompilerBug
from texpr.support.lazy import Module
from texpr.support.record import Record

if TYPE_CHECKING:
    import islpy as isl
else:  # imported on first use: many programs are decided without isl
    isl = Module("islpy")

T = TypeVar("T")

OPERATION_LIMIT = 200_000
"""The isl operations that one question may take, a second or two. The examples need a hundredth of it."""


@cache
def _context() -> isl.Context:
    context = isl.Context()
    context.set_max_operations(OPERATION_LIMIT)
    return context


class Undecided(Exception):
    """A question exceeded isl's operation limit."""


def limited(question: Callable[[], T]) -> T:
    """The result of `question` under the operation limit. Raises Undecided."""
    _context().reset_operations()
    try:
        return question()
    except isl.Error as problem:
        if "maximal number of operations" in str(problem):
            raise Undecided("the operation limit of the integer solver is used up") from problem
        raise CompilerBug(f"the integer solver refused a question: {problem}") from problem


@lru_cache(maxsize=4096)
def number(value: int) -> isl.Val:
    """An integer as an isl value."""
    return isl.Val(str(value), _context()) if abs(value) >= 1 << 31 else isl.Val.int_from_si(_context(), value)


class Shape(Record):
    """The space of a map: names of the parameters and numbers of the dimensions; `hidden` ones are projected out."""

    params: tuple[str, ...]
    ins: int
    outs: int
    hidden: int = 0

    @property
    def columns(self) -> int:
        """Length of a row: parameters, ins, outs, hidden, constant."""
        return len(self.params) + self.ins + self.outs + self.hidden + 1


Row = Sequence[tuple[int, int]]
"""Column and coefficient, zeros left out."""


@lru_cache(maxsize=1024)
def _space(shape: Shape) -> isl.Space:
    space = isl.Space.alloc(_context(), len(shape.params), shape.ins, shape.outs + shape.hidden)
    for position, name in enumerate(shape.params):
        space = space.set_dim_name(isl.dim_type.param, position, name)
    return space


def basic(shape: Shape, equalities: Sequence[Row], inequalities: Sequence[Row]) -> isl.Map:
    """The map of all points where each row of `equalities` is 0 and each of `inequalities` is ≥ 0; hidden kept as outs."""
    return isl.Map.from_basic_map(
        isl.BasicMap.from_constraint_matrices(
            _space(shape),
            _matrix(shape, equalities),
            _matrix(shape, inequalities),
            isl.dim_type.param,
            isl.dim_type.in_,
            isl.dim_type.out,
            isl.dim_type.div,
            isl.dim_type.cst,
        )
    )


def _matrix(shape: Shape, rows: Sequence[Row]) -> isl.Mat:
    matrix = isl.Mat.alloc(_context(), len(rows), 0).insert_zero_cols(0, shape.columns)
    for at, row in enumerate(rows):
        for column, value in row:
            matrix = matrix.set_element_val(at, column, number(value))
    return matrix


def nothing(shape: Shape) -> isl.Map:
    """The empty map."""
    return isl.Map.empty(_space(shape))


def param_names(space: isl.Space) -> tuple[str, ...]:
    """Names of the parameters of a space."""
    return tuple(space.get_dim_name(isl.dim_type.param, k) or "" for k in range(space.dim(isl.dim_type.param)))


def integer(value: isl.Val) -> int | None:
    """The value as an int; None for infinities and nan."""
    return int(value.to_str()) if value.is_int() else None


def points_of(found: isl.Set) -> tuple[tuple[int, ...], ...]:
    """Every point of a bounded set without parameters, in no particular order."""
    points: list[tuple[int, ...]] = []
    rank = found.dim(isl.dim_type.set)

    def add(point: isl.Point) -> None:
        values = (integer(point.get_coordinate_val(isl.dim_type.set, k)) for k in range(rank))
        points.append(tuple(v for v in values if v is not None))

    found.foreach_point(add)
    return tuple(points)
