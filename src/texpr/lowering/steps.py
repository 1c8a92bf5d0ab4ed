"""The steps of a kernel in their order, synchronised: the form between the mapping of a nest and the kernel that is emitted.

    steps  = {step}
    step   = Leaf who stmt            what threads do between two barriers, shared out as `who` says (`texpr.lowering.team`)
           | Sync {operation}         what all of them do for the sake of order: barriers, waits, fences, ends of groups
           | Repeat stmt {step}       a `seq` that all of them run together
           | Choice stmt {step} {step}    an `if` that all of them decide alike

Before: a tree of steps, and what `texpr.lowering.sync` decided for its gaps. After: the same tree, with that in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.lowering.sync import Order
from texpr.lowering.team import Branch, Leaf, Loop, Node
from texpr.lowering.ways import lists
from texpr.support.record import Record


class Sync(Record, eq=False):
    """Operations that all threads of the team do, one after the other."""

    does: tuple[k.Stmt, ...]


class Repeat(Record, eq=False):
    """A loop that all threads run together."""

    stmt: ir.Seq
    body: tuple[Step, ...]


class Choice(Record, eq=False):
    """A branch that all threads decide alike, by what the step before it put into `decided`."""

    stmt: ir.If
    decided: Sym
    then: tuple[Step, ...]
    orelse: tuple[Step, ...]


Step: TypeAlias = Leaf | Sync | Repeat | Choice


def ordered(nodes: tuple[Node, ...], order: Order) -> tuple[Step, ...]:
    """The steps of a tree with what `order` has in its gaps."""
    numbers = {id(steps.nodes): steps.number for steps in lists(nodes)}

    def sync(gap: tuple[int, int]) -> Iterator[Sync]:
        if does := order.gaps.get(gap):
            yield Sync(does)

    def visit(nodes: tuple[Node, ...]) -> Iterator[Step]:
        number = numbers[id(nodes)]
        yield from sync((number, -1))
        for at, node in enumerate(nodes):
            match node:
                case Leaf():
                    yield node
                case Loop(stmt, body):
                    yield Repeat(stmt, tuple(visit(body)))
                case Branch(stmt, decided, then, orelse):
                    yield Choice(stmt, decided, tuple(visit(then)), tuple(visit(orelse)))
            if node in order.closing:
                yield Sync((k.CommitAsync(span=node.stmt.span),))
            yield from sync((number, at))

    return tuple(visit(nodes))
