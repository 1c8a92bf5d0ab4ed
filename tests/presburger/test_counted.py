"""Sums of unknowns that count through something: their digits, found again in the form in which they are kept."""

from __future__ import annotations

from itertools import product

import pytest

from texpr.affine.expr import Expr, Sym, expr
from texpr.presburger.formula import TRUE, Eq, Formula, between, differ, holds
from texpr.presburger.questions import is_refuted_by_counts
from texpr.presburger.solve.counted import counts, in_counts
from texpr.presburger.solve.ranges import ranges_of
from texpr.presburger.solve.relaxed import flat
from texpr.presburger.solve.turned import solved

SHAPES = [(132, (4, 8)), (132, (7, 6)), (8, (3, 2)), (5, (4,)), (7, (2, 3, 2)), (12, (5, 4))]
"""How many blocks there are, and the extents of the loops over tiles within the outermost one, the innermost first."""


def digits(total: Expr, extents: tuple[int, ...]) -> list[Expr]:
    """The indices of the loops over tiles at a tile's number, the innermost first."""
    found, stride = list[Expr](), 1
    for extent in extents:
        found.append(total // stride % extent)
        stride *= extent
    return [*found, total // stride]


def tile(mark: str, blocks: int) -> tuple[Sym, Sym, Expr]:
    block, turn = Sym(f"b{mark}"), Sym(f"t{mark}")
    return block, turn, expr(block) + blocks * expr(turn)


@pytest.mark.parametrize(("blocks", "extents"), SHAPES)
def test_block_and_turn_follow_from_the_indices_of_a_tile(blocks: int, extents: tuple[int, ...]) -> None:
    """Beside digits of other unknowns, and in any order of equations."""
    block, turn, total = tile("", blocks)
    inner = Sym("inner")
    parts = digits(total, extents)
    said = [Sym(f"d{at}") for at in range(len(parts))]
    wide = [16 * part + inner if at == 0 else part for at, part in enumerate(parts)]
    pairs = [(part, expr(sym)) for part, sym in zip(wide, said, strict=True)]
    for each in (pairs, pairs[::-1]):
        found = solved(each, {block: expr(blocks), turn: None, inner: expr(16)})
        for b, t, i in product(range(0, blocks, 3), range(9), (0, 15)):
            at = {block: b, turn: t, inner: i}
            values = {sym: part.evaluate(at) for sym, part in zip(said, wide, strict=True)}
            assert {sym: value.evaluate(values) for sym, value in found.items()} == at


@pytest.mark.parametrize(("blocks", "extents"), SHAPES)
def test_facts_in_counts_are_equal(blocks: int, extents: tuple[int, ...]) -> None:
    """At each point, with the sum's name as the sum: also of quotients and remainders that are none of the sum."""
    block, turn, total = tile("", blocks)
    other = Sym("x")
    odd = [
        total // 4 % 3 - (expr(block) + 5 * expr(turn)) // 3 % 2,
        expr(turn) + expr(block) // 5,
        total % 2 * 3 + expr(turn) % 3,
    ]
    facts: list[Formula] = [
        *flat([between(0, block, blocks), between(0, turn, 9)]),
        *(Eq(part - other) for part in (*digits(total, extents), *odd)),
    ]
    counted = in_counts(facts, ranges_of(facts))
    assert counted is not None
    found, (count,) = counted
    name = count.name
    assert len(found) == len(facts)
    for b, t, x in product(range(blocks), range(9), (0, 1, 4)):
        at = {block: b, turn: t, other: x}
        for one, same in zip(facts, found, strict=True):
            assert holds(one, at) == holds(same, {**at, name: b + blocks * t}), (one, same, at)


@pytest.mark.parametrize(("blocks", "extents"), SHAPES)
def test_two_with_equal_indices_are_one_tile(blocks: int, extents: tuple[int, ...]) -> None:
    """And are not, with one index less or with blocks that overlap."""
    (b, t, one), (c, u, other) = tile("◁", blocks), tile("▷", blocks)
    facts = [*flat([between(0, b, blocks), between(0, c, blocks), between(0, t, 99), between(0, u, 99)])]
    pairs = [*zip(digits(one, extents), digits(other, extents), strict=True)]
    same = [Eq(x - y) for x, y in pairs]
    apart = differ((expr(b), expr(t)), (expr(c), expr(u)))
    assert is_refuted_by_counts([*facts, *same, apart], TRUE)
    for at in range(len(same)):
        assert not is_refuted_by_counts([*facts, *same[:at], *same[at + 1 :], apart], TRUE)
    beyond = [*flat([between(0, b, blocks + 1), between(0, c, blocks + 1), between(0, t, 99), between(0, u, 99)])]
    assert not is_refuted_by_counts([*beyond, *same, apart], TRUE)


def test_sums_that_overlap_count_nothing() -> None:
    """A block of 133 and every 132nd tile; a block whose extent nobody knows."""
    block, turn, total = tile("", 132)
    for end in (133, None):
        assert not [*counts([(total // 32, expr(0))], {block: end, turn: None})]
    assert [*counts([(total // 32, expr(0))], {block: 132, turn: None})]
