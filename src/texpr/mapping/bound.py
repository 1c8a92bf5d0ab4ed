"""The mapping of a scheduled program: bound loops go to their levels, the rest is completed.

Grid loops are the outermost band, one iteration a block. Threads of a block are numbered by block.x fastest, then block.y,
then block.z (or by lane, then warp); a level is as wide as its widest loop, and a narrower one leaves threads idle. A band
inside a block with no bound loop is distributed over all of its threads as by default. A `par` around bound loops, or around
a buffer placed in shared memory, becomes a `seq` that all threads run together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from texpr.ir import program as ir
from texpr.ir.program.marked import asked_at, is_atomic, level_of, mark
from texpr.ir.program.marks import Bind, Unroll, Vector
from texpr.ir.program.rewrite import with_blocks
from texpr.isa.target import Target
from texpr.mapping.bands import band
from texpr.mapping.nest import LoopMap, Role, one_digit
from texpr.schedule.edits import left_out
from texpr.schedule.levels import BLOCK, CLUSTERS
from texpr.schedule.rewrite.cluster import blocks
from texpr.support.diagnostic import Note, error
from texpr.support.record import Record

THREAD_LEVELS = ("lane", "warp", *BLOCK, *CLUSTERS)
"""Levels inside a block or a cluster, the fastest digit of the thread number first. Of a block's levels, a kernel uses the
first two or the last three."""


def is_bound(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a schedule bound any loop of `body`."""
    return any(isinstance(s, ir.Par) and level_of(s) is not None for s in ir.walk(body))


def grid_band(body: tuple[ir.Stmt, ...], fits: Callable[[ir.Par], bool]) -> tuple[tuple[ir.Par, ...], tuple[ir.Stmt, ...]]:
    """The loops distributed over blocks (or cores), and the body below them.

    Where no loop is bound to the grid, those outside of the loops bound in a block, as far as `fits` allows.
    """
    if len(body) != 1 or not isinstance(body[0], ir.Par):
        return (), body
    loops, _ = band(body[0])
    asked = [level_of(p) for p in loops]
    count = sum(1 for level in asked if level is not None and level.startswith(("grid", "core")))
    if count == 0:
        count = next((n for n, p in enumerate(loops) if asked[n] is not None or is_own(p) or not fits(p)), len(loops))
    return loops[:count], loops[count - 1].body if count else body


def require_outside(body: tuple[ir.Stmt, ...]) -> None:
    """Raises TexprError E0905 where a loop inside what blocks (or cores) run is bound to the grid."""
    for stmt in ir.walk(body):
        level = level_of(stmt) if isinstance(stmt, ir.Par) else None
        if isinstance(stmt, ir.Par) and level is not None and level.startswith(("grid", "core")):
            reason = f"`{stmt.sym.base}` is bound to `{level}`, and is not outermost any more"
            help = "loops of the grid are outside of all others"
            raise error("E0905", asked_at(stmt, Bind), reason, help=help, offers=left_out(asked_at(stmt, Bind)))


class Widths(Record):
    """The number of threads in each level of a block, and of blocks in each level of a cluster."""

    of: Mapping[str, int]

    @property
    def threads(self) -> int:
        """The threads of a block that the bindings require."""
        return prod(width for level, width in self.of.items() if level not in CLUSTERS)

    @property
    def blocks(self) -> int:
        """The blocks of a cluster that the bindings require."""
        return prod(width for level, width in self.of.items() if level in CLUSTERS)

    def of_threads(self, count: int) -> Widths:
        """The same with `count` threads in a block where no binding requires a number."""
        return self if any(level not in CLUSTERS for level in self.of) else Widths({"block.x": count, **self.of})

    @property
    def digits(self) -> tuple[tuple[int, int], ...]:
        """The radix and stride of each level's digit of the thread number."""
        return tuple((width, self.stride(level)) for level, width in self.of.items() if width > 1)

    def stride(self, level: str) -> int:
        """The stride of the level's digit in the thread number."""
        return prod(self.of.get(name, 1) for name in THREAD_LEVELS[: THREAD_LEVELS.index(level)])


def widths(body: tuple[ir.Stmt, ...], target: Target) -> Widths:
    """The widths required by the loops bound in `body`. Raises TexprError E0910 where they are too many threads."""
    found: dict[str, int] = {}
    last: ir.Par | None = None
    for stmt in ir.walk(body):
        level = level_of(stmt) if isinstance(stmt, ir.Par) else None
        if isinstance(stmt, ir.Par) and level in THREAD_LEVELS:
            found[level] = max(found.get(level, 1), stmt.extent.constant)
            last = stmt
    if "warp" in found:
        found["lane"] = target.warp
    made = Widths(found)
    if last is not None and made.threads > target.max_threads:
        listed = " · ".join(f"{level} {width}" for level, width in found.items() if level not in CLUSTERS)
        reason = f"{listed} are {made.threads} threads, and a block of {target.name} has {target.max_threads} at most"
        raise error(
            "E0910",
            asked_at(last, Bind),
            reason,
            help="the widths of the levels are multiplied",
            offers=left_out(asked_at(last, Bind)),
        )
    if last is not None and made.blocks > target.max_cluster:
        listed = " · ".join(f"{level} {width}" for level, width in found.items() if level in CLUSTERS)
        reason = f"{listed} are {made.blocks} blocks, and every {target.name} takes {target.max_cluster} in a cluster"
        raise error("E0910", asked_at(last, Bind), reason, help="more is not portable", offers=left_out(asked_at(last, Bind)))
    return made


def is_asked(loop: ir.Par) -> bool:
    """Whether the schedule determines the mapping of the loop."""
    return loop.fully or bool(loop.directives) or is_own(loop)


def is_own(par: ir.Par) -> bool:
    """Whether a schedule makes `par` private to a thread: unrolled, or as a vector."""
    return mark(par, Unroll) is not None or mark(par, Vector) is not None


def makes_shared(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a schedule placed a buffer declared in `body` in shared memory, which belongs to all threads of a block."""
    return any(isinstance(s, ir.New) and s.space in ("shared", "cluster") for s in ir.walk(body))


def ordered(body: tuple[ir.Stmt, ...]) -> tuple[tuple[ir.Stmt, ...], dict[ir.Stmt, ir.Stmt]]:
    """`body`, run by a team, with every `par` that is not distributed over its threads as a `seq` that all of them run
    together.

    Also, for each `if` that was rebuilt, the original one, by which relations identify it.
    """
    origin: dict[ir.Stmt, ir.Stmt] = {}
    return tuple(_ordered(stmt, origin) for stmt in body), origin


def _ordered(stmt: ir.Stmt, origin: dict[ir.Stmt, ir.Stmt]) -> ir.Stmt:
    match stmt:
        case ir.Par() if level_of(stmt) is None and (
            is_bound(stmt.body) or is_own(stmt) or (makes_shared(stmt.body) and not stmt.fully)
        ):
            body = tuple(_ordered(s, origin) for s in stmt.body)
            return ir.in_turn(stmt, body)
        case ir.Seq() | ir.If():
            made = with_blocks(stmt, tuple(tuple(_ordered(s, origin) for s in block) for block in ir.blocks(stmt)))
            if made is not stmt:
                origin[made] = stmt
            return made
        case _:
            return stmt


def bound_bands(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Par, ...]]:
    """The bands of loops bound inside a block, outermost first; a bound loop inside such a band is refused (E0905)."""
    for stmt in body:
        if isinstance(stmt, ir.Par) and level_of(stmt) in THREAD_LEVELS:
            loops, _ = band(stmt)
            count = next((n for n, p in enumerate(loops) if level_of(p) not in THREAD_LEVELS), len(loops))
            _require_distinct(loops[:count])
            _require_none(loops[:count], loops[count - 1].body)
            yield loops[:count]
        else:
            for block in ir.blocks(stmt):
                yield from bound_bands(block)


def _require_distinct(loops: tuple[ir.Par, ...]) -> None:
    for at, loop in enumerate(loops):
        outer = next((each for each in loops[:at] if level_of(each) == level_of(loop)), None)
        if outer is not None:
            reason = f"`{loop.sym.base}` and `{outer.sym.base}` are nested, and both have `{level_of(loop)}`"
            note = Note(f"`{outer.sym.base}` is this loop", outer.span)
            raise error("E0908", asked_at(loop, Bind), reason, note, help="loops that are nested have a level each")


def _require_none(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> None:
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Par) and level_of(stmt) is not None:
            outer, inner = loops[-1].sym.base, stmt.sym.base
            reason = f"`{inner}` and `{outer}` are both bound, but `{inner}` is not directly inside `{outer}`"
            note = Note(f"`{outer}` is this loop", loops[-1].span)
            help = "loops that are bound are neighbours, or in different nests"
            raise error("E0905", asked_at(stmt, Bind), reason, note, help=help, offers=left_out(asked_at(stmt, Bind)))


def bound_maps(loops: tuple[ir.Par, ...], asked: Widths) -> Iterator[LoopMap]:
    """The maps of a band that is bound inside a block."""
    for loop in loops:
        level = level_of(loop)
        assert level is not None
        role = Role.REDUCE if loop.reduce and not is_atomic(loop) else Role.TEAM
        yield LoopMap(loop, role, digits=one_digit(asked.of[level], asked.stride(level)))


def grid_maps(loops: tuple[ir.Par, ...]) -> tuple[LoopMap, ...]:
    """One block for each iteration of the grid loops, in the requested dimensions and clusters."""
    return tuple(LoopMap(p, Role.GRID, dim=(level_of(p) or "").removeprefix("grid."), cluster=blocks(p)) for p in loops)
