"""Order of instances among the threads of a kernel.

There one instance precedes another if its launch does; in one launch, if one thread executes both in that order; or if
all threads of both reach a barrier in between. Blocks of a launch are unordered, except within a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.isa.levels import Space
from texpr.presburger.formula import FALSE, TRUE, Eq, Formula, Ge, compare, conj, differ, disj, negate, rename
from texpr.proof.read.events import Channel, Launch, Relay, Signal, Site
from texpr.proof.read.program_order import When, equals, in_arms
from texpr.support.record import Record, derive, field

Run: TypeAlias = tuple["int | k.For | k.HostLoop", "int | k.For | k.HostLoop"]


class Names(dict[Sym, Expr]):
    """A renaming of an instance's coordinates, with a cache of renamed expressions."""

    __slots__ = ("_known", "_times")

    def __init__(self, names: Mapping[Sym, Sym | Expr]):
        super().__init__({sym: expr(name) for sym, name in names.items()})
        self._known: dict[Expr | Sym, Expr] = {}
        self._times: dict[When, When] = {}

    def __call__(self, value: Expr | Sym) -> Expr:
        """`value` with these names."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = expr(value).substitute(self)
        return found

    def times(self, when: When) -> When:
        """A time with these names."""
        found = self._times.get(when)
        if found is None:
            found = self._times[when] = tuple([t if isinstance(t, int) else (t[0], self(t[1])) for t in when])
        return found


class Sides(Record, eq=False):
    """The renamings of two instances' coordinates."""

    left: Mapping[Sym, Sym | Expr]
    right: Mapping[Sym, Sym | Expr]
    a: Names = field(init=False)
    b: Names = field(init=False)

    def __post_init__(self) -> None:
        a, b = (names if isinstance(names, Names) else Names(names) for names in (self.left, self.right))
        derive(self, a=a, b=b)


def sides_of(a: Site, b: Site, same: Sequence[Sym] = ()) -> Sides:
    """Renamings of the coordinates of two instances, of which those in `same` are equal."""
    return _sides(a, b, tuple(same))


@lru_cache(maxsize=1 << 12)
def _sides(a: Site, b: Site, same: tuple[Sym, ...]) -> Sides:
    return Sides(_names(a, "◁", ()), _names(b, "▷", same))


@lru_cache(maxsize=1 << 12)
def _names(site: Site, mark: str, same: tuple[Sym, ...]) -> Names:
    return Names({s: _marked(s, "◁" if s in same else mark) for s in site.dims})


@lru_cache(maxsize=1 << 12)
def _marked(sym: Sym, mark: str) -> Expr:
    return expr(Sym(f"{sym.name}{mark}"))


def domains(a: Site, b: Site, sides: Sides) -> Iterator[Formula]:
    """The conditions that both instances exist."""
    yield from renamed(a, sides.a)
    yield from renamed(b, sides.b)


def renamed(site: Site, names: Mapping[Sym, Sym | Expr]) -> tuple[Formula, ...]:
    """The conditions that an instance of a site exists, with these names."""
    return _renamed(site, tuple(names.items()))


@lru_cache(maxsize=1 << 12)
def _renamed(site: Site, names: tuple[tuple[Sym, Sym | Expr], ...]) -> tuple[Formula, ...]:
    return tuple(rename(f, dict(names)) for f in site.where)


def in_step(
    times: tuple[When, When],
    a: Site,
    b: Site,
    sides: Sides,
    skipped: Callable[[int, ir.Loop], bool],
    *,
    alone: bool,
    later: bool,
) -> bool:
    """Whether it is plain that `a` precedes `b` in the kernels wherever it does in the program: both execute the same loops
    alike.

    `times`: the times in the program; the order of iterations of loops that are `skipped`, by their depth, is irrelevant.
    `alone`: one thread executes both; otherwise the launches must have the order. `later`: as for `unordered`.
    """
    runs = [*zip(a.launch.time, b.launch.time, strict=False), *(zip(a.time, b.time, strict=False) if alone else ())]
    at = depth = 0
    for mine, theirs in zip(*times, strict=False):
        if isinstance(mine, int) or isinstance(theirs, int):
            if mine == theirs:
                continue
            if not (isinstance(mine, int) and isinstance(theirs, int)):
                return False
            if mine > theirs or in_arms(*times, mine, theirs):
                return True  # it never precedes
            at = _parting(runs, at, sides)
            return _first(runs[at]) if at < len(runs) else alone and later
        depth += 1
        (loop, x), (_, y) = mine, theirs
        if x is y:
            continue
        at, alike, lanes = _parting(runs, at, sides), False, False
        for one, other in runs[at : at + 1]:
            if isinstance(one, int) or isinstance(other, int):
                return _first((one, other))
            alike, lanes = (sides.a(one.sym), sides.b(other.sym)) == (x, y), getattr(one, "kind", "") == "simd"
        if not (alike and not lanes) and not skipped(depth - 1, loop):
            return False
        at += alike
    return True  # neither precedes the other


def _parting(runs: Sequence[Run], at: int, sides: Sides) -> int:
    """From `at` on, the first step of the kernels' times that may differ."""
    while at < len(runs):
        one, other = runs[at]
        same = one == other if isinstance(one, int) or isinstance(other, int) else sides.a(one.sym) is sides.b(other.sym)
        if not same:
            break
        at += 1
    return at


def _first(step: Run) -> bool:
    """Whether the first precedes the second by this step."""
    one, other = step
    return isinstance(one, int) and isinstance(other, int) and one < other


@lru_cache(maxsize=1 << 12)
def unordered(a: Site, b: Site, sides: Sides, space: Space, *, later: bool, settled: bool = False) -> tuple[Formula, ...]:
    """The cases in which `a` may not precede `b` in the kernels, both at a place of `space`.

    `later`: in one instance `b` is after `a`. `settled`: at `a` it is only waited for what an engine did, and an engine does
    what begins at `b`, so that relaxed barriers order them. All lanes of a warp execute a shuffle at once, so accesses to
    registers of lanes have the order of their owner.
    """
    found = list(launched_later(a, b, sides))
    if a.launch is not b.launch:
        return tuple(found)
    same_host = equal_all(a.launch.host, sides)
    threads = a.launch.threads
    mine, theirs = [sides.a(e) for e in a.block], [sides.b(e) for e in b.block]
    private = space in (Space.LOCAL, Space.LANES)
    if space is Space.GLOBAL and mine:
        wide = [ranks(a.launch).get(s, 1) for s in a.launch.blocks]
        apart = differ([x // n for x, n in zip(mine, wide, strict=True)], [y // n for y, n in zip(theirs, wide, strict=True)])
        found.append(conj((*same_host, apart)))
    if ranks(a.launch) and mine != theirs and not private:  # blocks of a cluster
        far, missed = differ(mine, theirs), _unchannelled(a, b, sides, afar=True) if settled else TRUE
        found.extend(conj((*same_host, far, case, missed)) for case in _unmet(a, b, sides, settled, CLUSTER))
    here = [*same_host, *(f for x, y in zip(mine, theirs, strict=True) for f in equals(x, y))]
    joint = a.joint or b.joint
    unmet = [] if private or (not joint and all(sides.a(s) is sides.b(s) for s in threads)) else [*_unmet(a, b, sides, settled)]
    if unmet:
        apart = TRUE if joint else differ(map(sides.a, threads), map(sides.b, threads))
        missed = _unchannelled(a, b, sides, afar=False)
        found.extend(conj((*here, apart, case, missed)) for case in unmet)
    for case in not_behind(a, b, sides, later):
        found.append(conj((*here, *(() if space is Space.LANES else equal_all(threads, sides)), case)))
    return tuple(found)


def _unchannelled(a: Site, b: Site, sides: Sides, *, afar: bool) -> Formula:
    """The condition that no channel has the order: a release after `a` in its thread, a wait for it before `b` in its own; or
    of a slot that threads fill, an arrival after `a`, and a wait for that.

    Nor do groups that take turns have it. `afar`: from one block of a cluster to another one, which has the same turns; that
    orders what is settled alone."""
    missed = [disj(_kept(a, b, sides, relay)) for relay in a.launch.relays if not afar and relay.tiles in a.loops]
    for each in a.launch.channels:
        if afar and not each.is_wide:
            continue
        if each.loop in b.loops:
            turn = sides.b(each.loop.sym) - each.first[each.acquire]
            tile = ZERO if each.tiles is None else sides.b(each.tiles.sym)
            frees = (*each.releases, each.fill) if each.by_threads else each.releases
            for condition, at, before in each.before(tile, turn):
                missed += _unlinked(a, b, sides, (each, frees, each.acquire), (at, before), (tile, turn), condition)
        if each.relay is not None and each.tiles in a.loops:
            missed += _taken_turns(a, b, sides, each)
        if each.by_threads and each.loop in a.loops:
            turn = sides.a(each.loop.sym) - each.first[each.fill]
            when = (ZERO if each.tiles is None else sides.a(each.tiles.sym), turn)
            for use in each.uses:
                missed += _unlinked(a, b, sides, (each, (each.fill,), use), when, when, TRUE)
    return conj(missed)


def _kept(a: Site, b: Site, sides: Sides, relay: Relay) -> Iterator[Formula]:
    """The cases in which `a` is not before what hands over in its thread, or `b` not behind the wait for a later turn."""
    if relay.tiles not in b.loops:
        yield TRUE
        return
    ends = [{sym: names(expr(sym)) for sym in one.site.dims} for one, names in ((relay.give, sides.a), (relay.take, sides.b))]
    yield Ge(ends[0][relay.tiles.sym] - ends[1][relay.tiles.sym])
    yield from not_behind(a, relay.give.site, Sides(sides.a, ends[0]), False)
    yield from not_behind(relay.take.site, b, Sides(ends[1], sides.b), False)
    for one, own in zip((relay.give, relay.take), ends, strict=True):
        yield negate(conj(renamed(one.site, own)))


def _taken_turns(a: Site, b: Site, sides: Sides, each: Channel) -> Iterator[Formula]:
    """The same where groups have the turns of a tile: that no release of a turn that is `a`'s own, after it, is waited for
    before `b`. Which group had the turn before that of `b` does not matter then."""
    assert each.tiles is not None
    tile = sides.a(each.tiles.sym)
    if each.loop in a.loops:  # of a use, or of what is complete where a release is
        turns = {sides.a(each.loop.sym) - first for one, first in each.first.items() if one in (*each.uses, *each.releases)}
    else:
        turns = {last.substitute({s: sides.a(s) for s in a.dims}) for last in each.last.values()}
    for turn in sorted(turns, key=str):
        for release in each.releases:
            for condition, at, after in each.after(tile, turn):
                yield from _unlinked(a, b, sides, (each, (release,), each.acquire), (tile, turn), (at, after), condition)


def _unlinked(
    a: Site,
    b: Site,
    sides: Sides,
    link: tuple[Channel, tuple[Signal, ...], Signal],
    sent: tuple[Expr, Expr],
    seen: tuple[Expr, Expr],
    condition: Formula,
) -> Iterator[Formula]:
    """The conditions that none of some arrivals of a channel, of the turn `sent`, is after `a` in its thread, or that the wait
    for it, of the turn `seen`, is not before `b`; a turn is a tile and an ordinal. `condition`: where the wait is for it."""
    channel, arrivals, wait = link
    waits = channel.names(wait, *seen, sides.b)
    unseen = (*not_behind(wait.site, b, Sides(waits, sides.b), False), negate(conj(renamed(wait.site, waits))))
    for arrival in arrivals:
        comes = channel.names(arrival, *sent, sides.a)
        exists = conj((condition, *renamed(arrival.site, comes), channel.there(arrival, sent[1])))
        late = (*not_behind(a, arrival.site, Sides(sides.a, comes), False), negate(exists))
        yield disj((*unseen, *late))


def of_one_cluster(launch: Launch, mark: str) -> tuple[dict[Sym, Sym], tuple[Formula, ...]]:
    """New names of the coordinates in which a block differs from others of its cluster, and that it is in this cluster."""
    names = {sym: Sym(f"{sym.name}{mark}") for sym in ranks(launch)}
    return names, tuple(Eq(expr(names[sym]) // n - expr(sym) // n) for sym, n in ranks(launch).items())


@lru_cache(maxsize=1 << 6)
def ranks(launch: Launch) -> Mapping[Sym, int]:
    """The block indices along which there are clusters, each with the number of blocks of a cluster."""
    wide = {axis.dim: axis.extent.constant for axis in launch.kernel.axes if axis.level is k.Level.CLUSTER}
    found = {a.sym: wide[a.dim] for a in launch.kernel.axes if a.level is k.Level.GRID and a.dim in wide}
    return found if found.keys() <= set(launch.blocks) else {}


def within(launch: Launch) -> tuple[Sym, ...]:
    """The only index along which there are clusters, if there is exactly one cluster along it."""
    extents = {axis.sym: axis.extent for axis in launch.kernel.axes}
    return tuple(s for s, n in ranks(launch).items() if len(ranks(launch)) == 1 and extents[s] is expr(n))


def unjoined(site: Site) -> Formula:
    """The condition that no barrier of the cluster may follow an instance before the kernel ends."""
    ways = [(meets(block[at + 1 :]), FALSE) for block, at in site.path]
    ways += [(meets(node.body), Ge(expr(node.sym) + node.step - site.bounds[node][1])) for node in _loops(site, 0)]
    return conj(unless for width, unless in ways if width >= CLUSTER)


def earlier(a: Site, b: Site, sides: Sides) -> Formula:
    """The condition that `a` is in an earlier iteration of the kernel's loops around both."""
    ends = [(sides.a(x.sym), sides.b(x.sym)) for x, y in zip(a.loops, b.loops, strict=False) if x is y]
    return disj(conj((*(Eq(x - y) for x, y in ends[:at]), Ge(ends[at][1] - ends[at][0] - 1))) for at in range(len(ends)))


def textual(a: Site, b: Site, sides: Sides) -> list[Formula]:
    """The cases in which `b` is after `a` in textual order of the launches, or in a later iteration of a loop around both."""
    turned = Sides(sides.right, sides.left)
    found = list(launched_later(b, a, turned))
    if a.launch is b.launch:
        same = equal_all(a.launch.host, sides)
        found += [conj((*same, case)) for case in not_behind(b, a, turned, True)]
    return found


def equal_all(syms: Sequence[Sym], sides: Sides) -> list[Formula]:
    """The conditions that coordinates are equal on both sides."""
    return [f for s in syms for f in equals(sides.a(s), sides.b(s))]


def launched_later(a: Site, b: Site, sides: Sides) -> Iterator[Formula]:
    """The cases in which the launch of `a` is later than that of `b`."""
    before: list[Formula] = []
    for mine, theirs in zip(a.launch.time, b.launch.time, strict=False):
        if isinstance(mine, int) or isinstance(theirs, int):
            if mine == theirs:
                continue
            if isinstance(mine, int) and isinstance(theirs, int) and mine > theirs:
                yield conj(before)
            return
        x, y = sides.a(mine.sym), sides.b(mine.sym)
        if x is not y:
            yield conj((*before, compare(">", x, y)))
        before += equals(x, y)


def not_behind(a: Site, b: Site, sides: Sides, later: bool) -> Iterator[Formula]:
    """The cases in which one thread executes `b` first, both at once, or both in lanes of a vector."""
    before: list[Formula] = []
    for mine, theirs in zip(a.time, b.time, strict=False):
        if isinstance(mine, int) or isinstance(theirs, int):
            if mine == theirs:
                continue
            if isinstance(mine, int) and isinstance(theirs, int) and mine > theirs:
                yield conj(before)
            return
        x, y = sides.a(mine.sym), sides.b(mine.sym)
        if x is not y:
            yield conj((*before, compare("!=" if mine.kind == "simd" else ">", x, y)))
        before += equals(x, y)
    if not later:
        yield conj(before)


def _unmet(a: Site, b: Site, sides: Sides, settled: bool, least: int = 0) -> Iterator[Formula]:
    """The cases in which two threads have no common barrier after `a` and before `b`, if `a` precedes. `least`: its least
    size."""
    before: list[Formula] = []
    for depth, (mine, theirs) in enumerate(zip(a.path, b.path, strict=False)):
        (block, at), (other, to) = mine, theirs
        if block is not other:
            yield conj(before)  # in the two arms of a branch
            return
        if at != to or depth + 1 in (len(a.path), len(b.path)):
            inside = block[at + 1 : to]
            between = [(meets(inside, settled), FALSE), *_turned(a, sides.a, depth, inside, settled)] if at < to else None
            yield from _missed(between, before, a, b, depth, sides, settled, least)
            return
        node = block[at]
        if isinstance(node, k.For):
            if not node.uniform:
                break
            x, y = sides.a(node.sym), sides.b(node.sym)
            if x is not y:
                yield conj((*before, compare(">", x, y)))
                whole = [(meets(node.body, settled), Eq(y - x - node.step))]  # a whole iteration between them has their barrier
                yield from _missed(whole, [*before, compare("<", x, y)], a, b, depth, sides, settled, least, carried=True)
            before += equals(x, y)
    yield conj(before)


BLOCK = 1 << 16
CLUSTER = 1 << 20
"""More lanes than a warp has: all threads of a block, and all of a cluster."""


def _missed(
    between: Sequence[tuple[int, Formula]] | None,
    before: Sequence[Formula],
    a: Site,
    b: Site,
    depth: int,
    sides: Sides,
    settled: bool,
    least: int,
    *,
    carried: bool = False,
) -> Iterator[Formula]:
    """The cases in which a path has no barrier, if all of `before` holds; `between`: barriers with the cases in which they are
    missed.

    None as path: `b` precedes `a` in the text. Each barrier of the path is of some threads, and is missed in some case.
    """
    if between is None:
        yield conj(before)
        return
    ways = [*between, *_behind(a, depth, carried, sides, settled), *_ahead(b, depth, carried, sides, settled)]
    number = a.launch.thread
    missed: list[Formula] = []
    for width, unless in ways:
        if width < least:
            continue
        if width >= BLOCK:
            if unless == FALSE:
                return
            missed.append(unless)
        elif width > 1:
            missed.append(disj((unless, compare("!=", sides.a(number) // width, sides.b(number) // width))))
    yield conj((*before, *missed))


def _behind(a: Site, depth: int, carried: bool, sides: Sides, settled: bool) -> Iterator[tuple[int, Formula]]:
    """Barriers after `a`, below the list `depth`: in what follows there, or in a later iteration of a loop around `a`."""
    for deep, (block, at) in enumerate(a.path[depth + 1 :], depth + 1):
        yield meets(block[at + 1 :], settled), FALSE
        yield from _turned(a, sides.a, deep, block[at + 1 :], settled)
    for node in _loops(a, depth + carried):
        yield meets(node.body, settled), Ge(sides.a(node.sym) + node.step - sides.a(a.bounds[node][1]))


def _ahead(b: Site, depth: int, carried: bool, sides: Sides, settled: bool) -> Iterator[tuple[int, Formula]]:
    """Barriers before `b`, likewise."""
    for deep, (block, at) in enumerate(b.path[depth + 1 :], depth + 1):
        yield meets(block[:at], settled), FALSE
        yield from _turned(b, sides.b, deep, block[:at], settled)
    for node in _loops(b, depth + carried):
        yield meets(node.body, settled), Ge(sides.b(b.bounds[node][0]) + node.step - 1 - sides.b(node.sym))


def _loops(site: Site, depth: int) -> Iterator[k.For]:
    """The loops around `site` that are uniform, from those of the list `depth` on."""
    for block, at in site.path[depth:-1]:
        node = block[at]
        if isinstance(node, k.For) and node.uniform:
            yield node


def _turned(site: Site, names: Names, depth: int, stmts: Sequence[k.Stmt], settled: bool) -> Iterator[tuple[int, Formula]]:
    """Barriers in loops whose trip count depends on sizes and uniform coordinates only, with the case of no iterations.

    `stmts` are in the list `depth` around `site`, which has `names`: a loop in it may have the same name.
    """
    launch, nodes = site.launch, (block[at] for block, at in site.path[:depth])
    around = {node.sym for node in nodes if isinstance(node, k.For)}
    known = {*launch.kernel.sizes, *launch.host, *launch.blocks, *launch.threads, *around}
    for stmt in stmts:
        if isinstance(stmt, k.For) and stmt.uniform and stmt.lo.syms() | stmt.hi.syms() <= known:
            yield meets(stmt.body, settled), Ge(names(stmt.lo - stmt.hi))


def meets(stmts: Sequence[k.Stmt], settled: bool = False) -> int:
    """The number of threads that a barrier in `stmts` certainly synchronises: a cluster, a block, some lanes, or none.

    A relaxed one orders nothing that threads do themselves: it counts for what is `settled` alone.
    """
    return max((_meets(stmt, settled) for stmt in stmts), default=0)


def _meets(stmt: k.Stmt, settled: bool) -> int:
    match stmt:
        case k.Barrier(relaxed=True):
            return CLUSTER if settled else 0
        case k.Barrier():
            if stmt.level is k.Level.CLUSTER:
                return CLUSTER
            return BLOCK if stmt.level is not k.Level.WARP and stmt.whole else stmt.part or stmt.lanes
        case k.If():
            return min(meets(stmt.then, settled), meets(stmt.orelse, settled))
        case k.For() if stmt.lo.is_constant and stmt.hi.is_constant and stmt.lo.constant < stmt.hi.constant:
            return meets(stmt.body, settled)
        case _:
            return 0
