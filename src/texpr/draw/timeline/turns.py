"""A chart of a few steady turns: what warpgroups, the matrix unit and the engine do, and which slots are full, by the model.

Rows: the matrix unit; each warpgroup that a multiprocessor holds; the engine; each slot of each block's ring. Time goes to the
right, in clocks. Everything is from `texpr.model.turns`, so what overlaps is what the plan's own waits permit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import floor, log10

from texpr.affine.expr import Sym
from texpr.draw.page.picture import LINE, Picture, area, legend, stacked
from texpr.draw.page.style import TURNS
from texpr.draw.page.svg import Element, element, number, words
from texpr.draw.page.text import CAPTION, SMALL, width
from texpr.ir import kernel as k
from texpr.isa.cuda import WARPGROUP
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.machine import residence
from texpr.model.plan.turn import computing, ring_of, steady_parts
from texpr.model.plan.work import shape_of
from texpr.model.turns import Ring, Span, trace
from texpr.support.record import Record

WIDE, HIGH = 760.0, 20.0
"""The field, and a row of it, in pixels."""

FIRST, SHOWN, LAST = 6, 3, 14
"""The first turn that is shown, how many are, and how many are gone through."""

KINDS = {"product": "owner3", "lanes": "owner2", "wait": "skipped", "meet": "skipped", "full": "left", "copy": "owner4"}
"""The class of what somebody does."""


class Bar(Record):
    """In a row, from `begin` to `end`: of a class, with words where there is room for them."""

    row: int
    begin: float
    end: float
    kind: str
    words: str


class Chart(Record):
    """The picture; `said`: what it is of, in a line; `told`: what it shows, for who cannot see it."""

    picture: Picture
    said: str
    told: str


def turns_of(kernel: k.Kernel, sizes: Mapping[Sym, int], target: Target, device: Device) -> Chart | None:
    """The chart of a kernel; None where no loop of it ends groups of products."""
    parts = steady_parts(kernel, sizes, target, device)
    if not parts:
        return None
    groups = max(1, computing(kernel) // WARPGROUP)
    blocks = residence(shape_of(kernel, sizes), target, device).blocks
    ring = ring_of(kernel, blocks, device)
    spans = trace(parts, groups, blocks, ring, LAST)
    begin, end = (min(each.begin for each in spans if each.turn == turn) for turn in (FIRST, FIRST + SHOWN))
    names = ["matrix unit", *(_group(at, groups, blocks) for at in range(groups * blocks))]
    if ring is not None:
        names += ["engine", *(f"slot {slot}{_of(block, blocks)}" for block in range(blocks) for slot in range(ring.slots))]
    every = [each for each in _bars(spans, groups, blocks, ring) if each.end > begin and each.begin < end]
    clocks = (end - begin) / SHOWN
    busy = sum(min(each.end, end) - max(each.begin, begin) for each in every if each.row == 0) / (end - begin)
    said = f"turns {FIRST} to {FIRST + SHOWN - 1} by the model, {clocks:.0f} clocks each; the matrix unit is busy {busy:.0%}"
    return Chart(_drawn(names, every, begin, end), said, _told(names, every))


def _group(at: int, groups: int, blocks: int) -> str:
    return f"warpgroup {at % groups}{_of(at // groups, blocks)}"


def _of(block: int, blocks: int) -> str:
    return f", block {block}" if blocks > 1 else ""


def _bars(spans: Sequence[Span], groups: int, blocks: int, ring: Ring | None) -> Iterator[Bar]:
    """What is in each row."""
    for each in _joined(spans):
        said = f"turn {each.turn}"
        if each.does == "product":
            yield Bar(0, each.begin, each.end, KINDS["product"], f"{said}, {_group(each.group, groups, blocks)}")
        elif each.does == "copy":
            yield Bar(1 + groups * blocks, each.begin, each.end, KINDS["copy"], said + _of(each.group // groups, blocks))
        elif each.does in KINDS and each.end > each.begin:
            yield Bar(1 + each.group, each.begin, each.end, KINDS[each.does], "" if each.does == "lanes" else said)
    if ring is not None:
        yield from _slots(spans, groups, blocks, ring)


def _slots(spans: Sequence[Span], groups: int, blocks: int, ring: Ring) -> Iterator[Bar]:
    """Of each slot when it is filled, and when it is full, with the number of its phase."""
    end = max(each.end for each in spans)
    for copy in (each for each in spans if each.does == "copy"):
        block, slot, phase = copy.group // groups, copy.turn % ring.slots, copy.turn // ring.slots
        row = 2 + groups * blocks + block * ring.slots + slot
        free = [s.end for s in spans if s.does == "release" and s.group // groups == block and s.turn == copy.turn]
        yield Bar(row, copy.begin, copy.end, KINDS["copy"], "")
        yield Bar(row, copy.end, max(free) if len(free) == groups else end, "owner0", f"turn {copy.turn}, phase {phase}")


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The same, what lanes of a warpgroup do until they wait, with slices of others between, as one."""
    open_: dict[int, Span] = {}
    for each in sorted(spans, key=lambda span: (span.group, span.begin, span.end)):
        last = open_.get(each.group)
        if each.does == "lanes":
            open_[each.group] = each if last is None else Span(each.group, "lanes", last.turn, last.begin, each.end)
            continue
        yield each
        if last is not None and each.does in ("wait", "meet", "full") and each.end > each.begin:
            yield open_.pop(each.group)
    yield from open_.values()


def _drawn(names: Sequence[str], every: Sequence[Bar], begin: float, end: float) -> Picture:
    lead = max(width(name, CAPTION) for name in names) + 10
    scale = WIDE / (end - begin)
    body: list[Element] = []
    for row, name in enumerate(names):
        y = row * (HIGH + 4)
        body.append(words(name, lead - 10, y + HIGH / 2, CAPTION, anchor="end"))
        body += area("plain", lead, y, WIDE, HIGH)
    for each in every:
        left, right = (lead + (min(max(at, begin), end) - begin) * scale for at in (each.begin, each.end))
        y = each.row * (HIGH + 4)
        body += area(each.kind, left, y, max(right - left, 0.75), HIGH)
        said = next(
            (said for said in (each.words, each.words.split(",")[0]) if said and width(said, SMALL) < right - left - 4), ""
        )
        body += [words(said, (left + right) / 2, y + HIGH / 2, SMALL, anchor="middle")] if said else []
    high = len(names) * (HIGH + 4)
    for at in _ticks(end - begin):
        x = lead + at * scale
        body.append(element("path", kind="lines", d=f"M{number(x)} {number(high)}v5"))
        body.append(words(f"{at:.0f}", x, high + 5 + LINE / 2, SMALL, anchor="middle"))
    body.append(words("clocks", lead + WIDE, high + 5 + 1.5 * LINE, CAPTION, anchor="end"))
    used = {each.kind for each in every}
    field = Picture(lead + WIDE + 10, high + 5 + 2 * LINE, tuple(body))
    return stacked((field, legend([(kind, TURNS[kind]) for kind in TURNS if kind in used])), 8)


def _ticks(length: float) -> Iterator[float]:
    """Round numbers, some ten of them."""
    power = 10.0 ** floor(log10(length / 5))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power * 8 >= length)
    yield from (n * step for n in range(int(length / step) + 1))


def _told(names: Sequence[str], every: Sequence[Bar]) -> str:
    """Each row in words."""
    rows = (
        f"{name}: {'; '.join(f'{TURNS[b.kind]} {b.words} {b.begin:.0f} to {b.end:.0f}' for b in every if b.row == row)}"
        for row, name in enumerate(names)
    )
    return ". ".join(rows) + "."
