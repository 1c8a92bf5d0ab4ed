"""A step marked `#tma` as copies of boxes, pixels, rows or runs between shared and global memory, read off its loops.

par 128 |a| #tma(128, 64, 32) { par 64 |b| { As[…] = A[128 * bi + a, 64 * ko + b] } }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import combined_as
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Multicast, Saves, Tensor
from texpr.ir.steps import Step
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load
from texpr.lowering.engine.holes import Tested, tested
from texpr.mapping.bands import band
from texpr.relation.facts import in_loop, known
from texpr.schedule.stage.boxes import Boxes
from texpr.schedule.stage.views import View
from texpr.schedule.tensor.columns import Window
from texpr.schedule.tensor.rows import GROUP, table_of
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.record import Record, replace
from texpr.support.span import Span
from texpr.tma.swizzle import Swizzle


class BoxCopy(Record, eq=False):
    """A step as copies of boxes between the shared array `tile` and `tensor`, in either direction; both are elements over its
    loops.

    `seen`: the element of the tensor in the dimensions of the boxes, its own or those of a view. `loops`: the index along each
    dimension, None for one of a single element. `saves`: whether copies of holes that no result depends on are skipped.
    `reduce`: the operation by which a store combines elements with the tensor's. `among`: the dimensions of the grid along
    which blocks of a cluster share the copy. `window`: for im2col mode the bounding box; loops and boxes are over pixels and
    channels. `in_runs`: without a map. `by_rows`: four rows at a time, selected by a table; its boxes may have more rows than
    its loops.
    """

    leaf: Step
    tested: Tested
    tile: Load
    tensor: Load
    seen: Load
    stores: bool
    loops: tuple[Sym | None, ...]
    boxes: Boxes
    saves: bool = False
    reduce: str | None = None
    among: tuple[str, ...] = ()
    window: Window | None = None
    in_runs: bool = False
    by_rows: bool = False

    @property
    def span(self) -> Span:
        """The span of the directive."""
        return self.leaf.stmt.span

    @property
    def loop(self) -> ir.Loop:
        """The outermost loop of the copy."""
        assert isinstance(self.leaf.stmt, ir.Par | ir.Seq)
        return self.leaf.stmt

    @property
    def count(self) -> int:
        """The number of iterations of the outermost loop; for rows, the number of rows."""
        return self.loop.extent.constant

    @property
    def syms(self) -> frozenset[Sym]:
        """The indices of the copy's loops."""
        return frozenset(sym for sym in self.loops if sym is not None)

    @property
    def syms_in_order(self) -> tuple[Sym, ...]:
        """The indices of the copy's loops, outermost first."""
        return tuple(sym for sym in self.loops if sym is not None)

    @property
    def align(self) -> int:
        """The alignment of the shared array in bytes."""
        return self.boxes.swizzle.period

    def at(self, load: Load, number: tuple[int | Expr, ...]) -> Load:
        """The first element of the box `number`, in shared or in global memory."""
        starts = zip(self.loops, number, self.boxes.box, strict=True)
        first = {sym: expr(n) * box for sym, n, box in starts if sym is not None}
        return replace(load, index=tuple(e.substitute(first) for e in load.index))


class _Read(Record):
    """The loops, the body and the mark of a step."""

    leaf: Step
    tested: Tested
    loops: tuple[ir.Par, ...]
    tile: Load
    tensor: Load
    stores: bool
    reduce: str | None
    saves: bool
    among: tuple[str, ...]
    mark: Tensor

    @property
    def syms(self) -> tuple[Sym, ...]:
        return tuple(loop.sym for loop in self.loops)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(loop.extent.constant for loop in self.loops)


def step_of(leaf: Step, places: Mapping[Buffer, Place], facts: Callable[[ir.Stmt], tuple[Expr, ...]]) -> BoxCopy | None:
    """The copies of a step, None for a step without the mark. Raises Limitation if its loops are no longer as `stage` makes
    them.

    `facts`: expressions that are non-negative where a statement executes.
    """
    wanted = mark(leaf.stmt, Tensor) if isinstance(leaf.stmt, ir.Par | ir.Seq) else None
    if wanted is None or not isinstance(leaf.stmt, ir.Par | ir.Seq):
        return None
    if isinstance(leaf.stmt, ir.Seq):
        raise changed(leaf.stmt)
    read = _read(leaf, leaf.stmt, wanted, places)
    plain = len(read.loops) == 2 and not read.saves
    if wanted.form == "im2col":
        made = _of_columns(read) if plain and read.reduce is None and not read.stores else None
    elif wanted.form in ("gather4", "scatter4"):
        made = _of_rows(read) if plain and read.reduce is None and is_of_rows(read.tensor, read.loops) else None
    elif wanted.form == "bulk" and len(read.loops) == 2 and is_of_rows(read.tensor, read.loops):
        boxes = Boxes(read.extents, wanted.box, read.tensor.dtype.bytes)
        made = _made(read, read.tensor, read.syms, boxes)
    else:
        made = _of_boxes(read, facts)
    if made is None:
        raise changed(leaf.stmt)
    return made


def _read(leaf: Step, stmt: ir.Par, wanted: Tensor, places: Mapping[Buffer, Place]) -> _Read:
    """Raises Limitation if it is no copy of elements, or its loops are no longer as `stage` makes them."""
    loops, body = band(stmt)
    found = tested(body)
    bind = None if found is None else found.bind
    saves, shares = mark(stmt, Saves), mark(stmt, Multicast)
    marks = {stmt: tuple(each for each in (wanted, saves, shares) if each is not None)}
    plain = all(loop.directives == marks.get(loop, ()) and loop.extent.is_constant for loop in loops)
    source = None if bind is None else bind.values[0]
    if found is None or bind is None or not plain or not isinstance(source, Load):
        raise changed(stmt)
    (target,) = bind.targets
    here = places.get(source.buffer)
    stores = here is not None and here.space is k.Space.SHARED
    tile, tensor = (source, target) if stores else (target, source)
    reduce = bind.update
    if not (reduce is None or (stores and isinstance(reduce, str) and combined_as(reduce, tensor.dtype))):
        raise changed(stmt)
    among = () if shares is None else shares.dimensions
    return _Read(leaf, found, loops, tile, tensor, stores, reduce, saves is not None, among, wanted)


def _made(read: _Read, seen: Load, syms: tuple[Sym | None, ...], boxes: Boxes) -> BoxCopy:
    return BoxCopy(
        read.leaf, read.tested, read.tile, read.tensor, seen, read.stores, syms, boxes, read.saves, read.reduce, read.among,
        in_runs=read.mark.form == "bulk",
    )  # fmt: skip


def _of_columns(read: _Read) -> BoxCopy:
    boxes = Boxes(read.extents, read.mark.box, read.tensor.dtype.bytes, Swizzle(read.mark.swizzle))
    return replace(_made(read, read.tensor, read.syms, boxes), window=window_of(read.mark.window))


def _of_rows(read: _Read) -> BoxCopy:
    rows, columns = read.extents
    swizzle = Swizzle(read.mark.swizzle)
    boxes = Boxes((-(-rows // GROUP) * GROUP, columns), read.mark.box, read.tensor.dtype.bytes, swizzle)
    return replace(_made(read, read.tensor, read.syms, boxes), by_rows=True)


def _of_boxes(read: _Read, facts: Callable[[ir.Stmt], tuple[Expr, ...]]) -> BoxCopy | None:
    """Boxes, or runs; None if an index has no constant, positive stride along its loop, or in runs another than 1."""
    loops, box = read.loops, read.mark.box
    seen = _seen(read.tensor, View.read(read.mark.view), loops, facts(read.leaf.stmt))
    along = tuple(next((loop for loop in loops if loop.sym in e.syms()), None) for e in seen.index)
    extent = tuple(1 if loop is None else loop.extent.constant for loop in along)
    if len(box) != len(extent) or sum(loop is not None for loop in along) != len(loops):
        return None
    steps = tuple(1 if loop is None else step_along(e, loop.sym) for e, loop in zip(seen.index, along, strict=True))
    if 0 in steps or (read.mark.form == "bulk" and any(step > 1 for step in steps)):
        return None
    boxes = Boxes(extent, box, read.tensor.dtype.bytes, Swizzle(read.mark.swizzle), steps)
    return _made(read, seen, tuple(None if loop is None else loop.sym for loop in along), boxes)


def _seen(tensor: Load, view: View, loops: Sequence[ir.Loop], facts: Sequence[Expr]) -> Load:
    """The element of the tensor in the dimensions of a view."""
    if not view.counts:
        return tensor
    own = (fact for loop in loops for fact in in_loop(loop.sym, loop.extent))
    simple = Simplifier(known((*facts, *own)))
    return replace(tensor, buffer=view.of(tensor.buffer), index=view.seen(tensor.index, tensor.buffer.shape, simple))


def step_along(index: Expr, along: Sym) -> int:
    """The constant stride of an index along a loop; 0 if it is not constant and positive."""
    grown = index.substitute({along: expr(along) + 1}) - index
    return grown.constant if grown.is_constant and grown.constant > 0 else 0


def changed(loop: ir.Loop) -> Limitation:
    """The refusal of a copy whose loops are no longer those that the schedule made."""
    reason = f"the tensor memory accelerator runs the loops over `{loop.sym.base}`, which another directive has changed"
    return limitation("E0916", loop.span, reason, help="the loops of such a copy remain as `stage` makes them")


def is_of_rows(tensor: Load, loops: Sequence[ir.Loop]) -> bool:
    """Whether a table selects the row by the first loop, and the column has stride 1 along the second."""
    row, column = (loop.sym for loop in loops)
    if tensor.buffer.rank != 2 or len(tensor.data) != 1 or table_of(tensor.data[0][1]) is None:
        return False
    (sym, meaning), across = tensor.data[0], tensor.index[1]
    apart = column not in k.value_symbols(meaning) and not {row, sym} & across.syms()
    return apart and tensor.index[0] is expr(sym) and step_along(across, column) == 1


def window_of(numbers: Sequence[int]) -> Window:
    """The bounding box of a mark: two corners and a step for each spatial dimension."""
    parts = tuple(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    return Window(tuple((low, high) for low, high, _ in parts), tuple(step for _, _, step in parts))
