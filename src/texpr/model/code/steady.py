"""How many clocks one turn of a loop takes once it goes on steadily: a bound cannot tell a loop that waits.

The warps that one scheduler has take turns: each clock the oldest that is ready issues one instruction. An instruction is ready
when the clocks have gone by that the one before it told to wait, the scoreboards that it waits for are free, its unit has room,
and, at a barrier, the other warps of its block are there. All of this but the latencies of what goes through a scoreboard is
written in the code. Loads of global memory are taken to come from the second-level cache, and what an engine copies to be there
in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from texpr.isa.levels import Space
from texpr.isa.speed import Device, Figure
from texpr.isa.target import Target
from texpr.model.code.classes import access, product, unit
from texpr.model.code.flow import Loop
from texpr.model.code.program import Program
from texpr.model.code.text import Instruction
from texpr.model.code.walk import Counts
from texpr.model.code.work import ROUND
from texpr.support.record import Mutable, Record, field

TURNS, FEW, LONG = 12, 4, 500
"""That are run, by each warp, and of a loop of more instructions than `LONG`; those of the first half are taken off."""

_GROUPS = ("WARPGROUP", "DEPBAR")


class Steady(Record):
    """`loop`: the address of its header; `instructions`: of a turn; `clocks`: in which each warp that a multiprocessor holds
    makes one turn; `least`: those that the busiest unit, `unit`, needs for that. `share`: of all instructions of a launch."""

    loop: int
    instructions: int
    clocks: float
    least: float
    unit: str
    share: float


class _Step(Record):
    """One instruction as it is issued: clocks for which it keeps its unit, and after which its result, and its operands, are
    there."""

    one: Instruction
    unit: str
    busy: float
    result: float
    matrix: float


class _Warp(Mutable):
    """One warp. `boards`: when each scoreboard is free; `groups`: when each group that goes on by itself is done."""

    block: int
    at: int = 0
    turns: int = 0
    ready: float = 0.0
    boards: list[float] = field(default_factory=lambda: [0.0] * 6)
    products: list[float] = field(default_factory=list[float])
    copies: list[float] = field(default_factory=list[float])
    started: float = 0.0
    waits: bool = False


def hottest(made: Program, counts: Counts) -> Loop | None:
    """The loop in which most instructions are issued, those of loops inside of it not counted."""
    found: list[tuple[float, Loop]] = []
    for loop in made.flow.loops:
        inside = frozenset[int]().union(*(other.body for other in made.flow.loops if other.body < loop.body))
        weight = sum(counts.issued[at] for at in loop.body - inside)
        if weight > 0:
            found.append((weight, loop))
    return max(found, key=lambda each: each[0])[1] if found else None


def steady(made: Program, counts: Counts, warps: int, blocks: int, target: Target, device: Device) -> Steady | None:
    """The turn of the hottest loop; None where there is no loop, or `turn_of` says nothing of it."""
    loop = hottest(made, counts)
    return None if loop is None else turn_of(loop, made, counts, warps, blocks, target, device)


def turn_of(
    loop: Loop, made: Program, counts: Counts, warps: int, blocks: int, target: Target, device: Device
) -> Steady | None:
    """The turn of a loop, of a multiprocessor that holds so many warps of so many blocks, of which those go round it that have
    this role; None where the code does not say when to wait, or no latency is published."""
    if device.latency.shared.value is None:
        return None
    body = body_of(loop, made, counts)
    if not body or any(one.control is None for one in body):
        return None
    steps = [_step(one, target, device) for one in body]
    each = ceil(warps * (counts.reached[loop.header] if counts.reached else 1.0) / device.schedulers)
    many = min(each, blocks)
    turns = FEW if len(steps) > LONG else TURNS
    late, early = (_run(steps, each, many, number, device) for number in (turns, turns // 2))
    clocks = (late - early) / (turns - turns // 2)
    load = _load(steps, each)
    busiest = max(load, key=lambda name: load[name])
    total = sum(counts.issued) or 1.0
    share = sum(counts.issued[at] for at in loop.body) / total
    return Steady(made.code.instructions[loop.header].address, len(body), clocks, load[busiest], busiest, share)


def body_of(loop: Loop, made: Program, counts: Counts) -> list[Instruction]:
    """What most turns run once, in order of addresses from the header on."""
    turns = counts.issued[loop.header]
    kept = sorted(at for at in loop.body if turns < 2 * counts.issued[at] <= 3 * turns)
    after = [at for at in kept if at >= loop.header]
    return [made.code.instructions[at] for at in (*after, *(at for at in kept if at < loop.header))]


def _step(one: Instruction, target: Target, device: Device) -> _Step:
    by = unit(one) or "other"
    lanes: Figure | None = getattr(device.rates, by, None)
    busy = 1.0
    if lanes is not None and lanes.value:
        busy = max(1.0, device.schedulers * target.warp / lanes.value)
    made, asked, matrix = product(one), access(one), 0.0
    if asked is not None:
        busy = max(busy, device.schedulers * asked.width * target.warp / ROUND)
    if made is not None:
        rate, share = device.matrix.rate(made.dtype).value, 1.0 if made.group else device.matrix.sync.value
        matrix = made.multiply_adds * device.schedulers / (rate * share) if rate and share else 0.0
        busy = 1.0 if made.group else max(1.0, matrix)
    return _Step(one, by, busy, _latency(one, by, device), matrix if made is not None and made.group else 0.0)


def _latency(one: Instruction, by: str, device: Device) -> float:
    """Clocks after which a scoreboard is released."""
    asked, known = access(one), device.latency
    if asked is not None:
        figure = {Space.SHARED: known.shared, Space.LOCAL: known.l1}.get(asked.space, known.l2)
    elif one.name in ("LDC", "ULDC", "LDCU", "S2R", "S2UR"):
        figure = known.constant
    elif one.name == "SHFL":
        figure = known.shuffle
    else:
        figure = {"special": known.special, "matrix": known.matrix, "fp64": known.fp64}.get(by, known.fixed)
    return figure.value or 0.0


def _load(steps: Sequence[_Step], warps: int) -> dict[str, float]:
    """Clocks of each unit for a turn of all warps of a scheduler."""
    found: dict[str, float] = {"issue": float(warps * len(steps))}
    for step in steps:
        if step.unit not in ("other", "control", "uniform", "barrier", "copy"):
            found[step.unit] = found.get(step.unit, 0.0) + (step.matrix or step.busy) * warps
    return found


def _run(steps: Sequence[_Step], count: int, blocks: int, turns: int, device: Device) -> float:
    """Clocks until all warps of one scheduler have made so many turns."""
    warps = [_Warp(at * blocks // count) for at in range(count)]
    free: dict[str, float] = {}
    now = 0.0
    while any(warp.turns < turns for warp in warps):
        ready = ((_when(steps, warp, free, now), at) for at, warp in enumerate(warps) if warp.turns < turns and not warp.waits)
        when, at = min(ready)
        now = max(now, when)
        _issue(steps, warps[at], free, now)
        if steps[warps[at].at - 1].one.name == "BAR":
            _meet(warps, warps[at].block, turns, now + (device.latency.barrier.value or 0.0))
        now += 1.0
    return now


def _meet(warps: Sequence[_Warp], block: int, turns: int, then: float) -> None:
    """Warps of a block go on where the last of them has come to a barrier."""
    mine = [warp for warp in warps if warp.block == block and warp.turns < turns]
    if all(warp.waits for warp in mine):
        for warp in mine:
            warp.waits = False
            warp.ready = max(warp.ready, then)


def _when(steps: Sequence[_Step], warp: _Warp, free: dict[str, float], now: float) -> float:
    """The first clock at which a warp may issue."""
    step = steps[warp.at]
    control = step.one.control
    when = max(now, warp.ready, free.get(step.unit, 0.0))
    for board, done in enumerate(warp.boards):
        if control is not None and control.waits >> board & 1:
            when = max(when, done)
    pending = _pending(step.one)
    if pending is not None:
        groups = warp.products if step.one.name == "WARPGROUP" else warp.copies
        when = max(when, *(groups[: max(0, len(groups) - pending)] or [0.0]))
    return when


def _pending(one: Instruction) -> int | None:
    """How many groups may be left where a warp waits for them."""
    if one.name not in _GROUPS or not {"DEPBAR", "LE"} & set(one.modifiers):
        return None
    return int(one.operands[-1], 0) if one.operands and one.operands[-1].startswith("0x") else 0


def _issue(steps: Sequence[_Step], warp: _Warp, free: dict[str, float], now: float) -> None:
    step = steps[warp.at]
    one, control = step.one, step.one.control
    free[step.unit] = now + step.busy
    done = now + step.result
    if step.matrix:
        begins = max(now, free.get("products", 0.0))
        done = free["products"] = begins + step.matrix
        warp.started = done
        if "gsb0" in one.operands:
            warp.products.append(done)
    elif one.name == "LDGSTS":
        warp.started = max(warp.started, done)
    elif one.name == "LDGDEPBAR":
        warp.copies.append(warp.started)
    if control is not None:
        warp.ready = now + max(1, control.stall)
        if control.sets is not None:
            warp.boards[control.sets] = done
        if control.frees is not None:
            warp.boards[control.frees] = max(warp.boards[control.frees], now + step.busy)
    warp.waits = one.name == "BAR"
    warp.at += 1
    if warp.at == len(steps):
        warp.at = 0
        warp.turns += 1
