"""The steps that a team of threads takes together, as a tree: what stands between two barriers, and who runs it.

Before: the body of a grid iteration. After: leaves that no barrier may enter, in uniform loops and branches:

- *spread*: a `par` shared out over the team;
- *partial* and *total*: the two halves of a team reduction, each thread's share and the combination over threads; *middle*
  between them, over the warps of a block where blocks of a cluster share it;
- *leader*: a bind outside every team `par`, a vector of them, or a copy by the tensor memory accelerator: what the team's first
  thread runs, or starts;
- *all*: the same for something each thread keeps its own copy of, and for every read that decides control flow;
- *end*: nothing, where blocks of a cluster end, and with each what others read of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Tensor, Vector
from texpr.ir.value import Buffer, Load, Ref, walk
from texpr.mapping.nest import Nest, Role
from texpr.mapping.reductions.parts import Accumulator, accumulators
from texpr.support.record import Record, field


class ThreadSet(Enum):
    """Which threads of a team run a leaf, and what kind of leaf it is."""

    SPREAD = "spread"
    PARTIAL = "partial"
    MIDDLE = "middle"
    TOTAL = "total"
    LEADER = "leader"
    ALL = "all"
    END = "end"


HALVES = (ThreadSet.PARTIAL, ThreadSet.MIDDLE)
"""Who runs what of a reduction comes before its total."""


class Step(Record, eq=False):
    """One step. `accumulators` and `replicated` (whether every thread keeps the result) for the halves of a reduction."""

    who: ThreadSet
    stmt: ir.Stmt
    accumulators: tuple[Accumulator, ...] = ()
    replicated: bool = False


class Loop(Record, eq=False):
    """A `seq` that all threads of the team run together."""

    stmt: ir.Seq
    body: tuple[Node, ...]


class Branch(Record, eq=False):
    """An `if` that all threads decide alike; its condition was evaluated by the leaf before it, into `decided`."""

    stmt: ir.If
    decided: Sym
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]

    @property
    def is_data(self) -> bool:
        """Whether data decide, read here or kept by a `let`."""
        return any(isinstance(part, Load | Ref) for part in walk(self.stmt.condition))


Node: TypeAlias = Step | Loop | Branch


class Team(Record):
    """The tree of a nest, and where each statement stands in it."""

    nodes: tuple[Node, ...]
    replicated: frozenset[Buffer]
    decided: dict[ir.If, Sym] = field(default_factory=dict[ir.If, Sym])

    @property
    def end(self) -> Step | None:
        """The step at which blocks of a cluster end."""
        last = self.nodes[-1] if self.nodes else None
        return last if isinstance(last, Step) and last.who is ThreadSet.END else None


COPIES = 16
"""The most elements that every thread keeps its own copy of."""


def replicated_buffers(nest: Nest) -> frozenset[Buffer]:
    """Locals small enough, and written uniformly: each thread can keep its own copy, and no barrier is needed for them."""
    shared_out = [s for s in ir.walk(nest.body) if isinstance(s, ir.Par) and s in nest.loops]
    inside = {inner for par in shared_out for inner in ir.walk(par.body)}
    met = {b for par in shared_out if nest.loops[par].role is Role.REDUCE for b in par.reduce}
    written_apart = {
        t.buffer for s in inside if isinstance(s, ir.Bind) for t in s.targets if not (s.update is not None and t.buffer in met)
    }
    return frozenset(
        s.buffer
        for s in ir.walk(nest.body)
        if isinstance(s, ir.New)
        and s.space in (None, "registers")
        and s not in inside
        and s.buffer not in written_apart
        and _small(s.buffer)
    )


def _small(buffer: Buffer) -> bool:
    count = 1
    for extent in buffer.shape:
        if not extent.is_constant:
            return False
        count *= extent.constant
    return count <= COPIES and (buffer.rank == 0 or count == 1)


def build(nest: Nest, decide: dict[ir.If, Sym]) -> Team:
    """The tree of `nest`; `decide` names the variable that holds each uniform condition."""
    replicated = replicated_buffers(nest)
    nodes = tuple(_nodes(nest.body, nest, replicated, decide))
    if nest.blocks > 1:
        nodes = (*nodes, Step(ThreadSet.END, ir.Seq(Sym("end"), ZERO, ())))
    return Team(nodes, replicated, decide)


def _nodes(body: tuple[ir.Stmt, ...], nest: Nest, copies: frozenset[Buffer], decide: dict[ir.If, Sym]) -> Iterator[Node]:
    for stmt in body:
        match stmt:
            case ir.Par() if mark(stmt, Tensor):
                yield Step(ThreadSet.LEADER, stmt)
            case ir.Par():
                yield from _par(stmt, nest, copies)
            case ir.Seq() if mark(stmt, Vector) and (who := _who(stmt, copies)) is not None:
                yield Step(who, stmt)
            case ir.Seq():
                yield Loop(stmt, tuple(_nodes(stmt.body, nest, copies, decide)))
            case ir.If():
                yield Step(ThreadSet.ALL, stmt)
                then, orelse = (tuple(_nodes(b, nest, copies, decide)) for b in (stmt.then, stmt.orelse))
                yield Branch(stmt, decide[stmt], then, orelse)
            case ir.Bind():
                own = all(t.buffer in copies for t in stmt.targets)
                yield Step(ThreadSet.ALL if own else ThreadSet.LEADER, stmt)
            case ir.Let() | ir.New():
                yield Step(ThreadSet.ALL, stmt)
            case ir.Anchor() | ir.Instruction():
                yield Step(ThreadSet.LEADER, stmt)


def _who(vector: ir.Seq, copies: frozenset[Buffer]) -> ThreadSet | None:
    """Who runs a vector of binds: all, where each has its own copy of what they write; None where only of some of it."""
    inside = {s.buffer for s in ir.walk(vector.body) if isinstance(s, ir.New)}
    targets = {t.buffer for s in ir.walk(vector.body) if isinstance(s, ir.Bind) for t in s.targets} - inside
    return ThreadSet.ALL if targets <= copies else ThreadSet.LEADER if not targets & copies else None


def _par(par: ir.Par, nest: Nest, copies: frozenset[Buffer]) -> Iterator[Node]:
    if nest.loops[par].role is not Role.REDUCE:
        yield Step(ThreadSet.SPREAD, par)
        return
    found = accumulators(par.body, frozenset(par.reduce))
    own = all(t.buffer in copies for a in found for t in a.targets)
    yield Step(ThreadSet.PARTIAL, par, found, own)
    if nest.blocks > 1 and nest.threads > nest.warp:
        yield Step(ThreadSet.MIDDLE, par, found, own)
    yield Step(ThreadSet.TOTAL, par, found, own)


def below(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The lists of steps directly below a node."""
    match node:
        case Step():
            return ()
        case Loop():
            return (node.body,)
        case Branch():
            return (node.then, node.orelse)


def leaves(nodes: tuple[Node, ...]) -> Iterator[Step]:
    """Every leaf of a tree, in textual order."""
    for node in nodes:
        match node:
            case Step():
                yield node
            case Loop():
                yield from leaves(node.body)
            case Branch():
                yield from leaves(node.then)
                yield from leaves(node.orelse)


def thread_of(nest: Nest, loops: tuple[ir.Loop, ...]) -> Expr:
    """The team's thread that runs the statements below `loops`, in their indices."""
    total = ZERO
    for loop in loops:
        if isinstance(loop, ir.Par) and loop in nest.loops and nest.loops[loop].role is not Role.GRID:
            total = total + nest.loops[loop].thread()
    return total


class Around(Record):
    """Where a step lies: in which loops of the team, outermost first, in which list, and in which arms of which branches."""

    loops: tuple[ir.Seq, ...]
    list: int
    arms: tuple[tuple[ir.If, bool], ...] = ()

    def excludes(self, other: Around) -> bool:
        """Whether the two lie in different arms of a branch, of which one pass runs one."""
        return any((stmt, not arm) in other.arms for stmt, arm in self.arms)


def surroundings(
    nodes: tuple[Node, ...], loops: tuple[ir.Seq, ...] = (), arms: tuple[tuple[ir.If, bool], ...] = ()
) -> dict[Step, Around]:
    """For each leaf the team's loops around it, outermost first, and the list it is a step of."""
    found: dict[Step, Around] = {}
    for node in nodes:
        match node:
            case Step():
                found[node] = Around(loops, id(nodes), arms)
            case Loop(stmt, body):
                found |= surroundings(body, (*loops, stmt), arms)
            case Branch(stmt):
                found |= surroundings(node.then, loops, (*arms, (stmt, True)))
                found |= surroundings(node.orelse, loops, (*arms, (stmt, False)))
    return found
