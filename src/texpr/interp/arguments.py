"""The arguments of a function: what a caller passes, checked and converted to one form.

`bind` is used by everything that runs a function from Python: it matches arrays with parameters, solves for the sizes and
reports mismatches. Promises of the text about sizes and data are in `texpr.interp.facts`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import SupportsFloat, SupportsInt, TypeAlias, TypeGuard, cast

import numpy as np

from texpr.affine.expr import Expr, Sym, expr
from texpr.interp import arithmetic
from texpr.interp.dtypes import Array, dtype_of, limits, numpy_dtype
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.ir.value.types import BOOL, F64, DType
from texpr.support.diagnostic import Note, error
from texpr.support.record import Record

Scalar: TypeAlias = bool | int | float | np.generic
Arguments: TypeAlias = "Mapping[str, Array | Scalar]"


class Bound(Record):
    """Arguments that match: the value of every size and const, and an array (of rank 0 for a scalar) for every parameter."""

    sizes: dict[Sym, int]
    arrays: dict[str, Array]


class _Entry(Record):
    """One dimension of one argument: the declared extent, and the actual one."""

    buffer: Buffer
    dimension: int
    shape: Expr
    given: int


def bind(function: Function, arguments: Arguments, sizes: Mapping[str, int] | None = None) -> Bound:
    """Match `arguments` and `sizes` (by name) with the parameters of `function`.

    A size is solved from the shape entries in which it is the only unknown, linearly; any other must be given. Arrays are
    passed on as they are, never copied or cast; a Python or NumPy scalar becomes an array of rank 0 if the type holds it
    exactly. Raises `TexprError` that names the parameter, what was expected and what was found.
    """
    _check_names(function, arguments)
    arrays = {p.name: fitting(p, arguments[p.name]) for p in function.params}
    known = _given_sizes(function, sizes or {})
    entries = [_Entry(p, at, shape, arrays[p.name].shape[at]) for p in function.params for at, shape in enumerate(p.shape)]
    origin: dict[Sym, str] = {Sym(name): "as given" for name in sizes or {}}
    _solve(entries, known, origin)
    _require_all(function, known)
    for entry in entries:
        _check_entry(entry, known, origin)
    return Bound(known, arrays)


def _check_names(function: Function, arguments: Arguments) -> None:
    names = [p.name for p in function.params]
    for name in arguments:
        if name not in names:
            raise error("E0701", function.span, f"`{function.name}` has no parameter `{name}`", help=_listed(names))
    for param in function.params:
        if param.name not in arguments:
            raise error("E0702", param.span, f"`{function.name}` needs an argument for `{param!r}`", help=_listed(names))


def _listed(names: Iterable[str]) -> str:
    return "its parameters are " + (", ".join(f"`{n}`" for n in names) or "none")


def fitting(param: Buffer, given: object) -> Array:
    """The argument for `param`, a scalar as an array of rank 0. Raises `TexprError` where type or rank do not match."""
    if param.rank == 0 and _is_number(given):
        return _scalar(param, given)
    if not isinstance(given, np.ndarray):
        kind = type(given).__name__
        raise error("E0703", param.span, f"`{param!r}` takes {_wanted(param)}, not a value of type {kind}")
    array = cast(Array, given)
    if array.dtype != numpy_dtype(param.dtype):
        found = dtype_of(array.dtype) or f"NumPy's {array.dtype.str}"
        raise error(
            "E0704",
            param.span,
            f"`{param!r}` takes elements of type {param.dtype}, not {found}",
            help=f"convert it first: `{param.name}.astype(…)` to {numpy_dtype(param.dtype).name}",
        )
    if array.ndim != param.rank:
        raise error("E0705", param.span, f"`{param!r}` takes {_wanted(param)}, not one of rank {array.ndim}")
    return array


def _wanted(param: Buffer) -> str:
    return "a number" if param.rank == 0 else f"an array of rank {param.rank}"


def _is_number(given: object) -> TypeGuard[Scalar]:
    if isinstance(given, np.generic):
        return dtype_of(np.asarray(cast(object, given)).dtype) is not None
    return isinstance(given, bool | int | float)


def _scalar(param: Buffer, given: Scalar) -> Array:
    """The scalar as an array of rank 0. A bool is no number, nor a number a bool.

    A Python float has no width of its own and is rounded to the parameter's, as NumPy does; anything else must be a value of
    the parameter's type.
    """
    dtype = param.dtype
    is_bool = isinstance(given, bool | np.bool_)
    if is_bool != (dtype == BOOL):
        raise error("E0704", param.span, f"`{param!r}` takes a {dtype}, not a value of type {type(given).__name__}")
    if is_bool:
        return np.asarray(given, np.bool_)
    number = int(cast(SupportsInt, given)) if isinstance(given, int | np.integer) else float(cast(SupportsFloat, given))
    rounds = isinstance(given, float) and not isinstance(given, np.generic) and dtype.is_float
    held = _round(number, dtype) if rounds else _hold(number, dtype)
    if held is None:
        raise error(
            "E0704",
            param.span,
            f"`{param!r}` can't hold {number!r} exactly",
            help=f"round it first: `np.asarray({number!r}, …)` of type {numpy_dtype(dtype).name}",
        )
    return held


def _round(number: int | float, dtype: DType) -> Array | None:
    """`number` rounded to nearest in `dtype`, or None if it overflows, or is an infinity that the type does not have."""
    held = np.asarray(arithmetic.cast(np.asarray(float(number)), F64, dtype))
    back = float(held.astype(np.float64))
    return held if np.isfinite(back) or back == number or number != number else None


def _hold(number: int | float, dtype: DType) -> Array | None:
    """`number` in `dtype`, or None if the type does not hold it exactly."""
    if dtype.is_float:
        try:
            wide = float(number)
        except OverflowError:
            return None
        held = np.asarray(arithmetic.cast(np.asarray(wide), F64, dtype))
        back = float(held.astype(np.float64))
        return held if back == wide == number or (number != number and back != back) else None
    if number != number or number in (float("inf"), float("-inf")) or number != int(number):
        return None
    low, high = limits(dtype)
    return np.asarray(int(number), numpy_dtype(dtype)) if low <= number <= high else None


def _given_sizes(function: Function, sizes: Mapping[str, int]) -> dict[Sym, int]:
    consts = dict(function.consts)
    known = {sym: default for sym, default in consts.items() if default is not None}
    for name, value in sizes.items():
        sym = Sym(name)
        if sym not in consts and sym not in function.sizes:
            listed = ", ".join(f"`{s}`" for s in (*function.sizes, *consts)) or "none"
            raise error("E0706", function.span, f"`{function.name}` has no size `{name}`", help=f"its sizes are {listed}")
        known[sym] = _integer(function, name, value)
        if known[sym] < 0 and sym not in consts:
            raise error("E0707", function.span, f"size `{name}` of `{function.name}` must not be negative, it is {value}")
    return known


def _integer(function: Function, name: str, value: object) -> int:
    try:
        return operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        found = type(value).__name__
        raise error("E0707", function.span, f"size `{name}` of `{function.name}` must be an integer, not {found}") from None


def _solve(entries: list[_Entry], known: dict[Sym, int], origin: dict[Sym, str]) -> None:
    """Solves entries with one unknown for sizes, to a fixed point."""
    progress = True
    while progress:
        progress = False
        for entry in entries:
            equation = _linear(entry, known)
            if equation is not None:
                sym, factor, rest = equation
                known[sym], left = divmod(rest, factor)
                origin[sym] = f"from dimension {entry.dimension} of `{entry.buffer.name}`"
                progress = True
                if left or known[sym] < 0:
                    fits = f"{entry.given}, for which no {sym} ≥ 0 fits"
                    raise error("E0709", entry.buffer.span, f"dimension {entry.dimension} of `{entry.buffer!r}` is {fits}")


def _linear(entry: _Entry, known: Mapping[Sym, int]) -> tuple[Sym, int, int] | None:
    """`sym`, `factor`, `rest` of an entry sym · factor = rest, or None if it has another form."""
    try:
        shape = entry.shape.substitute(known)
    except ZeroDivisionError:
        return None
    if len(shape.terms) != 1:
        return None
    ((monomial, factor),) = shape.terms
    if len(monomial) != 1 or not isinstance(monomial[0], Sym):
        return None
    return monomial[0], factor, entry.given - shape.constant


def _require_all(function: Function, known: Mapping[Sym, int]) -> None:
    for sym in function.sizes:
        if sym not in known:
            raise error(
                "E0708",
                function.span,
                f"size `{sym}` of `{function.name}` does not follow from the shapes",
                help=f'give it: sizes={{"{sym}": …}}, or on the command line --size {sym}=…',
            )
    for sym, _ in function.consts:
        if sym not in known:
            raise error("E0708", function.span, f"const `{sym}` of `{function.name}` has no value", help="give it as a size")


def _check_entry(entry: _Entry, known: Mapping[Sym, int], origin: Mapping[Sym, str]) -> None:
    buffer, shape = entry.buffer, entry.shape
    try:
        wanted = shape.evaluate(known)
    except ZeroDivisionError:
        raise error("E0709", buffer.span, f"the shape `{shape}` of `{buffer!r}` divides by zero") from None
    if wanted == entry.given:
        return
    value = str(wanted) if shape.is_constant else f"{shape} = {wanted}"
    notes = [Note(f"{s} = {known[s]}, {origin[s]}") for s in sorted(shape.syms(), key=str) if s in origin]
    notes += [Note(f"{s} = {known[s]}, the default") for s in sorted(shape.syms(), key=str) if s not in origin]
    raise error(
        "E0709", buffer.span, f"dimension {entry.dimension} of `{buffer!r}` must be {value}, it is {entry.given}", *notes
    )


def shape_of(buffer: Buffer, sizes: Mapping[Sym, int]) -> tuple[int, ...]:
    """The shape of `buffer` at these sizes."""
    return tuple(expr(entry).evaluate(sizes) for entry in buffer.shape)
