"""Groups of warps that take the tiles of a block in turn: each has the loop of the ring for itself, then hands it over.

    repeat seq E |t| #alternate(2) {                              the group t % 2
        …                                                         …
                                                                  wait order[t % 2], until the tile before has its turns
        repeat seq K |k| { copies | uses }                →       repeat seq K |k| { uses }
                                                                  release order[(t + 1) % 2]
        …                                                         …
    }

So turns of the ring are used in their order, whichever group uses them (docs/theory/channels.md). Between the release and the
next wait the other group has the tensor cores, and this one its results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Alternate
from texpr.ir.program.uses import loads
from texpr.ir.steps import Loop, Node, Step, Steps, leaves
from texpr.ir.value import Buffer, Load
from texpr.ir.value.types import U64
from texpr.isa.levels import Space
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.names import Names
from texpr.lowering.sync.phases import awaited
from texpr.schedule.edits import left_out
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace
from texpr.support.span import Span

if TYPE_CHECKING:
    from texpr.lowering.sync.channel.roles import Split


class Relay(Record, eq=False):
    """The barriers by which groups hand the ring over. `take`: what a group waits for, at program point `before`; `give`: what
    it does first, at program point `behind` its turns."""

    order: k.Array
    before: ProgramPoint
    take: k.Stmt
    behind: ProgramPoint
    give: k.Stmt
    span: Span

    @property
    def barriers(self) -> Iterator[Load]:
        """Its barriers: a phase is an arrival of each warp of a group."""
        yield from (Load(self.order.buffer, (expr(at),)) for at in range(self.order.buffer.shape[0].constant))

    def beside(self, gaps: Mapping[ProgramPoint, tuple[k.Stmt, ...]]) -> dict[ProgramPoint, tuple[k.Stmt, ...]]:
        """The operations at program points, with these: a group waits last, and goes on first."""
        found = {**gaps, self.before: (*gaps.get(self.before, ()), self.take)}
        return {**found, self.behind: (self.give, *found.get(self.behind, ()))}


def groups_of(steps: Steps, around: tuple[Loop, ...]) -> int:
    """How many groups take iterations of the loop around a ring in turn; 1 if none do. Refuses another loop of theirs."""
    own = mark(around[-1].stmt, Alternate) if around else None
    for loop, asked in _asked(steps.body):
        if asked is not own:
            why = f"in an iteration of `{loop.stmt.sym.base}` is no loop of copies and of what uses them"
            raise limitation("E0920", asked.span, why, offers=left_out(asked.span))
    return own.groups if own else 1


def require_roles(steps: Steps) -> None:
    """Refuses groups that take turns where no warps of their own copy for them. Raises Limitation."""
    for loop, asked in _asked(steps.body):
        why = f"no warps of their own copy for the groups that take iterations of `{loop.stmt.sym.base}` in turn"
        raise limitation("E0920", asked.span, why, offers=left_out(asked.span))


def require_apart(steps: Steps, own: Split, launched: bool) -> None:
    """Refuses what groups would have in common: work of theirs around the tiles, and shared memory that is not of one group.
    `launched`: whether sums are in tensor memory, which all of a block have. Raises Limitation."""
    if own.groups == 1:
        return
    (tiles,) = own.around
    (asked,) = (asked for _, asked in _asked((tiles,)))
    if launched:
        raise limitation("E0920", asked.span, "all threads of a block have its tensor memory", offers=left_out(asked.span))
    turn, places = expr(tiles.stmt.sym) % own.groups, dict(steps.places)
    for step in leaves(steps.body):
        inside = step in {*leaves((tiles,))}
        if not inside and not all(isinstance(stmt, ir.New) for stmt in step.stmts):
            told = (
                f"groups take iterations of `{tiles.stmt.sym.base}` in turn, and something is done for all of them beside these"
            )
            raise limitation("E0920", asked.span, told, offers=left_out(asked.span))
        for load in _touched(step) if inside and step not in own.copies else ():
            place = places.get(load.buffer)
            ring = any(load.buffer is each.buffer for copy in own.copies for each in _touched(copy))
            if place is not None and place.space is Space.SHARED and not ring and load.index[0] is not turn:
                told = f"`{load.buffer.name}` is in memory that all groups share, and each has iterations of its own"
                raise limitation("E0920", asked.span, told, offers=left_out(asked.span))


def own_turns(needs: Collection[Dependence], own: Split | None) -> tuple[Dependence, ...]:
    """The dependences, with distances in iterations of a group, if groups take turns: the next one that it has is several
    later."""
    if own is None or own.groups == 1:
        return tuple(needs)
    (tiles,) = own.around
    near = {need for need in needs if need.carrier is tiles.stmt and not own.covers(need)}
    return tuple(replace(each, distance=max(1, each.distance // own.groups)) if each in near else each for each in needs)


def handed_over(own: Split, nodes: tuple[Node, ...], names: Names) -> Relay:
    """What groups do at their turns of the loops `nodes`."""
    (tiles,) = own.around
    ((_, asked),) = _asked((tiles,))
    tile, inner = expr(tiles.stmt.sym), next(each for each in lists(nodes) if each.loop is tiles.stmt)
    at = next(number for number, node in enumerate(inner.nodes) if node is own.loop)
    order = Buffer(names.name(f"{tiles.stmt.sym.base}_order"), U64, (expr(own.groups),), "local", span=asked.span)
    array = k.Array(order, k.Space.SHARED, "completes when a group has been through its turns", barrier=True)
    take = awaited(_at(order, tile, own.groups), (tile + (own.groups - 1)) // own.groups + 1, (), asked.span)
    give = k.BarrierRelease(_at(order, tile + 1, own.groups), span=asked.span)
    return Relay(array, (inner.number, at - 1), take, (inner.number, at), give, asked.span)


def _at(order: Buffer, tile: Expr, groups: int) -> Load:
    return Load(order, (tile % groups,))


def _asked(nodes: tuple[Node, ...]) -> list[tuple[Loop, Alternate]]:
    """The loops whose iterations groups shall take in turn."""
    every = [*nodes, *(node for each in lists(nodes) for node in each.nodes)]
    found = {id(node): (node, asked) for node in every if isinstance(node, Loop) and (asked := mark(node.stmt, Alternate))}
    return [*found.values()]


def _touched(step: Step) -> Iterator[Load]:
    for stmt in ir.walk(step.stmts):
        yield from loads(stmt)
