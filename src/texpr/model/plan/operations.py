"""Instructions that an operation on values becomes, by the unit that runs them.

Counted in what nvcc 13.0 makes of each for sm_90a, without contraction and with rounding as the language has it, where numbers
are usual ones: no way for those near infinity or nothing is counted. `tests/model` counts some of them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value, walk
from texpr.ir.value.types import BF16, F16, F32, F64, DType
from texpr.model.work import Totals

Units: TypeAlias = Mapping[str, float]

_F32: Mapping[str, Units] = {
    "add": {"fma": 1}, "sub": {"fma": 1}, "mul": {"fma": 1}, "fma": {"fma": 1}, "neg": {"fma": 1}, "abs": {"fma": 1},
    "max": {"alu": 1}, "min": {"alu": 1},
    "div": {"fma": 5, "special": 2, "imad": 1, "control": 3},
    "mod": {"alu": 9, "fma": 2, "imad": 1, "control": 3},
    "sqrt": {"alu": 2, "fma": 6, "special": 1, "control": 3},
    "rsqrt": {"alu": 1, "fma": 2, "special": 1},
    "exp": {"fma": 6, "alu": 2, "half": 1, "special": 1},
    "exp2": {"special": 1},
    "log": {"fma": 15, "alu": 13, "half": 1}, "log2": {"fma": 17, "alu": 13, "half": 1},
    "sin": {"fma": 11, "alu": 10, "imad": 4, "special": 1, "control": 3},
    "cos": {"fma": 11, "alu": 11, "imad": 4, "special": 1, "control": 3},
    "tanh": {"fma": 9, "alu": 5, "half": 1, "special": 2},
    "erf": {"fma": 9, "alu": 14, "imad": 4, "half": 2, "special": 1},
    "expm1": {"fma": 16, "alu": 10, "half": 1, "special": 2}, "log1p": {"fma": 15, "alu": 10, "half": 1, "control": 3},
    "sigmoid": {"fma": 8, "special": 2, "alu": 3}, "silu": {"fma": 9, "special": 2, "alu": 3},
    "gelu": {"fma": 21, "alu": 2, "special": 2},
    "pow": {"fma": 39, "alu": 20, "half": 2, "special": 3, "control": 3},
    **{key: {"special": 1} for key in ("floor", "ceil", "trunc", "round")},
}  # fmt: skip
_F64: Mapping[str, Units] = {
    **{key: {"fp64": 1} for key in ("add", "sub", "mul", "fma")}, **{key: {"fp64": 1} for key in ("neg", "abs")},
    "max": {"fp64": 2, "alu": 2}, "min": {"fp64": 2, "alu": 2},
    "div": {"fp64": 8, "special": 1, "imad": 2, "alu": 1, "fma": 1, "control": 3},
    "sqrt": {"fp64": 8, "special": 1, "imad": 2, "alu": 4, "control": 3},
    "exp": {"fp64": 15, "uniform": 23, "imad": 5, "alu": 4, "control": 3},
}  # fmt: skip
_INTEGER: Mapping[str, Units] = {
    "mul": {"imad": 1}, "abs": {"alu": 2}, "div": {"alu": 9, "imad": 4, "special": 3},
    "mod": {"alu": 9, "imad": 4, "special": 3},
}  # fmt: skip
_ONE: Units = {"alu": 1}
_HALVES = frozenset({F16, BF16})


def _table(dtype: DType) -> Mapping[str, Units]:
    return _F64 if dtype is F64 else _F32 if dtype.is_float else _INTEGER


def instructions(value: Value) -> Totals:
    """Those of a value without what its loads, their conversions and its indices take. An operation of a type of 16 bits is one
    of f32 between conversions."""
    found = Totals()
    _add(value, found)
    return found


def tests(value: Value) -> Iterator[Op]:
    """The parts of a value, as large as they can be, that places alone decide, as of what lies in a border."""
    match value:
        case Op(_, args, _):
            if all(isinstance(each, Op | Index | Literal) for each in walk(value)):
                yield value
            else:
                for arg in args:
                    yield from tests(arg)
        case Cast(arg, _):
            yield from tests(arg)
        case _:
            pass


JOINS = frozenset({"and", "or", "not"})
"""What joins tests, and is none itself."""


def comparisons(test: Op) -> Iterator[Op]:
    """Those of a test: what joins two is done by the second, as its third source."""
    yield from (each for each in walk(test) if isinstance(each, Op) and each.name not in JOINS)


def _add(value: Value, found: Totals) -> None:
    match value:
        case Op(name, args, dtype):
            for arg in args:
                _add(arg, found)
            found.more(_table(dtype if name == "select" else args[-1].dtype).get(name, _ONE))
            if dtype in _HALVES:
                found["alu"] += 1 + sum(isinstance(arg, Ref) for arg in args)
        case Cast(arg, dtype) if not isinstance(arg, Load):
            _add(arg, found)
            found.more(_converted(arg.dtype, dtype))
        case _:
            pass


def conversions(value: Value) -> Iterator[tuple[Load, Units]]:
    """What is made of each element as it is loaded."""
    match value:
        case Cast(Load() as load, dtype):
            yield load, _converted(load.dtype, dtype)
        case Op(_, args, dtype):
            for arg in args:
                if isinstance(arg, Load) and dtype in _HALVES:
                    yield arg, _ONE
                else:
                    yield from conversions(arg)
        case Cast(arg, _):
            yield from conversions(arg)
        case _:
            pass


def _converted(source: DType, target: DType) -> Units:
    """A conversion: of 16 bits a shift, from them to integers and back by the special unit."""
    if source is target:
        return {}
    if source.is_float and target.is_float:
        return {"fp64": 1} if F64 in (source, target) else {"half": 1} if source is F16 else _ONE
    if source.is_float or target.is_float:
        return {"special": 1} if target.is_integer or target is not F32 else _ONE
    return {} if source.bytes >= target.bytes else _ONE


def fused(found: Totals, dtype: DType) -> Totals:
    """The same where a product and its sum are one instruction."""
    unit = "fp64" if dtype is F64 else "fma"
    found[unit] -= 1
    return found
