"""A block of a transformer whose norms, attention and gate are kernels, beside the same in plain PyTorch.

    python examples/pytorch/block.py

It needs the extra `torch`. The block runs eagerly, compiled in one graph, and exported; each is compared with plain PyTorch.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import texpr
import texpr.torch

MODULE = texpr.load(Path(__file__).with_name("block.te"))


def operator(name: str, backward: str | None = None, target: str = "cpu"):
    """The operator `block::NAME` of a function of block.te."""
    back = None if backward is None else texpr.compile(MODULE[backward], target)
    return texpr.torch.register(texpr.compile(MODULE[name], target), f"block::{name}", backward=back)


norm, attention, gate = operator("norm"), operator("attention"), operator("gate", "gate_back")


class Block(nn.Module):
    """x + W (heads of x) + V (gate of x), by kernels; with `plain` by PyTorch alone. Tensors are [rows, width]."""

    def __init__(self, width: int, heads: int, hidden: int, plain: bool = False):
        super().__init__()
        self.heads, self.plain = heads, plain
        self.first, self.second = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.into, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same for rows of any number."""
        q, k, v = (
            each.unflatten(1, (self.heads, -1)).transpose(0, 1) for each in self.into(self.norm(x, self.first)).chunk(3, 1)
        )
        x = x + self.out(self.attention(q, k, v).transpose(0, 1).flatten(1))
        a, b = self.up(self.norm(x, self.second)).chunk(2, 1)
        return x + self.down(F.silu(a) * b if self.plain else gate(a, b))

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Rows of root mean square 1, scaled."""
        return F.rms_norm(x, weight.shape, weight, 1e-6) if self.plain else norm(x, weight)

    def attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """What each row of each head takes from those before it."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=True) if self.plain else attention(q, k, v)


def blocks(width: int = 32, heads: int = 4, hidden: int = 48) -> tuple[Block, Block]:
    """A block by kernels, and one by PyTorch with the same weights."""
    torch.manual_seed(0)
    mine, plain = Block(width, heads, hidden), Block(width, heads, hidden, plain=True)
    plain.load_state_dict(mine.state_dict())
    return mine.eval(), plain.eval()


def exported(block: Block, x: Tensor):
    """A block as a program for any number of rows."""
    rows = torch.export.Dim("rows", min=2)
    return torch.export.export(block, (x,), dynamic_shapes=({0: rows},))


def main() -> None:
    """Compares all ways to run the block."""
    mine, plain = blocks()
    with torch.no_grad():
        compiled = torch.compile(mine, fullgraph=True, dynamic=True)
        program = exported(mine, torch.randn(8, 32)).module()
        for rows in (8, 33):
            x = torch.randn(rows, 32)
            for name, way in (("eager", mine), ("compiled", compiled), ("exported", program)):
                torch.testing.assert_close(way(x), plain(x), rtol=1e-4, atol=1e-5)
                print(f"{rows} rows, {name}: as plain PyTorch")


if __name__ == "__main__":
    main()
