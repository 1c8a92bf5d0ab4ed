"""Whether the kernels in Triton compute what they should: at small sizes, in Triton's interpreter, against PyTorch on a CPU.

    TRITON_INTERPRET=1 .venv-peers/bin/python bench/peers/check_triton.py

Elements of 16 bits are f16 here, as the interpreter does not multiply bf16.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

os.environ["TRITON_INTERPRET"] = "1"

import of_triton as kernels
import torch
import triton_attention
import triton_products
from triton.tools.tensor_descriptor import TensorDescriptor

Found = tuple[torch.Tensor, torch.Tensor, float]
M, N, K = 256, 256, 128
GRID = (M // 32 * N // 32,)


def tile(array: torch.Tensor, *block: int) -> TensorDescriptor:
    """An array by its tiles."""
    return TensorDescriptor.from_tensor(array, list(block))


def products() -> Iterator[Found]:
    """A · B and its kinds by descriptors, one of a batch; of odd sizes, in f32, of bytes with scales, two of the same rows."""
    a, b = torch.randn(2, M, K).half(), torch.randn(2, K, N).half()
    for first, turned, many in ((False, False, 1), (False, True, 1), (True, False, 1), (False, False, 2)):
        left, right = a.transpose(1, 2) if first else a, b.transpose(1, 2) if turned else b
        c = torch.zeros(many * M, N).half()
        tiles = [tile(each[:many].contiguous().flatten(0, 1), 32, 32) for each in (left, right)]
        sizes = (M, N, K, 32, 32, 32, first, turned, "ieee", None, False)
        triton_products.product_of_tiles[(*GRID, many)](*tiles, tile(c, 32, 32), *sizes)
        yield c.view(many, M, N), a[:many].float() @ b[:many].float(), 2e-2
    odd, narrow, found = torch.randn(65, 63).half(), torch.randn(63, 71).half(), torch.zeros(65, 71).half()
    triton_products.product_of_any[(3 * 3,)](odd, narrow, found, 65, 71, 63, 32, 32, 32)
    yield found, odd.float() @ narrow.float(), 2e-2
    one, other, whole = torch.randn(M, K), torch.randn(K, N), torch.zeros(M, N)
    triton_products.product_by_addresses[GRID](one, other, whole, M, N, K, 32, 32, 32)
    yield whole, one @ other, 1e-4
    left, right = (torch.randint(-9, 9, (many, K), dtype=torch.int8) for many in (M, N))
    rows, columns, c = torch.rand(M), torch.rand(N), torch.zeros(M, N).half()
    sizes = (rows, columns, M, N, K, 32, 32, 32)
    triton_products.scaled_product[GRID](tile(left, 32, 32), tile(right, 32, 32), tile(c, 32, 32), *sizes)
    yield c, (left.float() @ right.float().T) * rows[:, None] * columns[None, :], 2e-2
    x, gate, more = (torch.randn(many, K).half() / 4 for many in (M, N, N))
    tiles = [tile(each, 32, 32) for each in (x, gate, more, c)]
    triton_products.gated_product[GRID](*tiles, M, N, K, 32, 32, 32)
    yield c, torch.nn.functional.silu(x.float() @ gate.float().T) * (x.float() @ more.float().T), 2e-2


def attention() -> Iterator[Found]:
    """Two heads, without a mask and with."""
    heads, length, wide = 2, 128, 32
    q, k, v = (torch.randn(heads * length, wide).half() for _ in "qkv")
    whole = [each.view(heads, length, wide).float() for each in (q, k, v)]
    for causal in (False, True):
        found, scale = torch.zeros(heads * length, wide).half(), wide**-0.5
        tiles = [tile(each, 32 if each is q or each is found else 16, wide) for each in (q, k, v, found)]
        sizes = (length, wide, 32, 16, causal, False)
        triton_attention.attention_forward[(length // 32, heads)](*tiles, scale * 1.4426950408889634, *sizes)
        expected = torch.nn.functional.scaled_dot_product_attention(*whole, is_causal=causal)
        yield found.view(heads, length, wide), expected, 2e-2


def rows() -> Iterator[Found]:
    """Softmax, norms, running sums, GELU."""
    x, gain, bias = torch.randn(4, 256), torch.randn(256), torch.randn(256)
    y = torch.zeros_like(x)
    kernels.softmax_of_row[(4,)](x, y, 256)
    yield y.clone(), torch.softmax(x, 1), 1e-5
    kernels.layernorm_of_row[(4,)](x, gain, bias, y, 1e-5, 256)
    yield y.clone(), torch.nn.functional.layer_norm(x, (256,), gain, bias, 1e-5), 1e-4
    kernels.scan_of_row[(4,)](x, y, 256)
    yield y, x.cumsum(1), 1e-4
    half, factors, found = x.half(), gain.half(), torch.zeros(4, 256).half()
    kernels.rmsnorm_of_row[(4,)](half, factors, found, 1e-5, 256)
    root = torch.rsqrt((half.float() ** 2).mean(1, keepdim=True) + 1e-5)
    yield found.clone(), half.float() * root * factors.float(), 1e-2
    kernels.biased_gelu[(4, 2)](half, factors, found, 256, 128)
    yield found, torch.nn.functional.gelu(half.float() + factors.float()), 1e-2


def moved() -> Iterator[Found]:
    """What moves elements, and sums them."""
    x, y = torch.randn(128, 128), torch.zeros(128, 128)
    kernels.turned_tile[(4, 2)](x, y, 128, 32, 64)
    yield y, x.T, 0.0
    five, turned = torch.randn(2, 8, 3, 2, 4).half(), torch.zeros(3, 4, 2, 2, 8).half()
    kernels.permuted_tile[(12,)](five, turned, 2, 8, 3, 2, 4)
    yield turned, five.permute(2, 4, 0, 3, 1), 0.0
    long, sums = torch.randn(4096), torch.zeros(4)
    kernels.partial_sum[(4,)](long, sums, 1024, 256)
    yield sums, long.view(4, 1024).sum(1), 1e-3
    table, index, chosen = torch.randn(10, 64), torch.randint(0, 10, (6,), dtype=torch.int32), torch.zeros(6, 64)
    kernels.gathered_row[(6,)](table, index, chosen, 64)
    yield chosen, table[index.long()], 0.0


def convolution() -> Iterator[Found]:
    """Two images."""
    x, k, y = torch.randn(2, 8, 8, 32).half(), torch.randn(3, 3, 32, 16).half(), torch.zeros(2, 8, 8, 16).half()
    kernels.convolution[(4,)](x, k, y, 8, 8, 32, 16, 32, 32)
    turned = x.float().permute(0, 3, 1, 2), k.float().permute(3, 2, 0, 1)
    yield y, torch.nn.functional.conv2d(*turned, padding=1).permute(0, 2, 3, 1), 2e-2


def main() -> int:
    """Exit 1 where one is wrong."""
    torch.manual_seed(0)
    asked: tuple[Callable[[], Iterator[Found]], ...] = (products, attention, rows, moved, convolution)
    wrong = 0
    for each in asked:
        for number, (found, expected, near) in enumerate(each()):
            right = torch.allclose(found.float(), expected.float(), rtol=near, atol=near)
            sys.stdout.write(f"{each.__name__} {number}: {'right' if right else 'wrong'}\n")
            wrong += not right
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
