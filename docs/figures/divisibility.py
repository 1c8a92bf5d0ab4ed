"""The figures of "Divisibility of Split"."""

from __future__ import annotations

from texpr.domain.graph import DomainGraph
from texpr.domain.predicates.needed import predicates
from texpr.draw.allocation import allocation_picture, held
from texpr.draw.domain import Marks, draw_domain
from texpr.draw.page.picture import arrow, document, legend, stacked
from texpr.draw.page.style import CELLS

THREE_SPLITS = DomainGraph.of(("I0", 15)).split("I0", 6, ("I1", "I2")).split("I1", 2, ("I3", "I4")).split("I2", 4, ("I5", "I6"))
ROW = DomainGraph.of(("I0", 6))
RESIZED = ROW.resize("I0", 0, 2, "I0'")
VIEWED = RESIZED.split("I0'", 4, ("I1", "I2"))


def three_indivisible_splits() -> str:
    """Figure 1: two comparisons are enough."""
    marks = Marks(predicates(THREE_SPLITS))
    return draw_domain(THREE_SPLITS, marks, title="Figure 1: three indivisible splits")


def allocate_6_as_2_by_4() -> str:
    """Figure 2: a resize makes the holes, a divisible split views the rest."""
    resize, split = (transform.title for transform in VIEWED.transforms)
    rows = [allocation_picture(graph, held(graph), explained=False) for graph in (ROW, RESIZED, VIEWED)]
    parts = (rows[0], arrow(resize), rows[1], arrow(f"{split}, divisible: a view"), rows[2])
    key = legend([(kind, CELLS[kind]) for kind in ("value", "hole")])
    words = "Six items in a row; resized to eight, of which 6 and 7 are holes; viewed as two rows of four."
    return document(stacked((*parts, key), 14), "Figure 2: 6 items allocated as (2, 4)", words)
