"""The weights of the components of a cost, each with its source. None is measured by this project.

The unit is a quarter of a clock of a multiprocessor: the issue slot of one warp instruction, of which there are four a clock.
"""

from __future__ import annotations

from typing import NamedTuple

from texpr.support.record import Record


class Weight(Record):
    """One number. `says`: the statement of the source; `source`: which, "assumed" where there is none."""

    part: str
    value: int
    says: str
    source: str


class Weights(NamedTuple):
    """Of memory: the weights of `Cost.weighted`."""

    sector: int
    line: int
    request: int
    conflict: int


class Instructions(NamedTuple):
    """The instructions of one operation on an index, for divisors that are no power of two. `pair`: a remainder whose
    division is computed already; `open`: a division, or a remainder, by a size."""

    addition: int
    multiplication: int
    shift: int
    division: int
    remainder: int
    pair: int
    open: int


WEIGHTS = Weights(sector=4, line=3, request=1, conflict=4)
INSTRUCTIONS = Instructions(addition=1, multiplication=1, shift=1, division=4, remainder=5, pair=2, open=24)

_SASS = "instructions counted in what nvcc 13.0 makes of it for sm_90a"

TABLE = (
    Weight(
        "sector",
        WEIGHTS.sector,
        "3 from the L2 cache, 9 to 10 from memory: 5120 bytes a clock for 108 multiprocessors; 3.35 TB/s for 132 at 1.8 GHz",
        "NVIDIA A100 and H100 Tensor Core GPU Architecture, whitepapers",
    ),
    Weight(
        "line",
        WEIGHTS.line,
        "1 for its tag: the L1 cache looks up 4 tags a clock; the rest stands for a line that is fetched in part",
        "NVIDIA developer forum, threads 49571 and 312884; the rest assumed",
    ),
    Weight("request", WEIGHTS.request, "the slot of its instruction", "CUDA C++ Programming Guide, Compute Capabilities"),
    Weight(
        "conflict",
        WEIGHTS.conflict,
        "a clock: each of 32 banks hands out 32 bits in one",
        "CUDA C++ Programming Guide, Shared Memory",
    ),
    Weight("addition, comparison", INSTRUCTIONS.addition, "1", _SASS),
    Weight("multiplication", INSTRUCTIONS.multiplication, "1", _SASS),
    Weight("shift, mask", INSTRUCTIONS.shift, "1, where the compiler sees that nothing is negative", _SASS),
    Weight("division by a number", INSTRUCTIONS.division, "3 to 4", _SASS),
    Weight("remainder by a number", INSTRUCTIONS.remainder, "5", _SASS),
    Weight("the same after the division", INSTRUCTIONS.pair, "2", _SASS),
    Weight("division, remainder by a size", INSTRUCTIONS.open, "21 to 25", _SASS),
)
"""All weights, as shown in the documentation."""
