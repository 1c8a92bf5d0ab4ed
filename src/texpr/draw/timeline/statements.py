"""Live ranges of buffers: a row for each statement of a kernel in order, a column for each buffer that it accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, captioned, document, legend, line, stacked
from texpr.draw.page.style import ACCESSES
from texpr.draw.page.text import CAPTION, fit
from texpr.draw.timeline.turns import Chart
from texpr.ir import kernel as k
from texpr.ir.kernel.shared import array_bytes
from texpr.ir.operation import Awaits, Group
from texpr.ir.value import Buffer
from texpr.isa.levels import Space
from texpr.support.record import Record

MOST_ROWS = 160
"""More statements would be illegible."""

_TITLES = {
    Space.CLUSTER: "cluster",
    Space.SHARED: "shared",
    Space.TENSOR: "tensor memory",
    Space.LANES: "lanes",
    Space.LOCAL: "local",
    Space.GLOBAL: "global",
}


class Moment(Record):
    """One statement: its text, its reads and writes; `waits`: whether threads wait there, and the dependences covered."""

    words: str
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]
    waits: bool = False


def draw_timeline(name: str, kernels: Sequence[k.Kernel], turns: Mapping[str, Chart] | None = None) -> str:
    """The timeline of each kernel of the function `name` as an SVG document. `turns`: charts of steady turns, by kernel."""
    pictures: list[Picture] = []
    words: list[str] = []
    for kernel in kernels:
        found = tuple(moments(kernel.body))
        chart = None if turns is None else turns.get(kernel.name)
        if chart is not None:
            pictures.append(captioned(f"{kernel.name}: {chart.said}", chart.picture))
            words.append(f"{kernel.name}: {chart.said}. {chart.told}")
        pictures.append(captioned(f"{kernel.name}: its statements in order", _kernel(kernel, found)))
        words.append(f"{kernel.name}: {'; '.join(moment.words.strip() for moment in found)}.")
    return document(stacked(pictures), f"{name}: buffers and barriers over time", " ".join(words))


def moments(body: tuple[k.Stmt, ...], depth: int = 0) -> Iterator[Moment]:
    """The statements in textual order; loops and conditions precede their bodies, which are indented."""
    for stmt in body:
        indent = "· " * depth
        read, written = (frozenset(load.buffer for load in loads) for loads in k.memory((_bare(stmt),)))
        match stmt:
            case k.For():
                yield Moment(f"{indent}for {stmt.sym} in {stmt.lo}..{stmt.hi}", read, written)
                yield from moments(stmt.body, depth + 1)
            case k.If():
                yield Moment(f"{indent}if", read, written)
                yield from moments(stmt.then, depth + 1)
                if stmt.orelse:
                    yield Moment(f"{indent}else", frozenset(), frozenset())
                    yield from moments(stmt.orelse, depth + 1)
            case _ if (covers := stmt.waits_for) is not None:
                yield Moment(f"{indent}{_wait(stmt)}{_covers(covers)}", read, written, waits=True)
            case _:
                if read or written:
                    yield Moment(f"{indent}{_moved(stmt, read, written)} (line {stmt.span.line})", read, written)


def _wait(stmt: k.Operation) -> str:
    """The subject of a wait."""
    match stmt.completion({}):
        case Awaits(group=Group.ASYNC, pending=pending):
            return f"wait, {pending} pending"
        case None if stmt.joined is not None:
            return f"{stmt.joined.value} barrier"
        case _:
            return "wait"


def _bare(stmt: k.Stmt) -> k.Stmt:
    """The statement without its body."""
    match stmt:
        case k.For():
            return k.For(stmt.sym, stmt.lo, stmt.hi, (), stmt.step)
        case k.If():
            return k.If(stmt.condition, ())
        case _:
            return stmt


def _moved(stmt: k.Stmt, read: frozenset[Buffer], written: frozenset[Buffer]) -> str:
    """The source and target of a copy, and the engine, if it is not the thread itself."""
    into, out_of = (", ".join(sorted(b.name for b in buffers)) for buffers in (written, read))
    by = f"{stmt.by}: " if isinstance(stmt, k.Operation) and stmt.by else ""
    return f"{by}{into} ← {out_of}" if into and out_of else f"{by}{into} ← a value" if into else f"{by}reads {out_of}"


def _covers(covers: tuple[k.Covered, ...]) -> str:
    told = [f"{each.kind} {each.buffer}, {each.source.line} → {each.sink.line}" for each in covers]
    return ": " + "; ".join(told) if told else ""


def _kernel(kernel: k.Kernel, found: Sequence[Moment]) -> Picture:
    spaces = {array.buffer: _TITLES[array.space] for array in kernel.arrays if not array.barrier}
    spaces |= {a.buffer: f"shared {a.at}..{a.at + array_bytes(a)}" for a in kernel.arrays if a.at is not None}
    hidden = {array.buffer for array in kernel.arrays if array.barrier} | set(kernel.scalars)
    buffers = [b for b in dict.fromkeys(b for m in found for b in sorted(m.reads | m.writes, key=lambda b: b.name))]
    shown = [b for b in buffers if b not in hidden]
    lives = {b: [at for at, m in enumerate(found) if b in m.reads | m.writes] for b in shown}
    rows = [[_cell(b, at, m, lives[b]) for b in shown] for at, m in enumerate(found[:MOST_ROWS])]
    heads = tuple(f"{b.name} ({spaces.get(b, _TITLES[Space.GLOBAL])})" for b in shown)
    picture = grid(rows, Axis("", tuple(fit(m.words, 72) for m in found[:MOST_ROWS]), "start"), Axis("", heads))
    used = {cell.kind for row in rows for cell in row}
    left = len(found) - MOST_ROWS
    more = (line(f"{left} further statements", CAPTION),) if left > 0 else ()
    return stacked((picture, *more, legend([(kind, ACCESSES[kind]) for kind in ACCESSES if kind in used])), 8)


def _cell(buffer: Buffer, at: int, moment: Moment, life: Sequence[int]) -> Cell:
    does = "".join(word for word, of in (("r", moment.reads), ("w", moment.writes)) if buffer in of)
    if moment.waits:
        return Cell(does, "skipped")
    if does:
        return Cell(does, "owner3" if "w" in does else "owner0")
    return Cell("", "owner7" if life[0] < at < life[-1] else "plain")
