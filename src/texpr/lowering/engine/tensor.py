"""Copies by the tensor memory accelerator: the tensor maps of steps marked `#tma`, and the operations that start the copies.

par 128 |a| #tma(128, 64, 32) { par 64 |b| { As[…] = A[128 * bi + a, 64 * ko + b] } }

copy As[0, …] = A_map[64 * ko, 128 * bi]        one for each box of 64 × 32
copy As[1, …] = A_map[64 * ko + 32, 128 * bi]
…
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import combined_as, element
from texpr.ir.program.rewrite import substitute_value
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Value, conjunction, walk
from texpr.ir.value.types import BOOL, I32, I64
from texpr.lowering.build.cluster import Cluster, Share
from texpr.lowering.engine.box_copy import BoxCopy, changed
from texpr.lowering.engine.bulk import Clipped, clipped, names, starts
from texpr.lowering.engine.holes import ResidualPredicates, asked, bounds, present
from texpr.lowering.names import Names
from texpr.relation.facts import in_loop, known
from texpr.schedule.edits import staged_by
from texpr.schedule.stage.boxes import Boxes, Planned, dense_strides, planned, ruled
from texpr.schedule.tensor.columns import Column, Window, column
from texpr.schedule.tensor.rows import GROUP
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.record import Mutable, field, replace
from texpr.support.span import Span
from texpr.tma.elements import Fill
from texpr.tma.model import Copy, Refusal
from texpr.tma.swizzle import Swizzle


def _parted(step: BoxCopy, within: Value) -> Limitation:
    """The refusal of a copy in which a test excludes elements of one tile, which the engine only moves as a whole (level 3)."""
    holes = "not be stored" if step.stores else f"be {(step.tested.fill or Fill.ZERO).value}"
    names = f"`{step.tile.buffer.name}` is part data and part holes inside of `{step.tensor.buffer.name}`"
    reason = f"a tile of {names} that must {holes}"
    told = " and ".join(_parts(step, k.value_symbols(within) & step.syms or step.syms))
    by_data = any(isinstance(part, Load) for part in walk(within))
    reason += f": a test{' of data' if by_data else ''} parts {told}"
    return limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))


def _impossible(step: BoxCopy, reason: str) -> Limitation:
    reason = f"the tensor memory accelerator cannot copy it so: {reason}"
    return limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))


def _kept_by_a_block(step: BoxCopy) -> Limitation:
    reason = f"`{step.tensor.buffer.name}` is not one tensor in global memory, but what a block keeps"
    return limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))


def _parts(step: BoxCopy, met: frozenset[Sym]) -> Iterator[str]:
    """The dimensions of the copy's loops among `met`, as text, with size S, box B and element stride e of each."""
    shape, covers, strides = step.seen.buffer.shape, step.boxes.covers, step.boxes.strides
    if step.window is not None:
        pixel, channel = step.syms_in_order
        if pixel in met:
            sizes, steps = (" × ".join(map(str, each)) for each in (shape[:-1], (1, *reversed(step.window.steps))))
            yield f"the pixels, of size S = {sizes}, box B = {covers[0]}, element stride e = {steps}"
        met, shape, covers, strides = met - {pixel}, shape[-1:], covers[1:], strides[1:]
        yield from _dims((channel,), shape, covers, strides, met, step.seen.buffer.rank - 1)
    else:
        yield from _dims(step.loops, shape, covers, strides, met)


def _dims(
    loops: Sequence[Sym | None],
    shape: Sequence[Expr],
    boxes: Sequence[int],
    strides: Sequence[int],
    met: Collection[Sym],
    first: int = 0,
) -> Iterator[str]:
    for dim, (sym, size, box, stride) in enumerate(zip(loops, shape, boxes, strides, strict=True), first):
        if sym in met:
            yield f"dimension {dim}, of size S = {size}, box B = {box}, element stride e = {stride}"


class Maps(Mutable):
    """The tensor maps of a kernel, created on demand. `facts`: expressions that are non-negative where a copy starts; `sizes`:
    all sizes.

    `stored`: the tensors that copies of the kernel store.
    """

    places: Mapping[Buffer, Place]
    names: Names
    facts: Callable[[ir.Stmt], tuple[Expr, ...]]
    sizes: Collection[Sym] = ()
    cluster: Cluster = field(default_factory=Cluster)
    stored: Collection[Buffer] = ()
    found: list[k.TensorMap] = field(default_factory=list[k.TensorMap])
    _planned: dict[BoxCopy, Planned] = field(default_factory=dict[BoxCopy, Planned])
    _clipped: dict[BoxCopy, Clipped] = field(default_factory=dict[BoxCopy, Clipped])
    _asked: dict[BoxCopy, tuple[Value, ...]] = field(default_factory=dict[BoxCopy, "tuple[Value, ...]"])

    def clipped(self, step: BoxCopy) -> Clipped:
        """The part of a step's region that is copied by runs."""
        if step not in self._clipped:
            self._clipped[step] = clipped(step, self.facts(step.leaf.stmt), self.sizes)
        return self._clipped[step]

    def runs(self, step: BoxCopy, barrier: Load | None) -> tuple[k.Stmt, ...]:
        """Starts the copies of runs, without a map; without a barrier they are stores."""
        place = self.places.get(step.tensor.buffer)
        if place is not None and place.space is not k.Space.GLOBAL:
            raise _kept_by_a_block(step)
        ends = (self._kept(step.tile), self._kept(step.tensor))
        if any(load.buffer in self.places for load in names(ends)):
            raise changed(step.loop)
        return starts(step, ends, self.clipped(step), barrier)

    def _kept(self, load: Load) -> Load:
        """The kernel's element for one of the program."""
        place = self.places.get(load.buffer)
        return load if place is None else replace(load, buffer=place.buffer, index=place.index(load.index))

    def of(self, step: BoxCopy) -> k.TensorMap:
        """The map of all boxes of a step."""
        place = self.places.get(step.tensor.buffer)
        if place is not None and (place.space is not k.Space.GLOBAL or place.leading or place.trailing):
            raise _kept_by_a_block(step)
        made = self._made(step, step.tensor.buffer if place is None else place.buffer)
        for map in self.found:
            if _content(map) == _content(made):
                return map
        named = replace(made, name=self.names.name(f"{made.buffer.name}_map"))
        self.found.append(named)
        return named

    def _made(self, step: BoxCopy, buffer: Buffer) -> k.TensorMap:
        fill = (step.tested.fill or Fill.ZERO).value
        if step.window is not None:
            return replace(column_map(buffer, step.window, step.boxes, step.span), fill=fill)
        if step.by_rows:
            return replace(rows_map(buffer, step.boxes, step.span), fill=fill)
        copy = self.planned(step).copy
        dimensions = copy.dimensions
        return k.TensorMap(
            "",
            buffer,
            tuple(
                each.size if each.size.is_constant and each.size is not ZERO else maximum(each.size, ONE) for each in dimensions
            ),
            tuple(each.stride * buffer.dtype.bytes for each in dimensions[1:]),
            tuple(each.box.constant for each in dimensions),
            tuple(each.element_stride.constant for each in dimensions),
            step.boxes.swizzle.span,
            fill=fill,
            offset=copy.skipped,
            element=_travels_as(step),
            span=step.span,
        )

    def planned(self, step: BoxCopy) -> Planned:
        """The copy of every box of a step, without regard to tests. Raises Limitation where the hardware's rules exclude it."""
        if step not in self._planned:
            first = step.at(step.seen, tuple(0 for _ in step.loops))
            inside = known(self.facts(step.leaf.stmt))
            found = planned(first.buffer, first.index, step.boxes, inside)
            if isinstance(found, Refusal):
                raise _impossible(step, str(found))
            for broken in ruled(found, first.buffer, step.boxes, inside, step.stores).unmet:
                raise _impossible(step, f"{broken.asked.subject}: {broken.rule.says}")
            self._planned[step] = found
        return self._planned[step]

    def asked(self, step: BoxCopy) -> tuple[Value, ...]:
        """The residual predicates of the copies of a step: where they fail, a store is skipped, and a load only fills.

        A load without a fill has fewer: that the tensor is not empty, and, if it saves, that the copied elements are no holes.
        """
        if step.in_runs:
            return (*self.clipped(step).asked, *self._own(step))
        if step not in self._asked:
            facts = self.facts(step.leaf.stmt)
            inside = known(facts)
            sizes = self._sizes(step)
            empty = tuple(present(size) for size in sizes if not inside.positive(size))
            if step.by_rows:
                self._require_columns(step, facts)
                self._asked[step] = empty
                return empty
            exact = step.stores or step.tested.fill is not None
            found = self._holes(step, facts) if exact or step.saves else ResidualPredicates(())
            if found.within is not None and exact:
                raise _parted(step, found.within)
            self._asked[step] = (*empty, *found.predicates, *self._own(step))
        return self._asked[step]

    def _own(self, step: BoxCopy) -> tuple[Value, ...]:
        """The condition that a block has iterations, if needed: for copies of runs, and of tensors that other copies store.

        Surplus blocks of a cluster have no part of the tensor: their boxes are out of bounds, or belong to another block, but
        the engine does not check the bounds of runs. Their stores are excluded by the guard of the step.
        """
        if step.stores or self.cluster.runs is None or not (step.in_runs or step.tensor.buffer in self.stored):
            return ()
        return (self.cluster.runs,)

    def _sizes(self, step: BoxCopy) -> tuple[Expr, ...]:
        """The sizes of the tensor in its map."""
        if step.by_rows:
            return step.tensor.buffer.shape[1:]  # rows that a table selects exist, so the number of rows is not tested
        if step.window is not None:
            return step.tensor.buffer.shape
        return tuple(each.size for each in self.planned(step).copy.dimensions)

    def column(self, step: BoxCopy, window: Window) -> Column:
        """The column of pixels that a step in im2col mode copies, proved to equal its subscripts."""
        pixel, channel = (sym for sym in step.loops if sym is not None)
        own = zip((pixel, channel), step.boxes.extent, strict=True)
        facts = (*self.facts(step.leaf.stmt), *(f for sym, extent in own for f in in_loop(sym, expr(extent))))
        index, shape = step.tensor.index, step.tensor.buffer.shape
        try:
            return column(index, shape, (pixel, channel), window, known(facts), self.sizes)
        except ValueError as reason:
            raise limitation("E0916", step.span, f"it is no column of pixels: {reason}") from None

    def _holes(self, step: BoxCopy, facts: tuple[Expr, ...]) -> ResidualPredicates:
        own = zip(step.loops, step.boxes.extent, strict=True)
        every = (*facts, *(f for sym, extent in own if sym is not None for f in in_loop(sym, expr(extent))))
        every_dim = range(step.seen.buffer.rank)
        engine = bounds(step.seen, every_dim if step.window is not None else self.planned(step).found(step.boxes, known(facts)))
        return asked(step.tested.tests, engine, every, step.syms, self.sizes)

    def prefetches(self) -> tuple[k.Stmt, ...]:
        """Prefetches every map."""
        return tuple(k.PrefetchMap(map.name, span=map.span) for map in self.found)

    def copies(self) -> tuple[tuple[str, Copy], ...]:
        """The name of each map, with the first copy that it was created for."""
        found: dict[str, Copy] = {}
        for step, made in tuple(self._planned.items()):
            found.setdefault(self.of(step).name, made.copy)
        return tuple(found.items())

    def bytes(self, step: BoxCopy) -> int:
        """The bytes that a step's copies bring if they are complete, elements outside of the tensor included."""
        if step.in_runs:
            return prod(step.boxes.extent) * step.boxes.size
        place = self.places[step.tile.buffer]
        parts = 1 if place.parts is None else place.parts.blocks  # of a pair, each block counts its own
        return self.of(step).bytes * len(step.boxes.numbers) * (GROUP if step.by_rows else 1) // parts

    def exactly(self, steps: Iterable[BoxCopy]) -> Expr | None:
        """The bytes that several steps bring, if that differs from `bytes`: runs only bring elements inside of the tensor."""
        every = tuple(steps)
        found = [self.clipped(step).exactly(step) if step.in_runs else None for step in every]
        if not any(each is not None for each in found):
            return None
        return sum((expr(self.bytes(s)) if e is None else e for s, e in zip(every, found, strict=True)), ZERO)

    def loads(self, step: BoxCopy, barrier: Load, led: bool = False) -> tuple[k.Stmt, ...]:
        """Starts the copies of a step, which complete at `barrier`, of boxes that of the first block of a pair where they are
        `led`; of shared copies, this block's share."""
        if step.in_runs:
            return self.runs(step, barrier)
        if step.by_rows:
            return tuple(self._rows(step, barrier, outside=False))
        share = self._share(step)
        map, window = self.of(step).name, step.window
        if window is None:
            each = self._each(step, share.numbers)
            copies = tuple(k.CopyTensor(tile, map, at, barrier, led=led, span=step.span) for tile, at in each)
        else:
            copies = tuple(self._columns(step, window, barrier, share.numbers))
        if step.among:
            peers, first = self.cluster.peers(step.among), self.cluster.first(step.among)
            copies = tuple(replace(copy, peers=peers, first=first) for copy in copies)
        return copies if share.when is None else (k.If(share.when, copies, span=step.span),)

    def _share(self, step: BoxCopy) -> Share:
        """The boxes of a step that this block copies: all, or its share among the blocks of a cluster."""
        numbers = step.boxes.numbers
        return self.cluster.share(numbers, step.boxes.counts, step.among) if step.among else Share(numbers)

    def _columns(
        self, step: BoxCopy, window: Window, barrier: Load, numbers: Iterable[tuple[int | Expr, ...]], outside: bool = False
    ) -> Iterator[k.CopyTensor]:
        """Starts copies of a column of pixels; if `outside`, out-of-bounds ones, which only fill."""
        place, found = self.places[step.tile.buffer], self.column(step, window)
        name = self.of(step).name
        for number in numbers:
            tile = step.at(step.tile, number)
            pixel, channel = (n * b for n, b in zip(number, step.boxes.box, strict=True))
            at, offsets = found.at(pixel, channel), found.offsets
            if outside:
                at = (expr(-step.boxes.box[1]), *(expr(low) for low, _ in window.corners), ZERO)
                offsets = tuple(ZERO for _ in offsets)
            yield k.CopyTensor(
                replace(tile, buffer=place.buffer, index=place.index(tile.index)),
                name,
                at,
                barrier,
                span=step.span,
                offsets=offsets,
            )

    def _rows(self, step: BoxCopy, barrier: Load | None, outside: bool) -> Iterator[k.Stmt]:
        """Starts the copies of rows, four at a time, in a loop if there are more; if `outside`, of rows that do not exist.

        Without a barrier they are stores.
        """
        place, name = self.places[step.tile.buffer], self.of(step).name
        row, column = step.syms_in_order
        groups, across = step.boxes.counts
        group = self.names.sym("group") if groups > 1 else None
        copies: list[k.Stmt] = []
        for number in range(across):
            first = ZERO if group is None else expr(group)
            tile = step.at(step.tile, (first, number))
            at = step.tensor.index[1].substitute({column: expr(number * step.boxes.box[1])})
            named = tuple(_NOWHERE if outside else self._row(step, {row: first * GROUP + n}) for n in range(GROUP))
            if step.boxes.swizzle is not Swizzle.NONE:  # the start of the tile, not its first element
                tile = replace(tile, index=(*tile.index[:-2], ZERO, ZERO))
            tile = replace(tile, buffer=place.buffer, index=place.index(tile.index))
            copies.append(
                k.StoreTensor(name, (at,), tile, None, span=step.span, rows=named)
                if barrier is None
                else k.CopyTensor(tile, name, (at,), barrier, span=step.span, rows=named)
            )
        yield from (
            copies if group is None else (k.For(group, ZERO, expr(groups), tuple(copies), ONE, "serial", span=step.span),)
        )

    def _row(self, step: BoxCopy, at: Mapping[Sym, Expr]) -> Value:
        """The number of a row: the table's element, if that exists, else one of no row."""
        ((_, meaning),) = step.tensor.data
        if any(isinstance(node, Load) and node.buffer in self.places for node in walk(meaning)):
            raise changed(step.loop)
        found = substitute_value(meaning, at)
        found = found if found.dtype == I32 else Cast(found, I32)
        test = conjunction([*_within(step, at), *(substitute_value(each, at) for each in _row_tests(step))])
        return found if test is None else Op("select", (test, found, _NOWHERE), I32)

    def _require_columns(self, step: BoxCopy, facts: tuple[Expr, ...]) -> None:
        """Refuses tests of columns that the engine's own bounds test does not imply, if holes have to be filled."""
        mine = _row_tests(step)
        tests = tuple(test for test in step.tested.tests if test not in mine)
        own = zip(step.syms_in_order, step.boxes.extent, strict=True)
        every = (*facts, *(f for sym, extent in own for f in in_loop(sym, expr(extent))))
        found = asked(tests, bounds(step.tensor, (1,)), every, step.syms, self.sizes)
        within = (*found.predicates, *(() if found.within is None else (found.within,)))
        if (step.stores or step.tested.fill is not None) and within:
            raise _parted(step, within[0])

    def fillings(self, step: BoxCopy, barrier: Load) -> tuple[k.Stmt, ...]:
        """The same copies, but out of bounds, so that the engine fills the tile."""
        if step.window is not None:
            return tuple(self._columns(step, step.window, barrier, step.boxes.numbers, outside=True))
        if step.by_rows:
            return tuple(self._rows(step, barrier, outside=True))
        outside = tuple(-each.box for each in self.planned(step).copy.dimensions)
        return tuple(k.CopyTensor(tile, self.of(step).name, outside, barrier, span=step.span) for tile, _ in self._each(step))

    def stores(self, step: BoxCopy) -> tuple[k.Stmt, ...]:
        """Starts the stores of a step."""
        if step.in_runs:
            return self.runs(step, None)
        if step.by_rows:
            return tuple(self._rows(step, None, outside=False))
        return tuple(k.StoreTensor(self.of(step).name, at, tile, step.reduce, span=step.span) for tile, at in self._each(step))

    def _each(
        self, step: BoxCopy, numbers: Iterable[tuple[int | Expr, ...]] | None = None
    ) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
        place, copy = self.places[step.tile.buffer], self.planned(step)
        plain = Simplifier(Known({a.rank: (0, a.blocks - 1) for a in self.cluster.along.values()}))
        for number in step.boxes.numbers if numbers is None else numbers:
            tile = step.at(step.tile, number)
            index = place.index(tile.index)
            index = index if place.parts is None else tuple(map(plain, index))
            yield replace(tile, buffer=place.buffer, index=index), copy.coordinates(number)


def _content(map: k.TensorMap) -> tuple[object, ...]:
    return map.buffer, map.sizes, map.strides, map.box, map.steps, map.swizzle, map.fill, map.offset, map.element, map.corners


def _travels_as(step: BoxCopy) -> str:
    """The element type of the map if it has to differ from the buffer's for a reduction by the engine; else empty."""
    name = None if step.reduce is None else combined_as(step.reduce, step.tensor.dtype)
    return "" if name is None or name == element(step.tensor.dtype).name else name


_NOWHERE = Literal(-1, I32)
"""The number of a row that does not exist."""


def _within(step: BoxCopy, at: Mapping[Sym, Expr]) -> tuple[Value, ...]:
    """The bounds test of a row, if the last group of four is partial."""
    (row,) = at.values()
    count = expr(step.count)
    whole = step.count == step.boxes.extent[0] or (row.is_constant and row.constant < step.count)
    return () if whole else (Op("lt", (Index(row, I64), Index(count, I64)), BOOL),)


def _row_tests(step: BoxCopy) -> tuple[Value, ...]:
    """The tests that do not depend on the column."""
    column = step.syms_in_order[1]
    return tuple(test for test in step.tested.tests if column not in k.value_symbols(test))


def rows_map(buffer: Buffer, boxes: Boxes, span: Span) -> k.TensorMap:
    """The map of single rows, of which a copy takes four."""
    sizes = tuple(size if size.is_constant and size is not ZERO else maximum(size, ONE) for size in reversed(buffer.shape))
    stride = dense_strides(buffer)[0] * buffer.dtype.bytes
    return k.TensorMap("", buffer, sizes, (stride,), (boxes.box[1], 1), (1, 1), boxes.swizzle.span, span=span)


def column_map(buffer: Buffer, window: Window, boxes: Boxes, span: Span) -> k.TensorMap:
    """The map of copies in im2col mode: a box of channels and pixels."""
    pixels, channels = boxes.box
    return k.TensorMap(
        "",
        buffer,
        tuple(size if size.is_constant and size is not ZERO else maximum(size, ONE) for size in reversed(buffer.shape)),
        tuple(stride * buffer.dtype.bytes for stride in reversed(dense_strides(buffer)[:-1])),
        (channels, pixels),
        (1, *window.steps, 1),
        boxes.swizzle.span,
        corners=window.corners,
        span=span,
    )
