"""What ten programs of the gallery compute, in PyTorch. Each takes PyTorch and the program's arrays by name, on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.torch_problems import PEERS as PROBLEMS

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


def as_the_problem(name: str) -> Peer:
    """What a problem of `bench/problems` computes, which a program of the gallery is, too."""
    return lambda torch, a: PROBLEMS[name](torch, torch.nn.functional, a)


PEERS: dict[str, Peer] = {
    "saxpy": as_the_problem("saxpy"),
    "sum": as_the_problem("sum"),
    "transpose": as_the_problem("transpose"),
    "permute5d": as_the_problem("permute"),
    "softmax": as_the_problem("softmax"),
    "layernorm": as_the_problem("layernorm"),
    "rmsnorm": as_the_problem("rmsnorm"),
    "matmul": lambda torch, a: (a["A"] @ a["B"]).float(),
    "conv2d": conv2d,
    "jacobi": jacobi,
}
"""By the name in `examples/references.py`. The product's result is rounded to bf16 first, as PyTorch has it."""
