"""Runs a function on arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from texpr.interp.arguments import Arguments, bind
from texpr.interp.dtypes import Array
from texpr.interp.facts import check_facts
from texpr.interp.lanes import Lanes
from texpr.interp.memory import Memory
from texpr.interp.trace import trace
from texpr.interp.vector import Execution
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.support.diagnostic import TexprError, error


def run(
    function: Function, arguments: Arguments, sizes: Mapping[str, int] | None = None, *, checked: bool = False
) -> dict[str, Array]:
    """The results of `function` by name, in order, then its inouts; all are new arrays and no argument is changed.

    The program must be legal: with dependent iterations of a `par` the result is undefined. With `checked` it runs slowly,
    one scalar at a time, and everything that `texpr.interp.trace.conflicts` finds is an error. Raises `TexprError` if the
    arguments do not match or break a `where` or `assume`, if an access is out of bounds, or if an element is read, or
    returned, that was never written.
    """
    if checked:
        traced = trace(function, arguments, sizes)
        if traced.findings:
            raise TexprError([finding.diagnostic for finding in traced.findings])
        return traced.outputs
    bound = bind(function, arguments, sizes)
    check_facts(function, bound)
    memories = {param: Memory.filled(param, bound.arrays[param.name]) for param in function.params}
    Execution(memories).block(function.body, Lanes(1, {**bound.sizes}))
    return {buffer.name: _result(function, memories[buffer]) for buffer in outputs(function)}


def outputs(function: Function) -> tuple[Buffer, ...]:
    """The outputs of `run`: the results, then every inout that is not one of them."""
    inouts = (param for param in function.params if param.role == "inout" and param not in function.results)
    return (*function.results, *inouts)


def _result(function: Function, memory: Memory) -> Array:
    if memory.written is not None and not memory.written.all():
        name = memory.name_of(int(np.argmin(memory.written)))
        raise error("E0722", memory.buffer.span, f"`{function.name}` returns {name}, which it never writes")
    return memory.data.reshape(memory.dims)
