"""Operators by `torch.library`: what a call does, what a trace sees, and gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from texpr.artifact.texts.operators import Signature, is_scalar, name_of, shape_of, signature, sizes_of
from texpr.ir.value import Buffer
from texpr.runtime import Kernel
from texpr.support import lazy
from texpr.support.diagnostic import error
from texpr.torch.gradients import GRADIENT, gradients

torch: Any = lazy.resolve("torch")


def registered(kernels: Sequence[Kernel], name: str, backward: Sequence[Kernel]) -> Any:
    """As `texpr.torch.register`."""
    made = _operator(kernels, name)
    if backward:
        given = gradients(kernels[0].function, backward[0].function)
        other = _operator(backward, f"{name}_backward")
        _differentiated(made, other, _signature(kernels[0], name), _signature(backward[0], name), given)
    return made


def _operator(kernels: Sequence[Kernel], name: str) -> Any:
    """An operator with an implementation for the device of each kernel, and one for traces."""
    by_device = {_device(each): each for each in kernels}
    if len(by_device) < len(kernels) or len({each.function.name for each in kernels}) > 1:
        raise error("E0846", None, f"the kernels of `{name}` are not of one function, each for another device")
    found = _signature(kernels[0], name)
    written = tuple(each.name for each in found.written)
    (device, first), *rest = by_device.items()
    made = torch.library.custom_op(name, _call(first, found), mutates_args=written, device_types=device, schema=found.schema)
    for device, kernel in rest:
        made.register_kernel(device)(_call(kernel, found))
    made.register_fake(_fake(found))
    return made


def _signature(kernel: Kernel, name: str) -> Signature:
    function = kernel.function
    return signature(name, function.name, function.params, function.results, function.sizes)


def _device(kernel: Kernel) -> str:
    """The device of a kernel's tensors; an emulated one has its arrays on the host."""
    return "cpu" if kernel.driver is None or kernel.emulator is not None else "cuda"


def _call(kernel: Kernel, found: Signature) -> Callable[..., Any]:
    """What an operator does: results are PyTorch's memory, and work is queued on its current stream."""

    def call(*given: Any, **sizes: Any) -> Any:
        named = {param.name: value for param, value in zip(found.params, given, strict=True)}
        tensors = [value for param, value in zip(found.params, given, strict=True) if not is_scalar(param)]
        device = next((each.device for each in tensors), "cpu")
        outs = _outs(found, named, sizes, device)
        arrays = [_taken(param, value) for param, value in zip(found.params, given, strict=True)]
        kernel(*arrays, out=tuple(outs) if outs else None, stream=stream_of(tensors), **sizes)
        return _returned(outs)

    return call


def _taken(param: Buffer, value: Any) -> Any:
    """An argument as the kernel takes it: dense, unless the function declares strides, or changes it."""
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach()
    return plain.contiguous() if param.role == "input" and param.strides is None else plain


def stream_of(tensors: Sequence[Any]) -> Any:
    """The current stream of the device on which tensors lie; None on the host."""
    device = next((each.device for each in tensors if each.is_cuda), None)
    return None if device is None else torch.cuda.current_stream(device)


def _fake(found: Signature) -> Callable[..., Any]:
    """What a trace sees: shapes and types, and that shapes which share a size agree."""

    def fake(*given: Any, **sizes: Any) -> Any:
        named = {param.name: value for param, value in zip(found.params, given, strict=True)}
        known = _checked(found, named, sizes)
        device = next((value.device for value in given if isinstance(value, torch.Tensor)), "cpu")
        return _returned([_empty(found, each, known, device) for each in found.results])

    return fake


def _checked(found: Signature, named: Mapping[str, Any], given: Mapping[str, Any]) -> dict[Any, Any]:
    """The sizes of a trace. Raises RuntimeError where tensors are not what the function takes, as PyTorch does."""
    params = [each for each in found.params if not is_scalar(each)]
    for param in params:
        tensor = named[param.name]
        wanted = getattr(torch, name_of(param.dtype))
        torch._check(tensor.dim() == param.rank, lambda p=param: f"`{p.name}` of `{found.function}` has rank {p.rank}")
        torch._check(tensor.dtype == wanted, lambda p=param: f"`{p.name}` of `{found.function}` is {p.dtype}")
    known = sizes_of(found, named, given)
    for param in params:
        for at, entry in enumerate(param.shape):
            if entry.syms() <= known.keys():
                extent, wanted = named[param.name].shape[at], entry.evaluate(known)
                torch._check(
                    extent == wanted, lambda p=param, e=entry: f"`{p!r}` of `{found.function}` has another extent than {e}"
                )
    return known


def _outs(found: Signature, named: Mapping[str, Any], given: Mapping[str, Any], device: Any) -> list[Any]:
    """Memory for what is returned. Where shapes do not fit, the kernel says so, when it is called."""
    known = sizes_of(found, named, given)
    return [_empty(found, each, known, device) for each in found.results]


def _empty(found: Signature, result: Any, known: Mapping[Any, Any], device: Any) -> Any:
    return torch.empty(shape_of(result.shape, known), dtype=getattr(torch, name_of(result.dtype)), device=device)


def _returned(outs: Sequence[Any]) -> Any:
    """As an operator returns it: nothing, one tensor, or several."""
    if not outs:
        return None
    return outs[0] if len(outs) == 1 else tuple(outs)


def _differentiated(made: Any, other: Any, found: Signature, back: Signature, given: Mapping[str, str]) -> None:
    """Registers the gradients of `made` by the operator `other`: what that reads is kept from a call."""
    params = [each.name for each in found.params]
    results = [each.name for each in found.results]
    wanted = [each.name for each in back.params]
    tensors = [name for name in wanted if name in (*params, *results) and not _is_number(found, name)]

    def keep(ctx: Any, inputs: Any, keyword_only_inputs: Mapping[str, Any] | None = None, output: Any = None) -> None:
        several: Sequence[Any] = output if len(results) > 1 else (output,)
        known = {**dict(zip(params, inputs, strict=True)), **dict(zip(results, several, strict=True))}
        ctx.save_for_backward(*(known[name] for name in tensors))
        ctx.numbers = {name: known[name] for name in params if _is_number(found, name)}
        ctx.sizes = dict(keyword_only_inputs or {})

    def backward(ctx: Any, *grads: Any) -> Any:
        known = {**dict(zip(tensors, ctx.saved_tensors, strict=True)), **ctx.numbers}
        known |= {f"{GRADIENT}{name}": grad for name, grad in zip(results, grads, strict=True)}
        sizes = {sym.name: ctx.sizes[sym.name] for sym in back.sizes}
        answer = other(*(_dense(known[name]) for name in wanted), **sizes)
        several: Sequence[Any] = answer if len(back.results) > 1 else (answer,)
        by_name = {each.name: one for each, one in zip(back.results, several, strict=True)}
        return tuple(by_name.get(given.get(name, "")) for name in params)

    made.register_autograd(backward, setup_context=keep)


def _is_number(found: Signature, name: str) -> bool:
    return any(each.name == name and is_scalar(each) for each in found.params)


def _dense(value: Any) -> Any:
    """A gradient as PyTorch gives it may be one number, repeated."""
    return value.contiguous() if isinstance(value, torch.Tensor) else value
