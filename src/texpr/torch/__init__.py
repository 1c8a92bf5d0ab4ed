"""Kernels as operators of PyTorch: for eager mode, `torch.compile` and `torch.export`, with gradients by other kernels.

    import texpr.torch

    op = texpr.torch.register(kernel, "mine::norm", backward=other)
    y = op(x)                              # or torch.ops.mine.norm(x)

It needs the extra `torch`; nothing of PyTorch is imported before `register` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from texpr.runtime import Kernel
from texpr.support import lazy
from texpr.support.diagnostic import TexprError, error
from texpr.support.expect import expect

_KERNEL = "kernel must be one that texpr.compile made, or several of one function for different devices"


def register(kernel: Kernel | Sequence[Kernel], name: str, *, backward: Kernel | Sequence[Kernel] | None = None) -> Any:
    """The operator `name`, such as "mine::norm", of a kernel; of several kernels of one function, each for its device.

    It takes the function's parameters in their order: arrays as tensors, scalars as numbers; by keyword sizes that no shape
    says. It returns the results that are no parameters, and changes each `inout` in place. Work is queued on PyTorch's current
    stream.

    `backward`: a kernel for the gradients, by names. Its parameters are any of the function's parameters and results, and
    `grad_NAME` for the gradient of each result; its results are `grad_NAME` for parameters. The operator NAME_backward is
    registered, too.

    Raises TexprError: PyTorch is not installed (E0845), a signature that no operator has, or gradients that do not fit (E0846).
    """
    kernels, others = _several(kernel), _several(backward)
    expect(name, str, "name must be a string such as 'mine::norm'")
    if not kernels:
        raise TypeError(_KERNEL)
    with lazy.missing(_lacking):
        registered: Any = lazy.resolve("texpr.torch.operator:registered")
    return registered(kernels, name, others)


def _lacking(package: str) -> TexprError:
    help = "pip install 'texpr-compiler[torch]'"
    return error("E0845", None, f"operators of PyTorch need `{package}`, which is not installed", help=help)


def _several(given: Kernel | Sequence[Kernel] | None) -> tuple[Kernel, ...]:
    expect(given, (Kernel, Sequence, NoneType), _KERNEL)
    kernels = () if given is None else (given,) if isinstance(given, Kernel) else tuple(given)
    for each in kernels:
        expect(each, Kernel, _KERNEL)
    return kernels
