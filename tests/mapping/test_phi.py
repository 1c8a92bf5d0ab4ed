"""The least φ: against every order of digits tried lane by lane, and against a solver of integer programs."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from tests.mapping.brute import Subject, bias, im2col, matmul, permute, stencil, strided
from tests.mapping.test_sigma import REAL, taken

from texpr.isa.memories import Coalescing
from texpr.mapping.cost.phi import least_phi, phi, rooms, trips_of
from texpr.mapping.cost.phi_program import least_phi_by_program
from texpr.mapping.cost.streams import Band
from texpr.support.record import replace

SUBJECTS = (
    permute((0, 1), (32, 64)),
    permute((1, 0), (32, 64)),
    permute((2, 1, 0), (8, 8, 16)),
    permute((2, 0, 1), (7, 5, 11)),
    permute((1, 0), (67, 19), "f64"),
    strided(64, 3),
    matmul("nn", 32, 32, 2),
    matmul("nt", 32, 32, 2),
    matmul("tn", 32, 32, 2),
    bias(32, 32),
    stencil(18, 35),
    im2col(9, 18, 3),
)


def lane_by_lane(band: Band, order: tuple[int, ...]) -> int:
    """φ from its definition."""
    total = 0
    for trips, stream in zip(trips_of(band), band.streams, strict=True):
        addresses: list[int] = []
        for lane in range(1 << len(order)):
            point, weight = [0] * len(band.loops), [1] * len(band.loops)
            for loop in order:
                point[loop] += lane % 2 * weight[loop]
                weight[loop] *= 2
                lane //= 2
            addresses.append(sum(i * s for i, s in zip(point, stream.steps, strict=True)) // stream.width)
        total += trips * sum(abs(b - a) for a, b in pairwise(addresses))
    return total


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_carry_cases_and_the_search_are_exact(subject: Subject) -> None:
    band = replace(taken(subject, REAL), request=Coalescing(lanes=16))
    found = least_phi(band)
    assert found is not None and found.proved
    room = rooms(band)
    best: int | None = None
    for order in product(range(len(room)), repeat=len(found.loops)):
        if all(order.count(loop) <= most for loop, most in enumerate(room)):
            value = lane_by_lane(band, order)
            assert phi(band, order) == value
            best = value if best is None else min(best, value)
    assert found.value == best == phi(band, found.loops)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_the_solver_of_integer_programs_says_the_same(subject: Subject) -> None:
    pytest.importorskip("ortools")
    band = taken(subject, REAL)
    found, other = least_phi(band), least_phi_by_program(band)
    assert found is not None and other is not None and found.proved and other.proved
    assert found.value == other.value == phi(band, other.loops)
