"""The schedule of a function that has none: nest by nest, the best candidate that every directive of is proved.

A candidate that is refused gives way to the next best one; a nest without any stays as it is, and the reason is kept.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.planner.budget import budget
from texpr.planner.cores import CoreScript, Panel, panel
from texpr.planner.follow import Follower, Refused
from texpr.planner.long import Long, rows
from texpr.planner.nest import Nest, NoPlan, nests
from texpr.planner.ordered import Ordered, reads_once, shared_sums
from texpr.planner.script import Script
from texpr.planner.search import Candidate, Search
from texpr.planner.turned import SIDE, Turned, crossed
from texpr.planner.wide import Wide
from texpr.schedule.apply import start
from texpr.schedule.state import State
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace

ATTEMPTS = 4
"""Candidates of a nest that are tried, at most."""


class Chosen(Record):
    """What became of the nest at `line`: `candidate` by model, or `reason` why it has none. `refused`: what was tried first."""

    line: int
    candidate: Candidate | Panel | None
    reason: str = ""
    refused: tuple[str, ...] = ()


class Planned(Record):
    """`schedule`: None where no nest is worth one. `state`: the function after it. `failed`: why it was given up as a whole."""

    schedule: ir.Schedule | None
    nests: tuple[Chosen, ...]
    state: State
    failed: str = ""

    def without(self, reason: TexprError) -> Planned:
        """The same for a function whose schedule could be followed, but not lowered."""
        first = reason.diagnostics[0]
        return replace(self, schedule=None, failed=f"{first.code}: {first.message}")


def plan(function: ir.Function, target: Target) -> Planned:
    """The automatic schedule of `function`, a checked one with its sizes as far fixed as they are, for `target`."""
    if any(s.directives for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq)):
        return Planned(None, (), start(function, target))
    state, directives, chosen = start(function, target), list[ir.Directive](), list[Chosen]()
    for par, nest in nests(function):
        if isinstance(nest, NoPlan):
            found, script = _ordered(par, state, Chosen(par.span.line, None, str(nest)))
            if script is None:
                found, script = _long(par, state, found)
            chosen.append(found)
            if script is not None:
                state = script.state
                directives += script.directives
            continue
        found, script = _laid_out(nest, state)
        if script is None and target.is_gpu:
            found, script = _turned(nest, state, found)
        if script is None and target.is_gpu:
            found, script = _widened(nest, state, found)
        chosen.append(found)
        if script is not None:
            state = script.state
            directives += script.directives
    schedule = ir.Schedule(function.name, "automatic", target.name, tuple(directives)) if directives else None
    return Planned(schedule, tuple(chosen), state)


def _ordered(par: ir.Par, state: State, found: Chosen) -> tuple[Chosen, Follower | None]:
    """Tiles of sums that are made in order."""
    way = shared_sums(par)
    if not way:
        return found, None
    first = Ordered(state, par.span, way=way)
    try:
        outermost = first.run()
    except Refused as reason:
        return replace(found, refused=(*found.refused, str(reason))), None
    nest = next(nest for par, nest in nests(first.state.function) if par.sym is outermost)
    if isinstance(nest, NoPlan) or reads_once(nest):
        return found, None
    chosen, script = _laid_out(nest, first.state)
    if script is None:
        return replace(found, refused=(*found.refused, *chosen.refused)), None
    script.directives = [*first.directives, *script.directives]
    return chosen, script


def _long(par: ir.Par, state: State, found: Chosen) -> tuple[Chosen, Follower | None]:
    """Rows kept by a cluster, where they are too long for a block."""
    kept = rows(par, state.target)
    if kept is None:
        return found, None
    script = Long(state, par.span, rows=kept)
    try:
        script.run()
    except Refused as reason:
        return replace(found, refused=(*found.refused, str(reason))), None
    return replace(found, reason=f"{found.reason}; {kept}", refused=(*found.refused, *script.dropped)), script


def _laid_out(nest: Nest, state: State) -> tuple[Chosen, Follower | None]:
    banned, in_order, refused = frozenset[Buffer](), False, list[str]()
    for _ in range(ATTEMPTS):
        try:
            found, script = _attempt(nest, state, banned, in_order)
            script.run()
        except NoPlan as reason:
            return Chosen(nest.line, None, str(reason), tuple(refused)), None
        except Refused as reason:
            refused.append(str(reason))
            if reason.buffer is not None:
                banned |= {reason.buffer}
            elif reason.directive.name == "reorder" and not in_order:
                in_order = True
            else:
                break
        else:
            return Chosen(nest.line, found, "", (*refused, *script.dropped)), script
    return Chosen(nest.line, None, "every candidate was refused", tuple(refused)), None


def _turned(nest: Nest, state: State, found: Chosen) -> tuple[Chosen, Follower | None]:
    """Tiles that are turned round, where what is read lies across what is written."""
    ways = crossed(nest)
    if ways is None:
        return found, None
    script = Turned(state, nest.loops[0].span, nest=nest, crossed=ways)
    try:
        script.run()
    except Refused as reason:
        return replace(found, refused=(*found.refused, str(reason))), None
    names = ", ".join(f"`{buffer.name}`" for buffer in ways.buffers)
    reason = f"{found.reason}; {names}: turned round in tiles of {SIDE} × {SIDE}"
    return replace(found, reason=reason, refused=(*found.refused, *script.dropped)), script


def _widened(nest: Nest, state: State, found: Chosen) -> tuple[Chosen, Follower | None]:
    """Vectors, where there is no tile."""
    script = Wide(state, nest.loops[0].span, nest=nest)
    script.run()
    found = replace(found, refused=(*found.refused, *script.dropped))
    if not script.directives:
        return found, None
    return replace(found, reason=f"{found.reason}; neighbouring elements are vectors"), script


def _attempt(
    nest: Nest, state: State, banned: frozenset[Buffer], in_order: bool
) -> tuple[Candidate | Panel, Script | CoreScript]:
    """The best candidate that stages none of `banned`, and its directives, not followed yet. Raises NoPlan."""
    span = nest.loops[0].span
    if state.target.is_gpu:
        candidate = Search(nest, budget(state.target, len(nest.loops)), banned, in_order).best()
        return candidate, Script(state, span, nest=nest, candidate=candidate)
    chosen = panel(nest, state.target, banned, in_order)
    return chosen, CoreScript(state, span, nest=nest, panel=chosen)
