"""`--against MODULE:FUNCTION`: a Python function that computes the same, on NumPy arrays or on PyTorch's tensors."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import click
import numpy as np

from texpr.interp.dtypes import Array, dtype_of, numpy_dtype
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.runtime import DeviceArray, HostArray
from texpr.runtime.call import as_array, is_scalar, view_of
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Record

TORCH = "torch"


class Reference(Record):
    """A function of others. It takes the parameters in their order, a scalar as a number, and gives the results in their order,
    a tuple of several; an `inout` it may change in place, or give behind the results. Other arrays of NumPy cannot be written.

    `torch`: the module, where the function takes its tensors.
    """

    name: str
    function: Callable[..., object]
    torch: Any = None

    def given(self, function: Function, arrays: Mapping[str, Array | DeviceArray]) -> list[object]:
        """The arguments, on the memory of `arrays`."""
        return [self._argument(param, arrays[param.name]) for param in function.params]

    def _argument(self, param: Buffer, array: Array | DeviceArray) -> object:
        if is_scalar(param) and isinstance(array, np.ndarray):
            return array[()] if self.torch is None else array.astype(np.float64 if param.dtype.is_float else array.dtype).item()
        if self.torch is None:
            return array if param.role == "inout" else _read_only(array)
        return self.torch.from_dlpack(HostArray(array) if isinstance(array, np.ndarray) else array)

    def results(self, function: Function, given: Sequence[object]) -> dict[str, Array]:
        """What it gives, by name, as arrays of the host. Raises TexprError: E0865 where it fails, E0866 for other results."""
        try:
            returned = self.function(*given)
        except Exception as fault:
            raise error("E0865", None, f"`{self.name}` fails: {_told(fault)}") from fault
        several = list(cast("tuple[object, ...]", returned)) if isinstance(returned, tuple | list) else [returned]
        if returned is None:
            several = []
        changed = {param.name: value for param, value in zip(function.params, given, strict=True) if param.role == "inout"}
        names = [buffer.name for buffer in function.results]
        names += [name for name in changed if name not in names]
        missing = [name for name in names[len(several) :] if name not in changed]
        if missing or len(several) > len(names):
            wanted = ", ".join(f"`{name}`" for name in names)
            raise error("E0866", function.span, f"`{self.name}` gives {len(several)} arrays, not one for each of {wanted}")
        found = dict(zip(names, several, strict=False))
        buffers = {buffer.name: buffer for buffer in (*function.results, *function.params)}
        return {name: self._array(buffers[name], found.get(name, changed.get(name))) for name in names}

    def _array(self, buffer: Buffer, value: object) -> Array:
        """A result in the type of `buffer`. Raises TexprError E0866."""
        if self.torch is not None and isinstance(value, self.torch.Tensor):
            tensor: Any = value
            value = as_array(view_of(buffer.name, tensor.detach().cpu().contiguous(), 0))
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            raise error("E0866", buffer.span, f"`{self.name}` gives a {type(value).__name__} for `{buffer!r}`") from None
        kind = dtype_of(array.dtype)
        if (
            kind is None
            or (kind.is_float and not buffer.dtype.is_float)
            or (array.dtype == bool) != (str(buffer.dtype) == "bool")
        ):
            raise error("E0866", buffer.span, f"`{self.name}` gives {array.dtype} for `{buffer!r}`")
        return array.astype(numpy_dtype(buffer.dtype))


def _read_only(array: Array | DeviceArray) -> Array | DeviceArray:
    """The same memory, in which nobody writes: a reference that changes an input would spoil it for all others."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array


def same_shapes(name: str, function: Function, results: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Raises TexprError E0866 where the results of the reference `name` have other shapes than ours."""
    buffers = {buffer.name: buffer for buffer in (*function.results, *function.params)}
    for key, array in expected.items():
        if array.shape != results[key].shape:
            told = f"`{name}` gives the shape {list(array.shape)} for `{buffers[key]!r}`, which has {list(results[key].shape)}"
            raise error("E0866", buffers[key].span, told)


def find_reference(text: str) -> Reference:
    """The function of `MODULE:FUNCTION`; modules beside the current folder's files count. Raises TexprError E0864."""
    module, colon, path = text.partition(":")
    if not colon or not module or not path:
        raise click.UsageError(f"--against takes MODULE:FUNCTION, such as numpy:add, not `{text}`")
    found: object = _module(module, text)
    for name in path.split("."):
        if not hasattr(found, name):
            near = get_close_matches(name, dir(found), 1)
            help = f"did you mean `{near[0]}`?" if near else None
            raise error("E0864", None, f"`{module}` has no `{path}`", help=help)
        found = getattr(found, name)
    if not callable(found):
        raise error("E0864", None, f"`{text}` cannot be called, it is of the type {type(found).__name__}")
    torch = importlib.import_module(TORCH) if module.partition(".")[0] == TORCH or _takes_tensors(found) else None
    return Reference(text, found, torch)


def _module(name: str, text: str) -> object:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        help = None if missing.name != name else "it is looked for in this folder and where Python's packages are"
        raise error("E0864", None, f"`{text}` needs the module `{missing.name}`, which is not there", help=help) from None
    except Exception as fault:
        raise error("E0864", None, f"`{name}` cannot be imported: {_told(fault)}") from fault
    finally:
        if here in sys.path:
            sys.path.remove(here)


def _takes_tensors(function: Callable[..., object]) -> bool:
    """Whether an annotation of a parameter is of PyTorch."""
    try:
        params = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C, as NumPy's
        return False
    return any(_is_tensor(param.annotation) for param in params)


def _is_tensor(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(f"{TORCH}.") or annotation == "Tensor"
    return getattr(annotation, "__module__", "").partition(".")[0] == TORCH


def _told(fault: Exception) -> str:
    if isinstance(fault, TexprError):
        return fault.diagnostics[0].message
    return f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
