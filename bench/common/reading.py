"""A kernel's machine code read by the model of the machine, whoever compiled it: ours and others' alike.

What machine code does not say is said by whoever asks: the bytes that must come from memory, and those that blocks bring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from texpr.isa.constants import constant_bank
from texpr.isa.levels import Space
from texpr.isa.registry import DEVICES, resolve
from texpr.model.bound import Bound, bound
from texpr.model.code.classes import access
from texpr.model.code.program import Program, program
from texpr.model.code.steady import steady
from texpr.model.code.text import Code, read_code
from texpr.model.code.walk import FEW, MOST, Counts, Launch, Three, count
from texpr.model.code.work import read_work
from texpr.model.work import Shape, Work
from texpr.support.record import replace
from texpr.toolchain.cuda import CudaBinary, Nvcc, disassemble
from texpr.toolchain.machine import Machine

from .cubin import Entry, entries
from .steadily import Steadily, steadily

TARGET = "sm_90a"
LONG = 20 * MOST
"""Blocks of code to walk through: as many as it takes."""

EACH = 64
"""Blocks along an axis up to which each is walked, where they differ along no other: rows of a triangle are of all lengths."""

ADDRESS = 40
"""Arrays are taken to lie at multiples of two to this power."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A launch: `values` of arguments in their order, None of addresses; bytes of shared memory beyond what the code declares;
    bytes between blocks and the second-level cache, and of memory; how often loops run that data ends, by their order."""

    grid: Three
    threads: int
    values: Sequence[int | None]
    shared: int
    l2: float | None
    dram: float | None
    cluster: Three = (1, 1, 1)
    turns: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """What was read: the bound; registers of a thread; bytes of an average load of a lane, None where none loads;
    instructions of lanes; copies by an engine; clocks of a steady turn of the hottest loop over those that its busiest unit
    needs, None where there is no loop; `products`: steady turns of those that go on by themselves; bytes that all lanes
    spill. `unknown`: opcodes nobody knows; `undecided`: jumps that data decides, of which nobody said how often; `cut`: no
    count is whole."""

    bound: Bound
    registers: int
    load: float | None
    instructions: float
    engine: float
    waits: float | None
    products: Steadily | None
    spilled: float
    unknown: tuple[str, ...]
    undecided: tuple[int, ...]
    cut: bool


def code_of(machine: Machine, nvcc: Nvcc, cubin: bytes, target: str = TARGET) -> Mapping[str, tuple[Code, Entry]]:
    """The machine code of each kernel of a cubin, and what else the cubin says of it."""
    text = disassemble(machine, nvcc, CudaBinary(target, cubin, b"", ()), encoding=True)
    codes = {code.kernel: code for code in read_code(text)}
    return {entry.name: (codes[entry.name], entry) for entry in entries(cubin) if entry.name in codes}


def read(code: Code, entry: Entry, asked: Asked) -> Read:
    """The reading of one launch."""
    target, device = resolve(TARGET), DEVICES[TARGET]
    bank = constant_bank(target.capability)
    assert bank is not None
    made = program(code)
    launch = Launch(asked.grid, (asked.threads, 1, 1), _arguments(entry, asked.values), bank, asked.cluster, target.warp)
    differ = sum(f"SR_CTAID.{name}" in made.special and extent > 1 for name, extent in zip("XYZ", asked.grid, strict=True))
    few = EACH if differ == 1 else FEW
    counts = count(made, launch, LONG, few)
    if counts.undecided and asked.turns:
        launch = _with_turns(made, launch, counts, asked.turns)
        counts = count(made, launch, LONG, few)
    blocks = asked.grid[0] * asked.grid[1] * asked.grid[2]
    found = read_work(code, counts, target, Work(0.0, {}, {}, l2=asked.l2, dram=asked.dram))
    declared = max(0, entry.shared - device.allocation.reserved)
    shape = Shape(blocks, asked.threads, entry.registers, declared + asked.shared)
    limit = bound(found.work, shape, target, device)
    turn = steady(made, counts, limit.residence.warps, limit.residence.blocks, target, device)
    left = tuple(at for at in found.undecided if at not in launch.turns)
    return Read(
        limit,
        entry.registers,
        _load(code, counts),
        found.work.issued * target.warp,
        found.engine,
        None if turn is None else turn.clocks / turn.least,
        steadily(made, counts, limit, target, device),
        found.work.spilled,
        found.unknown,
        left,
        found.cut,
    )


def _with_turns(made: Program, launch: Launch, counts: Counts, turns: Sequence[int]) -> Launch:
    """The launch with how often the loops run that data ends: of each the jump back, in the order of their addresses."""
    places = made.places
    ends = [at for at in counts.undecided if any(places[at] in loop.body for loop in made.flow.loops)]
    return replace(launch, turns=dict(zip(ends, turns, strict=False)))


def _arguments(entry: Entry, values: Sequence[int | None]) -> tuple[tuple[int, int | None], ...]:
    """Arguments as they lie, what is between them included; an address that nobody knows is a round one."""
    found: list[tuple[int, int | None]] = []
    at = 0
    for number, (offset, size) in enumerate(entry.arguments):
        found += [(4, None)] * ((offset - at) // 4)
        value = values[number] if number < len(values) else None
        found.append((size, (number + 1) << ADDRESS if value is None and size == 8 else value))
        at = offset + size
    return tuple(found)


def _load(code: Code, counts: Counts) -> float | None:
    """Bytes of a lane in an average load of global memory."""
    total, many = 0.0, 0.0
    for one, times in zip(code.instructions, counts.executed, strict=True):
        asked = access(one)
        if asked is not None and asked.space is Space.GLOBAL and (not asked.stores or one.name == "LDGSTS"):
            total, many = total + asked.width * times, many + times
    return total / many if many else None
