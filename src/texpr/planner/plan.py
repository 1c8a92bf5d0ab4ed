"""The schedule of a function that has none: nest by nest, the best candidate that every directive of is proved.

A candidate that is refused gives way to the next best one; a nest without any stays as it is, and the reason is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.planner.budget import budget
from texpr.planner.cores import CoreScript, Panel, panel
from texpr.planner.follow import Follower, Refused
from texpr.planner.long import Long, rows
from texpr.planner.nest import Nest, NoPlan, nests, outermost
from texpr.planner.ordered import Ordered, reads_once, shared_sums
from texpr.planner.phases import Phased, phases
from texpr.planner.script import Script
from texpr.planner.search import Candidate, Search
from texpr.planner.squared import Squared
from texpr.planner.turned import SIDE, Turned, crossed
from texpr.planner.wide import Wide
from texpr.schedule.apply import start
from texpr.schedule.materialise import materialise
from texpr.schedule.state import State
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace
from texpr.support.span import Span

ATTEMPTS = 4
"""Candidates of a nest that are tried, at most."""

NOTHING: Mapping[Sym, str] = MappingProxyType({})


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
        return replace(self, schedule=None, failed=given_up(reason))


Found = tuple[tuple[Chosen, ...], Follower | None]
"""What became of a nest, which phases may have made several of, and the directives for it."""


def given_up(reason: TexprError) -> str:
    """Why something was, in one line."""
    first = reason.diagnostics[0]
    return f"{first.code}: {first.message}"


def blamed(function: ir.Function, schedule: ir.Schedule, reason: TexprError) -> Sym | None:
    """The outermost loop of a nest that `schedule` says something of, and that could not be lowered by `reason`."""
    said, at = {_place(each.span) for each in schedule.directives}, reason.diagnostics[0].span
    for par in outermost(function.body):
        if at is not None and _place(par.span) in said and _place(at) in {_place(s.span) for s in ir.walk((par,))}:
            return par.sym
    return None


def _place(span: Span) -> tuple[int, int]:
    return span.start, span.end


def plan(function: ir.Function, target: Target, without: Mapping[Sym, str] = NOTHING) -> Planned:
    """The automatic schedule of `function`, a checked one with its sizes as far fixed as they are, for `target`.

    `without`: outermost loops of nests that shall have none, and why.
    """
    if any(s.directives for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq)):
        return Planned(None, (), start(function, target))
    state, directives, chosen = start(function, target), list[ir.Directive](), list[Chosen]()
    for par, nest in nests(state.function):
        if par.sym in without:
            chosen.append(Chosen(par.span.line, None, f"given up: {without[par.sym]}"))
            continue
        found, script = _of(par, nest, state)
        if script is None and isinstance(nest, NoPlan):
            found, script = _phased(par, state, found)
        chosen += found
        if script is not None:
            state = script.state
            directives += script.directives
    schedule = ir.Schedule(function.name, "automatic", target.name, tuple(directives)) if directives else None
    return Planned(schedule, tuple(chosen), state)


def _of(par: ir.Par, nest: Nest | NoPlan, state: State) -> Found:
    """One nest as it stands."""
    if isinstance(nest, NoPlan):
        found, script = _ordered(par, state, Chosen(par.span.line, None, str(nest)))
        if script is None:
            found, script = _long(par, state, found)
        return (found,), script
    found, script = _tiled(nest, state)
    if nest.whole:
        return (found,), script
    if script is None and state.target.is_gpu:
        found, script = _turned(nest, state, found)
    if script is None and state.target.is_gpu:
        found, script = _widened(nest, state, found)
    return (found,), script


def _phased(par: ir.Par, state: State, before: tuple[Chosen, ...]) -> Found:
    """Loops of their own around what reads the same in all iterations, if one of them becomes tiles."""
    way = phases(par, state.function)
    if way is None:
        return before, None
    script = Phased(state, par.span, phases=way)
    try:
        made = script.run()
    except Refused as reason:
        return (*before[:-1], replace(before[-1], refused=(*before[-1].refused, str(reason)))), None
    every, tiled = list[Chosen](), False
    for each, nest in nests(materialise(script.state).function):
        if each.sym in made:
            found, more = _of(each, nest, script.state)
            every += (replace(one, line=way.first(each).span.line) for one in found)
            tiled |= any(one.candidate is not None for one in found)
            if more is not None:
                script.state = more.state
                script.directives += more.directives
    return (tuple(every), script) if tiled else (before, None)


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
    nest = next(nest for par, nest in nests(materialise(first.state).function) if par.sym is outermost)
    if isinstance(nest, NoPlan) or reads_once(nest):
        return found, None
    chosen, script = _tiled(nest, first.state)
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


def _tiled(nest: Nest, state: State) -> tuple[Chosen, Follower | None]:
    """Tiles of a nest, of a triangle as of a square."""
    if not nest.whole:
        return _laid_out(nest, state)
    first = Squared(state, nest.loops[0].span, nest=nest)
    try:
        found, script = _laid_out(first.run(), first.state)
    except Refused as reason:
        return Chosen(nest.line, None, "a loop depends on another one", (str(reason),)), None
    if script is not None:
        script.directives = [*first.directives, *script.directives]
    return found, script


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
