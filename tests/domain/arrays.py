"""Index expressions at many points at once, with NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor

Ints = NDArray[np.int64]
At = Mapping[Sym, Ints | int]


def evaluate(value: Expr, at: At) -> Ints:
    """The values of `value` at the points of `at`, whose arrays broadcast. A division by zero raises FloatingPointError."""
    total = np.asarray(value.constant, np.int64)
    with np.errstate(divide="raise"):
        for monomial, coefficient in value.terms:
            total = total + reduce(np.multiply, (_atom(atom, at) for atom in monomial), np.asarray(coefficient, np.int64))
    return total


def _atom(atom: Atom, at: At) -> Ints:
    match atom:
        case Sym():
            return np.asarray(at[atom], np.int64)
        case FloorDiv(num, den):
            return np.floor_divide(evaluate(num, at), evaluate(den, at))
        case Mod(num, den):
            return np.mod(evaluate(num, at), evaluate(den, at))
        case Min(args):
            return reduce(np.minimum, (evaluate(arg, at) for arg in args))
        case Max(args):
            return reduce(np.maximum, (evaluate(arg, at) for arg in args))
        case Xor(value, mask, bits):
            return evaluate(value, at) ^ (evaluate(mask, at) & ((1 << bits) - 1))
