"""Updates `t = update(t, x)`: their operators, and sequences of updates of the same elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from texpr.interp.arithmetic import apply
from texpr.interp.dtypes import Array
from texpr.ir.program import Update
from texpr.ir.value import Load, types
from texpr.ir.value.types import BOOL, DType

Combine = Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]
"""A combiner: old values and operands, one array for each target, to new values."""

_SEQUENTIAL: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply}
_IN_NUMPY = frozenset({types.F64, types.F32})


def is_free(update: Update | None, targets: Sequence[Load]) -> bool:
    """Whether updates of this kind give the same result in every order: all except rounded ones and a user's combiners."""
    return isinstance(update, str) and (update in ("max", "min", "and", "or") or not targets[0].dtype.is_float)


def family(update: Update | None) -> Update | None:
    """The operator with which an update commutes: `sub` is `add` of the negative."""
    return "add" if update == "sub" else update


def single(update: str, dtype: DType) -> Combine:
    """A built-in update of one target."""
    return lambda old, new: (apply(update, (old[0], new[0]), dtype),)


def lexicographic(update: str, dtypes: Sequence[DType]) -> Combine:
    """A tuple update, `max` or `min`: the better first component wins, ties go to the smaller second one, and so on
    (lexicographic).

    nan is better than any number, for `max` and for `min`, so that it propagates; two nans tie.
    """

    def combine(old: Sequence[Array], new: Sequence[Array]) -> Sequence[Array]:
        first = "gt" if update == "max" else "lt"
        wins = np.asarray(False)
        tied = np.asarray(True)
        for at, (there, here, dtype) in enumerate(zip(old, new, dtypes, strict=True)):
            better, same = _order(first if at == 0 else "lt", here, there, dtype)
            wins, tied = wins | (tied & better), tied & same
        return tuple(np.where(wins, here, there) for there, here in zip(old, new, strict=True))

    return combine


def _order(comparison: str, here: Array, there: Array, dtype: DType) -> tuple[Array, Array]:
    """Masks: whether `here` precedes `there`, and whether they tie."""
    if dtype == BOOL:
        here, there, dtype = here.astype(np.uint8), there.astype(np.uint8), types.U8
    better, same = apply(comparison, (here, there), dtype), apply("eq", (here, there), dtype)
    if dtype.is_float:
        here_nan, there_nan = apply("isnan", (here,), dtype), apply("isnan", (there,), dtype)
        better, same = better | (here_nan & ~there_nan), same | (here_nan & there_nan)
    return better, same


def sequential(update: Update, dtype: DType) -> np.ufunc | None:
    """NumPy's ufunc whose `at` is this update, element by element in order and rounded each time, if there is one."""
    return _SEQUENTIAL.get(update) if isinstance(update, str) and dtype in _IN_NUMPY else None


def in_order(memories: Sequence[Array], places: Sequence[Array], values: Sequence[Array], combine: Combine) -> None:
    """Applies the updates `places[…][k]`, `values[…][k]` for k = 0, 1, … in order, each to the result of those before it."""
    if len(places[0]) == 0:
        return
    turn = _turns(places[0]) if _go_together(places) else np.arange(len(places[0]))
    by_turn = np.argsort(turn, kind="stable")
    for chosen in np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]):
        at = [p[chosen] for p in places]
        met = combine([m[p] for m, p in zip(memories, at, strict=True)], [v[chosen] for v in values])
        for memory, place, result in zip(memories, at, met, strict=True):
            memory[place] = result


def in_any_order(memories: Sequence[Array], places: Sequence[Array], values: Sequence[Array], combine: Combine) -> None:
    """The same for updates whose order makes no difference: a tree reduction for each element."""
    if len(places[0]) == 0 or not _go_together(places):
        in_order(memories, places, values, combine)
        return
    order = np.argsort(places[0], kind="stable")
    places, values = [p[order] for p in places], [v[order] for v in values]
    turn = _turns(places[0])
    while turn.any():
        right = np.flatnonzero(turn % 2 == 1)
        met = combine([v[right - 1] for v in values], [v[right] for v in values])
        for value, result in zip(values, met, strict=True):
            value[right - 1] = result
        kept = turn % 2 == 0
        places, values, turn = [p[kept] for p in places], [v[kept] for v in values], turn[kept] // 2
    met = combine([m[p] for m, p in zip(memories, places, strict=True)], values)
    for memory, place, result in zip(memories, places, met, strict=True):
        memory[place] = result


def _turns(places: Array) -> Array:
    """For each entry the number of earlier entries equal to it."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    turn = np.empty(len(places), np.int64)
    turn[order] = np.arange(len(places)) - np.repeat(starts, np.diff(np.append(starts, len(places))))
    return turn


def _go_together(places: Sequence[Array]) -> bool:
    """Whether two updates that have one target in common have all in common."""
    if len(places) == 1:
        return True
    order = np.argsort(places[0], kind="stable")
    first, *others = (p[order] for p in places)
    fresh = first[1:] != first[:-1]
    heads = np.flatnonzero(np.concatenate(([True], fresh)))
    return all(bool(((p[1:] == p[:-1]) | fresh).all()) and len(np.unique(p[heads])) == len(heads) for p in others)
