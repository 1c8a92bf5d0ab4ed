"""Problems that machine code of others is compared on: our program, and its sizes. No size is open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Case:
    """`file`: ours, from the top, with its function; `elements` of the result, that instructions are told for. `peers`: the
    problem in the peers' files, where that has another name."""

    file: str
    function: str
    sizes: Mapping[str, int]
    elements: int
    peers: str = ""


def _cube(file: str, function: str, *shape: int) -> Case:
    """A product of so many rows, columns, and terms."""
    m, n, k = shape or (4096, 4096, 4096)
    return Case(f"bench/problems/{file}.te", function, {"M": m, "N": n, "K": k}, m * n)


def _attention(file: str, function: str, wide: int, peers: str = "") -> Case:
    """64 heads of 4096 queries and keys."""
    sizes = {"H": 64, "L": 4096, "D": wide}
    return Case(f"bench/problems/{file}.te", function, sizes, prod(sizes.values()), peers)


_ROWS = {"M": 8192, "N": 4096}
_BATCH = {"B": 32, "M": 1024, "N": 1024, "K": 1024}
CASES: Mapping[str, Case] = {
    "matmul_f32": _cube("matmul_f32", "matmul_f32"),
    "matmul_bf16": _cube("matmul_bf16", "matmul_bf16"),
    "matmul_8192": _cube("matmul_bf16", "matmul_bf16", 8192, 8192, 8192),
    "matmul_odd": _cube("matmul_bf16", "matmul_bf16", 4097, 4095, 4099),
    "matmul_at": _cube("products", "first_turned"),
    "matmul_bt": _cube("products", "second_turned"),
    "matmul_batched": Case("bench/problems/products.te", "batched", _BATCH, 32 * 1024**2),
    "matmul_f16": _cube("products", "product_f16"),
    "matmul_tf32": _cube("products", "product_tf32"),
    "matmul_of_tf32": Case("bench/problems/products.te", "product_of_tf32", dict.fromkeys("MNK", 4096), 4096**2, "matmul_tf32"),
    "matmul_f8": _cube("matmul_f8", "matmul_f8"),
    "matmul_f8_parts": _cube("matmul_f8", "matmul_f8"),
    "matmul_i8": _cube("matmul_i8", "matmul_i8"),
    "mlp": Case("bench/problems/layers.te", "mlp", {"M": 4096, "D": 4096, "F": 11008}, 4096**2),
    "norm_product": _cube("layers", "norm_product"),
    "attention_64": _attention("attention_tiles", "attention", 64),
    "attention_128": _attention("attention_tiles", "attention", 128),
    "attention_64_causal": _attention("attention_tiles", "causal", 64),
    "attention_128_causal": _attention("attention_tiles", "causal", 128),
    "attention_plain_64": _attention("attention_plain", "powers", 64, "attention_64"),
    "attention_plain_128": _attention("attention_plain", "powers", 128, "attention_128"),
    "attention_plain_64_causal": _attention("attention_plain", "causal_powers", 64, "attention_64_causal"),
    "attention_plain_128_causal": _attention("attention_plain", "causal_powers", 128, "attention_128_causal"),
    "attention_plain_e": _attention("attention_plain", "attention", 128, "attention_128"),
    "conv3x3": Case("bench/problems/conv3x3.te", "conv3x3", {"B": 32, "H": 56, "W": 56, "C": 64, "F": 64}, 32 * 56**2 * 64),
    "softmax": Case("examples/softmax.te", "softmax", _ROWS, 8192 * 4096),
    "layernorm": Case("examples/layernorm.te", "layernorm", _ROWS, 8192 * 4096),
    "rmsnorm": Case("examples/rmsnorm.te", "rmsnorm", _ROWS, 8192 * 4096),
    "scan": Case("bench/problems/scans.te", "cumsum_rows", _ROWS, 8192 * 4096),
    "bias_gelu": Case("bench/problems/bias_gelu.te", "bias_gelu", _ROWS, 8192 * 4096),
    "transpose": Case("examples/transpose.te", "transpose2d", {"M": 8192, "N": 8192}, 8192**2),
    "permute5d": Case("examples/permute5d.te", "permute5d", {"A": 16, "B": 64, "C": 32, "D": 16, "E": 64}, 1 << 25),
    "sum": Case("examples/sum.te", "sum", {"n": 1 << 28}, 1 << 28),
    "gather": Case("examples/gather.te", "gather", {"V": 50_000, "D": 1024, "n": 1 << 15}, 1 << 25),
}
