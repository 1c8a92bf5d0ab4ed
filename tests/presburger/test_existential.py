"""That for each point there is something: held against all points of a box, with what is said right, wrong, or missing."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.affine.expr import Expr, Sym, expr
from texpr.presburger.existential import ExistsWitness, nowhere
from texpr.presburger.formula import TRUE, And, Eq, Formula, Ge, Or, between
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point
from texpr.presburger.solve.turned import solved

X, Y, OWN, PART = Sym("x"), Sym("y"), Sym("own"), Sym("part")
SIDE = 5
SMALL = st.integers(-3, 3)


def holds(fact: Formula, values: dict[Sym, Expr]) -> bool:
    """Whether a formula holds at a point, by numbers alone."""
    match fact:
        case Ge(e):
            return e.substitute(values).constant >= 0
        case Eq(e):
            return e.substitute(values).constant == 0
        case And(parts):
            return all(holds(part, values) for part in parts)
        case Or(parts):
            return any(holds(part, values) for part in parts)


def is_there(found: list[ExistsWitness], values: dict[Sym, int]) -> bool:
    """Whether something is there at a point, at any coordinates of a box that is wide enough."""
    points = [{s: expr(v) for s, v in {**values, OWN: a, PART: b}.items()} for a, b in product(range(SIDE * 4), range(4))]
    return any(all(holds(fact, point) for fact in each.facts) for each in found for point in points)


def box() -> tuple[Formula, ...]:
    return between(0, X, SIDE), between(0, Y, SIDE)


@st.composite
def things(draw: st.DrawFn) -> ExistsWitness:
    """Elements of a tile, dealt out by quotient and remainder, or by an equation; and where that says they are."""
    n, shift = draw(st.integers(1, 4)), draw(SMALL)
    value = expr(X) + expr(Y) * draw(SMALL) + shift
    facts = (Eq(expr(OWN) * n + PART - value), between(0, PART, n), between(0, OWN, draw(st.integers(0, SIDE * 3))))
    right = value // n, value % n
    wrong: tuple[Expr, ...] = (expr(X), expr(0))
    said = draw(st.sampled_from([(right,), (wrong,), (wrong, right), ()]))
    return ExistsWitness({OWN: OWN, PART: PART}, facts, said)


@settings(max_examples=60, deadline=None)
@given(found=st.lists(things(), max_size=3), more=SMALL)
def test_what_is_found_nowhere_is_nowhere(found: list[ExistsWitness], more: int) -> None:
    facts = (*box(), Ge(expr(X) - Y + more))
    points = [{X: x, Y: y} for x, y in product(range(SIDE), range(SIDE)) if x - y + more >= 0]
    point: Point | None
    try:
        point = nowhere(facts, found, TRUE)
    except Undecided:
        assert found  # of nothing there is no doubt
        return
    if point is None:
        assert all(is_there(found, each) for each in points)
    else:
        assert {sym: point[sym] for sym in (X, Y)} in points
        assert not is_there(found, dict(point))


def test_what_is_said_wrong_is_undecided_not_refused() -> None:
    thing = ExistsWitness({OWN: OWN}, (Eq(expr(OWN) - X - 1),), ((expr(X),),))
    with pytest.raises(Undecided, match="where it is done was not said at"):
        nowhere(box(), [thing], TRUE)


def test_what_is_said_of_too_few_coordinates_says_nothing() -> None:
    thing = ExistsWitness({OWN: OWN, PART: PART}, (Eq(expr(OWN) - X), Eq(expr(PART) - Y)), ((expr(X),),))
    with pytest.raises(Undecided):
        nowhere(box(), [thing], TRUE)
    assert nowhere(box(), [ExistsWitness(thing.names, thing.facts, ((expr(X), expr(Y)),))], TRUE) is None


@pytest.mark.parametrize("missing", [None, 3], ids=["all", "one lane less"])
def test_elements_of_vectors_are_there_for_all_their_lanes(missing: int | None) -> None:
    """An element of a tile of 32 · 128 is in one of 8 lanes of a vector, each of which has conditions of its own. Threads are
    claimed by quotients and remainders of digits, which the ranges of these simplify."""
    row, column, lane, n, turn, now = (expr(Sym(name)) for name in ("row", "column", "lane", "n", "turn", "now"))
    i, half, j, part, group = (expr(Sym(name)) for name in ("i", "half", "j", "part", "group"))
    thread, at, own = (Sym(name) for name in ("thread", "at", "own"))
    place = j + 16 * part + 64 * (group % 2)
    facts = (
        *(between(0, i, 16), between(0, half, 2), between(0, j, 16), between(0, part, 4), between(0, group, 4)),
        *(between(0, row, 32), between(0, column, 16), between(0, lane, 8), between(0, turn, 2), between(2, now, 4)),
        *(Eq(row - i - 16 * half), Eq(8 * column + lane - place), Eq(n % 8), Eq(turn % 3 - (now + 1) % 3)),
        Or((Ge(row + 32 * turn - 36), Ge(8 * column + lane - n))),
    )

    def vector(at_lane: int) -> ExistsWitness:
        mine, its = expr(thread), expr(own)
        where = (between(0, mine, 128), Ge(expr(at) - mine // 16), Ge(31 - expr(at)), Eq((expr(at) - mine // 16) % 8))
        does = Or((Ge(expr(at) + 32 * its - 36), Ge(8 * (mine % 16) - n)))
        meant = (Eq(expr(at) - i - 16 * half), Eq(8 * (mine % 16) + at_lane - place), Eq(its - (now + 1) % 3))
        same = (Eq(expr(at) - row), Eq(mine % 16 - column), Eq(lane - at_lane), Eq(its - turn))
        claims = ((column + 16 * (row % 8), row, turn), (column + 16 * (row % 8), row, now))
        return ExistsWitness({sym: sym for sym in (thread, at, own)}, (*where, between(0, its, 2), does, *meant, *same), claims)

    point = nowhere(facts, [vector(each) for each in range(8) if each != missing], Ge(n))
    assert (None if point is None else point[Sym("lane")]) == missing


@pytest.mark.parametrize("end", [11, 10], ids=["all", "one turn less"])
def test_turns_that_begin_later_are_there_for_all_taps(end: int) -> None:
    """A filter of 3 × 3 in turns 2 to 10, of which the digits are kept with what is added: where each is done is found."""
    r, s, turn = Sym("r"), Sym("s"), Sym("turn")
    late = expr(turn) - 2
    claim = solved([(late // 3, expr(r)), (late % 3, expr(s))], {turn: expr(end)})[turn]
    thing = ExistsWitness({turn: turn}, (between(2, turn, end), Eq(late // 3 - r), Eq(late % 3 - s)), ((claim,),))
    point = nowhere((between(0, r, 3), between(0, s, 3)), [thing], TRUE)
    assert point == (None if end == 11 else {r: 2, s: 2})
