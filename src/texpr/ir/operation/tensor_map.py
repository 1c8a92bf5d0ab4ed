"""A tensor map of the kernel form as a descriptor of `texpr.tma`, and its check by the hardware's rules."""

from __future__ import annotations

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir.operation.maps import TensorMap
from texpr.ir.value import Buffer
from texpr.ir.value.types import DType
from texpr.support.limits import LARGEST_INT
from texpr.tma import descriptor
from texpr.tma.elements import ELEMENTS, Element, Fill
from texpr.tma.reduce import TYPES, Reduction
from texpr.tma.rules import Findings, findings
from texpr.tma.swizzle import Swizzle

_WORKSPACE = 256
"""The alignment of the buffers in a workspace, in bytes."""

_ELEMENTS = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "tf32": "float32"} | {
    f"{short}{bits}": f"{long}{bits}" for short, long in (("i", "int"), ("u", "uint")) for bits in (32, 64)
}


def element(dtype: DType) -> Element:
    """The element type for values of `dtype` in a tensor map: unsigned integers of the same size where the driver has no such
    type."""
    return ELEMENTS[_ELEMENTS.get(dtype.name, f"uint{dtype.bits}")]


def combined_as(op: str, dtype: DType) -> str | None:
    """The driver's name of the element type for reductions by `op` on `dtype`, None where the engine has no such reduction.

    Sums of i64 use u64: both wrap.
    """
    if op not in (each.value for each in Reduction) or dtype.name in ("tf32", "bool") or dtype.bits < 16:
        return None
    name = "uint64" if (op, dtype.name) == ("add", "i64") else element(dtype).name
    return name if name in TYPES[Reduction(op)] else None


def element_of(map: TensorMap) -> Element:
    """The element type of a map."""
    return ELEMENTS[map.element] if map.element else element(map.buffer.dtype)


def base(map: TensorMap) -> Expr:
    """The address of the tensor's first element in bytes: a multiple of the alignment of its buffer, plus the offset."""
    start = Sym(f"address of {map.buffer.name}")
    return expr(start) * _alignment(map.buffer) + map.offset * map.buffer.dtype.bytes


def _alignment(buffer: Buffer) -> int:
    if buffer.role == "local":
        return _WORKSPACE
    return buffer.align or buffer.dtype.bytes


def describe(map: TensorMap) -> descriptor.TensorMap:
    """The descriptor. Raises ValueError for an unknown type, swizzle, interleave or fill, and for an im2col box that is not
    channels and pixels."""
    if map.element and (map.element not in ELEMENTS or ELEMENTS[map.element].size != map.buffer.dtype.bytes):
        raise ValueError(f"{map.element!r} is no type of elements of {map.buffer.dtype.bytes} bytes")
    return descriptor.TensorMap(
        element_of(map),
        base(map),
        map.sizes,
        map.strides,
        _traversal(map),
        descriptor.exprs(*map.steps),
        descriptor.Interleave(map.interleave),
        Swizzle(map.swizzle),
        fill=Fill(map.fill),
    )


def _traversal(map: TensorMap) -> descriptor.Traversal:
    if not map.corners:
        return descriptor.Tiled(descriptor.exprs(*map.box))
    if len(map.box) != 2:
        raise ValueError("in im2col mode a box is channels and pixels")
    lower, upper = zip(*map.corners, strict=True)
    return descriptor.Im2col(descriptor.exprs(*lower), descriptor.exprs(*upper), *descriptor.exprs(*map.box))


def judged(map: TensorMap) -> Findings:
    """The findings of the hardware's rules on `map`, where each size is at least 0 and less than 2³¹."""
    described = describe(map)
    parts = (described.base, *described.sizes, *described.strides)
    ranges: dict[Sym, Range] = {sym: (0, LARGEST_INT) for part in parts for sym in part.syms()}
    return findings(described, Known(ranges))
