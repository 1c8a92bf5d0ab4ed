"""Tiles for a GPU: a block keeps reused operands in shared memory, a thread its own part of the results in registers.

split, split, …        blocks, and in each threads with iterations of their own, which are neighbours where they read a row
reorder, bind          grid, outer sequential loops, threads, sequential loops inside of the tile, a thread's own
stage … in=registers   what is updated over the sequential loops
stage … in=shared      what is reused, prefetched (`pipeline`); rows padded, or distributed by element
unroll                 a thread's own, and sequential loops inside of the tile, wholly or in part
vectorize              results, where the neighbours that a thread has are a vector
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.isa.cuda import ASYNC_COPY
from texpr.planner.apart import Part, apart
from texpr.planner.budget import STAGES, budget
from texpr.planner.copies import COPIED
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.padding import padding
from texpr.planner.search import Candidate, Search, Staging
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject, without
from texpr.planner.vectors import begins_even, fragments
from texpr.schedule.tree import loops
from texpr.support.record import Mutable, field

UNROLLED = 16
"""A `seq` inside a tile with at most this trip count is unrolled."""

AT_ONCE = 4
"""Iterations of a sum that has no tests which are written out: what is read of rows along it is one access."""

WHOLE, PART = 1024, 256
"""Iterations of all loops inside of one that is unrolled wholly, where no test is left in them; and where there are tests,
or of so many turns of it: code that is repeated has to fit the nearest cache of instructions."""


RESIDENT, LARGE = 2, 128
"""Blocks that a multiprocessor should hold, where each thread has so many registers at most."""


class Loops(Mutable):
    """The loops that a loop is split into: outside of the tile, over threads, over a thread's own iterations, the last of them
    neighbours."""

    outer: str | None = None
    thread: str | None = None
    own: str | None = None
    lane: str | None = None


class TileScript(Script, kw_only=True):
    """Tiles `nest` over blocks and threads by `candidate`."""

    nest: Nest
    candidate: Candidate
    apart: Mapping[Buffer, Part] = field(default_factory=dict[Buffer, Part])
    """Arrays of the nest that are parts of others."""
    vectors: Mapping[Sym, int] = field(init=False)
    filled: set[Sym] = field(default_factory=set[Sym])
    """Ragged loops without tests: turns of a sum have zeros where it has ended, threads have sums that nobody reads."""

    def __post_init__(self) -> None:
        self.vectors = fragments(self.nest, self.candidate, self.state.target.vector)

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        parts = {loop.sym: self._parts(loop) for loop in self.nest.loops}
        pars = [parts[p.sym] for p in self.nest.pars]
        seqs = [parts[s.sym] for s in self.nest.seqs]
        lanes = self._lanes(parts)
        grid = [p.outer for p in pars if p.outer]
        order = [*grid, *(s.outer for s in seqs if s.outer), *reversed(lanes), *(s.own for s in seqs if s.own)]
        order += [p.own for p in pars if p.own]
        order += [p.lane for p in sorted(pars, key=lambda p: p is parts[self.candidate.lane]) if p.lane]
        if len(order) > 1:
            self.must("reorder", *order)
        for lane, level in zip(lanes, ("block.x", "block.y", "block.z"), strict=False):
            self.must("bind", lane, level)
        self._accumulators(grid[-1])
        for staging in self.candidate.staged:
            at = grid[-1] if staging.at is None else parts[staging.at].outer
            assert at is not None, "a loop that a box is brought in lies outside of the tile"
            self._shared(staging, at, parts)
        for at in dict.fromkeys(s.at for s in self.candidate.staged if s.at is not None):
            loop = parts[at].outer
            assert loop is not None, "as above"
            self.may("pipeline", loop, stages=STAGES)
        self._whole(parts)
        self._unrolled(pars, {s.sym: parts[s.sym] for s in self.nest.seqs})
        self._stored(parts)
        self._resident(pars)
        return ()

    def _whole(self, parts: Mapping[Sym, Loops]) -> None:
        """Has turns of a sum all their iterations, where what is beyond its end may be summed up: zeros; and threads all their
        sums, where nobody reads those beyond an array."""
        if not all(loop.extent.is_constant for loop in self.nest.loops):
            return  # of any size, places beyond an array may be too large for a machine's integers
        for loop in (*self.nest.seqs, *self.nest.pars):
            made = parts[loop.sym]
            own = made.own or (isinstance(loop, ir.Par) and (made.lane or made.thread))
            if not own or not made.outer or self.nest.known.multiple(loop.extent, self.candidate.tile[loop.sym]):
                continue
            if self.may("unguard", own):
                self.filled.add(loop.sym)
            else:
                self.dropped.pop()

    def _resident(self, pars: Sequence[Loops]) -> None:
        """Has two large blocks on a multiprocessor, where copies of a ragged tile would take so many registers that there is
        room for one, which waits for itself."""
        ragged = any(par.sym in self.filled for par in self.nest.pars)
        threads = prod(self.loop(par.thread).extent.constant for par in pars if par.thread)
        words, target = RESIDENT * threads * LARGE, self.state.target
        fits = words <= target.registers_block and RESIDENT * self.candidate.shared * STAGES <= target.shared_multiprocessor
        if ragged and fits and 2 * words > target.registers_block:
            self.may("launch_bounds", RESIDENT)

    def _unrolled(self, pars: Sequence[Loops], seqs: Mapping[Sym, Loops]) -> None:
        """Unrolls what a thread does between two barriers: as many turns of a `seq` as read neighbours, if no more."""
        for sym, seq in seqs.items():
            loop = self.loop(seq.own) if seq.own else None
            inside = None if loop is None else self._inside(loop)
            if loop is None or inside is None or not loop.extent.is_constant:
                continue
            if loop.extent.constant > UNROLLED and sym not in self.filled:
                continue
            turns = max(self.vectors.get(sym, 1), AT_ONCE if sym in self.filled else 1)
            if inside * loop.extent.constant <= (WHOLE if self._is_even() else PART):
                self.may("unroll", loop.sym.name)
            elif turns > 1 and turns * inside <= PART and not self.nest.masked:
                self.may("unroll", loop.sym.name, turns)
        for own in (each for par in pars for each in (par.own, par.lane) if each):
            self.may("unroll", own)

    def _inside(self, loop: ir.Loop) -> int | None:
        """Iterations of all loops inside of one; None where that is not known."""
        inside = [s.extent for s in ir.walk(loop.body) if isinstance(s, ir.Par | ir.Seq)]
        return prod(max(1, e.constant) for e in inside) if all(e.is_constant for e in inside) else None

    def _is_even(self) -> bool:
        """Whether there are whole tiles only, and nothing in them is tested."""
        sizes = self.candidate.tile
        tested = self.nest.masked or any(isinstance(stmt, ir.If) for stmt in ir.walk((self.nest.loops[0],)))
        ragged = [loop for loop in self.nest.loops if not self.nest.known.multiple(loop.extent, sizes[loop.sym])]
        return not tested and all(loop.sym in self.filled for loop in ragged)

    def _stored(self, parts: Mapping[Sym, Loops]) -> None:
        """Makes vectors of the neighbours that a thread has of results."""
        sym = self.candidate.lane
        lane, lanes = parts[sym].lane, self.vectors.get(sym, 1)
        results = {t.buffer for t in self.nest.touches if t.writes and t.buffer not in self.nest.local}
        if lane is None:
            return
        for loop in self.loops_over(results, lanes):
            if not self.may("vectorize", loop):
                self.dropped.pop()

    def loops_over(self, results: Collection[Buffer], lanes: int) -> list[str]:
        """Innermost loops of so many iterations in which one of these is written."""
        return [
            loop.sym.name
            for loop in loops(self.state.function.body)
            if loop.extent.is_constant
            and loop.extent.constant == lanes
            and any(isinstance(s, ir.Bind) and s.targets[0].buffer in results for s in loop.body)
        ]

    def _parts(self, loop: ir.Loop) -> Loops:
        """`loop` split by the tile."""
        name, size = loop.sym.name, self.candidate.tile[loop.sym]
        trips = self.nest.trips[loop.sym]
        if isinstance(loop, ir.Seq):
            if loop.extent.is_constant and trips <= size:
                return Loops(own=name)
            if size == 1:
                return Loops(name)
            outer, inner = self.fresh(name, "o", "i")
            self.must("split", name, size, results=(outer, inner))
            return Loops(outer, own=inner)
        own = self.candidate.own.get(loop.sym, 1)
        if size == 1:
            return Loops(name)
        outer, inner = self.fresh(name, "b", "t" if own == 1 else "v" if own == size else "e")
        self.must("split", name, size, results=(outer, inner))
        if own == 1:
            return Loops(outer, thread=inner)
        if own == size:
            return Loops(outer, own=inner)
        lanes = self.vectors.get(loop.sym, 1)
        if lanes == own:
            thread, lane = self.fresh(name, "t", "l")
            self.must("split", inner, lanes, results=(thread, lane))
            return Loops(outer, thread, lane=lane)
        kept, thread = self.fresh(name, "v", "q" if lanes > 1 else "t")
        self.must("split", inner, size // own * lanes, results=(kept, thread))
        if lanes == 1:
            return Loops(outer, thread, kept)
        quad, (thread, lane) = thread, self.fresh(name, "t", "l")
        self.must("split", quad, lanes, results=(thread, lane))
        return Loops(outer, thread, kept, lane)

    def _lanes(self, parts: dict[Sym, Loops]) -> list[str]:
        """The loops over threads, that of neighbouring lanes first, then from inside out."""
        order = [self.candidate.lane, *(p.sym for p in reversed(self.nest.pars) if p.sym != self.candidate.lane)]
        return [thread for sym in order if (thread := parts[sym].thread) is not None]

    def _accumulators(self, at: str) -> None:
        """Keeps what is updated over the sequential loops in registers."""
        seqs = {loop.sym for loop in self.nest.seqs}
        kept = (t.buffer for t in self.nest.touches if t.updates and t.around & seqs and t.buffer not in self.nest.local)
        for buffer in dict.fromkeys(kept):
            (name,) = self.fresh(buffer.name, "acc")
            self.must("stage", buffer.name, at=at, space="registers", results=(name,))

    def _shared(self, staging: Staging, at: str, parts: Mapping[Sym, Loops]) -> None:
        buffer, asked = staging.form.buffer, {"at": at, "in": "shared"}
        if (part := self.apart.get(buffer)) is not None:
            buffer, own = part.buffer, parts[part.along]
            asked["along"] = own.thread or own.own or own.lane or own.outer or part.along.name
        (name,) = self.fresh(buffer.name, "s")
        if not self._is_async(buffer):
            self.must("stage", buffer.name, results=(name,), of=buffer, **asked)
        else:
            self.must("stage", buffer.name, results=(name,), of=buffer, via="cp_async", **asked)
        machine = self.state.target.coalescing
        lanes = self._lanes_of_copy(staging)
        pad = padding(self.nest, self.candidate, staging, machine, self.vectors, lanes if self._is_async(buffer) else 1)
        last = len(staging.box) - 1
        if pad:
            self.must("resize", f"{name}.d{last}", 0, pad)
        if lanes > 1:
            copied = f"{name}_{last}"
            self.must("vectorize", copied, lanes, results=self.fresh(copied, "vector", "lane"))
        elif not pad and last and staging.box[-1] % machine.lanes and machine.lanes % staging.box[-1]:
            loops = [f"{name}_{dim}" for dim, extent in enumerate(staging.box) if extent > 1]
            self._merged(loops)

    def _is_async(self, buffer: Buffer) -> bool:
        """Whether a box of it is copied asynchronously: an element has a width that such copies have."""
        return ASYNC_COPY in self.state.target.features and buffer.dtype.bytes >= COPIED[-1]

    def _lanes_of_copy(self, staging: Staging) -> int:
        """The elements of a vector of a copy, where every row of the box begins at one and has whole ones, or 1."""
        lanes = self.state.target.vector // staging.form.buffer.dtype.bytes
        touches = self.nest.of(staging.form.buffer)
        whole = len(staging.box) > 0 and staging.box[-1] % lanes == 0
        return lanes if whole and all(begins_even(t, lanes, self.nest.known) for t in touches) else 1

    def _merged(self, loops: list[str]) -> None:
        """Merges the loops of a copy whose rows do not suit a warp: it is distributed element by element."""
        while len(loops) > 1:
            *loops, outer, inner = loops
            (made,) = self.fresh(outer, "m")
            if not self.may("merge", outer, inner, results=(made,)):
                return
            loops.append(made)


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_blocks and isinstance(subject.nest, Nest) and not subject.nest.whole


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    """The tile of least modelled cost: bytes for an iteration."""
    assert isinstance(subject.nest, Nest), "as it applies"
    (nest, parts), state, less = apart(subject.nest), subject.state, without(refused)
    if less is None:
        return None
    banned = less.banned | {part for part, each in parts.items() if each.buffer in less.banned}
    found = Search(nest, budget(state.target, len(nest.loops)), banned, less.in_order).best()
    return Proposal(TileScript(state, subject.span, nest=nest, candidate=found, apart=parts), found.cost, found)


def _others(subject: Subject) -> Iterator[Proposal]:
    """All tiles that were looked at."""
    assert isinstance(subject.nest, Nest), "as it applies"
    (nest, parts), state = apart(subject.nest), subject.state
    for found in Search(nest, budget(state.target, len(nest.loops))).others():
        yield Proposal(TileScript(state, subject.span, nest=nest, candidate=found, apart=parts), found.cost, found)


STRATEGY = Strategy(Rank.TILE, _applies, _propose, _others)
