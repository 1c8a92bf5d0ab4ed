"""Running plans for the CPU: several in one library, called through their C interface."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.trapping import TRAPPING

from texpr.backends.c.names import identifier
from texpr.backends.cpu import headers, print_cpu
from texpr.interp.arguments import bind, shape_of
from texpr.interp.dtypes import numpy_dtype
from texpr.ir.kernel import Plan
from texpr.ir.program import Function
from texpr.toolchain import Toolchain, this_machine

Array = NDArray[Any]
POISON = 0xA5


def library(plans: Sequence[Plan]) -> ctypes.CDLL:
    """One library with every plan."""
    text = "\n".join(print_cpu(plan) for plan in plans)
    tools = Toolchain(this_machine())
    return ctypes.CDLL(str(tools.loadable("plans", {"plans.cpp": text}, headers(), flags=("-O1", *TRAPPING), openmp=True)))


def call(
    loaded: ctypes.CDLL, function: Function, plan: Plan, arguments: Mapping[str, Any], sizes: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """Results and inouts of one function; memory that it must write is poisoned before."""
    bound = bind(function, arguments, sizes)
    arrays = {name: np.array(a, order="C") for name, a in bound.arrays.items()}
    for buffer in function.results:
        if buffer.name not in arrays:
            arrays[buffer.name] = _poisoned(shape_of(buffer, bound.sizes), numpy_dtype(buffer.dtype))
    numbers = [ctypes.c_int64(bound.sizes[s]) for s in plan.sizes]
    needed = ctypes.c_uint64()
    assert getattr(loaded, f"texpr_{identifier(plan.name)}_workspace_bytes")(*numbers, ctypes.byref(needed)) == 0
    memory = _poisoned((needed.value + 512,), np.dtype(np.uint8))
    start = (memory.ctypes.data + 255) // 256 * 256
    fresh = [b for b in function.results if b not in function.params]
    pointers = [_argument(arrays[b.name], b.rank == 0 and b.role == "input") for b in (*function.params, *fresh)]
    code = getattr(loaded, f"texpr_{identifier(plan.name)}")(None, ctypes.c_void_p(start), *pointers, *numbers)
    assert code == 0, code
    wanted = (*function.results, *(p for p in function.params if p.role == "inout"))
    return {b.name: arrays[b.name] for b in wanted}


def _argument(array: Array, scalar: bool) -> Any:
    if not scalar:
        return ctypes.c_void_p(array.ctypes.data)
    kinds = {"f4": ctypes.c_float, "f8": ctypes.c_double, "i4": ctypes.c_int32, "i8": ctypes.c_int64}
    return kinds[array.dtype.str[1:]](array[()].item())


def _poisoned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    return np.full(count * dtype.itemsize, POISON, np.uint8).view(dtype).reshape(shape)
