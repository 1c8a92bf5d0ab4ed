"""What one launch asks of a machine, in total, whoever counted it: both readings give this, so that they can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from texpr.support.record import Record

Three: TypeAlias = tuple[int, int, int]


class Totals(dict[str, float]):
    """Amounts by name; of what was never added there is none."""

    def __missing__(self, name: str) -> float:
        return 0.0

    def more(self, others: Mapping[str, float], times: float = 1.0) -> None:
        """Adds other amounts, so many times."""
        for name, amount in others.items():
            self[name] += amount * times


class Shape(Record):
    """How a launch is cut: blocks of the grid, threads of a block; registers of a thread and bytes of shared memory of a block,
    which decide how many blocks a multiprocessor holds."""

    blocks: int
    threads: int
    registers: int = 0
    shared: int = 0


class Work(Record):
    """`issued`: instructions of warps. `units`: those of each unit (`isa.speed.Rates`). `products`: multiply-adds of the matrix
    unit by type, with " sync" behind those of one warp. `requests`: of warps to global memory.

    `l1`, `shared`: rounds in which these memories hand out all they can in a clock; `l2`: bytes between the second-level cache
    and multiprocessors; `dram`: bytes that must come from memory or go there. None: not known to who counted. `barriers`: how
    often warps arrive at a barrier of their block.
    """

    issued: float
    units: Mapping[str, float]
    products: Mapping[str, float]
    requests: float = 0.0
    l1: float = 0.0
    shared: float = 0.0
    l2: float | None = None
    dram: float | None = None
    barriers: float = 0.0
    spilled: float = 0.0
    again: float = 0.0
    """Bytes that blocks ask for again, of what no other block asks for."""
    own: float = 0.0
    """Bytes of that which a block asks for, each once."""
