"""The steps of a kernel in their order, synchronised: the form between the mapping of a nest and the kernel that is emitted.

    steps  = {step}
    step   = Step who stmt            what threads do between two barriers, shared out as `who` says (`lowering.build.team`)
           | Sync {operation}         what all of them do for the sake of order: barriers, waits, fences, ends of groups
           | Repeat stmt {step}       a `seq` that all of them run together
           | Choice stmt {step} {step}    an `if` that all of them decide alike

Before: a tree of steps, and what `texpr.lowering.sync.synchronise` decided for its gaps. After: the same tree, with that in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Branch, Loop, Node, Step
from texpr.lowering.build.paths import lists
from texpr.lowering.sync.phases import Tensors
from texpr.lowering.sync.synchronise import Order
from texpr.support.record import Record


class Sync(Record, eq=False):
    """Operations that all threads of the team do, one after the other; or, where it `leads`, the first one alone."""

    does: tuple[k.Stmt, ...]
    leads: bool = False


class Repeat(Record, eq=False):
    """A loop that all threads run together."""

    stmt: ir.Seq
    body: tuple[OrderedNode, ...]


class Choice(Record, eq=False):
    """A branch that all threads decide alike, by what the step before it put into `decided`."""

    stmt: ir.If
    decided: Sym
    then: tuple[OrderedNode, ...]
    orelse: tuple[OrderedNode, ...]


OrderedNode: TypeAlias = Step | Sync | Repeat | Choice


class Steps(Record):
    """All of a kernel: what is done once, before any other step and behind all, and the steps of an iteration of the grid."""

    begin: tuple[Sync, ...] = ()
    body: tuple[OrderedNode, ...] = ()
    end: tuple[Sync, ...] = ()


def whole(nodes: tuple[Node, ...], order: Order, tensors: Tensors) -> Steps:
    """The steps of a tree, and around them what engines ask for: their barriers are made, and what they store has arrived."""
    begin: list[Sync] = []
    made, asked = tensors.start(), tensors.maps.prefetches()
    if made or asked:
        begin.append(Sync((*asked, *made), leads=True))
    if made:
        begin.append(Sync((k.Barrier(k.Level.CLUSTER if tensors.shared else k.Level.BLOCK, tensors.made),)))
    ended = tensors.finish()
    return Steps(tuple(begin), ordered(nodes, order), (Sync(ended, leads=True),) if ended else ())


def ordered(nodes: tuple[Node, ...], order: Order) -> tuple[OrderedNode, ...]:
    """The steps of a tree with what `order` has in its gaps."""
    numbers = {id(steps.nodes): steps.number for steps in lists(nodes)}

    def sync(gap: tuple[int, int]) -> Iterator[Sync]:
        if does := order.gaps.get(gap):
            yield Sync(does)

    def visit(nodes: tuple[Node, ...]) -> Iterator[OrderedNode]:
        number = numbers[id(nodes)]
        yield from sync((number, -1))
        for at, node in enumerate(nodes):
            match node:
                case Step():
                    yield node
                case Loop(stmt, body):
                    yield Repeat(stmt, tuple(visit(body)))
                case Branch(stmt, decided, then, orelse):
                    yield Choice(stmt, decided, tuple(visit(then)), tuple(visit(orelse)))
            if node in order.closing:
                yield Sync((k.CommitAsync(span=node.stmt.span),))
            yield from sync((number, at))

    return tuple(visit(nodes))
