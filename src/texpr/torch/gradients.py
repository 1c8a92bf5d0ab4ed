"""Kernels for gradients: matched with a function by the names of parameters and results."""

from __future__ import annotations

from texpr.artifact.texts.operators import is_scalar
from texpr.ir.program import Function
from texpr.support.diagnostic import TexprError, error

GRADIENT = "grad_"
"""The prefix of gradients' names."""


def gradients(function: Function, backward: Function) -> dict[str, str]:
    """The parameters of which `backward` gives gradients, with the names of its results. Raises TexprError E0846."""
    params = {each.name: each for each in function.params}
    results = {each.name: each for each in function.results}
    if any(each.role == "inout" for each in (*function.params, *backward.params)):
        raise _unfit(function, "a function that changes its arguments has no gradient", "return what it computes as a result")
    known = {**params, **results, **{f"{GRADIENT}{name}": each for name, each in results.items()}}
    for each in backward.params:
        if each.name not in known:
            raise _unfit(backward, f"`{each.name}` is none of {', '.join(known)}", "its parameters go by their names")
        if (each.dtype, each.rank) != (known[each.name].dtype, known[each.name].rank):
            raise _unfit(backward, f"`{each!r}` is not like {known[each.name]!r}", "they are the same arrays")
    found: dict[str, str] = {}
    for each in backward.results:
        name = each.name.removeprefix(GRADIENT)
        if not each.name.startswith(GRADIENT) or name not in params or is_scalar(params[name]):
            wanted = ", ".join(f"{GRADIENT}{name}" for name, param in params.items() if not is_scalar(param))
            raise _unfit(backward, f"`{each.name}` is none of {wanted}", "its results are gradients")
        if (each.dtype, each.rank) != (params[name].dtype, params[name].rank):
            raise _unfit(backward, f"`{each!r}` is not like {params[name]!r}", "a gradient is like its parameter")
        found[name] = each.name
    return found


def _unfit(function: Function, reason: str, help: str) -> TexprError:
    return error("E0846", function.span, f"`{function.name}`: {reason}", help=help)
