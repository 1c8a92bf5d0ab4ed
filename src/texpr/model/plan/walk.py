"""What the warps of a launch do, counted statement by statement, each with how often it runs and with which lanes.

Warps are looked at one by one where tests depend on which they are, first, between and last; turns of a loop likewise. What a
turn does not change is done once: a compiler moves it out, as long as nothing is written that it reads. Requests of memory are
what `isa.requests` makes of them. Instructions for indices are estimated: one for each element that is touched and whose place
changes from turn to turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod

from texpr.affine.expr import Expr, Sym
from texpr.ir import kernel as k
from texpr.ir.instr import Instr
from texpr.ir.kernel.point import Point, address, holds, number
from texpr.ir.operation import BLOCK, CLUSTER, WARP, Moved
from texpr.ir.ops.vectors import VECTOR_BYTES
from texpr.ir.value import Buffer, Index, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, F8E4M3, F8E5M2
from texpr.isa.levels import Level, Space
from texpr.isa.memories import Coalescing
from texpr.isa.requests import bank_rounds, stored, windows
from texpr.model.bound import SYNC
from texpr.model.plan.deciding import changes, compared, decides
from texpr.model.plan.operations import Units, instructions
from texpr.model.plan.origins import Origins
from texpr.model.plan.reach import every_touch
from texpr.model.plan.told import Around, Told, around_of, told_of
from texpr.model.work import Totals
from texpr.support.record import Mutable, field

PROLOGUE = {"other": 3.0, "imad": 1.0, "control": 1.0, "uniform": 1.0}
"""What each warp does first and last: its place, where memory is, its end. Counted as `operations`."""

POINTER = {"other": 1.0, "imad": 1.0}
"""For each array of global memory: where it begins, and the first place."""

TURN = {"alu": 2.0, "control": 1.0}
"""Of a loop that stays one: counted up, compared, jumped back."""

COPY = {"lsu": -1.0, "alu": 3.0, "imad": 1.0}
"""An asynchronous copy is one instruction, whose two addresses are computed for each: no offset is a constant of assembler."""

FAR = {"alu": 6.0, "imad": 2.0, "other": 3.0}
"""What a place in an array takes more where its rows are of open sizes, so that it has 64 bits. Counted in machine code."""

UNROLLED = 4
"""Turns that nvcc writes out of a loop whose body is short."""

SHORT = 60
"""Instructions of a body up to which it does so."""


MOST_TURNS = 1 << 10
"""Turns of loops that are written out, up to which it is counted how many elements they read."""

FEW = 3
"""Places up to which each is looked at."""

PARTS = 6
"""Of an axis that a test compares with another one, as of a triangle: one place from between stands for each."""

PRIVATE = (Space.LOCAL, Space.LANES)

MERGED = (16, 8, 4, 2)
"""Neighbours that a compiler may load at once, the most first."""

MANY = 16
"""Warps up to which each is looked at: of the last block tests may let any number do something."""


class Loop(Mutable, eq=False):
    """A loop that is being gone through. `first`: its index in the first turn, None where lanes begin apart. `beside`: so many
    turns are written out one beside the other; `flat`: all of them. `writes`: what is written in it; `meets`: threads wait in
    it for each other."""

    sym: Sym
    trips: int
    step: int
    first: int | None
    beside: int
    flat: bool
    writes: frozenset[Buffer]
    meets: bool


class Counted(Mutable):
    """Totals of a launch, by name: units, and `issued`, `requests`, `sectors`, `l1`, `shared`, `barriers`, `engine`; what the
    matrix unit does, as in `Work`; bytes that are asked of each buffer."""

    sums: Totals = field(default_factory=Totals)
    products: Totals = field(default_factory=Totals)
    asked: Counter[tuple[Buffer, str]] = field(default_factory=Counter[tuple[Buffer, str]])

    def units(self, found: Mapping[str, float], weight: float) -> None:
        """Adds instructions."""
        self.sums.more(found, weight)
        self.sums["issued"] += sum(found.values()) * weight


class Walk(Mutable, eq=False):
    """One kernel at given sizes. `decides`: coordinates on which a test or a bound depends, so that it matters where one is;
    `compared`: those that a test compares with each other. `literal`: as it is written, nothing moved out of loops, each warp
    and each turn looked at. `roughly`: one block from between stands for all, and of each role one lane of its first warp,
    of one from between, and of the last, so that nothing is known of where requests go."""

    kernel: k.Kernel
    machine: Coalescing
    sizes: Mapping[Sym, int]
    spaces: Mapping[Buffer, Space]
    decides: frozenset[Sym]
    compared: frozenset[Sym]
    literal: bool = False
    roughly: bool = False
    counted: Counted = field(default_factory=Counted)
    loops: list[Loop] = field(default_factory=list[Loop])
    conditions: dict[Sym, Value] = field(default_factory=dict[Sym, Value])
    origins: Origins = field(default_factory=Origins)
    seen: list[set[tuple[Buffer, tuple[Expr, ...]]]] = field(default_factory=list[set[tuple[Buffer, tuple[Expr, ...]]]])
    told: dict[int, Told] = field(default_factory=dict[int, Told])
    around: dict[int, Around] = field(default_factory=dict[int, Around])
    alike: dict[tuple[object, ...], float] = field(default_factory=dict[tuple[object, ...], float])
    moving: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def run(self) -> Counted:
        """All warps of all blocks."""
        pointers = len(self.kernel.buffers)
        for weight, lanes in self._warps():
            self.counted.units(PROLOGUE, weight)
            self.counted.units(POINTER, weight * pointers)
            self.seen = [set()]
            self._block(self.kernel.body, lanes, weight)
        return self.counted

    def _warps(self) -> Iterator[tuple[float, list[Point]]]:
        grid = [axis for axis in self.kernel.axes if axis.level is Level.GRID]
        inside = [axis for axis in self.kernel.axes if axis.level is Level.BLOCK]
        others = [axis for axis in self.kernel.axes if axis.level is Level.CLUSTER]
        parts = {axis.sym: PARTS if axis.sym in self.compared else 1 for axis in grid}
        places = [self._places(self._extent(a.extent), a.sym in self.decides, parts[a.sym]) for a in grid]
        threads = self.kernel.threads
        warps = -(-threads // self.kernel.warp)
        by_thread = any(axis.sym in self.decides for axis in inside)
        for chosen in product(*places):
            weight = 1.0
            point: Point = {**self.sizes, **{axis.base: 0 for axis in grid if axis.base is not None}}
            for axis, (at, times) in zip(grid, chosen, strict=True):
                weight *= times
                point[axis.sym] = at
            for axis in others:
                along = next((at for each, (at, _) in zip(grid, chosen, strict=True) if each.dim == axis.dim), 0)
                point[axis.sym] = along % axis.extent.constant
            for warp, times in self._in_block(warps, by_thread):
                first = warp * self.kernel.warp
                end = first + 1 if self.roughly else min(threads, first + self.kernel.warp)
                lanes = [{**point, **_coordinates(inside, at)} for at in range(first, end)]
                yield weight * times, lanes

    def _in_block(self, warps: int, each: bool) -> Iterator[tuple[int, int]]:
        """Warps of a block, and how many each stands for; roughly, those of a role for others of it."""
        if not self.roughly:
            yield from self._some(warps, each, MANY)
            return
        roles = (stmt.role for stmt in k.walk(self.kernel.body) if isinstance(stmt, k.If) and stmt.role is not None)
        ends = sorted(
            {0, warps, *(end for role in roles for end in (role.first, role.first + role.warps))} if each else {0, warps}
        )
        for first, end in pairwise(ends):
            yield from ((first + at, times) for at, times in self._some(end - first, each))

    def _places(self, extent: int, each: bool, parts: int) -> Sequence[tuple[int, int]]:
        """The same of blocks."""
        return [(extent // 2, extent)] if self.roughly else self._some(extent, each, parts=parts)

    def _some(
        self, extent: int, each: bool, few: int = FEW, parts: int = 1, cuts: Iterable[int] = ()
    ) -> Sequence[tuple[int, int]]:
        """Places, and how many each stands for: between the first and the last one of each of some parts, cut further there."""
        if self.literal:
            return [(at, 1) for at in range(extent)]
        if not each:
            return [(0, extent)]
        if extent <= few + parts - 1:
            return [(at, 1) for at in range(extent)]
        ends = sorted(
            {1 + (extent - 2) * part // parts for part in range(parts + 1)} | {at for at in cuts if 1 < at < extent - 1}
        )
        between = [((first + end) // 2, end - first) for first, end in pairwise(ends)]
        return [(0, 1), *between, (extent - 1, 1)]

    def _extent(self, extent: Expr) -> int:
        return max(0, extent.evaluate(dict(self.sizes)))

    def _block(self, body: tuple[k.Stmt, ...], lanes: list[Point], weight: float) -> None:
        if not lanes or not weight:
            return
        for stmt in body:
            match stmt:
                case k.For():
                    self._loop(stmt, lanes, weight)
                case k.If():
                    self._branch(stmt, lanes, weight)
                case _:
                    self._operation(stmt, lanes, weight)

    def _loop(self, loop: k.For, lanes: list[Point], weight: float) -> None:
        ends = [(number(loop.lo, p), number(loop.hi, p), number(loop.step, p) or 1) for p in lanes]
        trips = [0 if lo is None or hi is None else max(0, -(-(hi - lo) // step)) for lo, hi, step in ends]
        most = max(trips)
        if not most:
            return
        around = self.around.get(id(loop))
        if around is None:
            around = self.around[id(loop)] = around_of(loop)
        self.origins.note(loop.sym, (loop.lo,), itself=True)
        first, flat = ends[0][0], _is_flat(loop)
        alike = first if all(lo == first for lo, _, _ in ends) else None
        self.loops.append(
            Loop(loop.sym, most, ends[0][2], alike, most if flat else loop.factor or 1, flat, around.writes, around.meets)
        )
        before = self.counted.sums["issued"]
        cuts = changes(loop, first, ends[0][2], self.sizes) if loop.sym in self.decides and first is not None else ()
        for turn, times in self._some(most, loop.sym in self.decides or len(set(trips)) > 1, cuts=cuts):
            running = [
                {**p, loop.sym: lo + turn * step}
                for p, (lo, _, step), n in zip(lanes, ends, trips, strict=True)
                if turn < n and lo is not None
            ]
            self.seen.append(set())
            self._block(loop.body, running, weight * times)
            self.seen.pop()
        self.loops.pop()
        self._overhead(loop, around.inside, most, weight, self.counted.sums["issued"] - before)

    def _overhead(self, loop: k.For, inside: tuple[k.Stmt, ...], trips: int, weight: float, issued: float) -> None:
        """What the loop itself takes: nothing where it is written out whole."""
        if _is_flat(loop):
            return
        innermost = not any(isinstance(each, k.For) and not _is_flat(each) for each in inside)
        copies = loop.factor or (UNROLLED if innermost and issued < SHORT * trips * weight and trips >= UNROLLED else 1)
        self.counted.units(TURN, weight * trips / copies)
        self.counted.units({"alu": float(self._moving(loop, inside))}, weight * trips / copies)

    def _moving(self, loop: k.For, inside: tuple[k.Stmt, ...]) -> int:
        """Addresses that a loop moves from turn to turn."""
        key = id(loop), self.origins.changes
        if key not in self.moving:
            found = (load for each in inside for load, _, _ in every_touch(each) if self.spaces.get(load.buffer) not in PRIVATE)
            apart = {(x.buffer, tuple(e - e.constant for e in x.index)) for x in found if self._depends(x, loop.sym)}
            self.moving[key] = len(apart)
        return self.moving[key]

    def _branch(self, stmt: k.If, lanes: list[Point], weight: float) -> None:
        condition = self._said(stmt.condition)
        then = [p for p in lanes if holds(condition, p, True)]
        other = [p for p in lanes if not holds(condition, p, False)]
        self.counted.units({**instructions(stmt.condition), "alu": 1.0, "control": 1.0}, weight)
        self._block(stmt.then, then, weight)
        if len(then) < len(lanes):
            self._block(stmt.orelse, other, weight)

    def _said(self, condition: Value) -> Value:
        """A condition with what its variables were declared as."""
        match condition:
            case Ref(sym) if sym in self.conditions:
                return self.conditions[sym]
            case Op(name, args, dtype):
                return Op(name, tuple(map(self._said, args)), dtype)
            case _:
                return condition

    def _operation(self, stmt: k.Stmt, lanes: list[Point], weight: float) -> None:
        if not isinstance(stmt, k.Operation):
            return
        changed: Sym | None = getattr(stmt, "sym", None)
        if changed is not None and changed in self.conditions:
            del self.conditions[changed]  # what gets another value is no condition any more
        for bound in stmt.bound:
            if bound.dtype is BOOL and isinstance(bound.value, Op):
                self.conditions[bound.sym] = self._said(bound.value)
            if isinstance(bound.value, Index):
                self.origins.note(bound.sym, (bound.value.expr,))
                for point in lanes:
                    known = number(bound.value.expr, point)
                    if known is not None:
                        point[bound.sym] = known
        told = self.told.get(id(stmt))
        if told is None:
            told = self.told[id(stmt)] = told_of(stmt)
        for load, kind, count, made in told.touches:
            self._access(load, kind, count, lanes, weight, made)
        for found in told.computed:
            self.counted.units(found, weight)
        for symbols in told.compared:
            self.counted.units({"alu": 1.0}, weight / self._unchanged(symbols))
        if isinstance(stmt, k.CopyAsync):
            self.counted.units(COPY, weight)
            if not all(extent.is_constant for extent in stmt.source.buffer.shape[1:]):
                self.counted.units(FAR, weight)
        if stmt.together:
            instr = self.kernel.instr_of[stmt.together]
            team = len(lanes) if instr.is_alone or not self.roughly else self.kernel.warp
            self._together(instr, weight * team / (1 if instr.is_alone else self.kernel.warp))
        moved = stmt.moved(self.kernel.map_of)
        if moved is not None and stmt.AGENT is not k.Operation.AGENT:
            self._by_engine(moved, weight * len(lanes))
        if stmt.meets in (BLOCK, CLUSTER) or (stmt.meets or 0) > self.kernel.warp:
            self.counted.units({"barrier": 1.0}, weight)
            self.counted.sums["barriers"] += weight
        elif stmt.meets == WARP and stmt.bound:
            self.counted.units({"lsu": 1.0}, weight)  # lanes get what others have

    def _together(self, instr: Instr, weight: float) -> None:
        """What lanes do by one instruction, or one starts: products of the matrix unit, or else something that is not known."""
        found, groups = instr.products, 1.0 if instr.is_alone else self.kernel.warp / instr.lanes
        if found is not None:
            dtype, count = found
            self.counted.units({"matrix": 1.0}, weight)
            name = "f8" if dtype in (F8E4M3, F8E5M2) else dtype.name.replace("u8", "i8")
            self.counted.products[name + (SYNC if instr.group is None else "")] += count * groups * weight

    def _by_engine(self, moved: Moved, times: float) -> None:
        """Bytes that an engine brings from global memory or takes there."""
        brings = moved.source not in self.spaces
        outside = moved.source if brings else moved.target
        self.counted.sums["engine"] += moved.bytes * times
        self.counted.asked[outside, "load" if brings else "store"] += int(moved.bytes * times)
        if moved.reduce and not brings:
            self.counted.asked[outside, "load"] += int(moved.bytes * times)

    def _unchanged(self, symbols: frozenset[Sym]) -> float:
        """Turns of the loops around that do not change what is computed of these symbols: a compiler moves it out of them."""
        times = 1.0
        if self.literal:
            return times
        made_of = self.origins.of(symbols)
        for loop in reversed(self.loops):
            if loop.sym not in made_of:
                times *= loop.trips
            elif not loop.flat:
                break
        return times

    def _access(self, load: Load, kind: str, count: int, lanes: list[Point], weight: float, made: Units) -> None:
        space = self.spaces.get(load.buffer, Space.GLOBAL)
        if space in PRIVATE or load.buffer in self.kernel.scalars:
            self.counted.units(made, weight)
            return
        key = (load.buffer, load.index)
        if kind == "load" and not self.literal:
            if any(key in level for level in self.seen):
                return
            weight /= self._moved_out(load)
            self.seen[-1].add(key)
            if space is Space.SHARED and count == 1:
                count, lanes = self._merged(load, lanes)
                weight /= count
        else:
            for level in self.seen:
                level -= {each for each in level if each[0] is load.buffer}
        self.counted.units({"lsu": 1.0}, weight)
        self.counted.units(made, weight)
        if self.roughly:
            return
        width = load.dtype.bytes * count
        found = [address(load, point) for point in lanes]
        starts = [at * load.dtype.bytes for at in found if at is not None]
        if load.data or len(starts) < len(found):
            starts = [lane * width for lane in range(len(lanes))]  # no fewer sectors than if they were side by side
        sums = self.counted.sums
        if space is not Space.GLOBAL:
            sums["shared"] += bank_rounds(starts, width, self.machine.banks, self.machine.word) * weight
            return
        sector, rounds = self.machine.sector, self.machine.banks * self.machine.word
        sectors = len(windows(starts, sector, width))
        sums.more({"requests": 1.0, "sectors": sectors, "l1": max(1.0, sectors * sector / rounds)}, weight)
        asked = {"load": sectors * sector, "store": stored(starts, width, sector, self.machine.line)}
        for way in ("load", "store") if kind == "atomic" else (kind,):
            self.counted.asked[load.buffer, way] += int(asked[way] * weight)

    def _moved_out(self, load: Load) -> float:
        """Turns of the loops around that do not change what is read: those of loops that are written out stand side by side, so
        that each element is read once; out of others a compiler moves it."""
        times, beside = 1.0, list[Loop]()
        shared = self.spaces.get(load.buffer) is not None
        for loop in reversed(self.loops):
            if load.buffer in loop.writes or (loop.meets and shared):
                break
            if not self._depends(load, loop.sym):
                times *= loop.trips
            elif loop.flat:
                beside.append(loop)
            else:
                break
        return times * self._alike(load, beside)

    def _merged(self, load: Load, lanes: list[Point]) -> tuple[int, list[Point]]:
        """Neighbours that one load brings, and lanes in a turn that reads the first of them: those of a row of shared memory
        that turns of one loop read side by side, where all begin at a multiple of them whatever other loops do."""
        for loop in reversed(self.loops):
            if load.buffer in loop.writes or loop.meets:
                break
            if self._depends(load, loop.sym):
                found = self._neighbours(load, loop, lanes)
                if found is not None:
                    return found
                if not loop.flat:
                    break
        return 1, lanes

    def _neighbours(self, load: Load, loop: Loop, lanes: list[Point]) -> tuple[int, list[Point]] | None:
        """The same of the turns of one loop, none of which is tested by itself."""
        size, first = load.dtype.bytes, loop.first
        if loop.beside < 2 or first is None or loop.sym in self.decides or load.data:
            return None
        at = [address(load, {**point, loop.sym: first}) for point in lanes]
        following = [address(load, {**point, loop.sym: first + loop.step}) for point in lanes]
        if any(one is None or other != one + 1 for one, other in zip(at, following, strict=True)):
            return None
        moved = [at[0], *(address(load, {**lanes[0], each.sym: lanes[0][each.sym] + each.step}) for each in self._others(loop))]
        for count in (count for count in MERGED if loop.beside % count == 0 and count * size in VECTOR_BYTES):
            if all(place is not None and place % count == 0 for place in (*at, *moved)):
                starts = ({**p, loop.sym: p[loop.sym] - (p[loop.sym] - first) % (count * loop.step)} for p in lanes)
                return count, [*starts]
        return None

    def _others(self, loop: Loop) -> Iterator[Loop]:
        return (each for each in self.loops if each is not loop)

    def _alike(self, load: Load, loops: Sequence[Loop]) -> float:
        """How many turns of loops that stand side by side read one element, as `x[r + v]` does: on average."""
        turns, moving = prod(loop.trips for loop in loops), {loop.sym for loop in loops}
        others = {sym for index in load.index for sym in index.syms()} - moving
        through = any(moving & self.origins.derived.get(sym, frozenset()) for sym in others)
        if len(loops) < 2 or load.data or through or turns > MOST_TURNS:
            return 1.0
        key = load.index, *((loop.sym, loop.trips, loop.step) for loop in loops)
        if key not in self.alike:
            fixed = {sym: self.sizes.get(sym, 0) for sym in others}
            values = product(*([(loop.sym, turn * loop.step) for turn in range(loop.trips)] for loop in loops))
            points = ({**fixed, **dict(each)} for each in values)
            self.alike[key] = turns / len({tuple(index.evaluate(point) for index in load.index) for point in points})
        return self.alike[key]

    def _depends(self, load: Load, sym: Sym) -> bool:
        return bool(load.data) or sym in self.origins.of_place(load.index)


def _is_flat(loop: k.For) -> bool:
    """Whether it is written out whole."""
    return loop.kind == "unroll" and not loop.factor


def walk_of(
    kernel: k.Kernel, sizes: Mapping[Sym, int], machine: Coalescing, *, literal: bool = False, roughly: bool = False
) -> Walk:
    """A kernel to be counted."""
    spaces = {array.buffer: array.space for array in kernel.arrays}
    return Walk(kernel, machine, sizes, spaces, decides(kernel), compared(kernel), literal, roughly)


def _coordinates(axes: Sequence[k.Axis], thread: int) -> Point:
    found: Point = {}
    for dim in "xyz":
        for axis in axes:
            if axis.dim == dim:
                found[axis.sym] = thread % axis.extent.constant
                thread //= axis.extent.constant
    return found
