"""`make_tma_copy`: from layouts to a descriptor, and the coordinate tensor for the instructions, as in CuTe.

    make_tma_copy((m,n):(n,1), (64, 32), float32)      box 32 × 64, dimension 0 is mode 1: it has the stride 1
    .tiles                                             ((64,32),(⌈m/64⌉,⌈n/32⌉)):((1@1,1@0),(64@1,32@0))
    .at((i, j))                                        (32 · j, 64 · i), the operand of the instruction

The layout of the tensor gives offsets in elements; that of coordinates has basis strides instead, as the descriptor holds the
address. Source: "TMA tensors", CUTLASS.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Expr, IntoExpr, expr
from texpr.affine.facts import Known
from texpr.layout.basis import Basis
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntoIntTree, flatten, product, quotient, tidy, times
from texpr.layout.layout import Layout, Mode
from texpr.layout.proof import NOTHING, Prover
from texpr.layout.tensor import CoordinateTensor
from texpr.support.record import Record
from texpr.tma.descriptor import TensorMap, Tiled, exprs
from texpr.tma.elements import ELEMENTS, Element, Fill
from texpr.tma.swizzle import Swizzle

MOST_RANK = 5


class TmaCopy(Record):
    """Copies of boxes of a tensor: the descriptor, and the coordinates of each tile.

    `tiles`: ((tile), (tiles)), a mode for each mode of the tensor in both, to the coordinate of an element, dimension 0
    first; a tile may extend beyond the end, where the engine fills. `shared`: offsets of a tile's elements in shared memory,
    in elements, before the swizzle: dense, dimension 0 fastest.
    """

    map: TensorMap
    tiles: CoordinateTensor
    shared: Layout

    def at(self, tile: IntoIntTree) -> tuple[Expr, ...]:
        """The coordinates of a tile, operands of the instruction: numbers or expressions, one for each mode."""
        (inside, _) = self.tiles.layout.modes
        found = self.tiles((tuple(0 for _ in inside.modes), tile))
        return tuple(map(expr, (*flatten(found), *(0,) * self.map.rank)[: self.map.rank]))


def make_tma_copy(
    tensor: Layout,
    tiler: Sequence[int],
    element: Element | str,
    *,
    base: IntoExpr = 0,
    swizzle: Swizzle = Swizzle.NONE,
    fill: Fill = Fill.ZERO,
    known: Known = NOTHING,
) -> TmaCopy:
    """Copies of boxes of `tiler` elements along each leaf of `tensor`, whose strides are in elements.

    `base`: the address of the tensor, in bytes. Dimension 0 is the leaf of stride 1, the others follow by increasing stride;
    those of symbolic stride in the order of the layout, from its end. Further rules of the hardware are in `texpr.tma.rules`.
    Raises LayoutError.
    """
    kind = ELEMENTS[element] if isinstance(element, str) else element
    leaves, prover = tensor.flat, Prover(known, tensor)
    _require(tensor, leaves, tiler, prover)
    order = _order(leaves)
    place = {at: dimension for dimension, at in enumerate(order)}
    sizes, steps = [leaf.size for leaf in leaves], [leaf.step for leaf in leaves]
    boxes = [min(box, size) if isinstance(size, int) else box for box, size in zip(tiler, sizes, strict=True)]
    descriptor = TensorMap(
        kind,
        expr(base),
        exprs(*(sizes[at] for at in order)),
        exprs(*(times(steps[at], kind.size) for at in order[1:])),
        Tiled(exprs(*(boxes[at] for at in order))),
        exprs(*(1 for _ in order)),
        swizzle=swizzle,
        fill=fill,
    )
    counts = tuple(_tiles(size, box) for size, box in zip(sizes, boxes, strict=True))
    single = tuple(Basis(1, (place[at],)) for at in range(len(boxes)))
    whole = tuple(Basis(box, (place[at],)) for at, box in enumerate(boxes))
    tiles = CoordinateTensor(0, Layout((tuple(boxes), counts), (single, whole)))
    row = {at: product(tuple(boxes[other] for other in order[:dimension])) for dimension, at in enumerate(order)}
    return TmaCopy(descriptor, tiles, Layout(tuple(boxes), tuple(row[at] for at in range(len(boxes)))))


def _require(tensor: Layout, leaves: tuple[Mode, ...], tiler: Sequence[int], prover: Prover) -> None:
    if not tensor.is_integral:
        raise LayoutError("tma copy", f"{tensor} gives coordinates, not where elements lie")
    if len(tiler) != len(leaves) or any(box < 1 for box in tiler):
        raise LayoutError("tma copy", f"{tuple(tiler)} is no box of the {len(leaves)} leaves of {tensor}")
    if not 1 <= len(leaves) <= MOST_RANK:
        raise LayoutError(
            "tma copy", f"{tensor} has {len(leaves)} leaves, and a copy {MOST_RANK} dimensions", help="coalesce it"
        )
    if not any(prover.equal(leaf.step, 1) for leaf in leaves):
        raise LayoutError("tma copy", f"no leaf of {tensor} has the stride 1", help="let one be contiguous")
    if still := next((leaf for leaf in leaves if leaf.step == 0 or not prover.at_most(0, leaf.step)), None):
        raise LayoutError("tma copy", f"the stride of {still} in {tensor} is 0 or negative, or may be", help="leave such out")


def _order(leaves: tuple[Mode, ...]) -> list[int]:
    """The leaves as dimensions: the leaf of stride 1, then the others by stride; those of symbolic stride, the last first."""

    def key(at: int) -> tuple[bool, int, int]:
        step, size = leaves[at].step, leaves[at].size
        number = isinstance(step, int)
        return (not number, step if isinstance(step, int) else -at, 1 if size == 1 else 0)

    return sorted(range(len(leaves)), key=key)


def _tiles(size: Int, box: int) -> Int:
    return quotient(tidy(expr(size) + (box - 1)), box)
