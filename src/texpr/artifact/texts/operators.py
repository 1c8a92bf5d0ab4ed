"""The signature of a function as an operator of PyTorch: its schema, and shapes of results from shapes of arguments."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer
from texpr.ir.value.types import BOOL, DType
from texpr.support.diagnostic import error
from texpr.support.record import Record

TYPES: Mapping[str, tuple[str, str]] = {
    "f16": ("float16", "Half"),
    "f32": ("float32", "Float"),
    "f64": ("float64", "Double"),
    "tf32": ("float32", "Float"),
    "bf16": ("bfloat16", "BFloat16"),
    "f8e4m3": ("float8_e4m3fn", "Float8_e4m3fn"),
    "f8e5m2": ("float8_e5m2", "Float8_e5m2"),
    "f8e8m0": ("float8_e8m0fnu", "Float8_e8m0fnu"),
    "i8": ("int8", "Char"),
    "i16": ("int16", "Short"),
    "i32": ("int32", "Int"),
    "i64": ("int64", "Long"),
    "u8": ("uint8", "Byte"),
    "u16": ("uint16", "UInt16"),
    "u32": ("uint32", "UInt32"),
    "u64": ("uint64", "UInt64"),
    "bool": ("bool", "Bool"),
}
"""The names of types in PyTorch: in Python, and in C++."""

_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


class Told(Record):
    """A size that a shape says: the entry `at` of `param` is `factor * sym + constant`."""

    sym: Sym
    param: Buffer
    at: int
    factor: int
    constant: int


class Signature(Record, eq=False):
    """What an operator takes and gives. `results`: what is returned, those that are no parameters. `told`: sizes that shapes
    say; `sizes`: other sizes of shapes, which are given by keyword."""

    function: str
    params: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    told: tuple[Told, ...]
    sizes: tuple[Sym, ...]

    @property
    def written(self) -> tuple[Buffer, ...]:
        """The parameters that are changed in place."""
        return tuple(each for each in self.params if each.role == "inout")

    @property
    def schema(self) -> str:
        """As `torch.library` takes it, without the operator's name."""
        params = [f"{_kind(each, at)} {each.name}" for at, each in enumerate(self.params)]
        sizes = ["*", *(f"SymInt {sym.name}" for sym in self.sizes)] if self.sizes else []
        results = ", ".join("Tensor" for _ in self.results)
        return f"({', '.join((*params, *sizes))}) -> {results if len(self.results) == 1 else f'({results})'}"


def signature(name: str, function: str, params: Sequence[Buffer], results: Sequence[Buffer], sizes: Sequence[Sym]) -> Signature:
    """The signature of a function as the operator `name`. Raises TexprError E0846 where it can have none."""
    if _NAME.fullmatch(name) is None:
        raise error("E0846", None, f"`{name}` is no name of an operator", help="a name is NAMESPACE::NAME, such as mine::norm")
    for word in (*(each.name for each in params), *(sym.name for sym in sizes)):
        if keyword.iskeyword(word):
            reason = f"`{function}` has a parameter or size `{word}`, which is a word of Python"
            raise error("E0846", None, reason, help="give it another name")
    told = tuple(_told(params))
    shapes = {sym for each in (*params, *results) for entry in each.shape for sym in entry.syms()}
    open_ = tuple(sym for sym in sizes if sym in shapes - {each.sym for each in told})
    return Signature(function, tuple(params), tuple(each for each in results if each not in params), told, open_)


def is_scalar(param: Buffer) -> bool:
    """Whether it is passed as a number."""
    return param.rank == 0 and param.role == "input"


def _kind(param: Buffer, at: int) -> str:
    if not is_scalar(param):
        return f"Tensor(a{at}!)" if param.role == "inout" else "Tensor"
    return "bool" if param.dtype == BOOL else "float" if param.dtype.is_float else "SymInt"


def _told(params: Sequence[Buffer]) -> Iterator[Told]:
    seen: set[Sym] = set()
    for param in params:
        for at, entry in enumerate(param.shape):
            if len(entry.terms) != 1:
                continue
            ((monomial, factor),) = entry.terms
            if len(monomial) == 1 and isinstance(monomial[0], Sym) and monomial[0] not in seen:
                seen.add(monomial[0])
                yield Told(monomial[0], param, at, factor, entry.constant)


def sizes_of(signature: Signature, tensors: Mapping[str, Any], given: Mapping[str, Any]) -> dict[Sym, Any]:
    """Every size at a call; numbers may be symbols of a trace. Strides, which no result's shape has, are not among them."""
    found: dict[Sym, Any] = {sym: given[sym.name] for sym in signature.sizes if sym.name in given}
    for each in signature.told:
        extent = tensors[each.param.name].shape[each.at]
        whole = (each.factor, each.constant) == (1, 0)
        found[each.sym] = extent if whole else (extent - each.constant) // each.factor
    return found


def shape_of(shape: Sequence[Expr], sizes: Mapping[Sym, Any]) -> list[Any]:
    """A shape at these sizes."""
    return [each.evaluate(sizes) for each in shape]


def name_of(dtype: DType) -> str:
    """The name of a type in PyTorch."""
    return TYPES[dtype.name][0]
