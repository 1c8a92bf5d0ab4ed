"""`stage(X, …, via=im2col)`: the region of a convolution as a column of pixels, derived from the graph of its loops, and
proved."""

from __future__ import annotations

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.ir.operation.tensor_map import element
from texpr.ir.value import Buffer
from texpr.relation.facts import in_loop, known
from texpr.schedule.call import Call
from texpr.schedule.stage.boxes import ALLOCATED, Boxes, dense_strides
from texpr.schedule.stage.region import Use, inside, varying
from texpr.schedule.state import State, ending_in
from texpr.schedule.tensor.columns import Column, Window, column, fixed, found_window
from texpr.schedule.tensor.engine import box_offers, rule_help, shared_out, sizes_of, swizzle_asked
from texpr.support.diagnostic import Note
from texpr.support.record import Record
from texpr.tma.descriptor import Im2col, TensorMap, exprs
from texpr.tma.descriptor import Use as Instruction
from texpr.tma.rules import Findings, findings
from texpr.tma.swizzle import Swizzle


class Region(Record):
    """A column: `extent` pixels and channels, their counters (`syms`), as indices of the loops inside (`place`), its bounding
    box, and the copy."""

    extent: tuple[int, int]
    syms: tuple[Sym, Sym]
    place: tuple[Expr, Expr]
    window: Window
    column: Column

    @property
    def corner(self) -> tuple[Expr, ...]:
        """The index of its first element."""
        first = {self.column.pixel: ZERO, self.column.channel: ZERO}
        return tuple(e.substitute(first) for e in self.column.index)


def region(state: State, use: Use) -> Region:
    """The column of pixels that `use` accesses. Raises ValueError with the reason where it is none."""
    rank = len(use.index)
    if not 3 <= rank <= 5:
        raise ValueError(f"it has {rank} dimensions, and there are an image, one to three of space, and a channel")
    every = [state.domain(loop).sym for loop in varying(state, use)]
    inner = [sym for sym in every if sym in use.index[-1].syms()]
    (pixel, at), (channel, lane) = (
        _counted(state, use, [sym for sym in every if (sym in inner) is of_rows], what)
        for of_rows, what in ((False, "pixels"), (True, "channels"))
    )
    graph = ending_in(state.transforms, (*(state.domain(loop) for loop in use.outer), pixel, channel))
    own = (fact for d in (pixel, channel) for fact in in_loop(d.sym, d.extent))
    promised = known((*inside(state, use.outer), *own))
    simple = Simplifier(promised)
    index = tuple(simple(e.substitute(graph.indices())) for e in use.load.index)
    sizes = frozenset(state.function.sizes)
    spaces = tuple(_space(use, dim, graph, pixel.sym) for dim in range(rank - 2, 0, -1))
    window = found_window(spaces, fixed(index, pixel.sym, sizes), promised, rank)
    found = column(index, use.load.buffer.shape, (pixel.sym, channel.sym), window, promised, sizes)
    return Region((pixel.extent.constant, channel.extent.constant), (pixel.sym, channel.sym), (at, lane), window, found)


def _counted(state: State, use: Use, syms: list[Sym], what: str) -> tuple[IterDomain, Expr]:
    """The IterDomain from which exactly the loops over `syms` derive, and its index over theirs. Raises ValueError if none."""
    graph = state.graph((*use.outer, *use.inner))
    indices = graph.indices()
    simple = Simplifier(known(inside(state, (*use.outer, *use.inner))))
    for domain in graph.domains():
        below = {domain.sym}
        for transform in graph.transforms:
            below |= {d.sym for d in transform.outputs} if any(d.sym in below for d in transform.inputs) else set()
        if {leaf.sym for leaf in graph.leaves} & below == set(syms) and domain.extent.is_constant:
            return domain, simple(indices[domain.sym])
    names = ", ".join(f"`{s.base}`" for s in syms) or "none"
    raise ValueError(f"the loops over its {what} are no parts of one of constant extent: {names}")


def _space(use: Use, dim: int, graph: DomainGraph, pixel: Sym) -> tuple[Expr, int, Expr]:
    """The tensor's size along a spatial dimension, the step of its windows, and their number."""
    indices, extents = graph.indices(), {d.sym: d.extent for d in graph.domains()}
    index = use.load.index[dim]
    counting = [s for s in index.syms() if s in indices and pixel in indices[s].syms()]
    if not counting:  # invariant in the pixels, as a slice of channels is: one pixel of the bounding box, at an offset
        return use.load.buffer.shape[dim], 1, ONE
    if len(counting) != 1:
        raise ValueError(f"its subscript {dim}, {index}, is not a window's for each pixel: merge the loops over pixels")
    step = index.substitute({counting[0]: expr(counting[0]) + 1}) - index
    if not step.is_constant or step.constant < 1:
        raise ValueError(f"its subscript {dim}, {index}, does not go on by a constant step")
    return use.load.buffer.shape[dim], step.constant, extents[counting[0]].substitute(indices)


def ruled(found: Region, buffer: Buffer, boxes: Boxes, promised: Known) -> Findings:
    """The results of the hardware's rules for every copy of the region."""
    begins = buffer.align or (buffer.dtype.bytes if buffer.role in ("input", "inout") else ALLOCATED)
    lower, upper = zip(*found.window.corners, strict=True)
    pixels, channels = boxes.box
    size = buffer.dtype.bytes
    strides = tuple(s * size for s in reversed(dense_strides(buffer)[:-1]))
    traversal = Im2col(exprs(*lower), exprs(*upper), expr(channels), expr(pixels))
    steps = exprs(1, *found.window.steps, 1)
    base = expr(Sym("base")) * begins
    map = TensorMap(
        element(buffer.dtype), base, tuple(reversed(buffer.shape)), strides, traversal, steps, swizzle=boxes.swizzle
    )
    offsets = exprs(*(0 for _ in found.window.steps))  # those of the filter were proved before
    shared = expr(boxes.bytes) if len(boxes.numbers) > 1 else expr(0)
    return findings(Instruction(map, found.column.at(0, 0), shared, offsets), promised)


def columns_asked(call: Call, buffer: Buffer, found: Region) -> Boxes:
    """The tile as copies of `box=(PIXELS, CHANNELS)`, all of it by default, with `swizzle=`. Refuses invalid ones: E0916."""
    asked, argument = call.key("swizzle"), call.key("box")
    swizzle = swizzle_asked(call)
    extent = found.extent
    box = extent if argument is None else sizes_of(call, argument, "a box of pixels and channels", 2)
    for what, whole, part in zip(("pixels", "channels"), extent, box, strict=True):
        if whole % part:
            reason = f"boxes of {part} {what} do not divide the {whole} of the region"
            fits = [max(n for n in range(1, min(w, max(p, 1)) + 1) if w % n == 0) for w, p in zip(extent, box, strict=True)]
            raise call.refuse("E0916", reason, at=argument, offers=box_offers(call, fits))
    boxes = Boxes(extent, box, buffer.dtype.bytes, swizzle)
    if swizzle is not Swizzle.NONE and boxes.row != swizzle.span:
        reason = f"with `swizzle={swizzle.span}B` the channels of a box have {swizzle.span} bytes, and here {boxes.row}"
        raise call.refuse("E0916", reason, at=asked, offers=box_offers(call, (box[0], swizzle.span // buffer.dtype.bytes)))
    return boxes


def columns_shared(buffer: Buffer, found: Region, boxes: Boxes, promised: Known, among: int) -> Boxes:
    """The boxes that `among` blocks of a cluster share."""
    return shared_out(boxes, among, lambda cut: not ruled(found, buffer, cut, promised).unmet)


def require_columns(call: Call, buffer: Buffer, found: Region, boxes: Boxes, promised: Known) -> None:
    """Refuses copies that break a rule of the hardware, or are not proved to satisfy those that a launch does not check:
    E0916."""
    if dense_strides(buffer)[-1] is not ONE:
        raise call.refuse("E0916", f"channels of `{buffer.name}` are not neighbours", Note("declared here", buffer.span))
    for finding in ruled(found, buffer, boxes, promised).unmet:
        reason = f"the tensor memory accelerator cannot copy `{buffer.name}`: {finding.asked.subject}: {finding.rule.says}"
        note = Note(f"`{buffer.name}` is declared here", buffer.span)
        help, offers = rule_help(call, finding, buffer)
        raise call.refuse("E0916", reason, note, help=help, offers=offers)
