"""`--arg NAME=FILE.npy|random|zeros|VALUE`: from command-line words to arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from texpr.affine.expr import Sym
from texpr.interp.dtypes import Array, dtype_of, numpy_dtype
from texpr.ir.program import Function, Injective, InRange, Let, Monotone, values, walk
from texpr.ir.value import Buffer, Cast, Load, Op, Ref, Value
from texpr.ir.value import walk as value_walk
from texpr.ir.value.types import BOOL, DType, Kind
from texpr.sources import open_error
from texpr.support.diagnostic import error
from texpr.support.record import Record


def parse_arguments(function: Function, given: tuple[str, ...], missing: str | None = None) -> dict[str, str]:
    """The word of each parameter in `--arg NAME=…`. `missing`: the word of one that is left out; without it a missing inout
    starts as zeros, and a missing input is an error. Raises click.UsageError."""
    words: dict[str, str] = {}
    names = [param.name for param in function.params]
    for text in given:
        name, equals, word = text.partition("=")
        if not equals or not word:
            raise click.UsageError(f"--arg takes NAME=FILE.npy, NAME=random, NAME=zeros or NAME=VALUE, not `{text}`")
        if name not in names:
            raise click.UsageError(f"`{function.name}` has no parameter `{name}`; it has: {', '.join(names) or 'none'}")
        if name in words:
            raise click.UsageError(f"argument `{name}` is given twice")
        words[name] = word
    for param in function.params:
        if param.name not in words:
            if param.role != "inout" and missing is None:
                raise click.UsageError(f"input `{param!r}` is missing: --arg {param.name}=FILE.npy, random, zeros or a value")
            words[param.name] = missing or "zeros"
    return words


def make_arrays(
    function: Function, words: Mapping[str, str], sizes: Mapping[str, int], seed: int
) -> tuple[dict[str, Array], dict[str, int]]:
    """An array (rank 0 for a scalar) for each parameter, and each size: as given, by default, or solved from the files'
    shapes.

    `random` gives small integers, in floating types too, so that results can be compared exactly; they satisfy promised
    ranges and injectivity. Operands of roots, logarithms, powers and divisors are positive.
    """
    params = {param.name: param for param in function.params}
    loaded = {name: load_array(Path(word), params[name]) for name, word in words.items() if word.endswith(".npy")}
    known = {sym: value for sym, value in function.consts if value is not None} | {Sym(n): v for n, v in sizes.items()}
    _solve(function, loaded, known)
    _refuse_unknown(function, known)
    _lie_densely(function, known)
    filler = _Filler(function, known, np.random.default_rng(seed))
    arrays = {param.name: loaded.get(param.name) for param in function.params}
    filled = {name: filler.array(params[name], words[name]) if array is None else array for name, array in arrays.items()}
    return filled, {sym.name: value for sym, value in known.items()}


def load_array(path: Path, param: Buffer) -> Array:
    """The array in a `.npy` file, of the type of `param`. Never unpickles. Raises TexprError (E0705, E085x)."""
    try:
        with path.open("rb") as file:
            loaded: Array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as fault:
        raise open_error(path, fault) from None
    except (ValueError, EOFError, SyntaxError, TypeError) as fault:
        raise error("E0856", None, f"`{path}` is not an array that NumPy saved: {fault}") from None
    wanted = numpy_dtype(param.dtype)
    if loaded.dtype.kind == "V" and loaded.dtype.names is None and loaded.dtype.itemsize == wanted.itemsize:
        loaded = loaded.view(wanted)  # NumPy stores the small float types as raw bytes
    loaded = loaded.astype(loaded.dtype.newbyteorder("="), copy=False)
    if loaded.dtype != wanted:
        found = dtype_of(loaded.dtype) or loaded.dtype.str
        raise error("E0857", param.span, f"`{path}` holds {found}, but `{param!r}` takes {param.dtype}",
                    help=f"save it again with .astype(…) to {wanted.name}")  # fmt: skip
    if loaded.ndim != param.rank:
        raise error(
            "E0705", param.span, f"`{path}` holds an array of rank {loaded.ndim}, but `{param!r}` takes rank {param.rank}"
        )
    return loaded


def _solve(function: Function, arrays: Mapping[str, Array], known: dict[Sym, int]) -> None:
    """Solves dimensions with one unknown for sizes, linearly. Mismatches are reported when the program is run."""
    entries = [
        (shape, extent)
        for param in function.params
        if param.name in arrays and arrays[param.name].ndim == param.rank
        for shape, extent in zip(param.shape, arrays[param.name].shape, strict=True)
    ]
    for _ in entries:
        for shape, extent in entries:
            try:
                rest = shape.substitute(known)
            except ZeroDivisionError:
                continue
            if len(rest.terms) == 1:
                ((monomial, factor),) = rest.terms
                value, remainder = divmod(extent - rest.constant, factor)
                if len(monomial) == 1 and isinstance(monomial[0], Sym) and remainder == 0:
                    known[monomial[0]] = value


def _refuse_unknown(function: Function, known: Mapping[Sym, int]) -> None:
    for param in function.params:
        for name in sorted(sym.name for entry in param.shape for sym in entry.syms() if sym not in known):
            raise click.UsageError(f"size `{name}` of `{param!r}` is not known: give --size {name}=…")


def _lie_densely(function: Function, known: dict[Sym, int]) -> None:
    """Unknown strides are those of a dense row-major array. Raises click.UsageError."""
    for param in function.params:
        for at, stride in enumerate(param.strides or ()):
            sym = stride.as_sym
            if sym is not None and sym not in known:
                known[sym] = math.prod(max(extent.evaluate(known), 1) for extent in param.shape[at + 1 :])
    for param in function.params:
        for name in sorted(sym.name for stride in param.strides or () for sym in stride.syms() if sym not in known):
            raise click.UsageError(f"`{name}`, a stride of `{param!r}`, is not known: give --size {name}=…")


_OF_POSITIVE = {"sqrt": 0, "rsqrt": 0, "log": 0, "log2": 0, "pow": 0, "div": 1}
"""Operations that give nan, infinity or an error for some operands, and the operand that must be positive to avoid that."""

_KEEPING = ("add", "mul", "div", "max", "min", "sqrt", "fma", "pow")
"""Operations that map positive numbers to positive ones."""


def positive(function: Function) -> frozenset[Buffer]:
    """The parameters whose elements are operands of a root, a logarithm, a power or a division, directly or through sums and
    products.

    A difference may still be negative: whether `random` then gives nan is not known from the text.
    """
    lets = {stmt.sym: stmt.value for stmt in walk(function.body) if isinstance(stmt, Let)}

    def taken(value: Value) -> Iterator[Buffer]:
        match value:
            case Load():
                yield value.buffer
            case Cast():
                yield from taken(value.arg)
            case Ref() if value.sym in lets:
                yield from taken(lets[value.sym])
            case Op() if value.name in _KEEPING:
                for arg in value.args:
                    yield from taken(arg)
            case _:
                pass

    every = (node for stmt in walk(function.body) for each in values(stmt) for node in value_walk(each))
    return frozenset(
        buffer
        for node in every
        if isinstance(node, Op) and node.name in _OF_POSITIVE
        for buffer in taken(node.args[_OF_POSITIVE[node.name]])
    )


class _Filler(Record):
    """Makes the arrays that are not read from files, at known sizes."""

    function: Function
    sizes: Mapping[Sym, int]
    generator: np.random.Generator

    def array(self, param: Buffer, word: str) -> Array:
        """The array for `word` (zeros, random or a value) and `param`."""
        shape, storage = self._shape(param), numpy_dtype(param.dtype)
        match word:
            case "zeros":
                return np.zeros(shape, storage)
            case "random":
                return self._random(param, shape, storage)
            case _:
                return np.full(shape, _number(param, word), storage)

    def _shape(self, param: Buffer) -> tuple[int, ...]:
        try:
            shape = tuple(entry.evaluate(self.sizes) for entry in param.shape)
        except ZeroDivisionError:
            raise click.UsageError(f"the shape of `{param!r}` divides by zero at these sizes") from None
        if any(extent < 0 for extent in shape):
            raise click.UsageError(f"`{param!r}` would have a negative extent at these sizes: {list(shape)}")
        if math.prod(shape) * numpy_dtype(param.dtype).itemsize > sys.maxsize or max(shape, default=0) > sys.maxsize:
            raise MemoryError  # NumPy would call the shape invalid
        return shape

    def _random(self, param: Buffer, shape: tuple[int, ...], storage: np.dtype[Any]) -> Array:
        if param.dtype == BOOL:
            return self.generator.integers(0, 2, shape).astype(storage)
        low, high = self._range(param)
        if self._promised(param, Injective):
            count = math.prod(shape)
            chosen = (self.generator.permutation(max(high - low, count))[:count] + low).reshape(shape)
        else:
            chosen = self.generator.integers(low, max(high, low + 1), shape)
        return (np.sort(chosen) if self._promised(param, Monotone) else chosen).astype(storage)

    def _promised(self, param: Buffer, kind: type[Injective | Monotone]) -> bool:
        return any(isinstance(promise, kind) and promise.buffer is param for promise in self.function.assumes)

    def _range(self, param: Buffer) -> tuple[int, int]:
        low, high = (0, 17) if param.dtype.kind is Kind.UINT else (-8, 9)
        if param.dtype.is_float and param in positive(self.function):
            low, high = 1, 10
        for promise in self.function.assumes:
            if isinstance(promise, InRange) and promise.buffer is param:
                low, high = promise.lo.evaluate(self.sizes), promise.hi.evaluate(self.sizes)
        return low, high


def _number(param: Buffer, word: str) -> Any:
    """The value of `word` in the type of `param`, rounded as NumPy does. Raises click.UsageError if it is invalid."""
    number = _parsed(word, param.dtype)
    if number is None:
        what = "a whole number" if param.dtype.is_integer else "true or false" if param.dtype == BOOL else "a number"
        raise click.UsageError(f"`{word}` is not FILE.npy, random or zeros, nor {what}, which `{param!r}` takes")
    return number


def _parsed(word: str, dtype: DType) -> int | float | bool | None:
    if dtype == BOOL:
        return {"true": True, "1": True, "false": False, "0": False}.get(word.lower())
    try:
        if not dtype.is_integer:
            return float(word)
        number = int(word)
    except ValueError:
        return None
    information = np.iinfo(numpy_dtype(dtype))
    return number if information.min <= number <= information.max else None
