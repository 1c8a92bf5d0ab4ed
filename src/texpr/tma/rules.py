"""The hardware's rules for descriptors and for the instructions that use them, as a table.

A rule has conditions: a number is ≥ 0, or a multiple of a number. Each is proved from what is known of the sizes, refuted, or
left to be checked before a launch. Sources: CUDA driver API, `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col`; PTX ISA,
"cp.async.bulk", "cp.async.bulk.tensor" and "Tensors".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

from texpr.affine.expr import Expr, IntoExpr, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.isa.engine import CHUNK, LINE
from texpr.presburger.formula import Eq, Ge
from texpr.support.limits import LARGEST_INT
from texpr.support.record import Record
from texpr.tma.descriptor import BulkUse, Im2col, Interleave, TensorMap, Tiled, Use
from texpr.tma.elements import Fill
from texpr.tma.swizzle import Swizzle

Condition: TypeAlias = Ge | Eq
"""A condition: `Ge e` is e ≥ 0; `Eq (e mod n)` is that n divides e."""

CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
"""The range of the corners of the bounding box, by rank."""

OFFSETS = {3: 65535, 4: 255, 5: 31}
"""The greatest offset of a filter, by rank."""


class Asked(Record):
    """A condition, and the name of the part that it constrains."""

    subject: str
    condition: Condition


Asks: TypeAlias = Iterator[Asked]


Subject = TypeVar("Subject", TensorMap, Use, BulkUse)


class Rule(Record, Generic[Subject]):
    """`says`: the rule, for messages; `helps`: the remedy; `asks`: its conditions on a subject. `is_of_copies`: no launch can
    check it, as each copy has numbers of its own."""

    name: str
    says: str
    helps: str
    asks: Callable[[Subject], Asks]
    is_of_copies: bool = False


AnyRule: TypeAlias = Rule[TensorMap] | Rule[Use] | Rule[BulkUse]


class Finding(Record):
    """A rule, and one of its conditions."""

    rule: AnyRule
    asked: Asked

    def __str__(self) -> str:
        return f"{self.asked.subject}: {self.rule.says}; {self.rule.helps}"


class Findings(Record):
    """Every condition once: `violated` at all sizes, to be `checked` before a launch, or `proved`."""

    violated: tuple[Finding, ...]
    checked: tuple[Finding, ...]
    proved: tuple[Finding, ...]

    @property
    def unmet(self) -> tuple[Finding, ...]:
        """What no launch can check: the rules that are violated, and those that are not proved of each copy, or of an address.

        Ranges of sizes are checked by the driver when it encodes the tensor map before a launch.
        """
        return (*self.violated, *(f for f in self.checked if f.rule.is_of_copies or isinstance(f.asked.condition, Eq)))


def findings(subject: TensorMap | Use | BulkUse, known: Known) -> Findings:
    """The results of the rules for `subject`; those of an instruction include those of its descriptor."""
    found: tuple[list[Finding], list[Finding], list[Finding]] = ([], [], [])
    simple = Simplifier(known)
    for each in _asked(subject):
        found[_verdict(each.asked.condition, known, simple)].append(each)
    return Findings(*map(tuple, found))


def _asked(subject: TensorMap | Use | BulkUse) -> Iterator[Finding]:
    match subject:
        case TensorMap():
            shape = [finding for rule in SHAPE_RULES for finding in (Finding(rule, asked) for asked in rule.asks(subject))]
            yield from shape
            if all(_holds(finding.asked.condition) for finding in shape):  # the others assume as many values as dimensions
                yield from (Finding(rule, asked) for rule in RULES for asked in rule.asks(subject))
        case Use():
            yield from _asked(subject.map)
            yield from (Finding(rule, asked) for rule in USE_RULES for asked in rule.asks(subject))
        case BulkUse():
            yield from (Finding(rule, asked) for rule in BULK_RULES for asked in rule.asks(subject))


def _holds(condition: Condition) -> bool:
    value = condition.expr.constant
    return value >= 0 if isinstance(condition, Ge) else value == 0


_VIOLATED, _CHECKED, _PROVED = range(3)


def _verdict(condition: Condition, known: Known, simple: Simplifier) -> int:
    value = simple(condition.expr)
    proved, refuted = known.nonnegative(value), known.positive(-value)
    if isinstance(condition, Eq):  # a remainder, which is never negative
        proved, refuted = known.nonnegative(-value), known.positive(value)
    return _PROVED if proved else _VIOLATED if refuted else _CHECKED


def _at_least(subject: str, value: IntoExpr, least: IntoExpr) -> Asked:
    return Asked(subject, Ge(expr(value) - least))


def _at_most(subject: str, value: IntoExpr, most: IntoExpr) -> Asked:
    return Asked(subject, Ge(expr(most) - value))


def _between(subject: str, value: IntoExpr, least: int, most: int) -> Asks:
    yield _at_least(subject, value, least)
    yield _at_most(subject, value, most)


def _multiple(subject: str, value: IntoExpr, of: int) -> Asked:
    return Asked(subject, Eq(expr(value) % of))


def _is_true(subject: str, value: bool) -> Asked:
    """A condition with a known answer."""
    return Asked(subject, Ge(expr(0 if value else -1)))


def _each(name: str, values: Iterable[Expr], least: int, most: int, first: int = 0) -> Asks:
    for at, value in enumerate(values, first):
        yield from _between(f"{name} {at}", value, least, most)


def _rank(map: TensorMap) -> Asks:
    least = 3 if isinstance(map.traversal, Im2col) or map.interleave is not Interleave.NONE else 1
    yield from _between("rank", map.rank, least, 5)


def _counts(map: TensorMap) -> Asks:
    yield _is_true("strides", len(map.strides) == map.rank - 1)
    yield _is_true("element strides", len(map.element_strides) == map.rank)
    match map.traversal:
        case Tiled(box):
            yield _is_true("box", len(box) == map.rank)
        case Im2col(lower, upper):
            yield _is_true("corners", len(lower) == len(upper) == map.rank - 2)


def _alignment(map: TensorMap) -> int:
    return 32 if map.interleave is Interleave.B32 else CHUNK


def _base(map: TensorMap) -> Asks:
    yield _multiple("base", map.base, _alignment(map))


def _stride_alignment(map: TensorMap) -> Asks:
    for at, stride in enumerate(map.strides, 1):
        yield _multiple(f"stride {at}", stride, _alignment(map))


def _stride_range(map: TensorMap) -> Asks:
    yield from _each("stride", map.strides, 0, (1 << 40) - 1, first=1)


def _sizes(map: TensorMap) -> Asks:
    yield from _each("size", map.sizes, 1, 1 << 32)


def _box(map: TensorMap) -> Asks:
    if isinstance(map.traversal, Tiled):
        yield from _each("box", map.traversal.box, 1, 256)


def _row(map: TensorMap) -> Expr:
    """Bytes of the innermost dimension of a box."""
    traversal = map.traversal
    return (traversal.box[0] if isinstance(traversal, Tiled) else traversal.channels) * map.element.size


def _row_alignment(map: TensorMap) -> Asks:
    if map.interleave is Interleave.NONE:
        yield _multiple("inner box", _row(map), CHUNK)


def _row_span(map: TensorMap) -> Asks:
    if map.interleave is Interleave.NONE and map.swizzle is not Swizzle.NONE:
        yield _at_most("inner box", _row(map), map.swizzle.span)


def _element_strides(map: TensorMap) -> Asks:
    yield from _each("element stride", map.element_strides, 1, 8)


def _inner_element_stride(map: TensorMap) -> Asks:
    if map.interleave is Interleave.NONE:
        yield from _between("element stride 0", map.element_strides[0], 1, 1)


def _interleave_swizzle(map: TensorMap) -> Asks:
    yield _is_true("swizzle", map.interleave is not Interleave.B32 or map.swizzle is Swizzle.B32)


def _fill(map: TensorMap) -> Asks:
    yield _is_true("fill", map.fill is Fill.ZERO or map.element.is_float)


def _corners(map: TensorMap) -> Asks:
    if isinstance(map.traversal, Im2col):
        yield from _each("lower corner", map.traversal.lower, *CORNERS[map.rank])
        yield from _each("upper corner", map.traversal.upper, *CORNERS[map.rank])


def _bounding_box(map: TensorMap) -> Asks:
    if isinstance(map.traversal, Im2col):
        ends = zip(map.sizes[1:-1], map.traversal.lower, map.traversal.upper, strict=True)
        for at, (size, lower, upper) in enumerate(ends):
            yield _at_least(f"bounding box {at}", size + upper - lower, 1)


def _channels(map: TensorMap) -> Asks:
    if isinstance(map.traversal, Im2col):
        yield from _between("channels", map.traversal.channels, 1, 256)


def _pixels(map: TensorMap) -> Asks:
    if isinstance(map.traversal, Im2col):
        yield from _between("pixels", map.traversal.pixels, 1, 1024)


def _coordinates(use: Use) -> Asks:
    yield _is_true("coordinates", len(use.coordinates) == use.map.rank)
    yield from _each("coordinate", use.coordinates, -LARGEST_INT - 1, LARGEST_INT)
    yield from _each("row", use.rows, -LARGEST_INT - 1, LARGEST_INT)


def _coordinate_alignment(use: Use) -> Asks:
    if use.coordinates and use.map.interleave is Interleave.NONE:
        yield _multiple("coordinate 0", use.coordinates[0] * use.map.element.size, CHUNK)


def _store_coordinates(use: Use) -> Asks:
    if use.stores:
        yield from (_at_least(f"coordinate {at}", value, 0) for at, value in enumerate(use.coordinates))


def _shared(use: Use) -> Asks:
    yield _multiple("shared address", use.shared, LINE if use.rows else max(LINE, use.map.swizzle.period))


def _transaction(use: Use) -> Asks:
    yield _at_most("bytes of the copy", use.map.bytes, (1 << 20) - 1)


def _offsets(use: Use) -> Asks:
    spaces = use.map.rank - 2 if isinstance(use.map.traversal, Im2col) else 0
    yield _is_true("offsets", len(use.offsets) == spaces)
    if spaces:
        yield from _each("offset", use.offsets, 0, OFFSETS.get(use.map.rank, 0))


def _rows(use: Use) -> Asks:
    if use.rows:
        box = use.map.traversal.box if isinstance(use.map.traversal, Tiled) else ()
        yield _is_true("rows", len(use.rows) == 4 and use.map.rank == 2 and use.map.interleave is Interleave.NONE)
        yield from (asked for size in box[1:] for asked in _between("box 1", size, 1, 1))


def _bulk(use: BulkUse) -> Asks:
    yield _multiple("shared address", use.shared, CHUNK)
    yield _multiple("global address", use.base, CHUNK)
    yield _multiple("size", use.size, CHUNK)


SHAPE_RULES = (
    Rule("rank", "a tensor map has 1 to 5 dimensions, 3 to 5 interleaved or in im2col mode", "merge dimensions", _rank),
    Rule("counts", "each dimension has its size, box and element stride, and its stride but for the innermost",
         "give one value a dimension", _counts),
)  # fmt: skip
"""The rules that all others assume."""

RULES = (
    Rule("base", "the tensor begins at a multiple of 16 bytes, of 32 with slices of 32",
         "align the allocation, or the first element of a slice", _base),
    Rule("stride alignment", "every stride but the innermost is a multiple of 16 bytes, of 32 with slices of 32",
         "pad the rows of the tensor", _stride_alignment),
    Rule("stride range", "a stride is at least 0 and less than 2^40 bytes", "split the tensor", _stride_range),
    Rule("size", "1 <= size <= 2^32", "skip the launch where there is nothing to copy; split longer dimensions", _sizes),
    Rule("box", "1 <= box <= 256", "split the box over several copies", _box),
    Rule("inner box alignment", "the innermost row of a box is a multiple of 16 bytes",
         "make the box wider; what lies behind the tensor is filled", _row_alignment),
    Rule("inner box span", "the innermost row of a box is at most as long as the span of the swizzle",
         "split the row by the span, into another dimension of the box", _row_span),
    Rule("element stride", "1 <= element stride <= 8", "describe a greater step as a dimension of its own", _element_strides),
    Rule("inner element stride", "the innermost element stride is 1, but for interleaved tensors",
         "copy whole rows, and skip elements where they are read", _inner_element_stride),
    Rule("interleave", "slices of 32 bytes need the swizzle of 32 bytes", "choose that swizzle", _interleave_swizzle),
    Rule("fill", "only floating-point elements can be filled with nan", "fill with zero", _fill),
    Rule("corner", "corners are in -32768..32767, -128..127, -16..15 for 3, 4, 5 dimensions", "make the filter smaller",
         _corners),
    Rule("bounding box", "a bounding box is not empty", "bring the corners nearer to the image", _bounding_box),
    Rule("channels", "1 <= channels <= 256", "split the channels over several copies", _channels),
    Rule("pixels", "1 <= pixels <= 1024", "split the column over several copies", _pixels),
)  # fmt: skip
"""The rules of descriptors."""

USE_RULES = (
    Rule("coordinate", "coordinates are signed 32-bit integers, one a dimension", "split the tensor", _coordinates),
    # No document says so. On an H100 any other copy is an illegal instruction, whatever its type, rank, box and direction; so
    # found by users of Triton (github.com/triton-lang/triton/issues/7385, pull/9112) and TileLang (tile-ai/tilelang/pull/2681).
    Rule("coordinate alignment", "a copy begins at a multiple of 16 bytes in the innermost dimension",
         "begin the box there, and read from within it", _coordinate_alignment),
    # CUDA Programming Guide, "Using TMA to transfer multi-dimensional arrays".
    Rule("store coordinate", "a store begins at coordinates that are not negative",
         "store the part that is in the tensor", _store_coordinates, is_of_copies=True),
    # Four rows are less than the period of a swizzle, which depends on the address: several such tiles share one period.
    Rule("shared address", "a tile begins at a multiple of 128 bytes, or of what its swizzle repeats after",
            "align the buffer and each stage of it", _shared),
    Rule("transaction", "a barrier counts less than 2^20 bytes", "split the copy", _transaction),
    Rule("offset", "filter offsets are in 0..65535, 0..255, 0..31 for 3, 4, 5 dimensions, one a dimension of space",
            "move the bounding box instead", _offsets),
    Rule("rows", "a gather or a scatter takes four rows of a matrix, with boxes of one row", "copy boxes instead", _rows),
)  # fmt: skip
"""The rules of instructions."""

BULK_RULES = (Rule("bulk", "addresses and size of a bulk copy are multiples of 16 bytes", "copy the rest by threads", _bulk),)
"""The rules of bulk copies."""
