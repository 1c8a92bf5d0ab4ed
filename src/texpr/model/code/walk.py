"""How often each instruction is run by the warps of a launch: threads are walked through the code, as far as sizes decide.

Where data decides which way to go, the shorter way to the end is counted, so that no count is more than what is run. A wait is
taken to end at once. Not every thread is walked: of blocks along an axis, unless they are few, and of many warps, the first,
one from between, and the last, where control flow depends on which they are; of the first and the last warp two lanes, of
others one. The others are taken to be like those between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from texpr.isa.constants import ConstantBank
from texpr.isa.levels import WARP
from texpr.model.code.flow import JUMPS
from texpr.model.code.operand import Number, Thread
from texpr.model.code.program import CALLS, Block, Program
from texpr.support.record import Mutable, Record, field

Three: TypeAlias = tuple[int, int, int]
MOST = 800_000
"""Blocks of code that all threads of a launch are walked through; what is left then is given up, which is said."""

FEW = 3
"""Blocks along an axis up to which each is walked."""

MANY = 16
"""Warps up to which each is walked: they may have roles of their own."""

_WORD = 4


class Launch(Record):
    """What runs: blocks of the grid, threads of a block, blocks of a cluster; arguments as their size in bytes and their value,
    None where that is not known; how many lanes a warp has. `turns`: of loops that data ends, how often each is run before a
    jump, by its address, leaves it, where somebody knows that."""

    grid: Three
    block: Three
    arguments: tuple[tuple[int, int | None], ...]
    bank: ConstantBank
    cluster: Three = (1, 1, 1)
    warp: int = WARP
    turns: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.block[0] * self.block[1] * self.block[2] // self.warp)

    @property
    def blocks(self) -> int:
        """Of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def words(self) -> dict[int, int]:
        """The first bank of constant memory, as far as it is known, by offset."""
        found: dict[int, int] = {}
        for first, extents in ((self.bank.block, self.block), (self.bank.grid, self.grid)):
            found |= {first + _WORD * at: extent for at, extent in enumerate(extents)}
        if self.bank.clustered is not None and prod(self.cluster) > 1:
            found[self.bank.clustered] = 1
        at = self.bank.arguments
        for size, value in self.arguments:
            align = min(size, 2 * _WORD) if size in (1, 2, 4, 8) else 2 * _WORD
            at = -(-at // align) * align
            if value is not None:
                found |= {
                    at + _WORD * part: value >> 8 * _WORD * part & (2 ** (8 * _WORD) - 1)
                    for part in range(max(1, size // _WORD))
                }
            at += size
        return found


class Counts(Record):
    """Of each instruction, by its place: how often a warp issues it in the whole launch; how often one runs it, its guard being
    true; and the share of all warps that come to it.

    `undecided`: addresses of jumps that data decides. `cut`: some thread was not walked to its end.
    """

    issued: tuple[float, ...]
    executed: tuple[float, ...]
    undecided: tuple[int, ...]
    cut: bool
    reached: tuple[float, ...] = ()


class _Path(Mutable):
    """One thread's way."""

    visits: list[int]
    idle: list[int]
    turns: Mapping[int, int]
    undecided: set[int] = field(default_factory=set[int])
    passed: dict[int, int] = field(default_factory=dict[int, int])
    cut: bool = False


def count(made: Program, launch: Launch, most: int = MOST, few: int = FEW) -> Counts:
    """The counts of a launch, of which `most` blocks of code are walked through; of blocks of threads along an axis, all if
    there are no more than `few`."""
    size = len(made.code.instructions)
    issued, executed, reached, warps = [0.0] * size, [0.0] * size, [0.0] * size, 0.0
    undecided: set[int] = set()
    cut = False
    left = most
    words = launch.words()
    for weight, threads in _samples(made, launch, few):
        paths: list[_Path] = []
        for special in threads:
            paths.append(_walk(made, _thread(special, words), launch.turns, left))
            left -= sum(paths[-1].visits)
        undecided.update(*(path.undecided for path in paths))
        warps += weight
        cut = cut or any(path.cut for path in paths)
        for number, block in enumerate(made.blocks):
            visits = max(path.visits[number] for path in paths)
            if not visits:
                continue
            for at in range(block.first, block.last + 1):
                issued[at] += weight * visits
                reached[at] += weight
                executed[at] += weight * max(path.visits[number] - path.idle[at] for path in paths)
    shares = tuple(each / warps for each in reached)
    return Counts(tuple(issued), tuple(executed), tuple(sorted(undecided)), cut, shares)


def _thread(special: Mapping[str, int], words: Mapping[int, int]) -> Thread:
    return Thread(special, lambda bank, at: None if bank else words.get(at))


def _samples(made: Program, launch: Launch, few: int) -> Iterator[tuple[float, list[dict[str, int]]]]:
    """Lanes of one warp each, and how many warps they stand for."""
    axes = [_some(extent, f"SR_CTAID.{name}" in made.special, few) for extent, name in zip(launch.grid, "XYZ", strict=True)]
    by_thread = any(name.startswith(("SR_TID", "SR_LANEID")) for name in made.special)
    for places in product(*axes):
        block = tuple(at for at, _ in places)
        share = 1.0
        for _, times in places:
            share *= times
        for warp, times in _some(launch.warps, by_thread, MANY):
            last = min(launch.warp, launch.block[0] * launch.block[1] * launch.block[2] - warp * launch.warp) - 1
            lanes = sorted({0, last}) if by_thread and warp in (0, launch.warps - 1) else [0]
            yield share * times, [_special(launch, block, warp, lane) for lane in lanes]


def _some(extent: int, each: bool, few: int) -> Sequence[tuple[int, int]]:
    """Places along an axis, and how many each stands for."""
    if not each:
        return [(0, extent)]
    if extent <= few:
        return [(at, 1) for at in range(extent)]
    return [(0, 1), (extent // 2, extent - 2), (extent - 1, 1)]


def _special(launch: Launch, block: Sequence[int], warp: int, lane: int) -> dict[str, int]:
    thread = warp * launch.warp + lane
    wide, high, _ = launch.block
    x, y, z = (at % of for at, of in zip(block, launch.cluster, strict=True))
    rank = x + launch.cluster[0] * (y + launch.cluster[1] * z)
    found = {
        "SR_TID.X": thread % wide,
        "SR_TID.Y": thread // wide % high,
        "SR_TID.Z": thread // (wide * high),
        "SR_LANEID": lane,
    }
    found |= {f"SR_CTAID.{name}": at for name, at in zip("XYZ", block, strict=True)}
    return {**found, "SR_CgaCtaId": rank, "SR_CgaSize": launch.cluster[0] * launch.cluster[1] * launch.cluster[2]}


def _walk(made: Program, thread: Thread, turns: Mapping[int, int], most: int) -> _Path:
    path = _Path([0] * len(made.blocks), [0] * len(made.code.instructions), turns)
    instructions = made.code.instructions
    calls: list[int] = []
    number: int | None = 0
    for _ in range(most):
        if number is None:
            return path
        block = made.blocks[number]
        path.visits[number] += 1
        for step in block.steps:
            step(thread, path.idle)
        one = instructions[block.last]
        onwards = made.starts.get(block.last + 1)
        if one.name in CALLS and _goes(made, block, thread, path):
            calls.append(block.last + 1)
            number = made.aimed(one)
        elif one.name in JUMPS:
            number = made.aimed(one) if _goes(made, block, thread, path) else onwards
        elif one.name == "RET" and calls:
            number = made.starts.get(calls.pop())
        elif one.name in ("EXIT", "RET", "BRX", "JMX", "BRXU"):
            number = None if _goes(made, block, thread, path) else onwards
        else:
            number = onwards
    path.cut = True
    return path


def _goes(made: Program, block: Block, thread: Thread, path: _Path) -> bool:
    """Whether the last instruction of a block is done: where data decides, what leads to the end sooner."""
    values: list[Number] = [ask(thread) for ask in (block.guard, block.decides) if ask is not None]
    if 0 in values:
        path.idle[block.last] += 1
        return False
    if None not in values:
        return True
    one = made.code.instructions[block.last]
    path.undecided.add(one.address)
    there = None if one.target is None else made.places.get(one.target)
    if one.address in path.turns:
        return _stays(made, block.last, there, path)
    if one.name not in JUMPS:
        return False
    left = made.flow.left
    far = left[there] if there is not None else None
    near = left[block.last + 1] if block.last + 1 < len(left) else None
    return far is not None and (near is None or far < near)


def _stays(made: Program, at: int, there: int | None, path: _Path) -> bool:
    """Whether a jump that somebody knows the turns of is taken: the way that stays in its loop is, as often as they say."""
    address = made.code.instructions[at].address
    passed = path.passed.get(address, 0)
    leaves = passed + 1 >= path.turns[address]
    path.passed[address] = 0 if leaves else passed + 1
    around = [loop for loop in made.flow.loops if at in loop.body]
    jump_stays = bool(around) and there is not None and there in min(around, key=len).body
    return jump_stays != leaves
