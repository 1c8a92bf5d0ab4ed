"""The tree of steps of a team: the statements between two barriers, and the threads that execute them.

Before: the body of a grid iteration. After: steps without barriers in them, in uniform loops and branches. A step has a thread
set (all threads, or the first alone) and a kind of work (`texpr.ir.steps.work`). The first thread alone executes a bind outside
every team `par`, and starts a copy by the tensor memory accelerator; all threads execute binds of replicated locals, and every
read that control flow depends on.

    par 64 |i| { t[i] = x[i] }                all spread { par 64 |i| { … } }
    s = 0                             →       thread 0 run { s = 0 }
    par 64 |i| reduce(s) { s += t[i] }        all partial { par 64 |i| … }    all total
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir import program as ir
from texpr.ir.operation import Agent
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Tensor, Vector
from texpr.ir.program.updates import accumulators
from texpr.ir.steps import Branch, Loop, Node, Part, Step
from texpr.ir.steps.threads import ALL, ONE, Threads
from texpr.ir.steps.work import Decide, End, Issue, Middle, Partial, Run, Spread, Total
from texpr.ir.value import Buffer
from texpr.mapping.nest import Nest, Role
from texpr.support.record import Record

COPIES = 16
"""The most elements of a local that is replicated in every thread."""


def replicated_buffers(nest: Nest) -> frozenset[Buffer]:
    """The small locals that are written uniformly: each thread can have its own copy, so that they need no barrier."""
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


def tree(nest: Nest, decide: Mapping[ir.If, Sym]) -> tuple[Node, ...]:
    """The tree of `nest`; `decide` maps each uniform branch to the variable that holds its condition."""
    nodes = tuple(_nodes(nest.body, nest, replicated_buffers(nest), decide))
    if nest.blocks > 1:
        nodes = (*nodes, Step(ALL, End(), (ir.Seq(Sym("end"), ZERO, ()),)))
    return nodes


def end_of(nodes: tuple[Node, ...]) -> Step | None:
    """The step at which blocks of a cluster exit, if any."""
    last = nodes[-1] if nodes else None
    return last if isinstance(last, Step) and isinstance(last.work, End) else None


def _nodes(body: tuple[ir.Stmt, ...], nest: Nest, copies: frozenset[Buffer], decide: Mapping[ir.If, Sym]) -> Iterator[Node]:
    for stmt in body:
        match stmt:
            case ir.Par() if mark(stmt, Tensor):
                yield Step(ONE, Issue(), (stmt,), Agent.ENGINE)
            case ir.Par():
                yield from _par(stmt, nest, copies)
            case ir.Seq() if mark(stmt, Vector) and (who := _who(stmt, copies)) is not None:
                yield Step(who, Run(), (stmt,))
            case ir.Seq():
                yield Loop(stmt, tuple(_nodes(stmt.body, nest, copies, decide)))
            case ir.If():
                yield Step(ALL, Decide(decide[stmt]), (stmt,))
                then, orelse = (tuple(_nodes(b, nest, copies, decide)) for b in (stmt.then, stmt.orelse))
                yield Branch(stmt, decide[stmt], then, orelse)
            case ir.Bind():
                own = all(t.buffer in copies for t in stmt.targets)
                yield Step(ALL if own else ONE, Run(), (stmt,))
            case ir.New() if stmt.arrivals:
                pass  # made before everything else (`lowering.build.signals`)
            case ir.Let() | ir.New():
                yield Step(ALL, Run(), (stmt,))
            case ir.Instruction() if stmt.instr is not None:
                yield Step(ALL, Run(), (stmt,))
            case ir.Anchor() | ir.Instruction():
                yield Step(ONE, Run(), (stmt,))


def _who(vector: ir.Seq, copies: frozenset[Buffer]) -> Threads | None:
    """The threads that execute a vector of binds: all, if all targets are replicated; one, if none is; None if some are."""
    inside = {s.buffer for s in ir.walk(vector.body) if isinstance(s, ir.New)}
    targets = {t.buffer for s in ir.walk(vector.body) if isinstance(s, ir.Bind) for t in s.targets} - inside
    return ALL if targets <= copies else ONE if not targets & copies else None


def _par(par: ir.Par, nest: Nest, copies: frozenset[Buffer]) -> Iterator[Node]:
    if nest.loops[par].role is not Role.REDUCE:
        yield Step(ALL, Spread(), (par,))
        return
    found = accumulators(par.body, frozenset(par.reduce))
    own = all(t.buffer in copies for a in found for t in a.targets)
    yield Step(ALL, Partial(found, own), (par,))
    if nest.blocks > 1 and nest.threads > nest.warp:
        yield Step(ALL, Middle(found, own), (par,))
    yield Step(ALL, Total(found, own), (par,))


def thread_of(nest: Nest, loops: tuple[ir.Loop, ...]) -> Expr:
    """The team's thread that executes the statements in `loops`, as a function of their indices."""
    total = ZERO
    for loop in loops:
        if isinstance(loop, ir.Par) and loop in nest.loops and nest.loops[loop].role is not Role.GRID:
            total = total + nest.loops[loop].thread()
    return total


class Around(Record):
    """The position of a step: the team's loops around it, outermost first, its list, and the arms of branches around it."""

    loops: tuple[ir.Seq, ...]
    list: int
    arms: tuple[tuple[ir.If, bool], ...] = ()

    def excludes(self, other: Around) -> bool:
        """Whether the two are in different arms of a branch, of which one execution takes one."""
        return any((stmt, not arm) in other.arms for stmt, arm in self.arms)


def surroundings(
    nodes: tuple[Node, ...], loops: tuple[ir.Seq, ...] = (), arms: tuple[tuple[ir.If, bool], ...] = ()
) -> dict[Step, Around]:
    """The position of each step of a tree."""
    found: dict[Step, Around] = {}
    for node in nodes:
        match node:
            case Step():
                found[node] = Around(loops, id(nodes), arms)
            case Loop(stmt, body):
                found |= surroundings(body, (*loops, stmt), arms)
            case Part():
                found |= surroundings(node.body, loops, arms)
            case Branch(stmt):
                found |= surroundings(node.then, loops, (*arms, (stmt, True)))
                found |= surroundings(node.orelse, loops, (*arms, (stmt, False)))
    return found
