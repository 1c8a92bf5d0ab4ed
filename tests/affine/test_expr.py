"""Index expressions: canonical, interned, and equal to plain integer arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.affine.expressions import Tree, build, trees, value_of

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum, number_of, sym, xor
from texpr.affine.simplify import simplify
from texpr.ir.value.parse import index
from texpr.ir.value.scanner import Scanner
from texpr.support.diagnostic import TexprError

ROW, COLUMN, N = sym("i"), sym("j"), sym("n")
points = st.fixed_dictionaries({name: st.integers(-12, 12) for name in "ijn"})


def at(point: dict[str, int]) -> dict[Sym, int]:
    return {Sym(name): value for name, value in point.items()}


@settings(max_examples=150, deadline=None)
@given(trees("ijn"), points)
def test_building_keeps_the_value(tree: Tree, point: dict[str, int]) -> None:
    try:
        wanted = value_of(tree, point)
        built = build(tree)
    except ZeroDivisionError:
        return
    assert built.evaluate(at(point)) == wanted


@settings(max_examples=120, deadline=None)
@given(trees("ijn", 3), trees("ijn", 3), points)
def test_substitution_is_composition(tree: Tree, inner: Tree, point: dict[str, int]) -> None:
    try:
        inside = build(inner).evaluate(at(point))
        wanted = value_of(tree, {**point, "i": inside})
        substituted = build(tree).substitute({Sym("i"): build(inner)})
    except ZeroDivisionError:
        return
    assert substituted.evaluate(at(point)) == wanted
    assert substituted.syms() <= {Sym("i"), Sym("j"), Sym("n")}


@settings(max_examples=120, deadline=None)
@given(trees("ijn"))
def test_text_reads_back_to_the_same_object(tree: Tree) -> None:
    try:
        built = build(tree)
    except ZeroDivisionError:
        return
    assert index(Scanner(str(built), "")) is built


@settings(max_examples=120, deadline=None)
@given(trees("ijn", 3), trees("ijn", 3), trees("ijn", 3))
def test_ring_laws_hold_as_identity(x: Tree, y: Tree, z: Tree) -> None:
    try:
        a, b, c = build(x), build(y), build(z)
    except ZeroDivisionError:
        return
    assert a + b is b + a and (a + b) + c is a + (b + c)
    assert a * b is b * a and (a * b) * c is a * (b * c)
    assert a * (b + c) is a * b + a * c
    assert a - a is ZERO and a - b is -(b - a) and a * ONE is a and a * 0 is ZERO and 3 - a is -(a - 3)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (ROW * 2 + COLUMN - 3, "2 * i + j - 3"),
        ((ROW * 8 + COLUMN) // 4, "2 * i + (j / 4)"),
        ((ROW * 5 + 9) // 4, "i + ((i + 1) / 4) + 2"),
        ((6 * ROW + 9 * COLUMN + 5) // 12, "((2 * i + 3 * j + 1) / 4)"),
        ((6 * ROW + 9 * COLUMN + 5) % 12, "3 * ((2 * i + 3 * j + 1) % 4) + 2"),
        ((ROW * 8 + COLUMN + 11) % 4, "((j + 3) % 4)"),
        ((-ROW) // 4, "((-i) / 4)"),
        (ROW // -4, "((-i) / 4)"),
        (ROW % -4, "-((-i) % 4)"),
        (ROW // 1 + ROW % 1, "i"),
        ((ROW // 4) // N, "((i / 4) / n)"),
        ((ROW + 1) // N * 2, "2 * ((i + 1) / n)"),
        (ROW * N + COLUMN, "i * n + j"),
        (minimum(ROW + 3, COLUMN, ROW + 1, 7, 9), "min(i + 1, j, 7)"),
        (maximum(ROW, maximum(COLUMN, 4), 5), "max(i, j, 5)"),
        (minimum(4, 7), "4"),
        (expr(-7) // 2, "-4"),
        (expr(-7) % 2, "1"),
        (ZERO // N, "0"),
        (ZERO % N, "0"),
        (xor(ROW, COLUMN, 0), "i"),
        (xor(ROW, 8 * COLUMN, 3), "i"),
        (xor(ROW, 9 * COLUMN + 20, 3), "xor(i, j + 4, 3)"),
        (xor(ROW, COLUMN % 16, 3), "xor(i, j, 3)"),
        (xor(ROW, 3 * (COLUMN % 16) + COLUMN, 2), "i"),
        (xor(ROW, 2, 5), "xor(i, 2, 2)"),
        (xor(ROW * 9 + 17, COLUMN, 3), "8 * i + xor(i + 1, j, 3) + 16"),
        (xor(ROW * -9, COLUMN, 3), "-8 * i + xor(-i, j, 3)"),
        (xor(expr(29), 6, 3), "27"),
        (xor(expr(-3), -2, 3), "-5"),
        (xor(expr(12), COLUMN, 2), "(j % 4) + 12"),
        (xor(expr(13), COLUMN, 2), "xor(1, j, 2) + 12"),
        (xor(xor(ROW, 5, 3), 6, 3), "xor(i, 3, 2)"),
        (xor(xor(ROW, 5, 3), COLUMN, 3), "xor(xor(i, j, 3), 5, 3)"),
        (xor(xor(ROW, COLUMN, 3), N, 2), "xor(xor(i, n, 2), j, 3)"),
        (xor(ROW % 8, ROW, 3), "0"),
    ],
)
def test_canonical_forms(built: Expr, text: str) -> None:
    assert str(built) == text


@settings(max_examples=150, deadline=None)
@given(trees("ijn", 3), trees("ijn", 3), st.integers(0, 4))
def test_a_swizzle_that_is_undone_vanishes(tree: Tree, mask_tree: Tree, bits: int) -> None:
    try:
        value, mask = build(tree), build(mask_tree)
    except ZeroDivisionError:
        return
    if "xor" not in str(value):  # there, another swizzle may have met it and may now be in the way
        assert xor(xor(value, mask, bits), mask, bits) is value
        value, mask = value + sym("z"), mask + sym("y")
        assert xor(xor(xor(value, mask, bits), N, bits), mask, bits) is xor(value, N, bits)


def test_swizzles_of_less_than_no_bits_are_refused() -> None:
    with pytest.raises(ValueError, match="less than no bits"):
        xor(ROW, COLUMN, -1)
    with pytest.raises(TexprError, match="how many bits"):
        index(Scanner("xor(i, j, -1)", ""))


def test_order_of_building_does_not_show() -> None:
    first = sym("late_b") * 2 + sym("late_a")
    assert str(first) == "late_a + 2 * late_b"
    assert (sym("late_a") // 3) + sym("late_z") is sym("late_z") + (sym("late_a") // 3)


def test_division_by_the_constant_zero_is_refused() -> None:
    for divide in (lambda: ROW // 0, lambda: ROW % 0, lambda: (ROW // N).substitute({Sym("n"): 0})):
        with pytest.raises(ZeroDivisionError):
            divide()


def test_what_an_expression_is_not() -> None:
    with pytest.raises(TypeError, match="truth value"):
        bool(ROW)
    with pytest.raises(ValueError, match="extremum of nothing"):
        minimum()
    with pytest.raises(KeyError):
        (ROW + COLUMN).evaluate({Sym("i"): 1})


def test_symbols() -> None:
    assert ROW.as_sym == Sym("i") and (ROW + 1).as_sym is None and (2 * ROW).as_sym is None and (ROW * COLUMN).as_sym is None
    assert Sym("i'2").base == "i" and ((ROW // N) % COLUMN).syms() == {Sym("i"), Sym("n"), Sym("j")}
    assert expr(3).is_constant and not ROW.is_constant


def test_a_number_that_data_say_is_a_symbol_with_arguments() -> None:
    i, j, said = sym("i"), sym("j"), expr(number_of("said", (sym("i"), sym("i") // 4)))
    moved = said.substitute({Sym("i"): j + 1})
    assert (str(said), str(moved)) == ("said⟨i, (i / 4)⟩", "said⟨j + 1, ((j + 1) / 4)⟩")
    assert moved is expr(number_of("said", (j + 1, (j + 1) // 4)))
    assert said.syms() == {number_of("said", (i, i // 4)), Sym("i")}
    assert (said * 2 + i).substitute({number_of("said", (i, i // 4)): 3}) is i + 6
    assert simplify(said, {Sym("i"): (0, 3)}) is expr(number_of("said", (i, expr(0))))
    assert number_of("said", (i,)) is not Sym("said⟨i⟩")
