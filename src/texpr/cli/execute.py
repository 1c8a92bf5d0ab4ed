"""The places where `texpr run` can run a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from texpr import interp
from texpr.interp.dtypes import Array
from texpr.ir.program import Function

Executor: TypeAlias = Callable[[Mapping[str, Array]], dict[str, Array]]
"""From an array for each parameter to each result and inout, by name; no argument is changed."""

PLACES = ("interp", "cpu", "emulator", "cuda")


def executor(on: str, function: Function, sizes: Mapping[str, int], seed: int) -> Executor:
    """Make `function` ready to run `on` one of `PLACES`, at these sizes. Raises TexprError."""
    return lambda arrays: interp.run(function, arrays, sizes)
