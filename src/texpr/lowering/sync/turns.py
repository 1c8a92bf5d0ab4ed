"""Counting of earlier copies: the phase of its barrier that a copy begins, and, in a ring, the barrier.

    seq E + 2 |t| { if t < E { copy As[t % 3, …] … }  if t >= 2 { … As[(t - 2) % 3, …] … } }

There is one barrier for each slot: the copy of iteration t arrives at that of slot t % 3, t / 3 phases of which are complete
then. A reader in iteration t of the copy of iteration t − 2 waits for the barrier and phase of the copy at t − 2. That this
iteration had a copy must follow from the tests around the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import takewhile

from texpr.affine.expr import ZERO, Expr, Sym, expr, maximum
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Branch, Loop, Node, Part, Step, below, leaves
from texpr.lowering.dependences.dependence import FAR
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.presburger.formula import Or
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of, in_loop, known
from texpr.schedule.edits import staged_by
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.record import Record
from texpr.support.span import Span


class Phase(Record):
    """The barrier of a copy among those of its group, and the number of its phases that are complete when the copy starts."""

    slot: Expr
    completed: Expr

    def at(self, sym: Sym, turn: Expr) -> Phase:
        """The phase for another iteration."""
        return Phase(self.slot.substitute({sym: turn}), self.completed.substitute({sym: turn}))


class Counted(Record):
    """Something else that is counted as copies are: the step, what it is called in refusals."""

    leaf: Step
    name: str
    span: Span


class Ring(Record):
    """The `slots` that a copy fills in turn, in the iterations of the loop `sym` that are ≥ `first` and < `end`."""

    phase: Phase
    slots: int
    sym: Sym
    first: Expr
    end: Expr

    def latest(self, step: BoxCopy, distance: int) -> int:
        """The distance in iterations to the last copy to a slot that was filled `distance` iterations ago; copies fill whole
        slots."""
        if distance >= FAR:
            raise uncounted(step, "it is used many turns later")
        return (distance - 1) % self.slots + 1

    def was_filled(self, turn: Expr, inside: Known) -> bool:
        """Whether the copy of that iteration certainly exists, given the facts `inside`."""
        return inside.nonnegative(turn - self.first) and inside.positive(self.end - turn)


def around(nodes: tuple[Node, ...], leaf: Step) -> tuple[Loop | Branch, ...]:
    """The loops and branches around a leaf, outermost first."""
    for node in nodes:
        if isinstance(node, Step) or not any(each is leaf for each in leaves((node,))):
            continue
        inner = tuple(each for nodes in below(node) for each in nodes)
        return (*(() if isinstance(node, Part) else (node,)), *around(inner, leaf))
    return ()


def completed(nodes: tuple[Node, ...], step: BoxCopy | Counted, given: Iterable[Expr], last: Node | None = None) -> Expr:
    """The number of complete phases of its only barrier when a copy starts: of turns before. Refuses as `turning` does."""
    count = ZERO
    for sym, (first, end) in turning(nodes, step, given, last).items():
        count = count * (end - first) + sym - first
    return count


def turning(
    nodes: tuple[Node, ...], step: BoxCopy | Counted, given: Iterable[Expr], last: Node | None = None
) -> dict[Sym, tuple[Expr, Expr]]:
    """The loops around a copy, each with the first of its turns that have the copy, and their end. Refuses turns that loop
    indices do not determine.

    `given`: expressions that are non-negative everywhere. A branch may restrict the copy to a range of a loop's iterations.
    `last`: the node behind which it is counted, if that is around the step.
    """
    turns: dict[Sym, tuple[Expr, Expr]] = {}
    facts, said = list(given), set[Sym]()
    for node in takewhile(lambda node: node is not last, around(nodes, step.leaf)):
        if isinstance(node, Branch):
            if turns and (node.is_data or not k.value_symbols(node.stmt.condition).isdisjoint({*turns, *said})):
                for sym, narrowed in _left(node, step, turns, known(facts), said):
                    turns[sym] = narrowed
            continue
        _require_free(step, node, [*turns, *said])
        said |= _said(node)
        facts += in_loop(node.stmt.sym, node.stmt.extent)
        turns[node.stmt.sym] = ZERO, node.stmt.extent
    return turns


def _left(
    branch: Branch, step: BoxCopy | Counted, turns: Mapping[Sym, tuple[Expr, Expr]], inside: Known, said: Collection[Sym]
) -> Iterator[tuple[Sym, tuple[Expr, Expr]]]:
    """The iterations of loops, one loop at a time, to which the branch restricts `turns`. Refuses those that are no range."""
    for bound in holding(branch, step.leaf, said):
        decided = [sym for sym in turns if bound is None or sym in bound.syms()]
        alone = decided[0] if len(decided) == 1 else None
        narrowed = None if bound is None or alone is None else _narrowed(bound, expr(alone), *turns[alone], inside)
        if alone is not None and narrowed is not None:
            yield alone, narrowed
        elif decided:
            raise uncounted(step, f"whether it runs is decided anew in each iteration of `{list(turns)[-1].base}`")


def ring(nodes: tuple[Node, ...], step: BoxCopy, carrier: Sym, given: Iterable[Expr]) -> Ring:
    """The ring that a copy fills, in iterations of the loop `carrier`. Refuses copies that do not fill their slots in turn.

    `given`: expressions that are non-negative everywhere.
    """
    turn, outer = expr(carrier), ZERO
    first, end = ZERO, ZERO
    loops: list[Sym] = []
    facts, said = list(given), set[Sym]()
    for node in around(nodes, step.leaf):
        if isinstance(node, Branch):
            for bound in holding(node, step.leaf, said) if loops else ():
                plain = bound is not None and {carrier}.issuperset(bound.syms() & set(loops))
                turns = _narrowed(bound, turn, first, end, known(facts)) if bound is not None and plain else None
                if turns is None:
                    raise uncounted(step, f"whether it runs is decided anew in each iteration of `{loops[-1].base}`")
                first, end = turns
            continue
        _require_free(step, node, [*loops, *said])
        said |= _said(node)
        if carrier in loops:
            raise uncounted(step, f"it runs again in each iteration of `{node.stmt.sym.base}`")
        facts += in_loop(node.stmt.sym, node.stmt.extent)
        if node.stmt.sym == carrier:
            end = node.stmt.extent
        else:
            outer = outer * node.stmt.extent + node.stmt.sym
        loops.append(node.stmt.sym)
    slot, slots = _slot(step)
    if all(slot is not (turn + shift) % slots for shift in range(slots)):
        raise uncounted(step, f"`{slot}` is not the number of its slot, one after the other in turns of `{carrier.base}`")
    before = (turn - first) // slots
    every = before + 1 + (end - 1 - turn) // slots
    return Ring(Phase(slot, outer * every + before), slots, carrier, first, end)


def holding(branch: Branch, leaf: Step, said: Collection[Sym]) -> Iterator[Expr | None]:
    """Expressions that are non-negative on the side of `branch` with `leaf`; None for conditions that are no such expression,
    or depend on integers `said` that each iteration computes anew."""
    taken = any(each is leaf for each in leaves(branch.then))
    found = condition(branch.stmt.condition, holds=taken)
    if not found.exact or isinstance(found.formula, Or):
        yield None
    yield from (bound if bound.syms().isdisjoint(said) else None for bound in facts_of((found.formula,)))


def reached(
    step: BoxCopy, here: tuple[Node, ...], sinks: frozenset[Step], is_filled: Callable[[Node], bool], why: str
) -> Iterator[tuple[tuple[Node, ...], int]]:
    """The lists in `here`, and points in them, that precede `sinks` and where the data of these have certainly been copied.

    Refuses sinks that may execute in iterations without a copy; `why`: the reason.
    """
    found = [at for at, node in enumerate(here) if not sinks.isdisjoint(leaves((node,)))]
    if found and is_filled(here[found[0]]):
        yield here, found[0] - 1
        return
    for node in (here[at] for at in found):
        match node:
            case Step():
                raise uncounted(step, why)
            case _:
                for inner in below(node):
                    yield from reached(step, inner, sinks, is_filled, why)


def _narrowed(bound: Expr, turn: Expr, first: Expr, end: Expr, inside: Known) -> tuple[Expr, Expr] | None:
    """Those of the iterations first … end − 1 in which `bound` is also non-negative; None if they are no range."""
    if turn.syms().isdisjoint(bound.syms()):
        return first, end
    if turn.syms().isdisjoint((low := turn - bound).syms()):
        return _greater(low, first, inside), end
    if turn.syms().isdisjoint((high := bound + turn + 1).syms()):
        return first, -_greater(-high, -end, inside)
    return None


def _greater(one: Expr, other: Expr, inside: Known) -> Expr:
    if inside.nonnegative(one - other):
        return one
    return other if inside.nonnegative(other - one) else maximum(one, other)


def _slot(step: BoxCopy) -> tuple[Expr, int]:
    """The slot of its array that a copy writes, and the number of slots: by the subscripts that its own loops do not vary."""
    slot, slots = ZERO, 1
    for index, extent in zip(step.tile.index, step.tile.buffer.shape, strict=True):
        if step.syms.isdisjoint(index.syms()) and not index.is_constant and extent.is_constant:
            slot, slots = slot * extent + index, slots * extent.constant
    return slot, slots


def _require_free(step: BoxCopy | Counted, node: Loop, loops: Collection[Sym]) -> None:
    inner = node.stmt.extent.syms() & set(loops)
    if inner:
        name = min(s.base for s in inner)
        raise uncounted(step, f"how often `{node.stmt.sym.base}` runs depends on `{name}`")


def _said(node: Loop) -> frozenset[Sym]:
    """The integers that `let`s compute in each iteration of a loop."""
    return frozenset(stmt.sym for stmt in ir.walk(node.stmt.body) if isinstance(stmt, ir.Let))


def uncounted(step: BoxCopy | Counted, why: str) -> Limitation:
    """The refusal of a copy whose phase cannot be determined for its waits."""
    if isinstance(step, Counted):
        told = f"how often products were summed up in `{step.name}` before is not a function of the loops around: {why}"
        return limitation("E0541", step.span, told)
    reason = f"how often `{step.tile.buffer.name}` was copied before is not a function of the loops around: {why}"
    return limitation("E0916", step.span, reason, offers=staged_by(step.span, "cp_async", "ld"))
