"""What any program for a function needs at least: bytes to bring and take away, and its operations on the best unit for them.

Operations are those of the function as it is written, each execution of a statement counted. A sum of products, whose order
`reduce` frees or whose types allow no less, goes to the matrix unit where that takes its types as they are; other operations
take a lane of the cheapest unit that has them. Executions below conditions and in loops whose extents change are counted at
points spread over the loops (Kronecker's sequence); those that data decides not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import TypeVar

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.kernel.point import Point, holds
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value, walk
from texpr.ir.value.types import BF16, F8E4M3, F8E5M2, F8E8M0, F16, F64, I8, TF32, U8, DType
from texpr.isa.speed import Device, Figure
from texpr.model.bound import MICRO, Least
from texpr.model.plan.reach import size_of
from texpr.support.record import Mutable, Record, field

Key = TypeVar("Key")

POINTS = 64
"""At how many points what changes is counted."""

_MATRIX: Mapping[DType, str] = {
    F16: "f16",
    BF16: "bf16",
    TF32: "tf32",
    F8E4M3: "f8",
    F8E5M2: "f8",
    I8: "i8",
    U8: "i8",
    F64: "f64",
}
_ROOTS = (
    "div",
    "sqrt",
    "rsqrt",
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "tanh",
    "erf",
    "expm1",
    "log1p",
    "sigmoid",
    "silu",
)
_SPECIAL = frozenset((*_ROOTS, "gelu", "pow", "floor", "ceil", "trunc", "round"))
_BITS = ("and", "or", "not", "bitand", "bitor", "bitxor", "shl", "shr")
_ROUNDS = frozenset(("floor", "ceil", "trunc", "round"))
_ALU = frozenset((*_BITS, "max", "min", "lt", "le", "gt", "ge", "eq", "ne", "select", "abs", "neg"))


class Needs(Record):
    """What any program for a function needs, whatever the machine.

    `moved`: bytes of parameters and results, each that is touched counted once as read and once as written. `flops`:
    operations on floating numbers, a multiply-add counted as two, comparisons, choices and conversions as none. `operations`:
    all operations by the unit that does them, a multiply-add of a product counted as one.
    """

    moved: float
    flops: float
    operations: Mapping[str, float]


class _Sums(Mutable):
    """Operations by unit, "matrix" and a type for multiply-adds; elements that are read and written, by buffer."""

    flops: float = 0.0
    operations: dict[str, float] = field(default_factory=dict[str, float])
    read: dict[Buffer, float] = field(default_factory=dict[Buffer, float])
    written: dict[Buffer, float] = field(default_factory=dict[Buffer, float])


def least(function: ir.Function, sizes: Mapping[Sym, int], device: Device) -> Least:
    """The least of a function at these sizes, in microseconds."""
    found = needs(function, sizes)
    dram = device.bandwidth.dram.value
    return Least(found.moved / dram * MICRO if dram else 0.0, max(_times(found, device), default=0.0))


def needs(function: ir.Function, sizes: Mapping[Sym, int]) -> Needs:
    """What a function needs at these sizes."""
    sums = _Sums()
    _block(function.body, [({**sizes}, 1.0) for _ in range(POINTS)], sums, 0)
    outside = {buffer for buffer in (*function.params, *function.results) if buffer.rank}
    moved = 0.0
    for touched in (sums.read, sums.written):
        for buffer, times in touched.items():
            first = touched is sums.written or buffer.role != "result"
            if buffer in outside and first:
                moved += min(times * buffer.dtype.bytes, size_of(buffer, sizes))
    return Needs(moved, sums.flops, sums.operations)


def _times(needed: Needs, device: Device) -> list[float]:
    many, clock = device.multiprocessors.value or 1.0, (device.clock.value or 0.0) * MICRO
    found: list[float] = []
    for unit, times in needed.operations.items():
        dtype = unit.removeprefix("matrix ")
        rate: Figure = device.matrix.rate(dtype) if dtype != unit else getattr(device.rates, unit)
        hertz = (device.matrix.clock.value or 0.0) * MICRO if dtype != unit else clock
        if rate.value and hertz:
            found.append(times / (many * rate.value * hertz) * MICRO)
    return found


_Points = list[tuple[Point, float]]


def _block(body: tuple[ir.Stmt, ...], points: _Points, sums: _Sums, depth: int) -> None:
    for stmt in body:
        match stmt:
            case ir.Par() | ir.Seq():
                _block(stmt.body, _spread(stmt, points, depth), sums, depth + 1)
            case ir.If():
                _block(stmt.then, [(p, w if holds(stmt.condition, p, False) else 0.0) for p, w in points], sums, depth)
                _block(stmt.orelse, [(p, 0.0 if holds(stmt.condition, p, True) else w) for p, w in points], sums, depth)
            case ir.Instruction():
                _block(stmt.body, points, sums, depth)
            case _:
                _statement(stmt, sum(w for _, w in points) / len(points), sums)


def _spread(loop: ir.Loop, points: _Points, depth: int) -> _Points:
    """A point of each in the loop, and how often it counts: all of its iterations."""
    step = sqrt(depth + 2) % 1 or (1 + sqrt(5)) / 2 % 1
    found: _Points = []
    for number, (point, weight) in enumerate(points):
        known = loop.extent.syms() <= point.keys()
        extent = max(0, loop.extent.evaluate(point)) if known else 0
        at = int((number + 0.5) * step % 1 * extent)
        found.append(({**point, loop.sym: at}, weight * extent))
    return found


def _statement(stmt: ir.Stmt, times: float, sums: _Sums) -> None:
    targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
    for load in dict.fromkeys(loads(stmt)):
        if not any(load is target for target in targets) or (isinstance(stmt, ir.Bind) and stmt.update is not None):
            _more(sums.read, load.buffer, times)
    for target in targets:
        _more(sums.written, target.buffer, times)
    if isinstance(stmt, ir.Bind):
        product = _product(stmt)
        if product is not None:
            _more(sums.operations, product, times)
            sums.flops += 2 * times if stmt.targets[0].dtype.is_float else 0.0
            return
        if stmt.update is not None:
            _operation(str(stmt.update), stmt.targets[0].dtype, times, sums)
    for value in ir.values(stmt):
        for node in walk(value):
            if isinstance(node, Op):
                _operation(node.name, node.dtype, times, sums)


def _more(sums: dict[Key, float], key: Key, times: float) -> None:
    sums[key] = sums.get(key, 0.0) + times


def _operation(name: str, dtype: DType, times: float, sums: _Sums) -> None:
    unit = "special" if name in _SPECIAL else "alu" if name in _ALU or not dtype.is_float else "fma"
    if dtype.is_float and unit != "alu" and name not in _ROUNDS:
        sums.flops += 2 * times if name == "fma" else times
    _more(sums.operations, "fp64" if dtype is F64 and unit != "special" else unit, times)


def _product(stmt: ir.Bind) -> str | None:
    """The unit of `t += a · b`, one multiply-add: the matrix unit by the type of a and b, apart from scales, or that of f32."""
    if stmt.update != "add" or len(stmt.values) != 1:
        return None
    value = stmt.values[0]
    if not (isinstance(value, Op) and value.name == "mul"):
        return None
    factors = [_source(arg) for arg in _factors(value)]
    own = [dtype for dtype in factors if dtype != F8E8M0]
    kinds = set(own if len(own) < len(factors) else (_source(arg) for arg in value.args))  # of blocks with scales, theirs
    if len(kinds) > 1:  # of an element of few bits that is converted, and perhaps scaled: what both are made to
        first, *others = (_given(arg) for arg in value.args)
        kinds = {*[each for each in reversed(first) if each in _MATRIX and all(each in other for other in others)][:1]}
    if len(kinds) == 1 and (dtype := kinds.pop()) in _MATRIX:
        return f"matrix {_MATRIX[dtype]}"
    return "fma" if stmt.targets[0].dtype.is_float else "imad"


def _factors(value: Value) -> tuple[Value, ...]:
    """What a product multiplies."""
    return tuple(f for arg in value.args for f in _factors(arg)) if isinstance(value, Op) and value.name == "mul" else (value,)


def _given(value: Value) -> list[DType]:
    """The types that a factor has, from conversion to conversion, down to what is computed, or read."""
    found = [value.dtype]
    while isinstance(value, Cast):
        value = value.arg
        found.append(value.dtype)
    return found


def _source(value: Value) -> DType:
    """The type of an element before it was converted, or replaced by zero: what copies it to a tile may do that."""
    while True:
        match value:
            case Cast(Cast() | Load() | Op("select") as arg):
                value = arg
            case Op("select", (_, arm, Literal(0))):
                value = arm
            case _:
                return value.dtype
