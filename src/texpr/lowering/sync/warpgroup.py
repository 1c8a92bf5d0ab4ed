"""What the tensor core of a warpgroup does while its lanes go on: which steps start it, groups of it, fences of registers.

    fence_warpgroup d           lanes gave d values, or had it back since
    start …  start …            neighbours are one group, a loop of nothing else among them
    commit_warpgroup
    wait_warpgroup 0            before anyone touches d, or writes what is read

Waits are placed as those for other copies are (`lowering.sync.asynchronous`): before a barrier, where others write what is
read; anywhere on the way, where a lane touches registers of its own. Starts that sum up in the same registers keep their order
by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from texpr.affine.expr import ZERO, Expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr import Instr, Operand
from texpr.ir.ops.collective import Held
from texpr.ir.steps import Loop, Node, Step, leaves
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.engine.described import described
from texpr.relation.facts import known
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace


class Started(Record, eq=False):
    """What a step starts. `matrices`: its operands in shared memory; `tiles`: locals that these are parts of; `registers`:
    those of its other operands, by the local that they are of."""

    instr: Instr
    matrices: Mapping[Operand, Held]
    tiles: frozenset[Buffer]
    registers: Mapping[Buffer, Held]

    def is_alike(self, other: Started) -> bool:
        """Whether both sum up in registers of one shape, in the same ones where in any of both."""
        own, theirs = ({(h.first.index, h.count) for h in each.registers.values()} for each in (self, other))
        return self.instr is other.instr and own == theirs


def started(
    nodes: tuple[Node, ...], places: Mapping[Buffer, Place], around: Callable[[ir.Stmt], tuple[Expr, ...]]
) -> dict[Step, Started]:
    """The steps that start something. Raises Limitation for a matrix that no descriptor is of."""
    found: dict[Step, Started] = {}
    for leaf in leaves(nodes):
        use = leaf.stmts[0] if leaf.stmts else None
        if isinstance(use, ir.Instruction) and use.instr is not None and use.instr.group is not None:
            found[leaf] = _started(use, use.instr, places, around(use))
    return found


def _started(use: ir.Instruction, instr: Instr, places: Mapping[Buffer, Place], facts: tuple[Expr, ...]) -> Started:
    matrices, registers, tiles = dict[Operand, Held](), dict[Buffer, Held](), set[Buffer]()
    for operand, load in zip(instr.operands, use.operands, strict=True):
        if operand.is_described:
            local, matrices[operand] = described(use, instr, operand, places, known(facts))
            tiles.add(local)
        elif (place := places.get(load.buffer)) is not None:
            first = Load(place.buffer, load.index[1:], span=load.span)
            registers[load.buffer] = Held(first, operand.fragment.registers, operand.access)
    return Started(instr, matrices, frozenset(tiles), registers)


def require_apart(copying: Iterable[Step], steps: Mapping[Step, Started]) -> None:
    """Refuses a matrix that threads copy asynchronously: a wait, a fence and a barrier would have to follow each other."""
    tiles = {tile: each for each in steps.values() for tile in each.tiles}
    for leaf in copying if tiles else ():
        for bind in (stmt for stmt in ir.walk((leaf.stmt,)) if isinstance(stmt, ir.Bind)):
            for target in bind.targets:
                if target.buffer in tiles:
                    name = tiles[target.buffer].instr.name
                    told = f"`{target.buffer.name}` is read by `{name}`, which no asynchronous copy of threads brings yet"
                    raise limitation(
                        "E0541", leaf.stmt.span, told, help="tiles that come `via=tma`, or by loads, without `via`, are read"
                    )


class Run(Record, eq=False):
    """Neighbours of the list `number` that start one group, from step `first` on; `last` is the last node."""

    number: int
    first: int
    last: Node
    steps: tuple[Step, ...]


def runs(nodes: tuple[Node, ...], steps: Mapping[Step, Started]) -> Iterator[Run]:
    """Every group that is started: neighbours that sum up in the same locals, so that each sum may be waited for by itself,
    behind what copies their operands."""
    whole = set[int]()
    for each in lists(nodes) if steps else ():
        if each.number in whole:
            continue
        members: list[int] = []
        for at, node in enumerate((*each.nodes, None)):
            starts = node is not None and _starts(node, steps)
            if members and not (starts and node is not None and _are_one(each.nodes[members[0]], node, steps)):
                group = each.nodes[members[0] : members[-1] + 1]
                yield Run(each.number, members[0], group[-1], tuple(leaves(group)))
                members = []
            if node is not None and starts:
                members.append(at)
                whole |= {inner.number for inner in lists(nodes) if _is_below(node, inner.nodes)}


def _are_one(one: Node, other: Node, steps: Mapping[Step, Started]) -> bool:
    """Whether neighbours are one group: they sum up in the same locals, or the first copies what is read there."""
    return all(steps[leaf].instr.is_copy for leaf in leaves((one,))) or _sums(one, steps) == _sums(other, steps)


def _sums(node: Node, steps: Mapping[Step, Started]) -> frozenset[Buffer]:
    """The locals in whose registers the steps of a node sum up."""
    held = (steps[leaf].registers.items() for leaf in leaves((node,)))
    return frozenset(local for each in held for local, registers in each if registers.access != "read")


def _starts(node: Node, steps: Mapping[Step, Started]) -> bool:
    """Whether a node does nothing but start something."""
    if isinstance(node, Step):
        return node in steps
    return isinstance(node, Loop) and bool(node.body) and all(_starts(inner, steps) for inner in node.body)


def _is_below(node: Node, nodes: tuple[Node, ...]) -> bool:
    return isinstance(node, Loop) and (node.body is nodes or any(_is_below(inner, nodes) for inner in node.body))


def waited_for(meetings: Iterable[Dependence], steps: Mapping[Step, Started]) -> Iterator[Dependence]:
    """Those of what touches the same elements after a start for which that has to be done."""
    for meeting in meetings:
        one, other = steps[meeting.source], steps.get(meeting.sink)
        if other is None or not one.is_alike(other) or meeting.covered.buffer in {tile.name for tile in one.tiles}:
            yield meeting


def lent(steps: Mapping[Step, Started]) -> Iterator[tuple[Step, Buffer]]:
    """The locals whose registers steps read until they are done."""
    for step, each in steps.items():
        yield from ((step, local) for local, held in each.registers.items() if held.access == "read")


def held(meeting: Dependence, steps: Mapping[Step, Started]) -> tuple[Held, ...]:
    """The registers that a lane has again behind a wait for a meeting."""
    found = (h for local, h in steps[meeting.source].registers.items() if local.name == meeting.covered.buffer)
    return tuple(map(_all_of, found))


def fences(found: Iterable[Run], steps: Mapping[Step, Started]) -> dict[ProgramPoint, k.Stmt]:
    """Fences of the registers of each group, right before it."""
    made: dict[ProgramPoint, k.Stmt] = {}
    for run in found:
        every = (_all_of(h) for step in run.steps for h in steps[step].registers.values())
        registers = {(h.first.buffer, h.first.index, h.count): h for h in every}
        made[run.number, run.first - 1] = k.FenceWarpgroup(tuple(registers.values()), span=run.steps[0].stmt.span)
    return made


def _all_of(held: Held) -> Held:
    """Registers as fences and waits name them: of those that a loop says, all that there are."""
    if held.first.index[0].is_constant:
        return replace(held, access="read")
    return Held(replace(held.first, index=(ZERO,)), held.first.buffer.shape[0].constant, "read")
