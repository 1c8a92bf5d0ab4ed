"""Problems in CuTe DSL, and their configurations."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from typing import Any

import cutlass
from cute_attention import attention
from cute_moves import gather, transpose, whole_sum
from cute_products import matmul
from cute_rows import bias_gelu, by_rows, scan
from offer import Kernel, Made, Peer

PEER = Peer("cute", version("nvidia-cutlass-dsl"))


def configurations(problem: str, make: Callable[..., list[Kernel]], **choices: Sequence[Any]) -> None:
    """All combinations of choices are configurations of a problem, by a name that tells them."""
    found: dict[str, Made] = {}
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in chosen.items())] = partial(make, **chosen)
    PEER.problems[problem] = {**PEER.problems.get(problem, {}), **found}


WORDS = [(128, 256, 64), (128, 128, 64)]
BYTES = [(128, 256, 128), (128, 128, 128)]
PRODUCTS: Mapping[str, Any] = {
    "matmul_bf16": partial(matmul, cutlass.BFloat16, cutlass.BFloat16, cutlass.Float32),
    "matmul_8192": partial(matmul, cutlass.BFloat16, cutlass.BFloat16, cutlass.Float32, cube=8192),
    "matmul_f16": partial(matmul, cutlass.Float16, cutlass.Float16, cutlass.Float32),
    "matmul_at": partial(matmul, cutlass.BFloat16, cutlass.BFloat16, cutlass.Float32, first=True),
    "matmul_bt": partial(matmul, cutlass.BFloat16, cutlass.BFloat16, cutlass.Float32, turned=True),
}
for name, make in PRODUCTS.items():
    configurations(name, make, tile=WORDS, stages=[4], across=[1, 2])
BY_ROWS: Mapping[str, Any] = {
    "matmul_f8": partial(matmul, cutlass.Float8E4M3FN, cutlass.BFloat16, cutlass.Float32, turned=True),
    "matmul_i8": partial(matmul, cutlass.Int8, cutlass.BFloat16, cutlass.Int32, turned=True),
}
for name, make in BY_ROWS.items():
    configurations(name, make, tile=BYTES, stages=[4], across=[1, 2])
for wide, causal in product((64, 128), (False, True)):
    configurations(f"attention_{wide}{'_causal' * causal}", partial(attention, wide, causal), keys=[128, 64], stages=[2])
configurations("softmax", partial(by_rows, "softmax", cutlass.Float32, 0), threads=[128, 256, 512])
configurations("layernorm", partial(by_rows, "layernorm", cutlass.Float32, 2), threads=[128, 256, 512])
configurations("rmsnorm", partial(by_rows, "rmsnorm", cutlass.BFloat16, 1), threads=[128, 256, 512])
configurations("scan", scan, threads=[128, 256])
configurations("bias_gelu", bias_gelu, threads=[128, 256], vectors=[1, 2])
configurations("transpose", transpose, threads=[128, 256])
configurations("sum", whole_sum, share=[1 << 16, 1 << 17], threads=[256, 512])
configurations("gather", gather, threads=[128, 256])

if __name__ == "__main__":
    sys.exit(PEER.main())
