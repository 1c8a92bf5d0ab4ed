"""The launcher's description of a tensor map for the driver: a `struct tx_tensor` of texpr_driver.h, with constants of
cuda.h."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from texpr.affine.expr import Expr
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds
from texpr.ir.operation.maps import TensorMap
from texpr.ir.operation.tensor_map import element_of

ELEMENTS: Mapping[str, int] = {
    name: number
    for number, name in enumerate(
        ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "bfloat16")
    )
}
"""`CUtensorMapDataType`, by the names of `texpr.tma.elements`."""

INTERLEAVES: Mapping[int, int] = {0: 0, 16: 1, 32: 2}
"""`CUtensorMapInterleave`."""

SWIZZLES: Mapping[int, int] = {0: 0, 32: 1, 64: 2, 128: 3}
"""`CUtensorMapSwizzle`."""

FILLS: Mapping[str, int] = {"zero": 0, "nan": 1}
"""`CUtensorMapFloatOOBfill`."""


def tensor_text(map: TensorMap, scope: Scope) -> str:
    """The initialiser of the struct, in a scope with buffers as pointers."""
    dtype = map.buffer.dtype
    base = f"(texpr_wide)(uintptr_t){scope.named[map.buffer]} + {index_text(map.offset * dtype.bytes, scope).at(Binds.ADD)}"
    strides = _listed(map.strides, scope) if map.strides else "0"
    numbers = (ELEMENTS[element_of(map).name], INTERLEAVES[map.interleave], SWIZZLES[map.swizzle], FILLS[map.fill])
    fields = (
        base,
        f"{{{_listed(map.sizes, scope)}}}",
        f"{{{strides}}}",
        str(map.rank),
        f"{{{', '.join(str(extent) for extent in map.box)}}}",
        f"{{{', '.join(str(step) for step in map.steps)}}}",
        *(str(number) for number in numbers),
    )
    lower, upper = (", ".join(str(corner[end]) for corner in map.corners) or "0" for end in (0, 1))
    fields += (str(int(bool(map.corners))), f"{{{lower}}}", f"{{{upper}}}")
    return f"{{{', '.join(fields)}}}"


def _listed(values: Iterable[Expr], scope: Scope) -> str:
    return ", ".join(str(index_text(value, scope)) for value in values)
