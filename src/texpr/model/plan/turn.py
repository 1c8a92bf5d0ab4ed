"""What a warpgroup does in a steady turn of a kernel's loop, as its plan says: products that it starts, waits, work of lanes.

Of the turns of a loop that ends groups of products the one that stands for most is taken, in a block from between, by its first
warp. Whether lanes work while a product goes on is what the plan's own waits say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.point import Point
from texpr.ir.operation import BLOCK, Awaits, Closes, Group
from texpr.isa.cuda import WARPGROUP
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.plan.walk import Walk, walk_of
from texpr.model.turns import Meet, Part, Ring, Start, Wait, lanes, period, special_clocks
from texpr.support.record import Record, as_dict, field


class _Tape(Record):
    """A turn: for how many it stands, and its parts."""

    weight: float
    parts: tuple[Part, ...]


class _Timed(Walk, eq=False):
    """A walk that notes what is done in turns of `loop`, in order. `clocks`: of a multiply-add of a type."""

    loop: k.For | None = None
    clocks: Mapping[str, float] = field(default_factory=dict[str, float])
    tapes: list[_Tape] = field(default_factory=list[_Tape])
    noted: list[Part] | None = None
    each: float = 1.0
    begun: float = 0.0
    started: float = 0.0
    special: float = 0.0
    device: Device | None = None

    def _block(self, body: tuple[k.Stmt, ...], lanes: list[Point], weight: float) -> None:
        if self.loop is None or body is not self.loop.body or not lanes or not weight:
            super()._block(body, lanes, weight)
            return
        self.noted, self.each, self.started = [], weight, 0.0
        self.begun, self.special = self.counted.sums["issued"], self.counted.sums["special"]
        super()._block(body, lanes, weight)
        self._worked()
        self.tapes.append(_Tape(weight, tuple(self.noted)))
        self.noted = None

    def _worked(self) -> None:
        """Notes what lanes did since the last part."""
        issued, self.begun = self.counted.sums["issued"] - self.begun, self.counted.sums["issued"]
        special, self.special = self.counted.sums["special"] - self.special, self.counted.sums["special"]
        if self.noted is not None and issued > 0 and self.device is not None:
            self.noted.append(lanes(issued / self.each, special_clocks(special / self.each, self.device)))

    def _operation(self, stmt: k.Stmt, lanes: list[Point], weight: float) -> None:
        super()._operation(stmt, lanes, weight)
        if self.noted is None or not isinstance(stmt, k.Operation):
            return
        instr = self.kernel.instr_of.get(stmt.together or "")
        match stmt.completion(self.kernel.map_of):
            case Closes(Group.WGMMA):
                self._worked()
                self.noted.append(Start(self.started))
                self.started = 0.0
            case Awaits(Group.WGMMA, pending):
                self._worked()
                self.noted.append(Wait(pending))
            case _ if stmt.meets == BLOCK:
                self._worked()
                self.noted.append(Meet())
            case _ if instr is not None and instr.group is not None and instr.products is not None:
                dtype, count = instr.products
                name = "f8" if dtype.name.startswith("f8") else dtype.name.replace("u8", "i8")
                self.started += count * self.clocks.get(name, 0.0) * weight / self.each
            case _:
                pass


def steady_parts(kernel: k.Kernel, sizes: Mapping[Sym, int], target: Target, device: Device) -> Sequence[Part]:
    """The parts of a steady turn; none where no loop ends groups of products."""
    ends = [each for each in k.walk(kernel.body) if isinstance(each, k.For) and _ends(each.body, kernel)]
    if not ends:
        return ()
    names = ("f16", "bf16", "tf32", "f8", "i8")
    clocks = {name: 1.0 / rate for name in names if (rate := device.matrix.rate(name).value)}
    plain = walk_of(kernel, sizes, target.coalescing, roughly=True)
    given = {name: value for name, value in as_dict(plain).items() if name != "counted"}
    made = _Timed(**given, loop=ends[-1], clocks=clocks, device=device)
    made.run()
    return max(made.tapes, key=lambda each: each.weight).parts if made.tapes else ()


def _ends(body: tuple[k.Stmt, ...], kernel: k.Kernel) -> bool:
    """Whether a group of products is ended in statements, inner loops aside."""
    for stmt in body:
        if isinstance(stmt, k.If) and (_ends(stmt.then, kernel) or _ends(stmt.orelse, kernel)):
            return True
        if isinstance(stmt, k.Operation) and stmt.completion(kernel.map_of) == Closes(Group.WGMMA):
            return True
    return False


def computing(kernel: k.Kernel) -> int:
    """The threads of a block that start products: those of their role, or all."""
    own = (each for each in k.walk(kernel.body) if isinstance(each, k.If) and each.role and _ends(each.then, kernel))
    return next((each.role.warps * kernel.warp for each in own if each.role), kernel.threads)


def ring_of(kernel: k.Kernel, blocks: int, device: Device) -> Ring | None:
    """What an engine fills ahead in the loop of products: as many slots as it has, with its share of the second-level cache."""
    asked = [each for each in k.walk(kernel.body) if isinstance(each, k.BarrierExpect) and each.barrier.buffer.shape]
    rate, many, latency = device.bandwidth.l2.value, device.multiprocessors.value, device.latency.l2.value
    rings = [each for each in asked if each.barrier.buffer.shape[0].constant > 1]
    if not rings or rate is None or many is None or latency is None:
        return None
    slots = min(each.barrier.buffer.shape[0].constant for each in rings)
    return Ring(slots, sum(each.bytes for each in rings) / (rate / many), latency)


def turn_clocks(
    kernel: k.Kernel, sizes: Mapping[Sym, int], blocks: int, target: Target, device: Device
) -> tuple[float, float] | None:
    """The clocks of a steady turn of all warpgroups of so many blocks, and those if each wait were for all; None where no loop
    ends groups of products."""
    parts = steady_parts(kernel, sizes, target, device)
    if not parts:
        return None
    groups = max(1, computing(kernel) // WARPGROUP)
    at_once = [each for part in parts for each in ((part, Wait(0)) if isinstance(part, Start) else (part,))]
    return period(parts, groups, blocks), period(at_once, groups, blocks)
