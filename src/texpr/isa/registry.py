"""Targets, instructions and devices by name."""

from __future__ import annotations

from difflib import get_close_matches

from texpr.isa import devices, instructions, targets
from texpr.isa.gather import gather
from texpr.isa.instruction import Instruction
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.support.diagnostic import limitation
from texpr.support.span import Span

TARGETS: dict[str, Target] = {target.name: target for target in gather(targets.__name__, targets.__path__, "TARGET", Target)}
"""Every target by name."""

INSTRUCTIONS: dict[str, Instruction] = {
    each.name: each
    for several in gather(instructions.__name__, instructions.__path__, "INSTRUCTIONS", tuple[Instruction, ...])
    for each in several
}
"""Every shipped instruction by name."""

KNOWN: tuple[Device, ...] = tuple(gather(devices.__name__, devices.__path__, "DEVICE", Device))
"""Every device that is described: how fast it is."""

DEVICES: dict[str, Device] = {target: device for device in KNOWN for target in device.targets}
"""The device that stands for a target, where there is one."""


def device_of(target: str, card: str) -> Device | None:
    """The device that a driver calls `card`; where nobody has described it, the one that stands for the target."""
    return next((device for device in KNOWN if card in device.cards), DEVICES.get(target))


def resolve(name: str, span: Span | None = None) -> Target:
    """The target called `name`. E0580 for an unknown one, with the most similar known name."""
    found = TARGETS.get(name)
    if found is not None:
        return found
    near = get_close_matches(name, TARGETS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"the targets are {', '.join(TARGETS)}"
    raise limitation("E0580", span, f"there is no target `{name}`", help=hint)


def library() -> str:
    """The shipped instructions as text in the language."""
    return "\n\n".join(instruction.text for instruction in INSTRUCTIONS.values()) + "\n"
