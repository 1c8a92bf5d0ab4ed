"""Equality of sums of powers and exponentials, beside values at random points, in whole numbers of a finite field."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value
from texpr.ir.value.exponentials import LN2, Sum, atom, meaning, names, power, slope
from texpr.ir.value.types import BF16, F32

PRIME, ROOT = 1_000_003_777, 2
"""e^h is ROOT^h in the field of so many numbers, with h modulo PRIME − 1."""

NAMES = "abcd"
LOADS = {name: Load(Buffer(name, F32, (), "input"), ()) for name in NAMES}


def known(node: object) -> Sum | None:
    """An element by its letter."""
    return atom(node.buffer.name) if isinstance(node, Load) else None


def op(name: str, *args: Value) -> Value:
    return Op(name, args, F32)


VALUES = st.recursive(
    st.one_of(st.sampled_from([*LOADS.values()]), st.integers(-3, 3).map(lambda n: Literal(float(n), F32))),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "sub", "mul"]), inner, inner).map(lambda each: op(each[0], each[1], each[2])),
        st.tuples(inner, inner, inner).map(lambda each: op("fma", *each)),
        inner.map(lambda each: op("neg", each)),
        inner.map(lambda each: Cast(each, BF16)),
    ),
    max_leaves=6,
)
"""Polynomials."""

SUMS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=3).map(
    lambda terms: _added([op("mul", first, op("exp", second)) for first, second in terms])
)


def _added(terms: list[Value]) -> Value:
    total, *rest = terms
    for each in rest:
        total = op("add", total, each)
    return total


def at(value: Value, point: dict[str, int], modulus: int) -> int:
    """The value at a point: powers are of ROOT, whose exponents are numbers modulo PRIME − 1."""
    match value:
        case Literal(number):
            return int(number) % modulus
        case Load():
            return point[value.buffer.name] % modulus
        case Cast(arg):
            return at(arg, point, modulus)
        case Op("exp", (arg,)):
            return pow(ROOT, at(arg, point, PRIME - 1), PRIME)
        case Op(name, args):
            found = [at(each, point, modulus) for each in args]
            match name:
                case "add":
                    return (found[0] + found[1]) % modulus
                case "sub":
                    return (found[0] - found[1]) % modulus
                case "mul":
                    return found[0] * found[1] % modulus
                case "fma":
                    return (found[0] * found[1] + found[2]) % modulus
                case _:
                    return -found[0] % modulus
        case _:
            raise AssertionError(value)


def are_equal(one: Value, other: Value, points: int = 8) -> bool:
    """Whether values are equal at random points, as are those that are equal over the reals."""
    rng = random.Random(7)
    tried = ({name: rng.randrange(1, PRIME) for name in NAMES} for _ in range(points))
    return all(at(one, point, PRIME) == at(other, point, PRIME) for point in tried)


def test_the_field_is_one() -> None:
    assert all(PRIME % n for n in range(2, 31623))


@settings(max_examples=150, deadline=None)
@given(SUMS, SUMS)
def test_what_is_equal_is_equal_at_points(one: Value, other: Value) -> None:
    assert (meaning(one, known) == meaning(other, known)) == are_equal(one, other)


@settings(max_examples=60, deadline=None)
@given(SUMS, VALUES, VALUES)
def test_laws(one: Value, first: Value, second: Value) -> None:
    """Products of exponentials are those of sums, and products distribute."""
    both = op("mul", op("exp", first), op("exp", second))
    assert meaning(both, known) == meaning(op("exp", op("add", first, second)), known)
    apart = op("add", op("mul", one, first), op("mul", one, second))
    assert meaning(apart, known) == meaning(op("mul", one, op("add", first, second)), known)
    assert meaning(op("sub", one, one), known).terms == frozenset()


A, B, C = (LOADS[name] for name in "abc")
UNEQUAL = [
    ("another factor", op("exp", op("sub", A, B)), op("exp", op("sub", B, A))),
    ("another base", op("exp", A), op("exp2", A)),
    ("a power is no product", op("exp", op("mul", A, B)), op("mul", op("exp", A), op("exp", B))),
    ("a sum is no power", op("exp", op("add", A, B)), op("add", op("exp", A), op("exp", B))),
    ("an exponential of one", op("exp", op("exp", A)), op("exp", A)),
    ("a reciprocal", op("div", A, B), op("mul", A, B)),
    ("a maximum", op("max", A, B), op("max", A, C)),
    ("−∞ is no number", op("sub", Literal(float("-inf"), F32), Literal(float("-inf"), F32)), Literal(float("nan"), F32)),
]


@pytest.mark.parametrize(("what", "one", "other"), UNEQUAL, ids=[each[0] for each in UNEQUAL])
def test_what_differs_differs(what: str, one: Value, other: Value) -> None:
    assert meaning(one, known) != meaning(other, known), what


def test_bases_and_numbers() -> None:
    two = meaning(op("exp2", op("mul", A, Literal(0.5, F32))), known)
    assert two * two == meaning(op("exp2", A), known)
    assert {LN2} < names(next(iter(two.terms))[0])
    assert meaning(op("div", A, Literal(4.0, F32)), known) == meaning(op("mul", A, Literal(0.25, F32)), known)
    exponent = meaning(op("fma", A, B, op("neg", op("mul", C, B))), known).plain
    assert exponent is not None and power(exponent) == meaning(op("exp", op("mul", op("sub", A, C), B)), known)
    assert slope(exponent, "c") == frozenset({((("b", 1),), Fraction(-1))})
    assert slope(exponent, "d") == frozenset() and slope(meaning(op("mul", A, A), known).plain or frozenset(), "a") is None
    assert two.mentions("a") and not two.mentions("b")
