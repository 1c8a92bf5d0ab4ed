"""Host loops that one launch may run, if the device holds all its blocks at once.

A launch costs some microseconds, and blocks that meet cost less; so it pays where no step has more blocks than fit: with more,
each block would take several turns, and a launch is worth its price. How many fit is known on the device, so the launcher asks
there, and goes either way. Both prices: Zhang et al., "A study of single and multi-device synchronization methods in Nvidia
GPUs", IPDPS 2020.
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
    """`steps` of the function `name` with every loop marked that one launch may run, and the memory which that takes.

    `asked`: what a schedule says of loops; `shared`: bytes of shared memory that a block may have. Raises Limitation E0918
    where `asked` is for what cannot be.
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
