"""The signature of a function as an operator of PyTorch: its schema, and shapes of results from shapes of arguments."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from texpr.affine.expr import Expr, Sym
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.ir.value.types import BOOL, DType
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Record

NAMES: Mapping[str, str] = {
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"{sign}{bits}": f"{word}{bits}" for sign, word in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "tf32": "float32",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "bool": "bool",
}
"""The names of types in PyTorch."""

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


class Signature(Record, eq=False):
    """What an operator takes and gives. `sizes`: those of shapes that no entry says alone, which are given by keyword."""

    function: Function
    sizes: tuple[Sym, ...]

    @property
    def written(self) -> tuple[Buffer, ...]:
        """The parameters that are changed in place."""
        return tuple(each for each in self.function.params if each.role == "inout")

    @property
    def results(self) -> tuple[Buffer, ...]:
        """What is returned: the results that are no parameters."""
        return tuple(each for each in self.function.results if each not in self.function.params)

    @property
    def schema(self) -> str:
        """As `torch.library` takes it, without the operator's name."""
        params = [f"{_kind(each, at)} {each.name}" for at, each in enumerate(self.function.params)]
        sizes = ["*", *(f"SymInt {sym.name}" for sym in self.sizes)] if self.sizes else []
        results = ", ".join("Tensor" for _ in self.results)
        return f"({', '.join((*params, *sizes))}) -> {results if len(self.results) == 1 else f'({results})'}"


def signature(function: Function, name: str) -> Signature:
    """The signature of a function as the operator `name`. Raises TexprError E0846 where it can have none."""
    if _NAME.fullmatch(name) is None:
        raise error("E0846", None, f"`{name}` is no name of an operator", help="a name is NAMESPACE::NAME, such as mine::norm")
    for each in function.params:
        if keyword.iskeyword(each.name):
            reason = f"`{function.name}` has a parameter `{each.name}`, which is a word of Python"
            raise error("E0846", function.span, reason, help="give it another name")
    told = {sym for sym, _ in _told(function)}
    shapes = {sym for each in (*function.params, *function.results) for entry in each.shape for sym in entry.syms()}
    return Signature(function, tuple(sym for sym in function.sizes if sym in shapes - told))


def is_scalar(param: Buffer) -> bool:
    """Whether it is passed as a number."""
    return param.rank == 0 and param.role == "input"


def _kind(param: Buffer, at: int) -> str:
    if not is_scalar(param):
        return f"Tensor(a{at}!)" if param.role == "inout" else "Tensor"
    return "bool" if param.dtype == BOOL else "float" if param.dtype.is_float else "SymInt"


def _told(function: Function) -> Iterator[tuple[Sym, tuple[Buffer, int, int, int]]]:
    """The sizes that shapes say, each by an entry `factor * size + constant`: the array, the entry, its factor and constant."""
    seen: set[Sym] = set()
    for param in function.params:
        for at, entry in enumerate(param.shape):
            if len(entry.terms) != 1:
                continue
            ((monomial, factor),) = entry.terms
            if len(monomial) == 1 and isinstance(monomial[0], Sym) and monomial[0] not in seen:
                seen.add(monomial[0])
                yield monomial[0], (param, at, factor, entry.constant)


def sizes_of(signature: Signature, tensors: Mapping[str, Any], given: Mapping[str, Any]) -> dict[Sym, Any]:
    """Every size at a call; numbers may be symbols of a trace. Strides, which no result's shape has, are not among them."""
    found: dict[Sym, Any] = {sym: given[sym.name] for sym in signature.sizes if sym.name in given}
    for sym, (param, at, factor, constant) in _told(signature.function):
        extent = tensors[param.name].shape[at]
        found[sym] = extent if (factor, constant) == (1, 0) else (extent - constant) // factor
    return found


def shape_of(shape: Sequence[Expr], sizes: Mapping[Sym, Any]) -> list[Any]:
    """A shape at these sizes."""
    return [each.evaluate(sizes) for each in shape]


def name_of(dtype: DType) -> str:
    """The name of a type in PyTorch."""
    return NAMES[dtype.name]


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


GRADIENT = "grad_"
"""The prefix of gradients' names."""


def _unfit(function: Function, reason: str, help: str) -> TexprError:
    return error("E0846", function.span, f"`{function.name}`: {reason}", help=help)
