"""What lowering decided and why, for people: kept beside the plan, which says only what runs."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.marked import is_atomic
from texpr.ir.steps import Steps
from texpr.isa.levels import Space
from texpr.lowering.place.arena import Arena
from texpr.lowering.place.placement import Placement, count
from texpr.lowering.sync.barriers import Proof
from texpr.mapping.nest import LoopMap, Nest, Role, Solved
from texpr.support.record import Record
from texpr.tma.model import Copy


class LoopNote(Record):
    """How one `par` is shared out: over which levels, T logical threads, S sequential steps, and σ, its index in both."""

    loop: str
    extent: str
    level: str
    threads: int
    steps: str
    sigma: str
    line: int


class BufferNote(Record):
    """Where a `new` lives; `bytes` a block or thread, as text where sizes are open; `reason`, the relation that decided.

    `at`: where it begins in a block's shared memory, and `lives`, the lines from the first to the last step that need it, where
    arrays that live at different times lie in the same bytes.
    """

    buffer: str
    space: str
    bytes: str
    reason: str
    at: int | None = None
    lives: tuple[int, int] | None = None


class Notes(Record):
    """Of one kernel. `copies`: for each map's name, how its copy was found. `barriers`: what those cost that dependences need,
    and why none cost less; None where none are needed. `arena`: what sharing bytes of shared memory came to. `steps`:
    the form from which it was emitted.
    """

    kernel: str
    loops: tuple[LoopNote, ...]
    buffers: tuple[BufferNote, ...]
    steps: Steps
    copies: tuple[tuple[str, Copy], ...] = ()
    solved: tuple[Solved, ...] = ()
    barriers: Proof | None = None
    arena: Arena | None = None


def notes(
    steps: Steps,
    nest: Nest,
    placement: Placement,
    copies: tuple[tuple[str, Copy], ...] = (),
    barriers: Proof | None = None,
    arena: Arena | None = None,
) -> Notes:
    """The notes on the kernel of `steps`."""
    kept = arena if arena is not None and arena.at else None
    buffers = tuple(_buffers(placement, kept or Arena()))
    return Notes(steps.name, tuple(_loops(nest)), buffers, steps, copies, nest.solved, barriers, kept)


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
    """What of a team shares a loop."""
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
    Space.LANES: "lanes",
    Space.LOCAL: "local",
}


def _buffers(placement: Placement, arena: Arena) -> Iterator[BufferNote]:
    for buffer, place in placement.places.items():
        if place.register is not None:
            yield BufferNote(buffer.name, "register", str(buffer.dtype.bytes), place.reason)
            continue
        known = count(place.buffer.shape[1:] if place.space is Space.CLUSTER else place.buffer.shape)
        size = str(known * buffer.dtype.bytes) if known is not None else " * ".join(f"({e})" for e in place.buffer.shape)
        title = _TITLES[place.space]
        at, lives = arena.at.get(place.buffer), arena.lives.get(place.buffer)
        yield BufferNote(buffer.name, title, size, place.reason, at, lives)
