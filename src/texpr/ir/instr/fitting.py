"""Which descriptor says where the elements of an array lie that an instruction reads in shared memory.

    As[t % 4, i, xor(2 * kk + k / 8, i, 3), k % 8], by i and k      →      (128, 16, 1024)

It is looked for by numbers: the distances are those of a few elements, and it is tried on others, at some values of the indices
around. That it is right for all of them is not shown here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.ir.instr import Instr, Operand
from texpr.ir.instr.descriptor import ROWS, SWIZZLES, Descriptor, along, offset
from texpr.ir.value import Load
from texpr.isa.engine import CHUNK, LINE

TRIED = 24
"""Values of the indices around at which a descriptor is tried."""


def fitting(there: Load, names: Sequence[Sym], instr: Instr, operand: Operand, known: Known) -> Iterator[Descriptor]:
    """The descriptors that fit, wherever they are tried."""
    bytes = there.offset * there.buffer.dtype.bytes
    around = sorted(bytes.syms() - {*names}, key=str)
    points = list(_points(operand))
    values = list(islice(_values(around, known), TRIED))
    for swizzle in SWIZZLES:
        found = _distances(bytes, names, instr, operand, swizzle, values[0])
        if found is None:
            continue
        behind = (offset(instr, operand, found, [expr(number) for number in point]).constant for point in points)
        told = [(dict(zip(names, point, strict=True)), bytes) for point, bytes in zip(points, behind, strict=True)]
        if all(_lies_so(bytes.substitute({sym: expr(n) for sym, n in at.items()}), told, found) for at in values):
            yield found


def _distances(
    bytes: Expr, names: Sequence[Sym], instr: Instr, operand: Operand, swizzle: int, at: Mapping[Sym, int]
) -> Descriptor | None:
    """The distances by a few elements, in the first rows and units, which no swizzle moves."""
    shape, unit = operand.part, along(operand)
    each = CHUNK // operand.dtype.bytes
    start = bytes.evaluate({**at, **dict.fromkeys(names, 0)})

    def behind(dim: int, index: int) -> int:
        if index >= shape[dim]:
            return CHUNK
        return bytes.evaluate({**at, **dict.fromkeys(names, 0), names[dim]: index}) - start

    rows = behind(1 - unit, ROWS)
    if swizzle:
        found = Descriptor(swizzle, behind(unit, swizzle // operand.dtype.bytes), rows)
    else:
        units = behind(unit, each)
        found = Descriptor(0, units, rows) if _is_along_sum(instr, operand) else Descriptor(0, rows, units)
    fields = found.leading, found.stride
    return found if all(field >= 0 and field % CHUNK == 0 for field in fields) else None


def _is_along_sum(instr: Instr, operand: Operand) -> bool:
    probe = Descriptor(0, CHUNK, 2 * CHUNK)
    index = [ZERO, ZERO]
    index[along(operand)] = expr(CHUNK // operand.dtype.bytes)
    return offset(instr, operand, probe, index).constant == CHUNK


def _lies_so(bytes: Expr, told: Sequence[tuple[Mapping[Sym, int], int]], how: Descriptor) -> bool:
    """Whether elements lie as many bytes behind the first as is told, before units move."""
    start = bytes.evaluate(dict.fromkeys(told[0][0], 0))
    if start % CHUNK or (how.swizzle and start % how.period >= how.swizzle):
        return False
    wide = how.swizzle // CHUNK
    for point, behind in told:
        linear = start + behind
        if (linear ^ (linear // LINE % wide * CHUNK) if wide else linear) != bytes.evaluate(point):
            return False
    return True


def _points(operand: Operand) -> Iterator[tuple[int, ...]]:
    """Elements that are looked at: the first lines and the last unit, of some rows."""
    shape, unit = operand.part, along(operand)
    each = CHUNK // operand.dtype.bytes
    rows = sorted({*range(min(2 * ROWS, shape[1 - unit])), shape[1 - unit] - 1})
    lines = min(2 * LINE // operand.dtype.bytes, shape[unit])
    columns = sorted({*range(0, lines, each), each - 1, shape[unit] - each, shape[unit] - 1})
    for row, column in product(rows, columns):
        yield (row, column) if unit else (column, row)


def _values(around: Sequence[Sym], known: Known) -> Iterator[Mapping[Sym, int]]:
    """Values of the indices around, the least first."""
    ranges: list[list[int]] = []
    for sym in around:
        low, high = known.bounds(expr(sym))
        first = 0 if low is None else low
        last = first + 7 if high is None else high
        ranges.append(sorted({*range(first, min(first + 4, last + 1)), last}) or [first])
    yield from (dict(zip(around, each, strict=True)) for each in product(*ranges))
