"""The schedule of a turn that a search finds, as a directive says it: the last statements of a turn run a turn late.

    a  b  c  d  e     found: a  d  e  b  c, of which d and e are of the turn before     →     overlap(loop, d, behind=a)

A schedule that is none of this kind is brought to the nearest one; what that takes, its own code says.
"""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.model.modulo.order import Code, Placed, ordered, parts_of
from texpr.model.modulo.turn import Turn
from texpr.model.turns import period
from texpr.planner.clocks.operations import Steps
from texpr.planner.clocks.told import searched
from texpr.support.record import Record


class Late(Record):
    """A turn in which statements from that with the loop `first` on run a turn late, behind that with the loop `behind`;
    `clocks`: of such a turn, by the warpgroup. `by_circles`: what waits for each other needs longer than any unit."""

    first: Sym
    behind: Sym
    clocks: float
    by_circles: bool


def late_of(steps: Steps, groups: int, blocks: int, apart: bool) -> Late | None:
    """What a search finds for so many warpgroups of so many blocks; None where nothing of it is late, or no directive says
    so."""
    turn = steps.turn(groups, blocks, apart)
    found = searched(turn)
    code = None if found is None else _suffixed(steps, ordered(turn, found, steps.numbers))
    if found is None or code is None or not _is_kept(turn, code):
        return None
    late = [each.operation for each in code if each.late]
    first, behind = _named(steps, late[0]), _named(steps, _behind(code), last=True)
    if first is None or behind is None:
        return None
    clocks = period(parts_of(turn, code, steps.lanes, not apart), groups, blocks) / turn.teams
    return Late(first, behind, clocks, found.bounds.recurrence > found.bounds.resource)


def _suffixed(steps: Steps, code: Code) -> Code | None:
    """The nearest code whose late operations are the last ones of the text, side by side, and named; all else is in the order
    of the text. None where nothing is late, or more than one turn."""
    late = [each.operation for each in code if each.late]
    if not late or max(each.late for each in code) > 1 or min(late) == 0:
        return None
    first = next((at for at in steps.numbers[min(late) :] if _named(steps, at) is not None), None)
    before = {each.operation for each in code[: next(at for at, each in enumerate(code) if each.late)]}
    ahead = next((at for at in steps.numbers if at not in before), 0)
    behind = max((at for at in steps.numbers[:ahead] if _named(steps, at, last=True) is not None), default=None)
    if first is None or behind is None or behind >= first:
        return None
    numbers = steps.numbers
    prompt = [Placed(at, 0) for at in numbers[:first]]
    return (*prompt[: behind + 1], *(Placed(at, 1) for at in numbers[first:]), *prompt[behind + 1 :])


def _behind(code: Code) -> int:
    """The last operation before those that are late."""
    return code[next(at for at, each in enumerate(code) if each.late) - 1].operation


def _named(steps: Steps, at: int, last: bool = False) -> Sym | None:
    """The loop by which a directive tells the first statement of an operation, or its last one: all of a statement."""
    if steps.products[at] is not None:
        return steps.products[at]
    stmt = steps.groups[at][-1 if last else 0]
    beside = at + 1 if last else at - 1
    other = steps.groups[beside][0 if last else -1] if beside in steps.numbers else None
    if not isinstance(stmt, ir.Par | ir.Seq) or (isinstance(other, ir.Par | ir.Seq) and other.sym == stmt.sym):
        return None
    return stmt.sym


def _is_kept(turn: Turn, code: Code) -> bool:
    """Whether each operation comes behind those that it waits for."""
    place = {each.operation: (each.late, at) for at, each in enumerate(code)}
    for each in turn.dependences:
        if each.before in place and each.after in place and each.before != each.after:
            (late, at), (later, behind) = place[each.before], place[each.after]
            turns = later + each.turns - late
            if turns < 0 or (turns == 0 and at > behind):
                return False
    return True
