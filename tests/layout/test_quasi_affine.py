"""Layouts as index expressions and as integer maps, and back; operations proved by isl, some for all sizes."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from tests.layout.oracle import answer, layouts, numbers, places, random_layout, values
from tests.layout.test_random import STRIDES, tile

from texpr.affine.expr import Expr, Sym, expr, sym
from texpr.layout import E, Layout, LayoutError
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.divide import logical_divide
from texpr.layout.algebra.inverse import left_inverse, right_inverse
from texpr.layout.algebra.quasi_affine import as_map, from_expressions
from texpr.layout.tensor import identity_layout
from texpr.layout.text import parse_layout
from texpr.presburger.isl.maps import Map
from texpr.presburger.isl.sets import Set

AT, TO = Sym("i"), Sym("j")
P = parse_layout


def test_the_map_of_a_layout_has_its_values() -> None:
    for a in layouts(8, 2, (0, 1, 3, 4), least=2):
        points = as_map(a, [AT]).pairs().points()
        assert points == frozenset(enumerate(numbers(a)))
    coordinates = P("((2,2),3):((1@0,4@1),2@1)")
    points = as_map(coordinates, [AT]).pairs().points()
    assert {(i, places((x, y))) for i, x, y in points} == set(enumerate(values(coordinates)))
    for leaves in as_map(coordinates, [AT, TO, Sym("k")]).pairs().points():
        assert coordinates(((leaves[0], leaves[1]), leaves[2])) == leaves[3:]


def test_the_way_back_is_the_same_map() -> None:
    """Of expressions of 1-D coordinates, of random layouts; as isl sees them."""
    done = 0
    for seed in range(60):
        a = random_layout(Random(seed), 96, STRIDES)
        base, found = from_expressions(a(AT), [(AT, a.size)])
        if base == 0:
            done += 1
            assert as_map(found, [AT]).is_equal(as_map(a, [AT]))
    assert done > 40


def test_compositions_by_isl() -> None:
    done = 0
    for seed in range(120):
        random = Random(seed)
        a = random_layout(random, 64, STRIDES)
        b = tile(random, a)
        r = answer(composition, a, b)
        if r is not None:
            done += 1
            assert as_map(r, [AT]).is_equal(as_map(b, [AT]).then(as_map(a, [AT])))
    assert done > 60


def test_inverses_by_isl() -> None:
    done = 0
    for seed in range(120):
        a = random_layout(Random(seed), 64, STRIDES)
        whole = as_map(a, [AT])
        if (r := answer(right_inverse, a)) is not None:
            done += 1
            assert as_map(r, [AT]).then(whole).is_equal(_same(whole.range()))
        if (l := answer(left_inverse, a)) is not None:  # noqa: E741
            done += 1
            assert whole.then(as_map(l, [AT])).is_equal(_same(whole.domain()))
    assert done > 60


def _same(points: Set) -> Map:
    return Map.function([AT], [TO], [AT], points.renamed([AT]))


FOR_ALL_SIZES = [
    ("(8,n):(1,12)", "(2,n):(4,8)"),
    ("(8,n):(5,100)", "8*n:1"),
    ("(4,(2,n)):(3,(100,7))", "(2,(2,(2,n))):(2,(1,(4,8)))"),
    ("n:3", "n:1"),
]


@pytest.mark.parametrize(("first", "second"), FOR_ALL_SIZES)
def test_compositions_for_all_sizes(first: str, second: str) -> None:
    a, b = P(first), P(second)
    r = composition(a, b)
    assert as_map(r, [AT]).is_equal(as_map(b, [AT]).then(as_map(a, [AT])))
    assert not as_map(r, [AT]).is_empty()


def test_divides_for_all_sizes() -> None:
    """Every element once: the map of the tiles is the whole, read in another order, one to one."""
    a = P("(16,4*k):(1,20)")
    whole = as_map(a, [AT, TO]).range()
    for text in ("8:1", "(4,4):(1,16)", "8:2"):
        r = logical_divide(a, P(text))
        once = as_map(r, [Sym(f"x{k}") for k in range(len(r.flat))])
        assert once.range().is_equal(whole)
        assert once.is_injective()


@pytest.mark.parametrize(
    ("value", "axes", "found"),
    [
        (expr(AT) * 16 + expr(TO), [(AT, 4), (TO, 16)], "(4,16):(16,1)"),
        ((expr(AT) * 8 + TO) // 16 * 100 + (expr(AT) * 8 + TO) % 16, [(AT, 4), (TO, 8)], "((2,2),8):((8,100),1)"),
        (expr(AT) % 6 // 2 * 10 + expr(AT) // 12, [(AT, 24)], "(2,3,2,2):(0,10,0,1)"),
        ((expr(AT) // 4) % 2, [(AT, 8)], "(4,2):(0,1)"),
        (expr(5) * 0, [(AT, 4)], "4:0"),
        (expr(AT) * -2, [(AT, 4)], "4:-2"),
        ((expr(AT) // 2, expr(AT) % 2, expr(TO)), [(AT, 8), (TO, 3)], "((2,4),3):((1@1,1@0),1@2)"),
        ((expr(AT), (expr(TO), expr(0))), [(AT, 8), (TO, 3)], "(8,3):(1@0,1@0@1)"),
        ((expr(AT) * sym("n") + TO) // sym("n"), [(AT, 8), (TO, sym("n"))], "(8,n):(1,0)"),
        ((expr(AT) % sym("n"), expr(AT) // sym("n")), [(AT, sym("n") * 4)], "(n,4):(1@0,1@1)"),
    ],
)
def test_layouts_of_expressions(value: object, axes: list[tuple[Sym, Expr | int]], found: str) -> None:
    base, layout = from_expressions(value, axes)  # type: ignore[arg-type]
    assert str(layout) == found
    assert not any(number for _, number in places(base))


def test_an_offset_becomes_the_base() -> None:
    base, layout = from_expressions((expr(AT) + 3, expr(TO) * 2 - sym("n")), [(AT, 4), (TO, 8)])
    assert base == (3, -sym("n"))
    assert layout == Layout((4, 8), (E(0), E(1) * 2))


def test_identity_layouts_come_back() -> None:
    for shape in ((3, 4), (2, 3, 4)):
        names = [Sym(f"x{k}") for k in range(len(shape))]
        _, layout = from_expressions(tuple(map(expr, names)), list(zip(names, shape, strict=True)))
        assert layout == identity_layout(shape)


def test_expressions_at_small_sizes() -> None:
    """Either refused, or right at every point."""
    x, y = expr(AT), expr(TO)
    values_ = [x // a * b + (x * c + y) % d for a, b, c, d in product((1, 2, 3, 4), (0, 1, 5), (0, 1, 4), (2, 4, 6))]
    answered = 0
    for value in values_:
        for extents in ((12, 4), (8, 2), (6, 5)):
            try:
                base, layout = from_expressions(value, [(AT, extents[0]), (TO, extents[1])])
            except LayoutError:
                continue
            answered += 1
            assert isinstance(base, int)
            for i, j in product(range(extents[0]), range(extents[1])):
                assert base + layout.offset((i, j)) == value.evaluate({AT: i, TO: j})
    assert answered > 80
