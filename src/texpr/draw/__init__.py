"""Pictures, as SVG: graphs of IterDomains, memory, layouts, banks, boxes on tensors, and kernels over threads and time."""

from texpr.draw.allocation import Cells, draw_allocation
from texpr.draw.banks import draw_banks
from texpr.draw.domain import Marks, draw_domain
from texpr.draw.layout import draw_layout, draw_thread_value
from texpr.draw.tensor import Seen, draw_tensor

__all__ = [
    "Cells", "Marks", "Seen", "draw_allocation", "draw_banks", "draw_domain", "draw_layout", "draw_tensor",
    "draw_thread_value",
]  # fmt: skip
