"""Equations of flat elements taken apart: no point is lost, by a walk over small boxes; and it is done where it can be."""

from __future__ import annotations

import random
from itertools import product

from texpr.affine.expr import Expr, Sym, expr
from texpr.presburger.formula import TRUE, Eq, Formula, compare, conj, holds
from texpr.presburger.solve.digits import below, in_digits

ROW, J, K, L, N = map(Sym, "ijklN")


def flat(row: Expr, column: Expr) -> Expr:
    return row * N + column


def inside(column: Expr) -> tuple[Formula, ...]:
    return compare(">=", column, 0), compare("<", column, N)


def test_rows_and_columns_are_equal() -> None:
    facts = [Eq(flat(expr(ROW), expr(J)) - flat(expr(K), expr(L))), *inside(expr(J)), *inside(expr(L))]
    assert in_digits(facts, TRUE) == [Eq(expr(ROW) - K), Eq(expr(J) - L), *facts[1:]]


def test_nothing_is_said_where_a_column_may_leave_its_row() -> None:
    equal = Eq(flat(expr(ROW), expr(J)) - flat(expr(K), expr(L)))
    for missing in range(4):
        bounds = [*inside(expr(J)), *inside(expr(L))]
        del bounds[missing]
        assert in_digits([equal, *bounds], TRUE) is None
    wide = [equal, *inside(expr(J)), compare(">=", L, 0), compare("<=", L, N)]
    assert in_digits(wide, TRUE) is None


def test_three_dimensions_are_taken_apart_one_by_one() -> None:
    m, b, c = map(Sym, "Mbc")
    one, other = (x * m * N + y * N + z for x, y, z in ((expr(b), expr(ROW), expr(J)), (expr(c), expr(K), expr(L))))
    columns = (*inside(expr(J)), *inside(expr(L)), *(f for s in (ROW, K) for f in (compare(">=", s, 0), compare("<", s, m))))
    first = in_digits([Eq(one - other), *columns], TRUE)
    assert first is not None
    assert in_digits(first, TRUE) == [Eq(expr(b) - c), Eq(expr(ROW) - K), Eq(expr(J) - L), *columns]


def test_no_point_is_lost() -> None:
    chooser = random.Random(2)
    parted = 0
    for _ in range(150):

        def column() -> Expr:
            return chooser.choice([expr(J), expr(L), expr(J) + L, expr(J) * 2, expr(L) // 2 + chooser.randint(0, 1)])

        rows = [chooser.choice([expr(ROW), expr(K), expr(ROW) + K, expr(ROW) * 2 + 1]) for _ in range(2)]
        columns = [column(), column()]
        equal = Eq(flat(rows[0], columns[0]) - flat(rows[1], columns[1]))
        facts: list[Formula] = [equal, *inside(columns[0]), *inside(columns[1])]
        if chooser.random() < 0.3:
            facts.pop(chooser.randrange(1, len(facts)))
        found = in_digits(facts, TRUE)
        if found is None:
            continue
        parted += 1
        for point in product(range(3), range(-1, 4), range(3), range(-1, 4), range(4)):
            at = dict(zip((ROW, J, K, L, N), point, strict=True))
            if holds(conj(facts), at):
                assert holds(conj(found), at), (facts, at)
    assert parted >= 60


def test_what_is_below_a_product() -> None:
    """Where all conditions of a list hold, the number is in 0..size; some list holds wherever row and column are inside."""
    m = Sym("M")
    value, size = flat(expr(ROW), expr(J)), expr(m) * N
    lists = list(below(value, size))
    exact = conj((*inside(expr(J)), compare(">=", ROW, 0), compare("<", ROW, m)))
    seen = 0
    for row, column, n, count in product(range(-2, 4), range(-2, 5), range(4), range(4)):
        at = {ROW: row, J: column, N: n, m: count}
        found = [all(holds(each, at) for each in some) for some in lists]
        assert any(found) >= holds(exact, at)
        assert not any(found) or 0 <= value.evaluate(at) < size.evaluate(at)
        seen += any(found)
    assert seen > 0 and next(below(expr(J), expr(N))) == [conj(inside(expr(J)))]
