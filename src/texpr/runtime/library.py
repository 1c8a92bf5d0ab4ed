"""The library of a caller's arrays: results are returned as arrays of the same library, through its `from_dlpack`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import numpy as np

from texpr.interp.dtypes import Array
from texpr.runtime.array import DeviceArray, HostArray
from texpr.runtime.dlpack import Exporter

Taker: TypeAlias = "Callable[[object], object]"
"""A library's `from_dlpack`."""


def taker(given: Iterable[object]) -> Taker | None:
    """The `from_dlpack` of the first array of another library; None if all are NumPy's or ours, or it has none."""
    for array in given:
        if not isinstance(array, np.ndarray | np.generic | DeviceArray | HostArray) and isinstance(array, Exporter):
            return _from_dlpack(array)
    return None


def handed(made: object, take: Taker | None) -> object:
    """A result as an array of the caller's library."""
    if take is None:
        return made
    return take(HostArray(cast(Array, made)) if isinstance(made, np.ndarray) else made)


def _from_dlpack(array: object) -> Taker | None:
    """By the array API standard, or else that of the package that defines the array's type; nothing is imported."""
    kind: Any = type(array)
    namespace: Any = getattr(array, "__array_namespace__", None)
    library = namespace() if callable(namespace) else sys.modules.get(str(kind.__module__).partition(".")[0])
    found = getattr(library, "from_dlpack", None)
    return cast(Taker, found) if callable(found) else None
