"""The arguments of copies by the tensor memory accelerator, parsed and proved: boxes, swizzle, the rules of the hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.domain.correctness.holes import WEAK, Strong
from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import element
from texpr.ir.value import Buffer, Literal
from texpr.isa.cuda import TMA
from texpr.isa.engine import CHUNK, LINE
from texpr.schedule.call import Call
from texpr.schedule.edits import Offers, begins_at, in_registers, left_out, promise, without
from texpr.schedule.stage.boxes import Boxes, Planned, planned, ruled
from texpr.schedule.stage.region import Box
from texpr.schedule.state import State
from texpr.support.diagnostic import Note
from texpr.support.record import replace
from texpr.tma.boxing import MOST_BOX, MOST_ELEMENT_STRIDE
from texpr.tma.correctness import Plain, fill_of, lower_load, lower_store
from texpr.tma.elements import Fill
from texpr.tma.model import Refusal
from texpr.tma.rules import Finding
from texpr.tma.swizzle import Swizzle

SWIZZLES = {"none": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "128B": Swizzle.B128}
"""The words of `swizzle=`."""


def require_engine(call: Call) -> None:
    """Refuses `via=tma` for a machine that has no tensor memory accelerator: E0908."""
    target = call.state.target
    if TMA in target.features:
        return
    reason = f"{target.name} has no tensor memory accelerator"
    offers, help = call.by("cp_async"), "targets from sm_90 on have one" if target.has_blocks else None
    if not target.has_blocks:
        offers = (*in_registers(call.directive.span), *left_out(call.directive.span))
    raise call.refuse("E0908", reason, at=call.key("via"), help=help, offers=offers)


def swizzle_asked(call: Call) -> Swizzle:
    """The value of `swizzle=`."""
    asked = call.key("swizzle")
    return Swizzle.NONE if asked is None else SWIZZLES[call.word(asked, tuple(SWIZZLES))]


def boxes_asked(call: Call, buffer: Buffer, region: Box) -> tuple[Box, Boxes]:
    """The region, rounded up to whole boxes, and its boxes. Refuses invalid `box=`, `stride=` and `swizzle=`."""
    asked, argument = call.key("swizzle"), call.key("box")
    if not region.extent:
        raise call.refuse("E0916", f"`{buffer.name}` is a single number, and no box", offers=call.by("ld"))
    swizzle = swizzle_asked(call)
    size = buffer.dtype.bytes
    say = _advice(call, Boxes(region.extent, region.extent, size, swizzle, region.step))
    covers = None if argument is None else sizes_of(call, argument, _each("a box with a size", buffer), buffer.rank, say)
    region = strided(call, buffer, region, covers)
    box = (
        _by_hand(region, swizzle, size)
        if covers is None
        else tuple(-(-c // s) for c, s in zip(covers, region.step, strict=True))
    )
    extent = tuple(max(e, b) for e, b in zip(region.extent, box, strict=True))
    for dim, (whole, part, step) in enumerate(zip(extent, box, region.step, strict=True)):
        if whole % part:
            whole, part = whole * step, part * step
            reason = f"boxes of {part} do not divide the {whole} elements that dimension {dim} of the region has"
            if region.early and dim == len(extent) - 1:
                reason += f", {region.early} of them for a begin at a multiple of {CHUNK} bytes"
            fits = _nearest(extent, box, region.step, size)
            words = f"choose a divisor of {whole}, or one box of more than {whole}: %"
            raise call.refuse("E0916", reason, at=argument, offers=box_offers(call, fits, words))
    made = Boxes(extent, box, size, swizzle, region.step)
    if swizzle is not Swizzle.NONE and made.row != swizzle.span:
        reason = f"with `swizzle={swizzle.span}B` a row of a box has {swizzle.span} bytes, and here it has {made.row}"
        raise call.refuse("E0916", reason, at=asked, offers=_advice(call, made))
    if not made.is_moved:
        made = replace(made, swizzle=Swizzle.NONE)  # a single row lies in the first line of memory
    return replace(region, extent=extent), made


def from_a_chunk(region: Box, size: int, known: Known) -> Box:
    """The region of a load, begun earlier where its rows do not begin at a multiple of 16 bytes, as the engine's copies must.

    Such a region ends at a multiple of 16 bytes, too. `size`: bytes of an element. What is copied besides is never read.
    """
    *outer, first = region.base
    least = max(CHUNK // size, 1)
    early = next((n for n in range(least) if known.multiple(first - n, least)), 0)
    if not early:
        return region
    extent = (*region.extent[:-1], -(-(region.extent[-1] + early) // least) * least)
    grain = (*region.grain[:-1], gcd(region.grain[-1], early))
    return replace(region, base=(*outer, first - early), extent=extent, grain=grain, early=early)


def _by_hand(region: Box, swizzle: Swizzle, size: int) -> tuple[int, ...]:
    """The default box: the region, or where that exceeds the maximum, the largest part of it into which splits by hand divide
    it."""
    inner = swizzle.span // size if swizzle is not Swizzle.NONE else MOST_BOX
    found: list[int] = []
    for dim, (extent, step, cuts) in enumerate(zip(region.extent, region.step, region.cuts, strict=True)):
        most = min(MOST_BOX // step, inner if dim == len(region.extent) - 1 else MOST_BOX)
        parts = [c // step for c in cuts if c % step == 0 and c // step <= most and extent % (c // step) == 0]
        found.append(extent if extent <= most else max((p for p in parts if p > 1), default=extent))
    return tuple(found)


def strided(call: Call, buffer: Buffer, region: Box, covers: tuple[int, ...] | None) -> Box:
    """The region without the elements that an element stride skips: by `stride=`, or as inferred from the accesses."""
    argument = call.key("stride")
    if argument is None:
        return region.every(_inferred(region, covers))
    ones = f"({', '.join('1' for _ in buffer.shape)})"
    out = without(call.directive.span, "stride")
    say = (*call.instead(f"ask for stride={ones}", lambda said: said.having("stride", ones)), *out)
    step = sizes_of(call, argument, _each("a stride", buffer), buffer.rank, say)
    beyond = next((each for each in step if each > MOST_ELEMENT_STRIDE), None)
    if beyond is not None:
        reason = f"the hardware has element strides of 1 to {MOST_ELEMENT_STRIDE}, and not {beyond}"
        raise call.refuse("E0916", reason, at=argument, offers=(*out, *call.by("ld")))
    for dim, (grain, each) in enumerate(zip(region.grain, step, strict=True)):
        if grain % each:
            reason = f"a stride of {each} steps over elements that dimension {dim} of the region has: they lie {grain} apart"
            fit = tuple(max(n for n in range(1, s + 1) if not g % n) for g, s in zip(region.grain, step, strict=True))
            offers = (
                call.instead(f"ask for stride={fit}", lambda said, fit=fit: said.having("stride", fit)) if len(fit) > 1 else ()
            )
            raise call.refuse("E0916", reason, at=argument, offers=(*offers, *out))
        # One box is complete: its tile starts with its first element, and ends inside of it.
        if covers is not None and covers[dim] % each and covers[dim] < region.extent[dim]:
            where = f"in dimension {dim}, of size {buffer.shape[dim]}"
            reason = f"a stride of {each} does not divide the box of {covers[dim]} {where}, and there are several of them"
            fits = [-(-c // s) * s for c, s in zip(covers, step, strict=True)]
            raise call.refuse("E0916", reason, at=call.key("box"), offers=(*box_offers(call, fits), *out))
    return region.every(step)


def _inferred(region: Box, covers: tuple[int, ...] | None) -> tuple[int, ...]:
    """The greatest supported element strides for a region without an explicit box; 1 in rows."""
    found: list[int] = []
    for dim, (grain, extent) in enumerate(zip(region.grain, region.extent, strict=True)):
        steps = (s for s in range(MOST_ELEMENT_STRIDE, 1, -1) if grain and grain % s == 0)
        fits = (s for s in steps if (covers[dim] % s == 0 if covers else ((extent - 1) // s + 1) * s <= MOST_BOX))
        found.append(1 if dim == len(region.extent) - 1 else next(fits, 1))
    return tuple(found)


def boxes_shared(buffer: Buffer, region: Box, boxes: Boxes, known: Known, among: int) -> Boxes:
    """The boxes of a region that `among` blocks share."""

    def keeps(cut: Boxes) -> bool:
        made = planned(buffer, region.base, cut, known)
        return not isinstance(made, Refusal) and not ruled(made, buffer, cut, known).unmet

    return shared_out(boxes, among, keeps)


def shared_out(boxes: Boxes, among: int, keeps: Callable[[Boxes], bool]) -> Boxes:
    """Boxes split so that each of `among` blocks copies as many, along the outermost dimension where the rules permit.

    The same boxes where they can be distributed already, or cannot be split: then one block copies them all.
    """
    parts = among // gcd(among, prod(boxes.counts))
    for dim, extent in enumerate(boxes.box):
        if parts > 1 and extent % parts == 0:
            cut = replace(boxes, box=(*boxes.box[:dim], extent // parts, *boxes.box[dim + 1 :]))
            if cut.swizzle is not Swizzle.NONE and (cut.row != cut.swizzle.span or not cut.is_moved):
                continue
            if keeps(cut):
                return cut
    return boxes


def with_memory(state: State, name: str, boxes: Boxes) -> State:
    """`state` with the memory of the staged buffer `name` in the engine's layout."""
    buffer = next(b for b in ir.buffers(state.function) if b.name == name)
    graph = boxes.allocation(name)
    return replace(state, allocations={**state.allocations, buffer: graph}) if graph.transforms else state


def require_fill(call: Call, buffer: Buffer) -> None:
    """Refuses fills that the engine does not support: E0916."""
    fill = call.key("fill")
    if fill is None or fill.value in ("weak", "zero"):
        return
    made = fill_of(fill.value) if isinstance(fill.value, int | float) else None
    reason = f"the tensor memory accelerator fills with zero or nan, not {fill.value}"
    if made is Fill.NAN and not element(buffer.dtype).is_float:
        made, reason = None, f"the tensor memory accelerator has no nan of {buffer.dtype}"
    if made is None:
        raise call.refuse("E0916", reason, at=fill, offers=call.by("ld"))


def sizes_of(call: Call, argument: ir.Argument, thing: str, count: int, say: Offers | None = None) -> tuple[int, ...]:
    """The numbers of an argument `(N, …)`, `count` of them; `thing`: what they denote; `say`: the remedy."""
    parts = argument.value.args if isinstance(argument.value, ir.Group) else (argument,)
    if len(parts) != count and say is not None:
        help = f"of {count} dimensions each has a number"
        raise call.refuse("E0902", f"`{call.rule.name}` takes {thing}, {count} in all", at=argument, help=help, offers=say)
    if len(parts) != count:
        raise call.wrong(f"takes {thing}, {count} in all", argument)
    return tuple(call.number(part) for part in parts)


def _each(what: str, buffer: Buffer) -> str:
    return f"{what} for each dimension of `{buffer.name}`"


def require_load(call: Call, buffer: Buffer, region: Box, boxes: Boxes, known: Known, fill: Literal | None) -> None:
    """Refuses loads that the engine does not support, or is not proved to support: E0916."""
    made = _planned(call, buffer, region, boxes, known)
    lowering = lower_load(made.copy, WEAK if fill is None else Strong(fill.value))
    if isinstance(lowering, Refusal):
        raise _impossible(call, buffer, lowering)
    assert isinstance(lowering, Plain), "a box of the tensor itself is always protected"


def require_store(call: Call, buffer: Buffer, region: Box, boxes: Boxes, known: Known) -> None:
    """The same for a store, whose last chunk of 16 bytes in a row must lie inside the tensor."""
    made = _planned(call, buffer, region, boxes, known, stores=True)
    lowering = lower_store(made.copy)
    if isinstance(lowering, Refusal):
        raise _impossible(call, buffer, lowering)
    assert isinstance(lowering.lowering, Plain), "a box of the tensor itself is always protected"
    if lowering.obligations:
        row = made.copy.dimensions[0].size
        reason = f"a store writes {CHUNK} bytes at once, and a row of `{buffer.name}`, of {row} elements, may end within them"
        offers = promise(call.state.function, f"where {row} % {CHUNK // boxes.size} == 0")
        raise call.refuse("E0916", reason, offers=offers)


def _planned(call: Call, buffer: Buffer, region: Box, boxes: Boxes, known: Known, stores: bool = False) -> Planned:
    made = planned(buffer, region.base, boxes, known)
    if isinstance(made, Refusal):
        raise _impossible(call, buffer, made)
    for finding in ruled(made, buffer, boxes, known, stores).unmet:
        help, offers = _help(call, finding, made, buffer, boxes)
        note = Note(f"`{buffer.name}` is declared here", buffer.span)
        reason = f"the tensor memory accelerator cannot copy `{buffer.name}`: {finding.asked.subject}: {finding.rule.says}"
        raise call.refuse("E0916", reason, note, help=help, offers=offers)
    return made


def _impossible(call: Call, buffer: Buffer, refusal: Refusal) -> Exception:
    reason = f"the tensor memory accelerator cannot copy `{buffer.name}` so: {refusal.reason}"
    return call.refuse("E0916", reason, help=refusal.helps)


def _help(call: Call, finding: Finding, made: Planned, buffer: Buffer, boxes: Boxes) -> tuple[str | None, Offers]:
    """The remedy for a broken rule, where the program or the schedule can be changed."""
    match finding.rule.name:
        case "stride alignment":
            strides = (made.copy.dimensions[number].stride for number in range(1, len(made.copy.dimensions)))
            stride = next(s for n, s in enumerate(strides, 1) if finding.asked.subject == f"stride {n}")
            clause = f"where {_promise(stride, buffer)} % {CHUNK // buffer.dtype.bytes} == 0"
            return None, (*promise(call.state.function, clause), *call.by("ld"))
        case "box" | "inner box alignment" | "inner box span":
            return finding.rule.helps, _advice(call, boxes)
        case _:
            return rule_help(call, finding, buffer)


def rule_help(call: Call, finding: Finding, buffer: Buffer) -> tuple[str | None, Offers]:
    """The same for the rules on alignment and strides of a tensor."""
    match finding.rule.name:
        case "base" if buffer.role in ("input", "inout"):
            return None, begins_at(buffer, CHUNK)
        case "stride alignment":
            return None, promise(call.state.function, f"where {buffer.shape[-1]} % {CHUNK // buffer.dtype.bytes} == 0")
        case _:
            return finding.rule.helps, call.by("ld")


def box_offers(call: Call, sizes: Sequence[int], help: str = "ask for %") -> Offers:
    """The offer of another `box=`."""
    box = f"({', '.join(map(str, sizes))})"
    return call.instead(help.replace("%", f"box={box}"), lambda said: said.having("box", box))


def _promise(stride: Expr, buffer: Buffer) -> Expr:
    """The operand of a promised multiple: the innermost size, where the stride is a product of sizes."""
    return buffer.shape[-1] if buffer.strides is None and not stride.is_constant else stride


def _nearest(extent: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Boxes that divide a region, or exceed it, close to the requested size: rows of whole chunks, tiles of whole lines."""
    least = [1] * (len(box) - 1) + [CHUNK // size or 1]
    every = [[n for n in range(1, whole + 1) if whole % n == 0] for whole in extent]
    every = [
        [n for n in fits if n % chunk == 0] or [-(-whole // chunk) * chunk]
        for fits, chunk, whole in zip(every, least, extent, strict=True)
    ]
    found = [max((n for n in fits if n <= part), default=fits[0]) for fits, part in zip(every, box, strict=True)]
    for dim in reversed(range(len(found))):
        while prod(found) * size % LINE and found[dim] < every[dim][-1]:
            found[dim] = next(n for n in every[dim] if n > found[dim])
    return tuple(n * step for n, step in zip(found, steps, strict=True))


def _advice(call: Call, boxes: Boxes) -> Offers:
    """The offer of boxes similar to `boxes` that satisfy the rules."""
    least = CHUNK // boxes.size or 1
    most = boxes.swizzle.span // boxes.size or MOST_BOX // least * least
    *outer, inner = boxes.extent
    whole = -(-inner // least) * least
    width = most if boxes.swizzle.span else max(n for n in range(least, min(most, whole) + 1, least) if whole % n == 0)
    every = zip(outer, boxes.strides, strict=False)
    sizes = [max(n for n in range(s, MOST_BOX + 1, s) if each * s % n == 0) for each, s in every]
    note = "" if boxes.swizzle is Swizzle.NONE or inner % width == 0 else ", and a region of whole rows"
    return box_offers(call, (*sizes, width), "ask for %" + note)
