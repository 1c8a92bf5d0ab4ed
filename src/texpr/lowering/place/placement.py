"""The place of every `new` of a kernel, by the threads that access its elements.

One thread: a register, or an array of the thread, if the size is known; a copy in each thread of a team, if all write the same.
One warp: registers of its lanes, if shuffles cost less than requests to shared memory. One block: shared memory, if it fits.
Blocks of a cluster: a part in the shared memory of each. Otherwise the caller's workspace, with an instance for each grid
iteration (and thread) that may be live at once.

Before: steps that declare and access locals. After: for each of these a place (`ir.steps.place`), and the arrays:

    all run { new t }                               array shared t: f32[64] "threads of one block touch it"
    all spread writes t { … t[j] = … }        →     place t: f32[64] in t
    all spread reads t { … = t[63 - j] }
    all run { new c }   all spread { … c[j] … }     place c: f32[64] register c "each element is touched by one thread"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import atomic_binds
from texpr.ir.steps import Steps
from texpr.ir.steps.place import Parts, Place
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.lowering.build.team import COPIES, replicated_buffers
from texpr.lowering.dependences.lives import Lives
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.place.arena import room
from texpr.lowering.place.distributed import Distributed, distributed
from texpr.lowering.place.halves import halved
from texpr.lowering.place.owners import Lanes, Unfit
from texpr.lowering.place.registers import columns, registers
from texpr.lowering.place.shuffles import Shuffles
from texpr.mapping.nest import Nest
from texpr.support.diagnostic import Limitation, Note, limitation
from texpr.support.record import Mutable, field, replace

OWN_BYTES = 8192
"""The largest array of a thread in bytes; a larger one is in the workspace."""


def count(shape: tuple[Expr, ...]) -> int | None:
    """The number of elements of a shape, or None if a size is not known."""
    product = 1
    for extent in shape:
        if not extent.is_constant:
            return None
        product *= max(0, extent.constant)
    return product


def place(steps: Steps, nest: Nest, target: Target, needs: Needs, lives: Lives, sizes: frozenset[Sym]) -> Steps:
    """The form with a place for every local, the arrays, and the bytes of a block that are left to those without an offset.

    `lives`: when locals are needed; `sizes`: the symbols that the workspace's size may depend on. Raises Limitation E0542 for
    a workspace of another size, E0913 for places that a schedule requires and that are impossible.
    """
    placer = _Placer(steps, nest, target, needs, lives, sizes)
    places = placer.run()
    memory = {array.buffer for array in placer.arrays}  # its reason is the array's
    local = {b for b in steps.buffers if b.role == "local"}
    own = sorted({*local, *workspace_of(places)}, key=lambda b: b.name)
    return replace(
        steps,
        buffers=(*(b for b in steps.buffers if b not in local), *own),
        places=tuple((b, replace(p, reason="") if p.buffer in memory else p) for b, p in places.items()),
        arrays=(*placer.arrays, *steps.arrays),
        unrolled=tuple(sorted(placer.unrolled, key=str)),
        budget=placer.budget or target.shared,
    )


def workspace_of(places: Mapping[Buffer, Place]) -> tuple[Buffer, ...]:
    """The buffers in the caller's workspace."""
    return tuple(place.buffer for place in places.values() if place.space is k.Space.GLOBAL)


class _Placer(Mutable, dict=True):
    """The places of one nest's locals, in the order of their declarations. `shared`: bytes of those in shared memory.

    `budget`: the limit of shared arrays together, in bytes, or 0. `words`: the registers of a thread for arrays in lanes,
    of which `operands` are for those of instructions, whatever else is there.
    `unrolled`: the loops that slots depend on.
    """

    steps: Steps
    nest: Nest
    target: Target
    needs: Needs
    lives: Lives
    sizes: frozenset[Sym]
    arrays: list[k.Array] = field(default_factory=list[k.Array])
    shared: list[tuple[Buffer, int]] = field(default_factory=list[tuple[Buffer, int]])
    unrolled: set[Sym] = field(default_factory=set[Sym])
    budget: int = 0
    words: int = 0
    operands: int = 0

    def run(self) -> dict[Buffer, Place]:
        """The places of every `new` in the nest."""
        held, found = registers(self.nest.body) if self.target.has_warps else {}, dict[Buffer, Place]()
        there = columns(self.nest.body)
        self.operands = sum(each.words * _words(buffer) for buffer, each in held.items() if buffer not in there)
        for new, own in _news(self.nest.body, self.nest, self.nest.team == 1):
            if new.arrivals:
                continue
            if new.buffer in there:
                dealt = held[new.buffer].dealt
                made = self._array(new.buffer, k.Space.TENSOR, there[new.buffer], tuple(map(expr, dealt.shape)))
                found[new.buffer] = replace(made, dealt=dealt)
            elif new.buffer in held:
                told = "an instruction of lanes has it there"
                found[new.buffer] = self._in_lanes(new.buffer, held[new.buffer], told)
            else:
                found[new.buffer] = self._wanted(new, own) if new.space else self._own(new) if own else self._team(new)
        return found

    @cached_property
    def replicated(self) -> frozenset[Buffer]:
        """The locals that each thread replicates."""
        return frozenset() if self.nest.team == 1 else replicated_buffers(self.nest)

    @cached_property
    def halves(self) -> dict[Buffer, Parts]:
        """The locals of which blocks of a pair have halves."""
        return halved(self.nest.body, self.steps)

    @cached_property
    def shuffles(self) -> Shuffles:
        """What shuffles between lanes cost."""
        atomics = frozenset(atomic_binds(tuple(m.loop for m in self.nest.grid), self.nest.body))
        return Shuffles(self.needs, self.nest, self.steps.body, atomics)

    def _slots(self, buffer: Buffer) -> tuple[int, ...] | None:
        """The number of threads along each dimension, if one thread accesses each element; else None."""
        return self.needs.slots(self.nest, self.steps.body, buffer)

    def _distribution(self, buffer: Buffer) -> Distributed | None:
        """The distribution of a local over the blocks of a cluster."""
        rank = self.steps.rank
        return None if rank is None else distributed(self.needs, self.nest, self.steps.body, buffer, rank)

    def _wanted(self, new: ir.New, own: bool) -> Place:
        """The place that a schedule requires; raises E0913 if it is impossible."""
        buffer, size = new.buffer, count(new.buffer.shape)
        reason = "the schedule places it there"
        match new.space:
            case "registers":
                slots = tuple(1 for _ in buffer.shape) if own else self._slots(buffer)
                if buffer in self.replicated or (own and size == 1):
                    return self._register(buffer, reason)
                if slots is None or size is None:
                    why = "several threads touch an element" if size is not None else "its size is not a constant"
                    raise self._misplaced(new, why, "if loops are bound alike, one thread accesses each element")
                shape = tuple((extent + (s - 1)) // s for extent, s in zip(buffer.shape, slots, strict=True))
                kept = count(shape)
                if kept is not None and kept * buffer.dtype.bytes > max((OWN_BYTES, *self.target.caches[-1:])):
                    raise self._misplaced(new, f"each thread would keep {kept} elements", "smaller tiles need less")
                if kept == 1:
                    return self._register(buffer, reason)
                return self._array(buffer, k.Space.LOCAL, reason, shape, slots)
            case "lanes":
                return self._wanted_in_lanes(new, own)
            case "shared" | "cluster" if self.nest.blocks > 1 or new.space == "cluster":
                return self._wanted_of_cluster(new, own)
            case "shared" if buffer in self.halves:
                part = self.halves[buffer]
                reason = "each block of a pair has half of it, for both"
                needed = self._with(buffer, (size or 0) // part.blocks * buffer.dtype.bytes, self.target.shared)
                if own or size is None or needed > self.target.shared:
                    why = f"a block would need {needed} bytes, and has {self.target.shared}"
                    raise self._misplaced(new, why, "smaller tiles need less")
                made = self._array(buffer, k.Space.SHARED, reason, part.shape(buffer.shape))
                self.arrays[-1] = replace(self.arrays[-1], halved=part.dim)
                return replace(made, parts=part)
            case "shared":
                teams = self.nest.threads // self.nest.team
                if own or size is None or teams > 1:
                    why = (
                        "each thread has its own" if own else "its size is not a constant" if size is None else "warps share it"
                    )
                    raise self._misplaced(new, why, "a local of a block is declared in a loop that its threads run together")
                needed = self._with(buffer, size * buffer.dtype.bytes, self.target.shared)
                if needed > self.target.shared:
                    why = f"a block would need {needed} bytes, and has {self.target.shared}"
                    raise self._misplaced(new, why, "smaller tiles need less")
                return self._array(buffer, k.Space.SHARED, reason)
            case _:
                leading = () if own else tuple(self._grid())
                trailing = tuple(self._grid()) if own else ()
                if own and self.nest.team > 1:
                    trailing = (*trailing, (self.steps.thread % self.nest.team, expr(self.nest.team)))
                return self._workspace(new, leading, trailing, reason)

    def _wanted_of_cluster(self, new: ir.New, own: bool) -> Place:
        """The place in cluster memory, or in shared memory of each block, that a schedule requires."""
        size, help = count(new.buffer.shape), "loops that are bound alike to the cluster share its memory"
        if self.nest.blocks == 1:
            raise self._misplaced(new, "its blocks are in no cluster", "a loop that is bound to cluster.x has one")
        if own or size is None:
            why = "each thread has its own" if own else "its size is not a constant"
            raise self._misplaced(new, why, "a local of a cluster is declared in a loop that its blocks run together")
        found = self._distribution(new.buffer)
        if found is None:
            raise self._misplaced(new, "blocks of the cluster write the same elements, or in no order that is known", help)
        if new.space == "shared" and found.crosses:
            raise self._misplaced(
                new, "blocks of the cluster read each other's elements", "memory of the cluster can be read by all its blocks"
            )
        needed = self._needed(new.buffer, found)
        if needed > self.target.shared:
            why = f"a block of the cluster would need {needed} bytes, and has {self.target.shared}"
            raise self._misplaced(new, why, "a larger cluster has more memory, and smaller tiles need less")
        return self._distributed(new.buffer, found, "the schedule places it there")

    def _part(self, buffer: Buffer, found: Distributed) -> int:
        """The bytes of its part in one block."""
        return (count(found.parts.shape(buffer.shape)) or 0) * buffer.dtype.bytes

    def _distributed(self, buffer: Buffer, found: Distributed, reason: str) -> Place:
        space = k.Space.CLUSTER if found.crosses else k.Space.SHARED
        part = found.parts.shape(buffer.shape)
        shape = (expr(self.nest.blocks), *part) if found.crosses else part
        return replace(self._array(buffer, space, reason, shape), parts=found.parts)

    def _of_cluster(self, new: ir.New) -> Place:
        """The place of a local that threads of several blocks access."""
        buffer, size = new.buffer, count(new.buffer.shape)
        place = None if size is None else self._in_blocks(buffer)
        if place is not None:
            return place
        found = None if size is None else self._distribution(buffer)
        why = "its size is not known" if size is None else "elements have no block that writes them"
        if found is not None:
            why = f"a block would need {self._needed(buffer, found)} bytes, and has {self.target.shared}"
        return self._workspace(new, tuple(self._grid()), (), f"blocks of a cluster touch it, but {why}")

    def _needed(self, buffer: Buffer, found: Distributed) -> int:
        """The bytes of a block's shared memory with its part of one more local."""
        return self._with(buffer, self._part(buffer, found), self.target.shared)

    def _in_blocks(self, buffer: Buffer) -> Place | None:
        """A part in each block of a cluster, if each element is written by one block and the parts fit; else None."""
        found = self._distribution(buffer)
        if found is None or self._needed(buffer, found) > self.target.shared:
            return None
        told = "blocks of a cluster read what others of them have" if found.crosses else "each element is touched by one block"
        return self._distributed(buffer, found, told)

    def _wanted_in_lanes(self, new: ir.New, own: bool) -> Place:
        """The place in lanes that a schedule requires."""
        if own or count(new.buffer.shape) is None:
            why = "each thread has its own" if own else "its size is not a constant"
            raise self._misplaced(new, why, "registers are each thread's own" if own else "shared memory is a block's")
        try:
            found = self.shuffles.lanes(new.buffer, True)
        except Unfit as unfit:
            raise self._misplaced(new, unfit.reason, "shared memory is a block's", *unfit.notes) from None
        if self._spare(found, new.buffer) + self.operands < 0:
            why = f"a thread would keep {found.words * _words(new.buffer)} words, and {self._most} are for what lanes read"
            raise self._misplaced(new, why, "smaller tiles need less")
        return self._in_lanes(new.buffer, found, f"the schedule places it there: {found.price}")

    def _misplaced(self, new: ir.New, why: str, help: str, *notes: Note) -> Limitation:
        return limitation("E0913", new.span, f"`{new.buffer.name}` cannot live in {new.space}: {why}", *notes, help=help)

    def _own(self, new: ir.New) -> Place:
        """The place of a local that one thread accesses."""
        buffer = new.buffer
        size = count(buffer.shape)
        if size == 1:
            return self._register(buffer, "one thread touches it")
        if size is not None and size * buffer.dtype.bytes <= OWN_BYTES:
            return self._array(buffer, k.Space.LOCAL, "one thread touches it")
        trailing = tuple(self._grid())
        if self.nest.team > 1:
            trailing = (*trailing, (self.steps.thread % self.nest.team, expr(self.nest.team)))
        return self._workspace(new, (), trailing, "one thread touches it, but its size is not known or too large")

    def _team(self, new: ir.New) -> Place:
        buffer = new.buffer
        if buffer in self.replicated:
            return self._register(buffer, "each thread keeps the same value")
        size = count(buffer.shape)
        slots = self._slots(buffer) if size is not None else None
        if slots is not None and size is not None:
            shape = tuple((extent + (s - 1)) // s for extent, s in zip(buffer.shape, slots, strict=True))
            own = count(shape)
            if own == 1:
                return self._register(buffer, "each element is touched by one thread")
            if self.nest.blocks > 1 and own is not None and own > COPIES and (place := self._in_blocks(buffer)) is not None:
                return place
            whole = all(s == 1 for s in slots)
            if own is not None and own * buffer.dtype.bytes <= OWN_BYTES and (not whole or own <= COPIES):
                return self._array(buffer, k.Space.LOCAL, "each element is touched by one thread", shape, slots)
        if self.nest.blocks > 1:
            return self._of_cluster(new)
        lanes, refused = self._cheap(buffer) if size is not None else (None, "")
        if lanes is not None:
            return self._in_lanes(buffer, lanes, f"lanes of one warp touch it: {lanes.price}")
        teams = self.nest.threads // self.nest.team
        if size is not None and buffer in self.nest.row_padding:
            size = size // max(1, buffer.shape[-1].constant) * self._longer(buffer)[-1].constant
        needed = None if size is None else self._with(buffer, size * teams * buffer.dtype.bytes, self.target.shared_static)
        if needed is not None and needed <= self.target.shared_static:
            if teams == 1:
                row_padding = self.nest.row_padding.get(buffer, 0)
                layout = f", rows {row_padding} longer for its banks" if row_padding else ""
                told = f"threads of one block touch it{layout}{refused}"
                return self._array(buffer, k.Space.SHARED, told, self._longer(buffer))
            told = f"threads of one warp touch it{refused}"
            place = self._array(buffer, k.Space.SHARED, told, (expr(teams), *buffer.shape))
            return replace(place, leading=(self.steps.thread // self.nest.team,))
        most = self.target.shared_static
        why = "its size is not known" if needed is None else f"it would need {needed} bytes, and has {most}"
        return self._workspace(new, tuple(self._grid()), (), f"a block touches it, but {why}")

    def _cheap(self, buffer: Buffer) -> tuple[Lanes | None, str]:
        """The placement of a local in lanes, if that costs less than shared memory; else the reason why not."""
        try:
            found = self.shuffles.lanes(buffer, False)
        except Unfit as unfit:
            return None, f"; not in lanes: {unfit.reason}" if self.nest.team <= self.nest.warp else ""
        if self._spare(found, buffer) < 0:
            return None, f"; not in lanes: a thread has {self._most} words for what they read"
        return (found, "") if found.price.is_less else (None, f"; lanes would take {found.price}")

    @property
    def _most(self) -> int:
        """The words of a thread for arrays in lanes: half of the registers that it certainly has."""
        return min(self.target.registers_thread, self.target.registers_block // max(1, self.nest.threads)) // 2

    def _spare(self, found: Lanes, buffer: Buffer) -> int:
        return self._most - self.words - found.words * _words(buffer)

    def _in_lanes(self, buffer: Buffer, found: Lanes, reason: str) -> Place:
        self.words += found.words * _words(buffer)
        self.unrolled |= found.unrolled
        made = self._array(buffer, k.Space.LANES, reason, tuple(map(expr, found.dealt.shape)))
        return replace(made, dealt=found.dealt)

    def _longer(self, buffer: Buffer) -> tuple[Expr, ...]:
        """Its shape with padded rows."""
        row_padding = self.nest.row_padding.get(buffer, 0)
        return (*buffer.shape[:-1], buffer.shape[-1] + row_padding) if row_padding else buffer.shape

    def _with(self, buffer: Buffer, size: int, most: int) -> int:
        """The bytes of shared memory with one more local, which is recorded if these are at most `most`."""
        every = (*self.shared, (buffer, size))
        needed = sum(each for _, each in every)
        if needed > most and self.nest.team == self.nest.threads:
            needed = room(every, self.lives)
            self.budget = most if needed <= most else self.budget
        if needed <= most:
            self.shared.append((buffer, size))
        return needed

    def _register(self, buffer: Buffer, reason: str) -> Place:
        return Place(k.Space.LOCAL, buffer, register=Sym(buffer.name), reason=reason)

    def _array(
        self,
        buffer: Buffer,
        space: k.Space,
        reason: str,
        shape: tuple[Expr, ...] | None = None,
        slots: tuple[int, ...] = (),
    ) -> Place:
        made = Buffer(buffer.name, buffer.dtype, shape or buffer.shape, "local", span=buffer.span)
        self.arrays.append(k.Array(made, space, reason))
        return Place(space, made, slots=slots if any(s != 1 for s in slots) else (), reason=reason)

    def _workspace(
        self,
        new: ir.New,
        leading: tuple[tuple[Expr, Expr], ...],
        trailing: tuple[tuple[Expr, Expr], ...],
        reason: str,
    ) -> Place:
        buffer = new.buffer
        shape = (*(extent for _, extent in leading), *buffer.shape, *(extent for _, extent in trailing))
        made = Buffer(buffer.name, buffer.dtype, shape, "local", span=buffer.span)
        require_sizes(made, self.sizes)
        return Place(
            k.Space.GLOBAL,
            made,
            leading=tuple(at for at, _ in leading),
            trailing=tuple(at for at, _ in trailing),
            reason=reason,
        )

    def _grid(self) -> Iterator[tuple[Expr, Expr]]:
        for loop_map in self.nest.grid:
            yield expr(loop_map.loop.sym), loop_map.loop.extent


def _words(buffer: Buffer) -> int:
    """The registers of one element."""
    return -(-buffer.dtype.bytes // 4)


def require_sizes(buffer: Buffer, sizes: frozenset[Sym]) -> None:
    """Raises Limitation if the extents of a workspace buffer are not known before the first launch."""
    inner = {s for e in buffer.shape for s in e.syms()} - sizes
    if inner:
        name = min(s.base for s in inner)
        raise limitation(
            "E0542", buffer.span, f"the size of `{buffer.name}` depends on `{name}`, so no memory can be set aside"
        )


def _news(body: tuple[ir.Stmt, ...], nest: Nest, own: bool) -> Iterator[tuple[ir.New, bool]]:
    """Every `new` in `body`, with whether a single thread executes it."""
    for stmt in body:
        if isinstance(stmt, ir.New):
            yield stmt, own
        for block in ir.blocks(stmt):
            yield from _news(block, nest, own or (isinstance(stmt, ir.Par) and stmt in nest.loops))
