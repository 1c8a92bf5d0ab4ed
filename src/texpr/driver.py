"""The pipeline: a text becomes a program, a checked program, a plan, sources, and an executable.

Each step is one line of `lower`; `after` sees every intermediate form, in order, for dumps and for checks between passes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from math import lcm
from os import PathLike
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.backends.printing import print_source
from texpr.frontend import parse as parse_text
from texpr.ir.kernel import Plan
from texpr.ir.program import Function, Program, Schedule
from texpr.ir.program.promised import promised
from texpr.ir.program.rewrite import specialize_schedule
from texpr.ir.program.selection import Selected
from texpr.isa.registry import resolve
from texpr.isa.target import Target
from texpr.lowering.lower import lower as lower_function
from texpr.lowering.notes import Notes
from texpr.model.gain import saves
from texpr.ordered import check as check_function
from texpr.planner.choice import Chooser
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan, outermost
from texpr.planner.plan import UNASKED, Planned, blamed, given_up, plan
from texpr.planner.strategy import Lowered
from texpr.planner.wider import Promise, in_vectors, may_be_wide, promise, same_directives
from texpr.schedule.apply import apply_schedule
from texpr.schedule.apply import laid_out as follow_state
from texpr.schedule.proposals import tried
from texpr.schedule.rewrite.materialise import Materialised
from texpr.schedule.stage.results import with_results
from texpr.schedule.state import State
from texpr.sizes import fix, listed, refuse
from texpr.sources import read_source
from texpr.support.diagnostic import Diagnostic, TexprError, error, limitation
from texpr.support.expect import expect
from texpr.support.record import Record, replace
from texpr.support.span import Source

Stage: TypeAlias = Function | Plan | str
After: TypeAlias = Callable[[str, Stage], None]


class Compiled(Record):
    """A function for one target: the function after its schedule, its sizes fixed; its plan, the decisions, the source for a
    compiler. `laid_out`: the effect of `schedule`, or pragmas, if any, on the function as `written`. `planned`: how
    `schedule` was found, if it is automatic. `wide`: the same for callers who promise more, if it is worth that; the plan has
    its plan, and the source its kernels."""

    function: Function
    target: Target
    plan: Plan
    notes: tuple[Notes, ...]
    source: str
    laid_out: Materialised | None = None
    schedule: Schedule | None = None
    planned: Planned | None = None
    written: Function | None = None
    wide: Compiled | None = None

    def with_wide(self, wide: Compiled | None) -> Compiled:
        """The same with that wide plan, or without one."""
        plan = replace(self.plan, wide=None if wide is None else wide.plan)
        return replace(self, wide=wide, plan=plan, source=print_source(plan, self.target))


def parse(source: Source | str, consts: Mapping[str, int] | None = None) -> Program:
    """The program of a text. Raises TexprError with every error of syntax, names and types."""
    expect(source, (Source, str), "source must be the text of a program")
    expect(consts, (Mapping, NoneType), "consts must be a mapping of names to integers, such as {'T': 2}")
    if isinstance(source, str):
        source = Source("<text>", source)
    return parse_text(source.text, source.name, consts or {})


def load(path: str | Path, consts: Mapping[str, int] | None = None) -> Program:
    """The program of a UTF-8 file. Raises TexprError for a file that cannot be read, or as `parse` does."""
    expect(path, (str, PathLike), "path must name a file")
    return parse(read_source(Path(path)), consts)


def check(program: Program) -> tuple[Diagnostic, ...]:
    """The errors and undecided properties of all functions of `program`."""
    return tuple(found for function in program.functions for found in check_function(function))


Proved: TypeAlias = Callable[[Compiled], object]
"""Accepts what is compiled, or raises TexprError."""


class Every(Container[object]):
    """All there are."""

    def __contains__(self, item: object) -> bool:
        return True

    def __or__(self, other: frozenset[Sym]) -> Every:
        return self


InStep: TypeAlias = Every | frozenset[Sym]
"""Outermost loops of nests all warps of which do the same."""

NO_PICKS: Mapping[str, int] = MappingProxyType({})


class Way(Record):
    """How to choose an automatic schedule. `in_step`: nests all warps of which do the same. `picks`, `wide`: candidates by the
    names of points of choice (`planner.choice`), in place of what the planner would take: of the plan for all callers, and of
    that for callers who promise more. `proved`: accepts candidates one by one, of a plan for all callers alone."""

    in_step: InStep = frozenset[Sym]()
    picks: Mapping[str, int] = NO_PICKS
    wide: Mapping[str, int] = NO_PICKS
    proved: Proved | None = None

    def planned(
        self,
        function: Function,
        machine: Target,
        without: Mapping[Sym, str],
        picks: Mapping[str, int],
        lowered: Mapping[Sym, Lowered] = UNASKED,
    ) -> Planned:
        """The schedule; `lowered`: of which nests only candidates are taken that this lowers. Raises Limitation E0914 where a
        candidate that is asked for cannot be followed."""
        try:
            return plan(function, machine, without, Chooser(picks) if picks else None, self.in_step, lowered)
        except (Refused, NoPlan) as reason:
            raise limitation("E0914", function.span, str(reason)) from None


BY_ITSELF = Way()
"""What the planner takes."""


def lower(
    function: Function,
    target: str,
    sizes: Mapping[str, int] | None = None,
    *,
    schedule: Selected = None,
    after: After = lambda name, stage: None,
    way: Way = BY_ITSELF,
) -> Compiled:
    """`function` for `target`, after `schedule` and the default mapping of what it leaves open.

    `schedule`: `AUTO` for the automatic one, which is chosen in that `way`, None for none. Raises TexprError where it is
    wrong, Limitation where it cannot be decided or lowered.
    """
    machine = resolve(target)
    if isinstance(schedule, str):
        function, fixed = _fixed(function, sizes, after)
        return _planned(function, machine, fixed, after, way)

    def lowered(function: Function, schedule: Schedule | None, after: After = lambda name, stage: None) -> Compiled:
        function, fixed = _fixed(function, sizes, after)
        laid_out = apply_schedule(function, schedule and fix_schedule(schedule, fixed), machine)
        return _lowered(function, machine, fixed, laid_out, schedule, after)

    try:
        return lowered(function, schedule, after)
    except TexprError as raised:
        raise tried(raised, function, schedule, lowered) from raised.__cause__


def _fixed(function: Function, sizes: Mapping[str, int] | None, after: After) -> tuple[Function, dict[Sym, int]]:
    """A legal function with its sizes fixed."""
    function, fixed = fix(function, sizes)
    after("fixed", function)
    refuse(check_function(function))
    return function, fixed


def _planned(function: Function, machine: Target, fixed: Mapping[Sym, int], after: After, way: Way) -> Compiled:
    """`function` with its automatic schedule, and with a plan for callers whose arrays begin, and whose rows are, whole
    vectors, where that has less to do."""
    made = _scheduled(function, machine, fixed, after, None, way)
    if way.proved is not None or not may_be_wide(made.plan, machine):
        return made
    asked = promise(function, machine.vector)
    wide = _wide(function, asked, made, fixed, way)
    if wide is not None and (used := promise(function, machine.vector, in_vectors(wide.plan))) != asked:
        wide = _wide(function, used, made, fixed, way)
    if wide is None or not may_be_wide(wide.plan, machine) or not saves(wide.plan, made.plan, machine):
        return made
    return made.with_wide(wide)


def _wide(function: Function, asked: Promise, made: Compiled, fixed: Mapping[Sym, int], way: Way) -> Compiled | None:
    """`function` for callers who keep a promise, where its automatic schedule is not that of `made`."""
    function, machine = promised(function, asked.align, asked.where), made.target
    try:
        planned = way.planned(function, machine, {}, way.wide) if asked else None
        if planned is None or planned.schedule is None or same_directives(planned.schedule, made.schedule):
            return None
        return _scheduled(function, machine, fixed, _unseen, planned, way, made)
    except TexprError:
        return None


def _scheduled(
    function: Function,
    machine: Target,
    fixed: Mapping[Sym, int],
    after: After,
    planned: Planned | None,
    way: Way,
    narrow: Compiled | None = None,
) -> Compiled:
    """`function` with its automatic schedule, if that is `planned`. Nests for which it cannot be lowered get one without roles,
    or the first candidate that can, or none. `narrow`: what it is the wide plan of, which asks for no less."""
    ending = "" if narrow is None else "_wide"

    def lowers(state: State) -> object:
        made = _lowered(function, machine, fixed, follow_state(state), None, _unseen, ending)
        return None if way.proved is None else way.proved(made)

    without, asked = dict[Sym, str](), dict[Sym, Lowered]()
    if way.proved is not None:
        asked = {par.sym: lowers for par in outermost(function.body)}
    planned = planned or way.planned(function, machine, {}, way.picks, asked)
    while planned.schedule is not None:
        try:
            laid_out = follow_state(planned.state if narrow is None else _asking(planned.state, narrow.plan))
            made = _lowered(function, machine, fixed, laid_out, planned.schedule, after, ending)
            return replace(made, planned=planned)
        except TexprError as reason:
            nest = blamed(function, planned.schedule, reason)
            if nest is None or nest in without:
                planned = planned.without(reason)
                continue
            if reason.diagnostics[0].code == "E0920" and nest not in way.in_step:
                way = replace(way, in_step=way.in_step | frozenset({nest}))
            elif nest not in asked:
                asked[nest] = lowers
            else:
                without[nest] = given_up(reason)
            planned = way.planned(function, machine, without, way.picks if narrow is None else way.wide, asked)
    made = _lowered(function, machine, fixed, apply_schedule(function, None, machine), None, after, ending)
    return replace(made, planned=planned)


def _asking(state: State, narrow: Plan) -> State:
    """The same with results that begin where another plan has them begin, at least."""
    own = {b.name: b.align or 1 for b in state.function.results}
    return with_results(state, {b.name: lcm(b.align, own[b.name]) for b in narrow.results if b.align and b.name in own})


def _lowered(
    function: Function,
    machine: Target,
    fixed: Mapping[Sym, int],
    laid_out: Materialised | None,
    schedule: Schedule | None,
    after: After,
    ending: str = "",
) -> Compiled:
    written = None
    if laid_out is not None:
        written, function = function, laid_out.function
        after("scheduled", function)
    steps, notes = lower_function(function, machine, fixed, ending)
    after("plan", steps)
    source = print_source(steps, machine)
    after("source", source)
    return Compiled(function, machine, steps, notes, source, laid_out, schedule, written=written)


def _unseen(name: str, stage: Stage) -> None:
    """Nobody looks at the forms of a wide plan."""


def fix_schedule(schedule: Schedule, fixed: Mapping[Sym, int]) -> Schedule:
    """`schedule` with the sizes fixed, as by `fix` for the function. Raises TexprError E0724."""
    try:
        return specialize_schedule(schedule, fixed)
    except ZeroDivisionError:
        message = f"a schedule of `{schedule.function}` divides by zero, at {listed(fixed)}"
        raise error("E0724", schedule.span, message) from None
