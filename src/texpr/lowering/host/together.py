"""Host loops that one cooperative launch may execute, if the device holds all their blocks at once.

A launch costs some microseconds, and a barrier of the grid costs less; so it pays if no step has more blocks than the device
holds: otherwise each block would execute several shares of a step, which costs more than a launch. The capacity is known at run
time, so the launcher queries it, and takes either path. Both costs: Zhang et al., "A study of single and multi-device
synchronization methods in Nvidia GPUs", IPDPS 2020.
"""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.together import meeting, together, why_apart
from texpr.ir.program.marks import Together
from texpr.ir.value import Buffer
from texpr.lowering.names import Names
from texpr.schedule.edits import left_out
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace


def gather(
    name: str, steps: tuple[k.HostStep, ...], names: Names, asked: Mapping[Sym, Together], shared: int
) -> tuple[tuple[k.HostStep, ...], tuple[Buffer, ...]]:
    """`steps` of the function `name` with a `Together` on every loop that one launch may execute, and the workspace for that.

    `asked`: the marks of a schedule; `shared`: bytes of shared memory that a block may have. Raises Limitation E0918 if a mark
    asks for one launch that is impossible.
    """
    gathering = _Gathering(name, names, asked, shared)
    found = tuple(map(gathering.step, steps))
    return found, tuple(loop.together.meeting for loop in together(found) if loop.together is not None)


class _Gathering(Record):
    name: str
    names: Names
    asked: Mapping[Sym, Together]
    shared: int

    def step(self, step: k.HostStep) -> k.HostStep:
        match step:
            case k.Launch():
                return step
            case k.HostLoop() if self.wanted(step):
                place = meeting(self.names.name("meeting"))
                return replace(step, together=k.Together(self.names.name(f"{self.name}_{step.sym.base}_together"), place))
            case k.HostLoop() | k.HostIf():
                return replace(step, steps=tuple(map(self.step, step.steps)))

    def wanted(self, loop: k.HostLoop) -> bool:
        asked, why = self.asked.get(loop.sym), why_apart(loop, self.shared)
        if asked is None or why is None:
            return why is None and (asked is None or asked.on)
        if asked.on:
            reason = f"the steps of `{loop.sym.base}` cannot be one launch: {why}"
            offers = left_out(asked.span, "leave it out, and each step is a launch")
            raise limitation("E0918", asked.span, reason, offers=offers)
        return False
