"""Whether blocks of a cluster copy the same boxes: decided as by trying all of them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.affine.expr import Expr, Sym, expr
from texpr.schedule.rewrite.cluster import apart

BI, BJ, KO = Sym("bi"), Sym("bj"), Sym("ko")
MOST = 8


def differing(base: list[Expr], among: dict[Sym, int]) -> bool:
    """Whether some two blocks of one cluster have other corners, indices below `MOST`."""
    corners: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for bi, bj, ko in product(range(MOST), repeat=3):
        at = {BI: bi, BJ: bj, KO: ko}
        cluster = tuple(value // among.get(sym, 1) for sym, value in at.items())
        corners.setdefault(cluster, set()).add(tuple(e.evaluate(at) for e in base))
    return any(len(found) > 1 for found in corners.values())


def indices() -> st.SearchStrategy[Expr]:
    atoms = st.sampled_from([expr(BI), expr(BJ), expr(KO), expr(BJ) // 2, expr(BI) // 4, expr(BJ) % 2, expr(BI) // 2 % 2])
    terms = st.lists(st.tuples(atoms, st.integers(-3, 3)), max_size=3)
    return terms.map(lambda parts: sum((e * n for e, n in parts), expr(0)))


@settings(max_examples=60, deadline=None)
@given(st.lists(indices(), min_size=1, max_size=2), st.sampled_from([{BJ: 2}, {BI: 2}, {BI: 4}, {BI: 2, BJ: 2}]))
def test_blocks_that_differ_are_found(base: list[Expr], among: dict[Sym, int]) -> None:
    facts = [e for sym in (BI, BJ, KO) for e in (expr(sym), MOST - 1 - expr(sym))]
    found = apart(base, among, facts, ())
    assert (found is not None) == differing(base, among)
    if found is not None:
        one, other = ({s: values.get(s, 0) for s in (BI, BJ, KO)} for values in (found.one, found.other))
        assert all(one[s] // among.get(s, 1) == other[s] // among.get(s, 1) for s in one)
        assert base[found.dim].evaluate(one) == found.first != found.second == base[found.dim].evaluate(other)


@pytest.mark.parametrize("index", [16 * (expr(BJ) // 2), 16 * (expr(BJ) // 4), 8 * expr(KO), expr(5)])
def test_what_is_one_cluster_s_is_shared(index: Expr) -> None:
    """Without an upper bound too: blocks beyond the last iteration take part."""
    assert apart([index], {BJ: 2}, [expr(BJ), expr(KO)], ()) is None
