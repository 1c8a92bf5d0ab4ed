"""Notes on the decisions of lowering and their reasons, for users; kept beside the plan."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.marked import is_atomic
from texpr.ir.steps import Steps
from texpr.isa.levels import Space
from texpr.lowering.place.arena import Arena
from texpr.lowering.place.placement import count
from texpr.lowering.sync.barriers import Proof
from texpr.lowering.sync.synchronise import Ordered
from texpr.mapping.nest import LoopMap, Nest, Role, Solved
from texpr.support.record import Record
from texpr.tma.model import Copy


class LoopNote(Record):
    """The mapping of one `par`: its levels, T logical threads, S sequential steps, and σ, its index in terms of both."""

    loop: str
    extent: str
    level: str
    threads: int
    steps: str
    sigma: str
    line: int


class BufferNote(Record):
    """The place of a `new`; `bytes` for each block or thread, as text where sizes are unknown; `reason`: the deciding relation.

    `at`: its offset in a block's shared memory, and `lives`: the lines of the first and the last step of its live range, if
    arrays share memory.
    """

    buffer: str
    space: str
    bytes: str
    reason: str
    at: int | None = None
    lives: tuple[int, int] | None = None


class Notes(Record):
    """The notes on one kernel. `copies`: for each map's name, the derivation of its copy. `barriers`: the cost of the barriers
    and the proof of a lower bound, None where no barrier is needed. `arena`: the storage sharing. `steps`: the form that is
    emitted."""

    kernel: str
    loops: tuple[LoopNote, ...]
    buffers: tuple[BufferNote, ...]
    steps: Steps
    copies: tuple[tuple[str, Copy], ...] = ()
    solved: tuple[Solved, ...] = ()
    barriers: Proof | None = None
    arena: Arena | None = None


def notes(nest: Nest, placed: Steps, ordered: Ordered) -> Notes:
    """The notes on a kernel, from its steps with places, and in order."""
    steps, kept = ordered.steps, ordered.arena if ordered.arena.at else None
    buffers = tuple(_buffers(placed, ordered.arena))
    return Notes(steps.name, tuple(_loops(nest)), buffers, steps, ordered.copies, nest.solved, ordered.proof, kept)


def _loops(nest: Nest) -> Iterator[LoopNote]:
    for loop in (*(m.loop for m in nest.grid), *(s for s in ir.walk(nest.body) if isinstance(s, ir.Par))):
        found = nest.loops.get(loop)
        if found is None:
            yield LoopNote(loop.sym.base, str(loop.extent), "thread", 1, str(loop.extent), "s", loop.span.line)
        else:
            yield _mapped(found, nest)


def _mapped(found: LoopMap, nest: Nest) -> LoopNote:
    level = {Role.GRID: "grid", Role.TEAM: "team", Role.REDUCE: "team"}[found.role]
    if found.role is Role.GRID and found.radix > 1:
        level = "grid, block"
    elif level == "team":
        level = _team_level(found, nest)
    if found.role is Role.REDUCE:
        level += ", reduced"
    if is_atomic(found.loop):
        level += ", atomic"
    steps = expr(found.points) if found.role is Role.GRID else (found.loop.extent + (found.radix - 1)) // found.radix
    return LoopNote(
        found.loop.sym.base,
        str(found.loop.extent),
        level,
        found.radix,
        str(steps),
        _sigma(found),
        found.loop.span.line,
    )


def _team_level(found: LoopMap, nest: Nest) -> str:
    """The part of a team over which a loop is distributed."""
    if nest.blocks > 1:
        far = [d.stride * d.radix > nest.threads for d in found.digits]
        near = [d.stride < nest.threads for d in found.digits]
        return ", ".join(level for level, some in (("cluster", far), ("block", near)) if any(some)) or "block"
    return "block" if nest.team == nest.threads and nest.team > 1 else "warp" if nest.team > 1 else "thread"


def _sigma(found: LoopMap) -> str:
    """The index as an expression of block b, thread t and step s."""
    share = found.share(expr(Sym("t")))
    if found.role is Role.GRID:
        return str(expr(Sym("b")) * found.tile + share + (_steps(found.radix) if found.points > 1 else expr(0)))
    return str(_steps(found.radix) + share)


def _steps(radix: int) -> Expr:
    return expr(Sym("s")) * radix


_TITLES = {
    Space.GLOBAL: "workspace",
    Space.CLUSTER: "cluster",
    Space.SHARED: "shared",
    Space.TENSOR: "tensor memory",
    Space.LANES: "lanes",
    Space.LOCAL: "local",
}


def _buffers(placed: Steps, arena: Arena) -> Iterator[BufferNote]:
    reasons = {array.buffer: array.reason for array in placed.arrays}
    for buffer, place in placed.places:
        if place.register is not None:
            yield BufferNote(buffer.name, "register", str(buffer.dtype.bytes), place.reason)
            continue
        known = count(place.buffer.shape[1:] if place.space is Space.CLUSTER else place.buffer.shape)
        size = str(known * buffer.dtype.bytes) if known is not None else " * ".join(f"({e})" for e in place.buffer.shape)
        title = _TITLES[place.space]
        at, lives = arena.at.get(place.buffer), arena.lives.get(place.buffer)
        yield BufferNote(buffer.name, title, size, reasons.get(place.buffer, place.reason), at, lives)
