"""Trees of integers, coordinates, layouts as functions and as text."""

from __future__ import annotations

from itertools import product

import pytest
from tests.layout.oracle import layouts, leaves, nestings, numbers, places, shapes, values

from texpr.affine.expr import Sym, expr, minimum, sym, xor
from texpr.layout import ALL, Basis, E, Layout, LayoutError, Swizzle, table
from texpr.layout.algebra.cosize import coshape, cosize
from texpr.layout.coordinates import at_profile, linear, natural
from texpr.layout.inttuple import (
    arithmetic_sum,
    congruent,
    depth,
    elementwise,
    flatten,
    plus,
    rank,
    tidy_tree,
    tree_text,
    weakly_congruent,
)
from texpr.layout.inttuple import (
    product as product_of,
)
from texpr.layout.swizzle import ComposedLayout
from texpr.layout.text import parse_composed, parse_layout, parse_slice

TREES = [tree for count in (1, 2, 3) for sizes in shapes(12, count) for tree in nestings(sizes)]


def test_coordinates_go_round() -> None:
    for shape in TREES:
        size = product_of(shape)
        assert isinstance(size, int)
        found = [natural(i, shape) for i in range(size)]
        assert [linear(c, shape) for c in found] == list(range(size))
        assert all(congruent(c, shape) for c in found)
        firsts = [leaves(c)[0] for c in found]
        assert firsts == [i % leaves(shape)[0] for i in range(size)]  # the leftmost is fastest
        flat = [tuple(reversed(leaves(c))) for c in found]
        assert flat == sorted(flat)


def test_a_coordinate_at_any_profile_stays_itself() -> None:
    shape = ((2, 3), (4, (5, 2)))
    for profile in (0, (0, 0), ((0, 0), 0), (0, (0, (0, 0))), ((0, 0), (0, 0))):
        for i in range(0, 240, 7):
            c = at_profile(i, profile, shape)
            assert congruent(c, profile)
            assert linear(natural(c, shape), shape) == i
            assert at_profile(c, profile, shape) == c
    with pytest.raises(LayoutError, match="does not fit"):
        at_profile(0, (0, 0, 0), shape)


def test_beyond_the_shape_the_last_leaf_goes_on() -> None:
    assert natural(25, ((2, 3), 4)) == ((1, 0), 4)
    assert Layout((4, 2), (1, 10))(9) == 1 + 2 * 10
    assert Layout((4, 2), (1, 10))(-1) == 3 - 10


def test_trees() -> None:
    tree = ((2, 4), (8, (3, 1)), 5)
    assert (rank(tree), depth(tree), product_of(tree)) == (3, 3, 960)
    assert flatten(tree) == (2, 4, 8, 3, 1, 5)
    assert (rank(7), depth(7), product_of(())) == (1, 0, 1)
    assert tree_text(tree) == "((2,4),(8,(3,1)),5)"
    assert elementwise(plus, (1, (2, 3)), (10, (20, 30))) == (11, (22, 33))
    assert tidy_tree((expr(3), Sym("n"), sym("n") * 0)) == (3, sym("n"), 0)
    with pytest.raises(LayoutError, match=r"\(1,2\) and 3 are not congruent"):
        elementwise(plus, (1, 2), 3)


def test_weakly_congruent_is_an_order() -> None:
    profiles = [0, (0,), (0, 0), ((0, 0), 0), (0, (0, 0)), ((0, 0), (0, 0)), ((0, (0, 0)), 0), (0, 0, 0)]
    for a, b in product(profiles, repeat=2):
        assert congruent(a, b) == (a == b)
        for c in profiles:
            if weakly_congruent(a, b) and weakly_congruent(b, c):
                assert weakly_congruent(a, c)
    assert weakly_congruent((0, 0), ((0, 0), 0)) and not weakly_congruent(((0, 0), 0), (0, 0))


def test_arithmetic_tuples_add() -> None:
    assert arithmetic_sum((1, (2,)), (10, (20, 30), 5)) == (11, (22, 30), 5)
    assert arithmetic_sum(0, (1, 2)) == (1, 2) == arithmetic_sum((1, 2), 0)
    with pytest.raises(LayoutError, match="a number and a tuple"):
        arithmetic_sum(3, (1, 2))


def test_values_at_every_coordinate() -> None:
    strides = (0, 1, 3, E(0), E(1) * 2, E(0, 1))
    checked = 0
    for sizes in shapes(8, 2):
        for steps in product(strides, repeat=2):
            for shape, stride in zip(nestings(sizes), nestings(steps), strict=True):
                try:
                    layout = Layout(shape, stride)
                except LayoutError:
                    continue
                checked += 1
                for i, value in enumerate(values(layout)):
                    for coord in (i, natural(i, layout.shape)):
                        assert places(layout(coord)) == value
    assert checked == 880


def test_basis_strides_read_as_in_cute() -> None:
    assert [str(E(*path)) for path in ((0,), (1,), (0, 0), (0, 1), (1, 0))] == ["1@0", "1@1", "1@0@0", "1@1@0", "1@0@1"]
    assert Layout((3, 4), (E(0), E(1)))((1, 2)) == (1, 2)
    assert Layout((3, 4), (E(1), E(0)))((1, 2)) == (2, 1)
    assert Layout((3, 4), (E(0, 1), E(1)))((1, 2)) == ((0, 1), 2)
    assert Layout(4, E()) == Layout(4, 1)
    assert 3 * E(1) * 2 == Basis(6, (1,))
    assert Layout(4, E(2) * 0) == Layout(4, 0)


def test_cosize() -> None:
    for layout in layouts(12, 2, (-3, -1, 0, 1, 2, 5)):
        found = numbers(layout)
        assert cosize(layout) == max(found) - min(found) + 1
    assert coshape(Layout((4, 5, 2), (E(0), E(1, 1) * 3, E(0) * 10))) == (14, (1, 13))
    assert cosize(Layout((sym("n"), sym("m")), (1, sym("n")))) is sym("n") * sym("m")


def test_equal_layouts_are_equal() -> None:
    n = sym("n")
    one, other = Layout((n * 4 // 4, expr(3)), (expr(1), Sym("n"))), Layout((n, 3), (1, n))
    assert one == other and hash(one) == hash(other)
    assert Layout((2, 3)) != Layout((2, 3), (3, 1))
    assert len({Layout((2, 3)), Layout((2, 3), (1, 2)), Layout(((2, 3),))}) == 2


def test_text_goes_round() -> None:
    n, m = sym("n"), sym("m'1")
    strides = (0, 1, -3, E(0) * 4, E(1, 0, 2) * -2, n, n * 2 + m // 4, E(0) * (n + 1), E(1) * (n * m))
    sizes = (1, 5, n, n * m, -((-n) // 4), minimum(n, 7), n % m, xor(n, m // 2, 3))
    checked = 0
    for flat_sizes, steps in product(product(sizes, repeat=2), product(strides, repeat=2)):
        for shape, stride in zip(nestings(flat_sizes), nestings(steps), strict=True):
            try:
                layout = Layout(shape, stride)
            except LayoutError:
                continue
            checked += 1
            assert parse_layout(str(layout)) == layout
    assert checked > 5000


@pytest.mark.parametrize(
    "text",
    [
        "((2,4),8):((1@0,4@1),2@1)",
        "(4,):(1,)",
        "((n / 4),(2 * n)):(1,(m % 8))",
        "(n,m):((n + 1)@0,1@0@1)",
        "():()",
        "8:-1",
        "(2,(3,(4,5))):(1,(2,(6,24)))",
    ],
)
def test_text_as_it_is_printed(text: str) -> None:
    printed = str(parse_layout(text))
    assert printed == text.replace("((n / 4),(2 * n)):", "((n / 4),2 * n):")
    assert parse_layout(printed) == parse_layout(text)


def test_text_of_slices_and_composed_layouts() -> None:
    assert parse_slice("((_,1),_,n + 2)") == ((ALL, expr(1)), ALL, sym("n") + 2)
    assert str(ALL) == "_"
    composed = ComposedLayout(Swizzle(3, 4, 3), sym("n") * 8, Layout((8, 64), (64, 1)))
    assert str(composed) == "Sw<3,4,3> o 8 * n o (8,64):(64,1)"
    assert parse_composed(str(composed)) == composed
    assert parse_layout("(2,4)") == Layout((2, 4), (1, 2))


def test_tables() -> None:
    assert table(Layout((2, 3), (3, 1))) == ((0, 1, 2), (3, 4, 5))
    assert table(Layout(3, 2)) == ((0,), (2,), (4,))
    assert table(Layout((2, (2, 2)), (E(0), (E(1), E(1) * 4)))) == (
        ((0, 0), (0, 1), (0, 4), (0, 5)),
        ((1, 0), (1, 1), (1, 4), (1, 5)),
    )
    assert table(ComposedLayout(Swizzle(1, 0, 1), 0, Layout((2, 2)))) == ((0, 3), (1, 2))
