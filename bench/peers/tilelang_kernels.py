"""What kernels in TileLang share: compiling one to its code."""

# The language reads annotations, which must not be text here: no `from __future__ import annotations`.

import logging
from typing import Any

import tilelang
import tvm
from offer import Kernel
from tilelang.cuda.backend import tilelang_callback_cuda_compile

logging.disable(logging.WARNING)
TARGET = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float8_e4m3fn": 1, "int8": 1}
CUBE = 4096


def compiled(function: Any, l2: float, dram: float, **passes: Any) -> Kernel:
    """The launch of a function that is one kernel."""
    with TARGET, tvm.transform.PassContext(config=passes):
        made = tilelang.lower(function, target=TARGET)
    cubin = bytes(tilelang_callback_cuda_compile(made.kernel_source, TARGET, passes))
    ((name, kernel),) = made.device_mod.functions_items()
    extents = {str(axis): int(extent) for axis, extent in kernel.attrs["thread_extent"].items()}
    grid, block = ([extents.get(f"{level}Idx.{axis}", 1) for axis in "xyz"] for level in ("block", "thread"))
    shared = int(kernel.attrs.get("dyn_shared_memory_buf", 0))
    threads = block[0] * block[1] * block[2]
    return Kernel(cubin, name.name_hint, (grid[0], grid[1], grid[2]), threads, (), l2, dram, shared)
