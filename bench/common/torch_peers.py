"""What ten programs of the gallery compute, in PyTorch. Each takes PyTorch and the program's arrays by name, on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Arrays = Mapping[str, Any]
Peer = Callable[[Any, Arrays], Any]


def jacobi(torch: Any, a: Arrays) -> Any:
    """Four sweeps, each into a new array."""
    now = a["A"]
    for _ in range(4):
        following = now.clone()
        following[1:-1, 1:-1] = 0.25 * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
        now = following
    return now


def conv2d(torch: Any, a: Arrays) -> Any:
    """The images are NHWC, which PyTorch calls channels last."""
    image, filters = a["X"].permute(0, 3, 1, 2), a["K"].permute(3, 2, 0, 1)
    return torch.nn.functional.conv2d(image, filters).permute(0, 2, 3, 1)


def rmsnorm(torch: Any, a: Arrays) -> Any:
    """In f32, as the program."""
    x = a["X"].float()
    return (x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + a["eps"]) * a["gain"].float()).to(torch.bfloat16)


PEERS: dict[str, Peer] = {
    "saxpy": lambda torch, a: a["a"] * a["x"] + a["y"],
    "sum": lambda torch, a: a["x"].sum(),
    "transpose": lambda torch, a: a["A"].t().contiguous(),
    "permute5d": lambda torch, a: a["X"].permute(2, 4, 0, 3, 1).contiguous(),
    "softmax": lambda torch, a: torch.softmax(a["X"], dim=1),
    "layernorm": lambda torch, a: torch.nn.functional.layer_norm(a["X"], a["gain"].shape, a["gain"], a["bias"], a["eps"]),
    "rmsnorm": rmsnorm,
    "matmul": lambda torch, a: (a["A"] @ a["B"]).float(),
    "conv2d": conv2d,
    "jacobi": jacobi,
}
"""By the name in `examples/references.py`. The product's result is rounded to bf16 first, as PyTorch has it."""
