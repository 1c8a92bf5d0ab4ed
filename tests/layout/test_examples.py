"""Examples that the documentation of CuTe works out (NVIDIA CUTLASS, "CuTe Layout Algebra" and "CuTe TMA Tensors")."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from texpr.layout import Layout
from texpr.layout.algebra.coalesce import coalesce
from texpr.layout.algebra.complement import complement
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from texpr.layout.algebra.inverse import left_inverse, right_inverse
from texpr.layout.algebra.product import blocked_product, logical_product, raked_product
from texpr.layout.algebra.recast import downcast, upcast
from texpr.layout.text import parse_layout

P = parse_layout

EXAMPLES: list[tuple[Callable[..., Layout], tuple[object, ...], str]] = [
    (coalesce, (P("(2,(1,6)):(1,(6,2))"),), "12:1"),
    (coalesce, (P("(2,(1,6)):(1,(6,2))"), (1, 1)), "(2,6):(1,2)"),
    (composition, (P("(6,2):(8,2)"), P("(4,3):(3,1)")), "((2,2),3):((24,2),8)"),
    (composition, (P("20:2"), P("(5,4):(4,1)")), "(5,4):(8,2)"),
    (composition, (P("(10,2):(16,4)"), P("(5,4):(1,5)")), "(5,(2,2)):(16,(80,4))"),
    (composition, (P("(12,(4,8)):(59,(13,1))"), (P("3:4"), P("8:2"))), "(3,(2,4)):(236,(26,1))"),
    (composition, (P("(12,(4,8)):(59,(13,1))"), (3, 8)), "(3,(4,2)):(59,(13,1))"),
    (composition, (P("(4,2,8):(3,12,97)"), P("3:3")), "3:9"),
    (complement, (P("4:1"), 24), "6:4"),
    (complement, (P("6:4"), 24), "4:1"),
    (complement, (P("(4,6):(1,4)"), 24), "1:0"),
    (complement, (P("4:2"), 24), "(2,3):(1,8)"),
    (complement, (P("(2,4):(1,6)"), 24), "3:2"),
    (complement, (P("(2,2):(1,6)"), 24), "(3,2):(2,12)"),
    (logical_divide, (P("(4,2,3):(2,1,8)"), P("4:2")), "((2,2),(2,3)):((4,1),(2,8))"),
    (
        logical_divide,
        (P("(9,(4,8)):(59,(13,1))"), (P("3:3"), P("(2,4):(1,8)"))),
        "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))",
    ),
    (
        zipped_divide,
        (P("(9,(4,8)):(59,(13,1))"), (P("3:3"), P("(2,4):(1,8)"))),
        "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
    ),
    (
        tiled_divide,
        (P("(9,(4,8)):(59,(13,1))"), (P("3:3"), P("(2,4):(1,8)"))),
        "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))",
    ),
    (
        flat_divide,
        (P("(9,(4,8)):(59,(13,1))"), (P("3:3"), P("(2,4):(1,8)"))),
        "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))",
    ),
    (logical_product, (P("(2,2):(4,1)"), P("6:1")), "((2,2),(2,3)):((4,1),(2,8))"),
    (logical_product, (P("(2,2):(4,1)"), P("(4,2):(2,1)")), "((2,2),(4,2)):((4,1),(8,2))"),
    (logical_product, (P("(2,5):(5,1)"), (P("3:5"), P("4:6"))), "((2,3),(5,4)):((5,10),(1,30))"),
    (blocked_product, (P("(2,5):(5,1)"), P("(3,4):(1,3)")), "((2,3),(5,4)):((5,10),(1,30))"),
    (raked_product, (P("(2,5):(5,1)"), P("(3,4):(1,3)")), "((3,2),(4,5)):((10,5),(30,1))"),
    (right_inverse, (P("(4,8):(8,1)"),), "(8,4):(4,1)"),
    (left_inverse, (P("(4,8):(1,5)"),), "(5,8):(1,4)"),
    (left_inverse, (P("4:2"),), "(2,4):(0,1)"),
    (upcast, (P("(4,8):(1,4)"), 2), "(2,8):(1,2)"),
    (downcast, (P("(4,8):(8,1)"), 2), "(4,16):(16,1)"),
]


@pytest.mark.parametrize(("operation", "args", "result"), EXAMPLES, ids=lambda each: getattr(each, "__name__", None))
def test_examples(operation: Callable[..., Layout], args: tuple[object, ...], result: str) -> None:
    assert str(operation(*args)) == result


def test_a_layout_of_coordinates() -> None:
    layout = P("((2,4),8):((1@0,4@1),2@1)")
    assert layout(((1, 2), 3)) == (1, 14)
