"""A schedule as an iteration: a graph logical → loop, and the comparisons that guard its body."""

from __future__ import annotations

from enum import Enum

from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound
from texpr.domain.visits import Sizes, visits
from texpr.support.record import Record


class Notion(Enum):
    """The notion of equality of two schedules; each implies those above it."""

    SET = "set"
    MULTISET = "multiset"
    ORDER = "order"
    POSITION = "position"


class Iteration(Record):
    """Loops over the leaves of `graph` around a body that is guarded by `kept`: by default all comparisons."""

    graph: DomainGraph
    kept: tuple[Bound, ...] | None = None


def listing(graph: DomainGraph, name: str, sizes: Sizes | None = None) -> str:
    """The index that the loops compute at each position, unguarded: a line for each run of the innermost leaf.

    Raises TooMany, and the errors of `visits`.
    """
    found = visits(graph, sizes)
    width = found.shape[-1] if found.shape else 1
    cells = [f"{name}[{', '.join(map(str, index))}]" for index in found.logical.T.tolist()]
    return "".join(", ".join(cells[at : at + width]) + "\n" for at in range(0, len(cells), width))
