"""Windows that elements touch, counted for every start at once, against each start by itself."""

from __future__ import annotations

from random import Random

import pytest

from texpr.isa.memories import Coalescing
from texpr.isa.requests import touching
from texpr.mapping.cost.warps import sums, touched


@pytest.mark.parametrize("seed", range(4))
def test_sectors_for_every_start(seed: int) -> None:
    random, request = Random(seed), Coalescing()
    for _ in range(500):
        width = random.choice((1, 2, 4, 8))
        counts = [random.choice((2, 4, 8)) for _ in range(random.randint(1, 3))]
        offsets = sums(tuple((random.choice((-1, 1, width)) * random.randint(1, 70), count) for count in counts))
        alone = [touched(offsets, start, request)[0] for start in range(0, request.sector, width)]
        assert list(touching(offsets, width, request.sector)) == alone
