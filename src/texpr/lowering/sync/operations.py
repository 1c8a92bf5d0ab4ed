"""Operations that start engines, one thread's: what it initialises first, starts at a step, and waits for at the end.

begin   init full[0], 1; fence                 each barrier of a slot, ahead of a barrier of all
issue   expect full[0], 16384;  copy As = …    as much as the copies of a group bring
end     wait                                   for all stores
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ZERO, expr
from texpr.ir import kernel as k
from texpr.ir.operation import Group as Kind
from texpr.ir.steps import AtBarrier, Completion, InGroup, Step
from texpr.ir.value import Index, Literal, Op, conjunction
from texpr.ir.value.types import BOOL, I32
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.lowering.build.paths import ProgramPoint
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.lowering.engine.tensor import Maps
from texpr.lowering.sync.engines import Engines
from texpr.lowering.sync.phases import Group, Phases
from texpr.lowering.sync.turns import Phase
from texpr.schedule.edits import without
from texpr.support.diagnostic import limitation
from texpr.support.record import Record


class Operations(Record):
    """The operations of a nest's copies. `maps` has the map of each."""

    engines: Engines
    phases: Phases
    maps: Maps

    def start(self, more: tuple[k.Stmt, ...] = ()) -> tuple[k.Stmt, ...]:
        """The operations of one thread at the start: initialisation of the barriers, and of `more`, and a fence for engines."""
        every = ((g, g.at(Phase(expr(slot), ZERO))) for g in self.phases.groups for slot in range(g.barrier.shape[0].constant))
        made = (k.BarrierInit(barrier, 1, span=g.members[0].span) for g, barrier in every)
        return (*made, *more, k.Fence("init")) if self.phases.groups or more else ()

    @property
    def made(self) -> tuple[k.Covered, ...]:
        """The dependences that the barrier after `start` covers."""
        spans = ((g.barrier.name, g.members[0].span) for g in self.phases.groups)
        return tuple(k.Covered("RAW", name, span, span) for name, span in spans)

    def issue(self, step: BoxCopy) -> Iterator[k.Stmt]:
        """The operations of one thread at the step of a copy."""
        needed = conjunction(self.maps.asked(step))
        if step.among and needed is not None and not self.maps.cluster.alike(needed):
            reason = "whether there is anything to copy may differ from one block of a cluster to another"
            raise limitation("E0918", step.span, reason, offers=without(step.span, "multicast"))
        if step.stores:
            stores = self.maps.stores(step)
            yield from stores if needed is None else (k.If(needed, stores, span=step.span),)
            yield k.CommitBulk(span=step.span)
            if self.phases.followed[step]:
                yield k.WaitBulk(0, covers=(*self.phases.followed[step], *self.phases.reused[step]), span=step.span)
            elif self.phases.reused[step]:
                yield k.WaitBulk(0, read=True, covers=self.phases.reused[step], span=step.span)
            return
        group = self._group(step)
        assert group is not None
        barrier = group.at(group.phase)
        most, exactly = sum(map(self.maps.bytes, group.members)), self.maps.exactly(group.members)
        led = self.is_led(group)
        if led and (exactly is not None or needed is not None):
            told = "blocks of a pair may copy something or not, and the first one counts for both"
            raise limitation("E0918", step.span, told)
        expect: k.Stmt = k.BarrierExpect(barrier, most * (PAIR if led else 1), span=step.span, exactly=exactly)
        expect, loads = self.first(expect) if led else expect, self.maps.loads(step, barrier, led)
        if needed is not None and is_left_out(step, self.maps):
            yield k.If(needed, (expect, *loads), (k.BarrierArrive(barrier, span=step.span),), span=step.span)
            return
        if step is group.members[0]:
            yield expect
        fillings = () if needed is None else self.maps.fillings(step, barrier)
        yield from loads if needed is None else (k.If(needed, loads, fillings, span=step.span),)

    def is_led(self, group: Group) -> bool:
        """Whether the copies of a barrier are counted in the first block of a pair, for both."""
        return all(member in self.engines.led for member in group.members)

    def first(self, stmt: k.Stmt) -> k.Stmt:
        """A statement of the first block of a pair."""
        (along,) = self.maps.cluster.along.values()
        return k.If(Op("eq", (Index(expr(along.rank), I32), Literal(0, I32)), BOOL), (stmt,), uniform=True)

    @property
    def waits(self) -> dict[ProgramPoint, tuple[k.Stmt, ...]]:
        """The waits for phases, by the threads that know of them."""
        led = {group.barrier for group in self.phases.groups if self.is_led(group)}
        return {
            gap: tuple(self.first(wait) if wait.barrier.buffer in led else wait for wait in waits)
            for gap, waits in self.phases.waits.items()
        }

    def completion(self, leaf: Step) -> Completion:
        """When the copy of a step is complete: a load with a phase of its barrier, a store with its group."""
        group = self._group(self.engines.copies[leaf])
        return InGroup(Kind.BULK) if group is None else AtBarrier(group.barrier)

    def _group(self, copy: BoxCopy) -> Group | None:
        return next((group for group in self.phases.groups if copy in group.members), None)

    def finish(self) -> tuple[k.Stmt, ...]:
        """The operation of one thread at the end: the wait for its stores."""
        return (k.WaitBulk(0),) if self.engines.stores else ()


def is_left_out(copy: BoxCopy, maps: Maps) -> bool:
    """Whether a load is skipped if it is not needed; its phase then completes without bytes."""
    return copy.tested.fill is None and bool(maps.asked(copy))
