"""What is refused, and what is said: nothing is answered with a layout of another size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.layout import ComposedLayout, E, Layout, LayoutError, Swizzle, table
from texpr.layout.algebra.coalesce import coalesce
from texpr.layout.algebra.complement import complement
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.cosize import cosize
from texpr.layout.algebra.divide import logical_divide
from texpr.layout.algebra.inverse import left_inverse, right_inverse
from texpr.layout.algebra.product import logical_product, ordered_layout, tile_to_shape
from texpr.layout.algebra.quasi_affine import as_map, from_expressions
from texpr.layout.algebra.recast import downcast, recast, upcast
from texpr.layout.modes import group
from texpr.layout.slices import slice_of
from texpr.layout.text import parse_composed, parse_layout, parse_slice
from texpr.layout.thread_value import thread_value

P = parse_layout
N, M = sym("n"), sym("m")
AT = Sym("i")

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a size of 0": (lambda: Layout((4, 0)), "layout: the size 0 in (4,0) is not positive"),
    "trees that differ": (lambda: Layout((4, 2), (1, (2, 3))), "layout: the strides of 2 are not congruent to it"),
    "number and tuple": (
        lambda: Layout((4, 2), (E(0), E(0, 1))),
        "layout: strides 1@0 and 1@1@0 cannot be added: one is a number where the other is a tuple; "
        "give each number an entry of its own",
    ),
    "a negative place": (lambda: E(0, -1), "basis: indices of entries are not negative: (0, -1)"),
    "a coordinate that does not fit": (lambda: P("(4,2)")((1, 2, 3)), "coordinate: (1,2,3) does not fit the shape (4,2)"),
    "a coordinate that is too fine": (lambda: P("(4,2)")(((1, 1), 2)), "coordinate: (1,1) is finer than the shape 4"),
    "an offset of coordinates": (
        lambda: Layout(4, E(0)).offset(1),
        "offset: 4:1@0 gives coordinates, not numbers",
    ),
    "a mode there is not": (lambda: P("(4,2)")[2], "mode: (4,2):(1,4) has no mode 2; it has 2"),
    "a group of nothing": (lambda: group(P("(4,2)"), 1, 3), "group: (4,2):(1,4) has no modes 1 to 3; it has 2"),
    "a profile that is too fine": (
        lambda: coalesce(P("(4,2)"), (1, (1, 1))),
        "coalesce (mode 1): the profile (1,1) has more modes than 2:4",
    ),
    "stride neither way": (
        lambda: composition(P("(4,3):(1,10)"), P("(1,3):(1,3)")),
        "composition (mode 1): 3:3 meets a mode of size 4 in (4,3):(1,10), and neither is proved to divide the other; "
        "the stride must divide 4, or be a multiple of it",
    ),
    "size that is not filled": (
        lambda: composition(P("(4,3):(1,10)"), 6),
        "composition: 6:1 fills a mode of size 4 in (4,3):(1,10) after 4 steps, which is not proved to divide 6; "
        "the size must be a multiple of 4, or stay within the mode",
    ),
    "beyond the end": (
        lambda: composition(P("8:1"), 16),
        "composition: 16:1 reaches 15 in the last mode of 8:1, which is not proved to be less than 8; "
        "take fewer, or pad the first layout",
    ),
    "modes that carry": (
        lambda: composition(P("(4,4):(1,10)"), P("(2,2):(3,3)")),
        "composition: the modes of (2,2):(3,3) add up to 6 in a mode of size 4 of (4,4):(1,10), and carry; "
        "let them count in different digits of the first layout",
    ),
    "a negative step": (
        lambda: composition(P("8:1"), P("4:-1")),
        "composition: the stride -1 of 4:-1 is negative, or may be",
    ),
    "too many tilers": (
        lambda: composition(P("(4,2)"), (2, 2, 2)),
        "composition: the tiler has 3 modes, and (4,2):(1,4) has fewer",
    ),
    "an entry that is no mode": (
        lambda: composition(P("(4,2)"), Layout(2, E(2))),
        "mode: (4,2):(1,4) has no mode 2; it has 2",
    ),
    "modes that overlap": (
        lambda: complement(P("(4,2):(1,2)"), 8),
        "complement: the modes 4:1, 2:2 of (4,2):(1,2) overlap or interleave, or it is not proved that they do not; "
        "each stride, in some order, must be a multiple of the one before it times its size",
    ),
    "a cotarget that is not filled": (
        lambda: complement(P("4:1"), 10),
        "complement: 4:1 fills blocks of 4, which is not proved to divide 10; take a multiple of 4",
    ),
    "complement of coordinates": (
        lambda: complement(Layout(4, E(0)), 8),
        "complement: 4:1@0 has basis strides; ask it of each coordinate alone",
    ),
    "complement downwards": (
        lambda: complement(P("4:-1"), 8),
        "complement: the stride of 4:-1 in 4:-1 is not proved to be positive",
    ),
    "gaps": (
        lambda: right_inverse(P("(4,8):(1,5)")),
        "right inverse: the values of (4,8):(1,5) have no mode 8:4 where 8:5 is: they leave gaps or overlap; "
        "take `contiguous` for the values without a gap, or `left_inverse`",
    ),
    "values that repeat": (
        lambda: left_inverse(P("(4,2):(1,0)")),
        "left inverse: 2:0 in (4,2):(1,0) gives one value to 2 coordinates",
    ),
    "values that meet": (
        lambda: left_inverse(P("(4,2):(1,3)")),
        "left inverse: the modes 2:3 of (4,2):(1,3) meet those before them, or it is not proved that they do not; "
        "each stride, in some order, must be a multiple of the one before it, and at least that times its size",
    ),
    "inverse of coordinates": (
        lambda: right_inverse(Layout(4, E(0))),
        "inverse: 4:1@0 has basis strides; compose it with a layout of the coordinates first",
    ),
    "tiles that do not fill": (
        lambda: logical_divide(P("(8,10)"), (4, 4)),
        "divide (mode 1): 4:1 fills blocks of 4, which is not proved to divide 10; take a multiple of 4",
    ),
    "tiles that repeat": (
        lambda: logical_divide(P("8:1"), P("(2,2):(1,0)")),
        "divide: (2,2):(1,0) repeats coordinates: with what it leaves out it has 16, not 8",
    ),
    "product of modes that overlap": (
        lambda: logical_product(P("(2,2):(1,1)"), 4),
        "product: the modes 2:1, 2:1 of (2,2):(1,1) overlap or interleave, or it is not proved that they do not; "
        "each stride, in some order, must be a multiple of the one before it times its size",
    ),
    "copies that do not fit the gaps": (
        lambda: logical_product(P("4:2"), 3),
        "product: 3:1 fills a mode of size 2 in (2,3):(1,8) after 2 steps, which is not proved to divide 3; "
        "the size must be a multiple of 2, or stay within the mode",
    ),
    "a shape that blocks do not fill": (
        lambda: tile_to_shape(P("(2,3)"), (4, 8)),
        "tile to shape (mode 1): 3 of the block is not proved to divide 8 of the shape; pad the shape to a multiple of 3",
    ),
    "a block with more modes": (
        lambda: tile_to_shape(P("(2,3)"), (4,)),
        "tile to shape: (2,3):(1,2) has more modes than a shape of 1",
    ),
    "an order of other modes": (lambda: ordered_layout((2, 3), (0,)), "order: 1 numbers for 2 modes"),
    "threads with gaps": (
        lambda: thread_value(P("4:2"), P("2:1")),
        "thread value: 4:2 does not number its 4 coordinates from 0 on, each once; "
        "give it the strides of a compact layout, in any order",
    ),
    "neighbours that are not there": (
        lambda: upcast(P("4:8"), 2),
        "upcast: 2 neighbours of 4:8 do not make whole elements: its strides below 2 lead to 1 of them; "
        "a mode of stride 1 whose size is a multiple of 2 would do",
    ),
    "an uneven cut": (
        lambda: upcast(P("6:1"), 4),
        "upcast: 6:1 is not cut by groups of 4 evenly, or not proved to be; "
        "its stride must be a multiple of 4, or divide 4 and fill it",
    ),
    "parts without a mode": (
        lambda: downcast(P("4:8"), 2),
        "downcast: 4:8 has no mode of stride 1 to hold 2 parts; append 1:1, if it has none",
    ),
    "recast downwards": (lambda: upcast(P("4:-1"), 2), "upcast: the stride of 4:-1 in 4:-1 is negative, or may be"),
    "recast of coordinates": (lambda: upcast(Layout(4, E(0)), 2), "upcast: 4:1@0 has basis strides"),
    "recast to nothing": (lambda: recast(P("4"), 8, 0), "recast: from 8 to 0 bits: elements have at least one"),
    "a cast by nothing": (lambda: upcast(P("4"), 0), "upcast: by 0, which is not positive"),
    "bits within an element": (
        lambda: ComposedLayout(Swizzle(3, 0, 3), 0, P("64:1")).recast(8, 16),
        "recast: Sw<3,0,3> of 8 bits crosses bits within elements of 16",
    ),
    "an offset within an element": (
        lambda: ComposedLayout(Swizzle(3, 4, 3), 3, P("1024:1")).recast(8, 16),
        "recast: the offset 3 of 8 bits is not one of 16, or may not be",
    ),
    "bits that overlap": (
        lambda: Swizzle(3, 4, 2),
        "swizzle: in Sw<3,4,2> the bits that are crossed overlap; |shift| must be at least bits",
    ),
    "less than no bits": (lambda: Swizzle(-1, 0, 3), "swizzle: Sw<-1,0,3> has less than no bits"),
    "swizzled coordinates": (
        lambda: ComposedLayout(Swizzle(3, 4, 3), 0, Layout(4, E(0))),
        "swizzle: 4:1@0 gives coordinates, and a swizzle takes numbers",
    ),
    "a slice that does not fit": (
        lambda: slice_of(P("(4,2)"), (1, (2, 3))),
        "slice (mode 1): a coordinate with 2 parts does not fit 2:4",
    ),
    "a table of three modes": (lambda: table(P("(2,2,2)")), "table: (2,2,2):(1,2,4) has 3 modes, and a table two; group them"),
    "a table without an end": (lambda: table(P("n")), "table: n:1 has sizes that are not numbers"),
    "cosize of coordinates": (
        lambda: cosize(Layout(4, E(0))),
        "cosize: 4:1@0 gives coordinates, not numbers; take `coshape`",
    ),
    "cosize of an unknown sign": (
        lambda: cosize(P("4:n")),
        "cosize: the sign of the stride n of 4:n is not known",
    ),
    "a map of other symbols": (
        lambda: as_map(P("(2,2,2)"), [AT, Sym("j")]),
        "map: 2 symbols are neither one nor the leaves of (2,2,2):(1,2,4)",
    ),
    "an index that is no digit": (
        lambda: from_expressions(sym("i") * sym("i"), [(AT, 4)]),
        "from expressions: `i * i` is not shown to be linear in digits of its indices",
    ),
    "cuts that do not nest": (
        lambda: from_expressions(sym("i") // 4 + sym("i") % 6, [(AT, 24)]),
        "from expressions: i is cut at 1, 4, 6, which are no chain of multiples",
    ),
    "a cut that is not even": (
        lambda: from_expressions(sym("i") % 4, [(AT, 10)]),
        "from expressions: i is cut at 4, which is not proved to divide its extent 10",
    ),
    "one step, two places": (
        lambda: from_expressions((sym("i"), sym("i")), [(AT, 4)]),
        "from expressions: one step of i·0 moves two entries of the values",
    ),
    "a symbolic tile": (
        lambda: logical_divide(P("(n,m)"), (4, 8), Known({}, [multiple_of(N, 4)])),
        "divide (mode 1): 8:1 fills blocks of 8, which is not proved to divide m; take a multiple of 8",
    ),
    "a symbolic size": (
        lambda: composition(P("(n,8):(1,100)"), P("m:1")),
        "composition: m:1 fills a mode of size n in (n,8):(1,100) after n steps, which is not proved to divide m; "
        "the size must be a multiple of n, or stay within the mode",
    ),
    "a symbolic end": (
        lambda: composition(P("n:1"), P("m:1"), Known({}, [Fact(0, M - N, None)])),
        "composition: m:1 reaches m - 1 in the last mode of n:1, which is not proved to be less than n; "
        "take fewer, or pad the first layout",
    ),
    "text of nothing": (lambda: parse_layout(""), "text: ``: it ends too early"),
    "text that goes on": (lambda: parse_layout("4:1)"), "text: `4:1)`: `)` is not expected"),
    "text that stops": (lambda: parse_layout("(4,2"), "text: `(4,2`: `,` is expected at the end"),
    "text with a strange sign": (lambda: parse_layout("4;1"), "text: `4;1`: `;` is not expected"),
    "a place that is no number": (lambda: parse_layout("4:1@n"), "text: `4:1@n`: an entry is a number"),
    "a shape with a place": (lambda: parse_layout("4@1:1"), "text: `4@1:1`: `4@1` is no size"),
    "an open stride": (lambda: parse_layout("4:_"), "text: `4:_`: `_` is no stride"),
    "a sum of tuples": (lambda: parse_layout("(4,2)+1"), "text: `(4,2)+1`: only numbers and sizes can be calculated with"),
    "text by zero": (lambda: parse_layout("n/0"), "text: `n/0`: division by zero"),
    "xor of two": (lambda: parse_layout("xor(n,1)"), "text: `xor(n,1)`: xor takes a value, a mask and a number of bits"),
    "a coordinate with a place": (lambda: parse_slice("(_,1@0)"), "text: `(_,1@0)`: `1@0` is no coordinate"),
    "no composed layout": (
        lambda: parse_composed("(4,2):(1,4)"),
        "text: `(4,2):(1,4)`: `Sw<bits,base,shift> o offset o layout` is expected",
    ),
    "an offset that is none": (lambda: parse_composed("Sw<1,0,1> o _ o 4:1"), "the offset is no number"),
}


@pytest.mark.parametrize(("operation", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(operation: Callable[[], object], message: str) -> None:
    with pytest.raises(LayoutError) as refused:
        operation()
    assert message in str(refused.value), str(refused.value)


def test_a_refusal_carries_its_parts() -> None:
    with pytest.raises(LayoutError) as refused:
        logical_divide(P("((8,10),4)"), ((4, 4), 2))
    found = refused.value
    assert (found.operation, found.mode, found.help) == ("divide", (0, 1), "take a multiple of 4")
    assert found.reason == "4:1 fills blocks of 4, which is not proved to divide 10"
