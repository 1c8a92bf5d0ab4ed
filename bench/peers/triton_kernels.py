"""What kernels in Triton share: compiling one to its code, types of descriptors, the order of tiles.

All sizes are constants of the kernel, as they are of ours; addresses are multiples of 16 bytes, which Triton finds out at a
launch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import triton
import triton.language as tl
from offer import Kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", int(os.environ.get("PEERS_TARGET", "sm_90a").strip("sm_a")), 32)
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8e4nv": 1, "i8": 1, "i32": 4}
CUBE = 4096


def compiled(fn: Any, arguments: Mapping[str, str], constants: Mapping[str, Any], **options: Any) -> Any:
    """A kernel for the target: types of `arguments` by name, constants by name, what else Triton is told."""
    kinds = {name: "constexpr" if name in constants else arguments[name] for name in fn.arg_names}
    aligned = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(fn.arg_names) if kinds[name].startswith("*")}
    source = ASTSource(fn, kinds, dict(constants), aligned)
    return triton.compile(source, target=TARGET, options={"enable_fp_fusion": True, **options})


def kernel(made: Any, grid: Sequence[int], l2: float, dram: float, values: Sequence[int | None] = ()) -> Kernel:
    """A launch of what `compiled` gave."""
    x, y, z = (*grid, 1, 1)[:3]
    said = made.metadata
    return Kernel(made.asm["cubin"], said.name, (x, y, z), 32 * said.num_warps, values, l2, dram, said.shared)


def descriptor(dtype: str, block: Sequence[int]) -> str:
    """The type of a descriptor of tiles."""
    return f"tensordesc<{dtype}[{', '.join(map(str, block))}]>"


def described(shape: Sequence[int]) -> tuple[int | None, ...]:
    """The arguments that a descriptor becomes: itself, extents, strides."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return (None, *shape, *strides)


@triton.jit
def place_of_tile(M: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The first row and column of a program's tile: eight tiles that are neighbours share columns."""
    at = tl.program_id(0)
    group: tl.constexpr = 8
    many: tl.constexpr = group * (N // BN)
    return (at // many * group + at % group) * BM, at % many // group * BN
