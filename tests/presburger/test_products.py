"""What is said of products and of quotients by unknowns holds at every point; and questions that need it are decided."""

from __future__ import annotations

import random
from itertools import product

import pytest

from texpr.affine.expr import Expr, Sym, expr, maximum
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, compare, conj, differ, disj, holds, negate
from texpr.presburger.questions import witness
from texpr.presburger.solve.products import multiplied, without_divisions

M, N, A, B, K = (Sym(name) for name in "MNIJK")
SIZES = conj((Ge(expr(M)), Ge(expr(N) - 1)))


def values(random: random.Random) -> Expr:
    """A sum of products, quotients, remainders and extrema."""
    parts = (
        expr(A), expr(B), expr(M), expr(N), expr(A) * N, expr(B) * M, expr(M) * N, (expr(A) * N + B) // N,
        (expr(A) * N + B) % N,
        expr(A) * (expr(M) // 2), (expr(M) // 2) * N,
        (expr(B) % (expr(N) * N)) // N, (expr(B) % (expr(N) * N)) % N, (expr(A) // N) % N,
        expr(A) // (2 * expr(N)), expr(B) % (3 * expr(N)), maximum(expr(M) * N, 1),
    )  # fmt: skip
    return sum((random.choice(parts) * random.choice((-2, -1, 1, 1, 2)) for _ in range(3)), expr(random.randint(-3, 3)))


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_holds(seed: int) -> None:
    """At each point of a box: where all facts hold, so does what is made of them, for some values of what has a name."""
    numbers = random.Random(seed)
    facts: list[Formula] = [Ge(values(numbers)) for _ in range(2)]
    facts += [between(0, A, M), Ge(expr(B)), disj((Ge(values(numbers)), Ge(values(numbers))))]
    plain = without_divisions(facts, SIZES)
    made = multiplied(plain, SIZES)
    named = {s for f in made for s in f_syms(f)} - {M, N, A, B}
    for m, n, i, j in product(range(4), range(1, 4), range(4), range(-1, 5)):
        at = {M: m, N: n, A: i, B: j}
        if all(holds(fact, at) for fact in facts):
            at |= {s: quotient(s, at) for s in named}
            assert all(holds(fact, at) for fact in made), (seed, at)


def f_syms(formula: Formula) -> frozenset[Sym]:
    """The symbols of a formula, of names for quotients too."""
    return frozenset(s for e in _leaves(formula) for s in e.syms())


def _leaves(formula: Formula) -> list[Expr]:
    return [e for part in formula.parts for e in _leaves(part)] if hasattr(formula, "parts") else [formula.expr]  # pyright: ignore


def quotient(name: Sym, at: dict[Sym, int]) -> int:
    """What `⟪(A / N)⟫` is."""
    return {f"⟪{e}⟫": e.evaluate(at) for e in (expr(A) // N, expr(B) // N)}[name.name]


def test_a_matrix_laid_flat_is_in_bounds() -> None:
    """0 ≤ i · N + j < M · N, and so it is of no other row or column."""
    inside = (between(0, A, M), between(0, B, N))
    assert witness((*inside, negate(between(0, expr(A) * N + B, expr(M) * N))), SIZES) is None
    assert witness((*inside, differ([(expr(A) * N + B) // N, (expr(A) * N + B) % N], [A, B])), SIZES) is None
    assert witness((*inside, compare(">=", expr(A) * N + B, maximum(expr(M) * N, 1))), SIZES) is None


def test_what_is_not_so_has_a_point() -> None:
    """One column too many, and rows that may not be there."""
    assert witness((between(0, A, M), between(0, B, expr(N) + 1), Ge(expr(A) * N + B - expr(M) * N)), SIZES) is not None
    assert witness((between(0, A, expr(M) + 1), between(0, B, N), Ge(expr(A) * N + B - expr(M) * N)), SIZES) is not None
    assert witness((between(0, B, expr(N) + 1), differ([(expr(A) * N + B) // N], [A])), conj((SIZES, Ge(expr(A))))) is not None
    assert witness((Ge(expr(M) * N - 5),), TRUE) is not None


@pytest.mark.parametrize("rows", [5, M])
def test_a_sum_is_written_out_where_it_is_divided(rows: int | Sym) -> None:
    """Of e = i · N + j with 0 ≤ j < N, the digits of e are those of i and j; with a column too many, they are not."""
    e, inside = Sym("element"), (between(0, A, rows), between(0, B, N))
    flat = Eq(expr(A) * N + B - e)
    digits = [(expr(e) // (4 * expr(N)), expr(A) // 4), ((expr(e) // N) % 4, expr(A) % 4), ((expr(e) % N) // 16, expr(B) // 16)]
    assert witness((*inside, flat, differ(*zip(*digits, strict=True))), SIZES) is None
    assert witness((between(0, A, rows), between(0, B, expr(N) + 1), flat, differ([expr(e) // N], [A])), SIZES) is not None


def test_a_symbol_with_one_value_is_that_in_products() -> None:
    """Of an axis with one point, 0 ≤ k < 1, nothing is left in a product; of one with two, it is."""
    row = expr(A) + 8 * expr(K)
    facts = (between(0, A, 256), Ge(4 - row), between(0, B, N))
    outside = negate(between(0, expr(A) * N + B, 5 * expr(N)))
    assert witness((between(0, K, 1), *facts, outside), SIZES) is None
    found = witness((between(0, K, 1), Ge(4 - row + 1), *facts[::2], outside), SIZES)
    assert found is not None
    assert (found[K], found[A]) == (0, 5)


def test_equal_digits_are_of_equal_numbers() -> None:
    """Of k < M · N · K, the quotient by N · K and the remainders below say what k is; without one of them, they do not."""
    one, two, sizes = Sym("one"), Sym("two"), conj((SIZES, Ge(expr(K))))
    inside = [between(0, s, expr(M) * N * K) for s in (one, two)]
    digits = [(expr(s) // (expr(N) * K), expr(s) // K % N, expr(s) % K) for s in (one, two)]
    same = [Eq(x - y) for x, y in zip(*digits, strict=True)]
    assert witness((*inside, *same, differ([one], [two])), sizes) is None
    for at in range(3):
        left = [fact for number, fact in enumerate(same) if number != at]
        some = [Eq(expr(M) - 3), Eq(expr(N) - 2), Eq(expr(K) - 2)]  # products of sizes that are open may be undecided
        assert witness((*inside, *left, differ([one], [two]), *some), sizes) is not None


def test_digits_of_a_remainder_are_digits_of_the_number() -> None:
    """(k mod (N · K)) / K is (k / K) mod N, and below N; below N · K, so is k / K. By N it is something else."""
    k, sizes = Sym("one"), conj((SIZES, Ge(expr(K))))
    inside, row = between(0, k, expr(M) * N * K), expr(k) % (expr(N) * K)
    assert witness((inside, differ([row // K, row % K], [expr(k) // K % N, expr(k) % K])), sizes) is None
    assert witness((inside, negate(between(0, row, expr(N) * K))), sizes) is None
    assert witness((between(0, k, expr(N) * K), differ([expr(k) // K % N], [expr(k) // K])), sizes) is None
    some = [Eq(expr(M) - 3), Eq(expr(N) - 2), Eq(expr(K) - 3)]
    assert witness((inside, differ([row // N], [expr(k) // K % N]), *some), sizes) is not None
    assert witness((inside, differ([expr(k) // K % N], [expr(k) // K]), *some), sizes) is not None


@pytest.mark.planted
def test_what_is_divided_by_a_number_below_0_turned_round() -> None:
    """The quotient of i · t by −t, which is above 0, is −i."""
    i, t = expr(A), expr(B)
    below = (Ge(-t - 1), Ge(i - 1))
    for by, quotient in ((-t, -i), (-2 * t, -i // 2)):
        assert witness((*below, Eq((i * t) // by - quotient)), SIZES) is not None
    assert witness((*below, Ge(t + 3), Ge(2 - i), Eq((i * t + 1) % -t - 1)), SIZES) is not None
