"""Sets against enumeration: formulas evaluated point by point, with no solver."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.affine.expr import Expr, Sym, expr, maximum, minimum, xor
from texpr.presburger.formula import FALSE, TRUE, And, Eq, Formula, Ge, Or, between, compare, conj, differ, holds, negate, syms
from texpr.presburger.isl.maps import Map
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine, is_affine, without_products

Q, J, N = Sym("i'1"), Sym("j"), Sym("(M * N)")
BOX = range(-4, 5)
SIZES = (0, 1, 3)


def exprs() -> st.SearchStrategy[Expr]:
    leaf = st.one_of(st.integers(-3, 3).map(expr), st.sampled_from((Q, J, N)).map(expr))

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, st.integers(-3, 3)).map(lambda p: p[0] * p[1]),
            st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] // p[1]),
            st.tuples(inner, st.integers(1, 4)).map(lambda p: p[0] % p[1]),
            st.tuples(inner, inner).map(lambda p: minimum(*p)),
            st.tuples(inner, inner).map(lambda p: maximum(*p)),
            st.tuples(inner, inner, st.integers(1, 2)).map(lambda p: xor(*p)),
        )

    return st.recursive(leaf, grow, max_leaves=5)


def formulas() -> st.SearchStrategy[Formula]:
    leaf = st.one_of(exprs().map(Ge), exprs().map(Eq))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=2).map(lambda parts: And(tuple(parts))),
            st.lists(inner, max_size=2).map(lambda parts: Or(tuple(parts))),
        ),
        max_leaves=3,
    )


INSIDE = conj((between(-4, Q, 5), between(-4, J, 5)))


def truth(formula: Formula, size: int) -> set[tuple[int, int]]:
    return {(i, j) for i, j in product(BOX, BOX) if holds(formula, {Q: i, J: j, N: size})}


@given(formulas())
@settings(max_examples=80)
def test_a_set_holds_the_points_of_its_formula(formula: Formula) -> None:
    found = Set.of((Q, J), conj((INSIDE, formula)))
    for size in SIZES:
        assert found.points({N: size}) == truth(formula, size)


q, j = expr(Q), expr(J)


@pytest.mark.parametrize(
    ("value", "mask", "bits"),
    [(q, j, 3), (q - 3, expr(6), 3), (q // 2 - 1, j + 1, 2), (q, xor(j, q // 2, 2), 3), (2 * q, j // 4, 3)],
)
def test_swizzles_are_exact(value: Expr, mask: Expr, bits: int) -> None:
    """Every point of a swizzle's graph is that of Python's own XOR, and the oracle shares no code with `xor`."""
    here, size = Sym("here"), 1 << bits
    found = Set.of((Q, J, here), conj((INSIDE, Eq(xor(value, mask, bits) - here))))
    at = [{Q: a, J: b} for a, b in product(BOX, BOX)]
    pairs = [(p, value.evaluate(p), mask.evaluate(p)) for p in at]
    assert is_affine(xor(value, mask, bits))
    assert found.points({}) == {(p[Q], p[J], v - v % size + ((v % size) ^ (m % size))) for p, v, m in pairs}


@given(formulas(), formulas())
@settings(max_examples=40)
def test_algebra(a: Formula, b: Formula) -> None:
    left, right = (Set.of((Q, J), conj((INSIDE, f))) for f in (a, b))
    for size in SIZES:
        x, y = truth(a, size), truth(b, size)
        assert left.intersect(right).points({N: size}) == x & y
        assert left.union(right).points({N: size}) == x | y
        assert left.subtract(right).points({N: size}) == x - y
        assert left.project_out([J]).points({N: size}) == {(i,) for i, _ in x}
        assert left.coalesce().points({N: size}) == x
        assert left.gist(right).intersect(right).points({N: size}) == x & y
        assert Set.of((Q, J), conj((INSIDE, negate(a)))).points({N: size}) == {*product(BOX, BOX)} - x


@given(formulas())
@settings(max_examples=40)
def test_a_sample_is_a_point_and_emptiness_is_known(formula: Formula) -> None:
    found = Set.of((Q, J), conj((INSIDE, between(0, N, 4), formula)))
    sample = found.sample()
    shown = any(truth(formula, size) for size in range(4))
    assert found.is_empty() == (sample is None) == (not shown)
    if sample is not None:
        assert holds(formula, {Q: 0, J: 0, N: 0} | sample)


def test_a_sample_prefers_small_and_non_negative_values() -> None:
    assert Set.of((Q,), conj((Ge(expr(N) - Q - 1), Ge(expr(Q) - 2)))).sample() == {N: 3, Q: 2}
    assert Set.of((Q,), Ge(-3 - expr(Q))).sample() == {Q: -3}


def test_bounds_of_an_expression() -> None:
    found = Set.of((Q, J), conj((between(0, Q, 8), between(0, J, Q))))
    assert found.bounds(expr(Q) * 2 - J) == (2, 14)
    assert found.bounds(expr(Q) + N)[1] is None


def test_what_is_not_affine_is_refused() -> None:
    product_of_two = expr(Q) * J
    assert not is_affine(product_of_two)
    assert not is_affine(expr(Q) // expr(N))
    with pytest.raises(NotAffine):
        Set.of((Q, J), Ge(product_of_two))


def test_a_question_beyond_the_limit_is_undecided() -> None:
    dims = [Sym(f"x{k}") for k in range(14)]
    tangle = [compare("!=", expr(a) * (3 + k) % 7, expr(b) * 5 % 11) for k, a in enumerate(dims) for b in dims[k + 1 :]]
    box = [between(0, d, 1000) for d in dims]
    with pytest.raises(Undecided):
        Set.of(dims, conj((*box, *tangle))).is_empty()


def test_true_and_false() -> None:
    assert Set.of((Q,), FALSE).is_empty()
    assert Set.empty((Q,)).is_subset(Set.of((Q,), TRUE))
    assert not Set.of((Q,), TRUE).is_subset(Set.of((Q,), Ge(expr(Q))))


def pairs(found: Map, size: int) -> set[tuple[int, ...]]:
    return set(found.pairs().points({N: size}))


def test_maps_compose_as_relations_do() -> None:
    to_block = Map.function((Q,), (J,), (expr(Q) // 2,), Set.of((Q,), between(0, Q, N)))
    back = to_block.inverse()
    same_block = to_block.then(back)
    assert pairs(same_block, 5) == {(a, b) for a, b in product(range(5), range(5)) if a // 2 == b // 2}
    assert to_block.is_single_valued() and not to_block.is_injective()
    assert to_block.range().points({N: 5}) == {(0,), (1,), (2,)}
    assert to_block.image(Set.of((Q,), Eq(expr(Q) - 3))).points({N: 5}) == {(1,)}
    assert pairs(same_block.where_differ([Q], [Q]), 3) == {(0, 1), (1, 0)}
    assert pairs(same_block.where(differ([same_block.left(Q)], [2])), 3) == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_products_are_flat() -> None:
    f = Map.function((Q,), (J,), (expr(Q) + 1,), Set.of((Q,), between(0, Q, 2)))
    g = Map.function((Q,), (J,), (expr(Q) * 3,))
    assert pairs(f.range_product(g), 0) == {(0, 1, 0), (1, 2, 3)}
    assert pairs(f.product(f).project_out(ins=[Q]), 0) == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_a_wrong_rounding_would_be_noticed() -> None:
    """The enumeration tells floor from truncation and from ceiling, so the properties above can fail."""
    values = {k: (k // 2, int(k / 2), -(-k // 2)) for k in BOX}
    found = Set.of((Q, J), conj((INSIDE, Eq(expr(J) - expr(Q) // 2)))).points({N: 0})
    assert found == {(k, floor) for k, (floor, _, _) in values.items()}
    assert found != {(k, toward_zero) for k, (_, toward_zero, _) in values.items()}
    assert found != {(k, up) for k, (_, _, up) in values.items()}


def test_products_as_unknowns() -> None:
    """What contradicts itself whatever the product is does so without it; what it alone would contradict is no longer seen."""
    a, b, i = Sym("a"), Sym("b"), Sym("i")
    product_of = expr(a) * b
    below, above = Ge(product_of - 1 - i), Ge(i - product_of)
    for formula, empty in ((conj((below, above)), True), (below, False), (Ge(-(expr(a) * a) - 1), False)):
        made = without_products(formula)
        assert Set.of(sorted(syms(made), key=str), made).is_empty() is empty
