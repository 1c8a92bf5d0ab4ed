"""What the threads of a kernel do, step by step, before it is said how: the form between a mapped program and a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.operation import Agent
from texpr.ir.steps.threads import Threads
from texpr.ir.steps.work import Work
from texpr.ir.value import Load, Ref, walk
from texpr.support.record import Record


class Step(Record, eq=False):
    """What `threads` do between two gaps in which they may be ordered: a kind of `work` with statements of the program.

    `agent`: whose work it is, where threads only start it.
    """

    threads: Threads
    work: Work
    stmts: tuple[ir.Stmt, ...] = ()
    agent: Agent = Agent.THREAD

    @property
    def stmt(self) -> ir.Stmt:
        """The statement of a step that has one."""
        return self.stmts[0]


class Loop(Record, eq=False):
    """A `seq` that all threads of the team run together."""

    stmt: ir.Seq
    body: tuple[Node, ...]


class Branch(Record, eq=False):
    """An `if` that all threads decide alike; its condition was evaluated by the step before it, into `decided`."""

    stmt: ir.If
    decided: Sym
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]

    @property
    def is_data(self) -> bool:
        """Whether data decide, read here or kept by a `let`."""
        return any(isinstance(part, Load | Ref) for part in walk(self.stmt.condition))


Node: TypeAlias = Step | Loop | Branch


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
    """Every step of a tree, in textual order."""
    for node in nodes:
        if isinstance(node, Step):
            yield node
        for inner in below(node):
            yield from leaves(inner)
