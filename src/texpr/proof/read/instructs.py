"""Instructions on registers of lanes as events, element by element, by their meaning and their fragments.

An element of the result is assigned by the lane that has it, from registers of other lanes at that time. It is trusted that a
template computes the meaning; the lane of each element follows from the fragments alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.instr import ADDRESS, Give, Instr, Operand, Step, Turn, stays_in_warps
from texpr.ir.instr.descriptor import offset
from texpr.ir.ops.collective import Held, loop_count
from texpr.ir.program.rewrite import map_value
from texpr.ir.program.updates import combine
from texpr.ir.value import Buffer, Index, Load, Value
from texpr.isa.engine import CHUNK
from texpr.presburger.formula import FALSE, TRUE, Eq, Formula, Ge
from texpr.proof.read.boxes import aligned, behind
from texpr.proof.read.events import Event, Launch, Site, over, ranged
from texpr.proof.read.pairs import Halves, led
from texpr.proof.read.rows import in_rows
from texpr.support.record import Mutable, replace

Kept = Callable[[Load, Expr], Load]
"""The registers of a thread, as an element of memory with a row for each thread of the block."""


def used(op: k.Operation) -> k.Collective:
    """The use of an instruction, as which a kernel tells of it."""
    assert isinstance(op, k.Collective), "nothing else has an instruction"
    return op


def not_understood(op: k.Collective, launch: Launch) -> str | None:
    """The reason why an instruction is opaque, None if it is not: among others, a violated rule of kernels."""
    instr = launch.kernel.instr_of.get(op.name)
    if instr is None or len(instr.operands) != len(op.registers):
        return "an instruction that the kernel does not have"
    if isinstance(op, k.Alone):
        return None if instr.lanes == 1 and len(instr.loops) == len(op.loops) else "an instruction that no core does alone"
    if loop_count(instr, op.threads or launch.kernel.threads) != len(op.loops):
        return "an instruction in other loops than its meaning has"
    if not stays_in_warps(instr, launch.kernel.warp):
        return "an instruction that reads registers of other warps"
    return None if len(launch.threads) == 1 else "lanes of a block in several dimensions"


def instructed(op: k.Collective, site: Site, kept: Kept, placed: Callable[[Load], Load], halves: Halves) -> Iterator[Event]:
    """The events of an instruction at a site. All lanes read before any register is written.

    One that goes on by itself, or to which lanes say addresses, reads shared memory for all of its lanes: as if each of them
    did. What a thread starts alone it does in rows of tensor memory that are no threads' own. Those that move columns move a
    thread's own ones. What a core does is in rows of memory (`rows`).

    `kept`: an element of an array that lanes have, as a thread has it; `placed`: one of memory, over coordinates of the kernel.
    Raises ValueError for what a pair of blocks does otherwise than each of them would.
    """
    if isinstance(op, k.Alone):
        yield from in_rows(op, site, placed)
        return
    kernel = site.launch.kernel
    instr, names = kernel.instr_of[op.name], list(op.loops)
    if instr.is_pair:
        if any(e.syms() & {*site.launch.blocks} for held in op.registers for e in placed(held.first).index):
            raise ValueError("where operands of a pair lie depends on the block")
        site = led(site)
    site = replace(site, joint=not any(operand.columns for operand in instr.operands))
    group, copy = ZERO, ZERO
    threads = op.threads or kernel.threads
    if threads > instr.lanes:
        loop = _loop(names.pop(0), threads // instr.lanes)
        site, group = over(site, (loop,)), expr(loop.sym)
    if instr.copied > 1:
        loop = _loop(names.pop(0), instr.copied)
        site, copy = over(site, (loop,)), expr(loop.sym)
    held = {operand.memory: (operand, each) for operand, each in zip(instr.operands, op.registers, strict=True)}
    known = {turn.sym: expr(sym) for turn, sym in zip(instr.loops, names, strict=True)}
    (thread,) = site.launch.threads  # what stands for its number in the address that a lane says
    if (instr.group is not None and not instr.is_alone) or any(operand.access == ADDRESS for operand in instr.operands):
        lanes = Eq(site.launch.thread // instr.lanes - group)
        site = replace(site, readers=replace(site, domain=(*site.domain, lanes), joint=False))
    ranges = {sym: (0, turn.extent - 1) for turn, sym in zip(instr.loops, names, strict=True)}
    plain = Simplifier(ranged(site).known.also((), ranges))
    several = site.role is not None and op.threads and site.role.warps * kernel.warp > op.threads
    begin = site.launch.thread // threads * threads if several else ZERO  # of the group that the running thread is in
    lane = site.launch.thread % threads if several else site.launch.thread
    first, turn = (group * instr.lanes + begin, begin, lane), (copy, kept, placed, thread, plain, halves)
    yield from _Doing(op, instr, held, known, *first, *turn).steps(instr.meaning, site)


def premises(op: k.Collective, site: Site, placed: Callable[[Load], Load], known: Known) -> Iterator[Formula]:
    """What descriptors take for granted: the same start for all lanes of a group, at a chunk, in the first line of those in
    which units move, as the array begins."""
    launch = site.launch
    instr, plain = launch.kernel.instr_of[op.name], ranged(site)
    for held in op.registers:
        if held.how is None:
            continue
        first = placed(held.first)
        array = next((each for each in launch.kernel.arrays if each.buffer is held.first.buffer), None)
        yield FALSE if array is None or array.align % held.how.period else TRUE
        yield from aligned(first, CHUNK, known)
        for e in first.index:
            alike = plain(e - e.substitute({s: expr(s) // instr.lanes * instr.lanes for s in launch.threads}))
            yield TRUE if alike is ZERO else Eq(alike)
        if held.how.swizzle:
            start = first.offset * first.dtype.bytes
            yield Ge(held.how.swizzle - 1 - start % held.how.period)


def _loop(sym: Sym, extent: int) -> k.For:
    return k.For(sym, ZERO, expr(extent), (), ONE)


class _Doing(Mutable):
    op: k.Collective
    instr: Instr
    held: Mapping[Buffer, tuple[Operand, Held]]
    names: Mapping[Sym, Expr]
    first: Expr
    begin: Expr
    """The first of the threads that execute it."""
    lane: Expr
    """The number of the running thread among these."""
    copy: Expr
    kept: Kept
    placed: Callable[[Load], Load]
    thread: Sym
    plain: Simplifier
    halves: Halves

    def steps(self, some: Sequence[Step], site: Site, free: frozenset[str] = frozenset()) -> Iterator[Event]:
        for at, step in enumerate(some):
            here = replace(site, time=(*site.time, at))
            if isinstance(step, Turn):
                sym = self.names[step.sym].as_sym
                assert sym is not None
                yield from self.steps(step.body, over(here, (_loop(sym, step.extent),)), free.union(step.free))
            else:
                yield self.give(step, here, step.update is not None and step.target.buffer.name in free)

    def give(self, step: Give, site: Site, fused: bool) -> Event:
        """The event of an assignment, by the lane that has the element. `fused`: a sum with the machine's own order and
        rounding."""
        thread, target = site.launch.thread, step.target
        owner, _ = self.place(target)
        readers = None
        if site.readers is not None:  # in the same loops, at the same time
            domain = (*site.domain, *(f for f in site.readers.domain if f not in site.domain))
            readers = replace(site, domain=domain, joint=False, readers=None)
        alone = self.instr.is_alone
        own = Eq(self.lane - (owner - self.begin))
        mine = replace(site, domain=site.domain if alone else (*site.domain, own), readers=readers)
        place = self.element(target, None if alone else thread)
        value = self.value(step.value)
        whole = value if step.update is None else combine(step.update, (place,), (value,))[0]
        kind = "plain" if self.op.GROUP is None else "async"
        return Event(mine, place, whole, replace(self.op, fused=fused), kind, group=self.op.GROUP)

    def place(self, load: Load) -> tuple[Expr, Load]:
        """The thread that has an element of an operand, and its register; or that says where it is, and the first one there."""
        operand, held = self.held[load.buffer]
        index = [e.substitute(self.names) for e in load.index]
        if operand.is_shared:
            return self.first + operand.fragment.lane(index), held.first
        copy = self.copy % operand.fragment.copied if operand.fragment.copies else ZERO
        slot = held.first.index[0] + operand.fragment.register(index, copy)
        return self.first + operand.fragment.lane(index, copy), replace(held.first, index=(slot,))

    def element(self, load: Load, thread: Expr | None = None) -> Load:
        """An element of an operand, for the thread that executes the event."""
        operand, held = self.held[load.buffer]
        if operand.is_address:
            index = [e.substitute(self.names) for e in load.index]
            owner, at = self.first + operand.fragment.lane(index), operand.fragment.register(index)
            *outer, last = (e.substitute({self.thread: owner}) for e in self.placed(held.first).index)
            return replace(self.placed(held.first), index=(*outer, last + at))
        if operand.is_described:
            return self.described(operand, held, [e.substitute(self.names) for e in load.index])
        owner, register = self.place(load)
        return self.kept(register, owner if thread is None else thread)

    def described(self, operand: Operand, held: Held, index: Sequence[Expr]) -> Load:
        """An element in shared memory, where the descriptor says that it is."""
        assert held.how is not None
        part, half = ZERO, self.halves.get(held.first.buffer)
        if operand.halved is not None:
            each = operand.part[operand.halved]
            if half is None or held.first.index[half.dim] is not ZERO:
                raise ValueError("an operand in halves of what has none, or from elsewhere than where these begin")
            part = index[operand.halved] // each
            index = [e % each if at == operand.halved else e for at, e in enumerate(index)]
        linear, first = offset(self.instr, operand, held.how, index) // operand.dtype.bytes, self.placed(held.first)
        first = replace(first, index=tuple(e.substitute({self.thread: self.first}) for e in first.index))
        found = behind(first, linear, self.plain, held.how.swizzle)
        if half is None:
            return found
        row, known = found.index[half.dim], self.plain.known
        if not (known.nonnegative(row) and known.nonnegative(expr(half.rows - 1) - row)):
            raise ValueError("an operand in halves that reaches beyond one")
        return half.of(found, part)

    def value(self, value: Value) -> Value:
        def leaf(node: Value) -> Value | None:
            if isinstance(node, Load):
                return self.element(node)
            return Index(node.expr.substitute(self.names), node.dtype, node.span) if isinstance(node, Index) else None

        return map_value(value, leaf)
