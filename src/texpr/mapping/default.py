"""The default mapping: bands to grid and block, by shape alone.

The outermost band of a nest becomes the grid. Where its body has further `par`s, each grid iteration is run by a team of
threads (a whole block, or one warp of it where the inner loops are short); where it has none, the band's innermost loops are
tiled over the threads of a block, the loop with the most contiguous accesses on the lanes. On a CPU a grid iteration belongs
to one core, and a tile is a run of the contiguous loop, long enough to vectorise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod

from texpr.affine.expr import Sym
from texpr.affine.ranges import bounds
from texpr.ir import program as ir
from texpr.ir.program.marked import is_atomic, level_of
from texpr.ir.program.uses import loads
from texpr.isa.memories import Coalescing
from texpr.isa.target import Target
from texpr.mapping.bands import band, contiguous
from texpr.mapping.bound import (
    Widths,
    bound_bands,
    bound_maps,
    grid_band,
    grid_maps,
    is_bound,
    is_own,
    makes_shared,
    ordered,
    require_outside,
    widths,
)
from texpr.mapping.dealt import role_of
from texpr.mapping.distribute import distributes
from texpr.mapping.nest import LoopMap, Nest, Role, TeamBand, one_digit
from texpr.mapping.sigma import by_solving
from texpr.schedule.levels import CLUSTERS
from texpr.support.diagnostic import error
from texpr.support.record import replace

THREADS = 256
"""The threads of a block by default."""

STEPS, MOST = 16, 16384
"""Where each of `THREADS` threads of a cluster's block would run more than `STEPS` iterations, it gets more threads: few such
blocks are resident on a multiprocessor. From `MOST` iterations on a block has the maximum."""

CORE_TILE = 4096
"""The iterations of the contiguous loop in the tile of a CPU core."""

SQUARE = 32
"""The side of a core's tile where accesses are contiguous along two loops, as in a transpose."""

ROWS = 4
"""A tile in a CPU core's registers: a cache line of the contiguous loop by so many iterations of the next one."""

SHARE, MANY = 4, 1 << 18
"""Iterations that a thread of a team has at least, where the grid has that many threads even so: a machine is full of them."""

PACKED = 128
"""The threads of a block with several teams of a warp each."""


def map_nest(
    body: tuple[ir.Stmt, ...],
    target: Target,
    known: frozenset[Sym],
    values: Mapping[Sym, int] | None = None,
) -> Nest:
    """The nest of an outermost `body`; team bands are mapped by shape.

    `known`: symbols whose values the host has. `values`: numbers for open sizes in costs.
    """
    found = _nest(body, target, known, values or {})
    return replace(found, request=target.coalescing) if target.has_warps else found


def _nest(body: tuple[ir.Stmt, ...], target: Target, known: frozenset[Sym], values: Mapping[Sym, int]) -> Nest:
    if is_bound(body):
        return _bound(body, target, known)
    loops: tuple[ir.Par, ...] = ()
    if len(body) == 1 and isinstance(body[0], ir.Par) and for_grid(body[0], known):
        loops, body = band(body[0])
        cut = next((n for n, loop in enumerate(loops) if not for_grid(loop, known) or is_own(loop)), len(loops))
        if cut < len(loops):
            loops, body = loops[:cut], (loops[cut],)
    inner = tuple(_team_bands(body))
    if target.has_cores:
        return _cpu(loops, body, inner, target)
    if not inner:
        return _own(loops, body, values, target.coalescing)
    body, origin = ordered(body)
    left = tuple(_team_bands(body))
    request = target.coalescing
    return replace(_shared(loops, body, left, request.lanes) if left else _own(loops, body, values, request), origin=origin)


def for_grid(par: ir.Par, known: frozenset[Sym]) -> bool:
    """Whether an outermost `par` can be distributed over blocks: the host knows its extent, and it is no reduction."""
    return (not par.reduce or is_atomic(par)) and not par.fully and par.extent.syms() <= known


def _bound(body: tuple[ir.Stmt, ...], target: Target, known: frozenset[Sym]) -> Nest:
    """The mapping of bound loops, and of other bands over the same threads."""
    loops, body = grid_band(body, lambda par: for_grid(par, known))
    require_outside(body)
    asked = widths(body, target)
    origin: dict[ir.Stmt, ir.Stmt] = {}
    if target.has_blocks and (asked.of or any(_team_bands(body))):
        body, origin = ordered(body)
    grid = grid_maps(loops)
    bands = tuple(bound_bands(body))
    maps = {m.loop: m for m in (*grid, *(m for loops in bands for m in bound_maps(loops, asked)))}
    inner = tuple(found for found in _team_bands(body) if found[0] not in maps)
    if target.has_cores:
        maps.update((p, LoopMap(p, role_of(p))) for found in inner for p in found)
        return Nest(grid, body, 1, 1, maps)
    if any(level in CLUSTERS for level in asked.of):
        return _of_cluster(grid, body, asked, bands, inner, origin, target.warp)
    team = asked.threads if bands else max((target.warp, *(_wanted(found) for found in inner))) if inner else 1
    shared = _by_shape(inner, team, target.coalescing.lanes)
    maps.update((m.loop, m) for each in shared for m in each.shape)
    for found in inner:
        _require_whole_warps(found[0], team, target.warp)
    return Nest(grid, body, team, team, maps, asked.digits, origin, bands=shared, alone=True)


def _of_cluster(
    grid: tuple[LoopMap, ...],
    body: tuple[ir.Stmt, ...],
    asked: Widths,
    bands: tuple[tuple[ir.Par, ...], ...],
    inner: tuple[tuple[ir.Par, ...], ...],
    origin: Mapping[ir.Stmt, ir.Stmt],
    warp: int,
) -> Nest:
    """The loops that a schedule bound to blocks of a cluster. The inner loops of a band of which only outer ones are bound
    are distributed over the threads of a block; bands without bound loops over the threads of all blocks."""
    rest = tuple(loops for loops in map(_unbound, bands) if loops)
    shares = (*(_wanted(loops, MOST) for loops in rest), *(_wanted(loops, MOST) // asked.blocks for loops in inner))
    longest = _ceil_power(max((warp, *shares)))
    asked = asked.of_threads(max(min(longest, THREADS), longest // STEPS))
    if asked.threads % warp:
        reason = f"a block has {asked.threads} threads, and blocks of a cluster that share loops are whole warps"
        raise error("E0910", bands[0][0].span, reason, help=f"blocks of whole warps have a multiple of {warp} of threads")
    team = asked.threads * asked.blocks
    maps = {m.loop: m for m in (*grid, *(m for loops in bands for m in bound_maps(loops, asked)))}
    for loops, threads in (*((loops, asked.threads) for loops in rest), *((loops, team) for loops in inner)):
        maps.update((m.loop, m) for m in _digits(_by_contiguity(loops, loops[-1].body), threads, warp, role_of(loops[0])))
    for par in maps:
        if role_of(par) is Role.REDUCE:
            _require_whole_warps(par, asked.threads, warp)
    return Nest(grid, body, team, asked.threads, maps, asked.digits, origin)


def _unbound(bound: tuple[ir.Par, ...]) -> tuple[ir.Par, ...]:
    """The unbound loops of a band after those bound to blocks only; none where some are bound to threads."""
    if any(level_of(p) not in CLUSTERS for p in bound):
        return ()
    loops = next(_team_bands((bound[0],)))[len(bound) :]
    return loops


def _require_whole_warps(par: ir.Par, threads: int, warp: int) -> None:
    if role_of(par) is Role.REDUCE and (threads & (threads - 1) or threads < warp):
        reason = (
            f"a parallel reduction over `{par.sym.base}` needs a power of two of threads, {warp} or more, "
            f"and {threads} are bound"
        )
        raise error("E0910", par.span, reason, help="as a `seq` it is one thread's")


def _team_bands(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Par, ...]]:
    """The outermost bands of `body`, which the team runs."""
    for stmt in body:
        if isinstance(stmt, ir.Par) and not is_own(stmt):
            loops, _ = band(stmt)
            same = next((n for n, p in enumerate(loops) if role_of(p) is not role_of(stmt) or is_own(p)), len(loops))
            yield loops[:same]
        else:
            for block in ir.blocks(stmt):
                yield from _team_bands(block)


def _own(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...], values: Mapping[Sym, int], request: Coalescing) -> Nest:
    """Each thread runs its own iterations of the grid band."""
    if not loops:
        return Nest((), body, 1, 1, {})
    shape = tuple(_digits(_by_contiguity(loops, body), THREADS, request.lanes, Role.GRID))
    found, solved = by_solving(loops, body, shape, values, request)
    maps = {m.loop: m for m in found}
    threads = prod(m.radix for m in found)
    return Nest(tuple(maps[p] for p in loops), body, 1, threads, maps, solved=(solved,))


def _by_shape(inner: tuple[tuple[ir.Par, ...], ...], team: int, lanes: int) -> tuple[TeamBand, ...]:
    """The bands `inner`, distributed over `team` threads by shape."""
    shapes = (tuple(_digits(_by_contiguity(p, p[-1].body), team, lanes, role_of(p[0]))) for p in inner)
    return tuple(TeamBand(loops, shape) for loops, shape in zip(inner, shapes, strict=True))


def _shared(
    loops: tuple[ir.Par, ...],
    body: tuple[ir.Stmt, ...],
    inner: tuple[tuple[ir.Par, ...], ...],
    warp: int,
) -> Nest:
    """A team of threads runs each iteration of the grid band."""
    team = _team(loops, inner, warp)
    slots = max(1, PACKED // team) if team <= warp and loops and not makes_shared(body) else 1
    grid = [LoopMap(p, Role.GRID) for p in loops]
    if slots > 1:
        grid[-1] = LoopMap(loops[-1], Role.GRID, tile=slots, digits=one_digit(slots, team))
    maps = {m.loop: m for m in grid}
    shared = _by_shape(inner, team, warp)
    maps.update((m.loop, m) for each in shared for m in each.shape)
    return Nest(tuple(grid), body, team, team * slots, maps, bands=shared, alone=slots == 1)


def _team(loops: tuple[ir.Par, ...], inner: tuple[tuple[ir.Par, ...], ...], warp: int) -> int:
    """The threads of a team: as many as the longest band can use. Where they meet in a sum, which costs each as much as a few
    iterations, fewer that have some iterations each, if there are enough iterations of the grid all the same."""
    team = max(warp, *(_wanted(found) for found in inner))
    if not any(role_of(found[0]) is Role.REDUCE for found in inner):
        return team
    rows = _iterations(loops) or MANY
    longest = max((_iterations(found) or MOST) * _inside(found[-1].body) for found in inner)
    while team > warp and longest < SHARE * team and rows * team > MANY:
        team //= 2
    return team


def _inside(body: tuple[ir.Stmt, ...]) -> int:
    """What a thread does in each iteration: of the loops in it, as far as their sizes are known."""
    found = (s for s in body if isinstance(s, ir.Par | ir.Seq))
    each = [max(1, s.extent.constant if s.extent.is_constant else 1) * _inside(s.body) for s in found]
    return max(each, default=1)


def _cpu(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...], inner: tuple[tuple[ir.Par, ...], ...], target: Target) -> Nest:
    grid = [LoopMap(p, Role.GRID) for p in loops]
    if grid and not inner:
        *outer, lane = _by_contiguity(loops, body)
        if not any(is_atomic(p) for p in loops) and distributes(body, frozenset(p.sym for p in loops)):
            grid = _registers(tuple(outer), lane, body, target.global_memory.line)
        else:
            crossing = _crossing(tuple(outer), lane, body)
            maps = (LoopMap(p, Role.GRID, tile=SQUARE if p is crossing else 1) for p in outer)
            grid = [*maps, LoopMap(lane, Role.GRID, tile=CORE_TILE if crossing is None else SQUARE, lane=True)]
    maps = {m.loop: m for m in grid}
    for found in inner:
        role = role_of(found[0])
        maps.update((p, LoopMap(p, role)) for p in found)
    return Nest(tuple(grid), body, 1, 1, maps)


def _crossing(outer: tuple[ir.Par, ...], lane: ir.Par, body: tuple[ir.Stmt, ...]) -> ir.Par | None:
    """A loop other than `lane` along which some accesses are contiguous: a square tile of both keeps lines in the cache."""
    votes = _votes(body)
    best = max(outer, key=lambda p: votes[p.sym], default=None)
    return best if best is not None and votes[best.sym] > 0 and votes[lane.sym] > 0 else None


def _registers(outer: tuple[ir.Par, ...], lane: ir.Par, body: tuple[ir.Stmt, ...], line: int) -> list[LoopMap]:
    """A tile of results in registers: a `line` of the contiguous loop by `ROWS` of the loop before it, or so many lines."""
    widest = max((load.dtype.bytes for stmt in ir.walk(body) for load in loads(stmt)), default=4)
    tile = LoopMap(lane, Role.GRID, tile=_points(lane, (1 if outer else ROWS) * line // widest), lane=True)
    if not outer:
        return [tile]
    return [tile, *(LoopMap(p, Role.GRID) for p in outer[:-1]), LoopMap(outer[-1], Role.GRID, tile=_points(outer[-1], ROWS))]


def _points(loop: ir.Par, most: int) -> int:
    """At most so many iterations of a loop."""
    return min(most, max(1, loop.extent.constant)) if loop.extent.is_constant else most


def _wanted(loops: tuple[ir.Par, ...], most: int = THREADS) -> int:
    """The threads that a band can use, a power of two, at most `most`; `THREADS` where its size is unknown."""
    product = _iterations(loops)
    return THREADS if product is None else min(most, _ceil_power(product))


def _iterations(loops: tuple[ir.Par, ...]) -> int | None:
    """The iterations of loops, of a loop without any one; None where that is unknown."""
    if not all(loop.extent.is_constant for loop in loops):
        return None
    return prod(max(1, loop.extent.constant) for loop in loops)


def _most(loop: ir.Par) -> int | None:
    """The iterations that a loop has at most, as a chunk of a longer one has; None where its size is unknown."""
    return loop.extent.constant if loop.extent.is_constant else bounds(loop.extent, {})[1]


def _ceil_power(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def _by_contiguity(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Par, ...]:
    """`loops` with the one with the most contiguous accesses moved innermost (the innermost one wins a tie)."""
    if len(loops) < 2:
        return loops
    votes = _votes(body)
    best = max(reversed(loops), key=lambda p: votes[p.sym])
    return (*(p for p in loops if p is not best), best)


def _votes(body: tuple[ir.Stmt, ...]) -> Counter[Sym]:
    """For each symbol, the number of accesses that are contiguous along it."""
    votes: Counter[Sym] = Counter()
    for stmt in ir.walk(body):
        for load in loads(stmt):
            votes.update(contiguous(load))
    return votes


def _digits(loops: tuple[ir.Par, ...], threads: int, warp: int, role: Role) -> Iterator[LoopMap]:
    """The digits of the thread number for `loops`, innermost lowest; together they use every thread.

    An inner loop gets at most a warp, where the outer ones can use the other threads.
    """
    useful = [threads if (most := _most(p)) is None else _ceil_power(most) for p in loops]
    stride = 1
    for depth in reversed(range(len(loops))):
        left = threads // stride
        wanted = min(left, useful[depth], max(warp, left // prod(useful[:depth])))
        radix = next(n for n in range(wanted, 0, -1) if left % n == 0) if depth else left
        yield LoopMap(loops[depth], role, tile=radix if role is Role.GRID else 1, digits=one_digit(radix, stride))
        stride *= radix
