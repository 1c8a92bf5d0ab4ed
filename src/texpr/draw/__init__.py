"""Pictures, as SVG: graphs of IterDomains, and the memory that an allocation domain takes."""

from texpr.draw.allocation import Cells, draw_allocation
from texpr.draw.domain import Marks, draw_domain

__all__ = ["Cells", "Marks", "draw_allocation", "draw_domain"]
