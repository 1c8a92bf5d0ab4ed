"""What multiplies tiles by itself on targets of each generation."""

from __future__ import annotations

from math import prod

from texpr.isa.cuda import TCGEN05, WARPGROUP, WGMMA
from texpr.isa.instructions.tcgen05 import COLUMNS, LANES
from texpr.isa.instructions.tcgen05 import PART as MOVED
from texpr.isa.instructions.wgmma import ROWS
from texpr.isa.target import Target
from texpr.support.record import Record


class Unit(Record):
    """What does it on a target with `feature`. `rows`: of an instruction; `teams`: parts of a block, along rows and along
    columns; `tiles`: instructions of a part along rows; `lag`: turns that a slot rests; `columns`: of tensor memory, 0 where
    sums are in registers."""

    feature: str
    rows: int
    teams: tuple[tuple[int, int], ...]
    tiles: tuple[int, ...] = (1, 2)
    lag: int = 0
    columns: int = 0

    def kept(self, part: tuple[int, int], words: float) -> float:
        """Registers of a thread for sums of a part."""
        return MOVED if self.columns else prod(part) * words / WARPGROUP


LAG = 1
"""Turns for which a product may go on behind its own: for one the tensor core has the next before it has done the last."""


OF_WARPGROUPS = Unit(WGMMA, ROWS, ((2, 1), (1, 2), (1, 1)), lag=LAG)
UNITS = (OF_WARPGROUPS, Unit(TCGEN05, LANES, ((1, 1),), lag=LAG, columns=COLUMNS))
"""Of each generation."""


def unit_of(target: Target) -> Unit | None:
    """The unit of a target."""
    return next((unit for unit in UNITS if unit.feature in target.features), None)
