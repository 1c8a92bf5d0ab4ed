"""What is searched: a function for a target, at its sizes, by an objective; and the schedule of each point of the space."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from texpr import __version__, driver
from texpr.delivery import lowered
from texpr.driver import Compiled
from texpr.frontend.parser import parse_text
from texpr.frontend.tree import ConstParam, Fn, Number
from texpr.ir.program import Function, Schedule
from texpr.ir.program.selection import AUTO, Selected, select_schedule
from texpr.ir.program.text import print_directive, print_function
from texpr.isa.registry import resolve
from texpr.planner.choice import Chooser
from texpr.planner.choice import Point as Choice
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan
from texpr.planner.plan import plan
from texpr.sizes import fix
from texpr.support.diagnostic import TexprError, error, limitation
from texpr.support.record import Record, as_dict, replace
from texpr.support.span import Source
from texpr.tune.space import Dimension, Point, Space, around, of_choices

Objective: TypeAlias = Literal["time", "bound"]

OBJECTIVES: Mapping[Objective, str] = {
    "time": "measured on a worker's processor, the least of several calls",
    "bound": "the model's lower bound of the time, read from the plan; no GPU ran it",
}
"""What the number of each objective is, in words."""


class Problem(Record):
    """A search, as plain data. `sizes`: of the function and those of its consts that are not searched. `schedule`: a name, or
    "auto". `seed`: of the random inputs that candidates are checked and timed with."""

    text: str
    file: str
    function: str
    target: str
    sizes: dict[str, int]
    schedule: str
    objective: str
    seed: int = 0

    @property
    def data(self) -> dict[str, Any]:
        """As JSON has it."""
        return as_dict(self)

    def program(self, consts: Mapping[str, int]) -> Function:
        """The function with these consts. Raises TexprError, KeyError where there is no such function."""
        names = {name for name, _ in consts_of(self.text, self.file, self.function)}
        fixed = {name: value for name, value in (self.sizes | dict(consts)).items() if name in names}
        return driver.parse(Source(self.file, self.text), fixed)[self.function]

    def open(self, function: Function) -> dict[str, int]:
        """The sizes that `function` still has."""
        names = {sym.name for sym in function.sizes}
        return {name: value for name, value in self.sizes.items() if name in names}

    def selected(self, function: Function) -> Selected:
        """Its schedule, or `AUTO`. Raises TexprError as `select_schedule` does."""
        return select_schedule(function, self.schedule, resolve(self.target))


def consts_of(text: str, file: str, function: str) -> list[tuple[str, ConstParam]]:
    """The consts of a function, as they are written."""
    items = (item for item in parse_text(text, file).items if isinstance(item, Fn) and item.name.name == function)
    return [(param.name.name, param) for item in items for param in item.params if isinstance(param, ConstParam)]


def space_of(problem: Problem, given: Mapping[str, tuple[int, ...]]) -> Space:
    """The space of a problem; `given`: values of dimensions by name, which then are the only ones.

    Raises TexprError E0841 where there is nothing to search.
    """
    for name, values in given.items():
        if not values:
            raise error("E0841", None, f"the space of `{name}` is empty", help=f"give values: --space {name}=16,32")
    firsts = _firsts(problem, given)
    function = problem.program(firsts)
    chosen = problem.selected(function)
    found = _of_planner(problem, function) if chosen == AUTO else _of_consts(problem, firsts, given)
    names = [each.name for each in found]
    for name in given:
        if name not in names:
            raise _no_dimension(problem, function, chosen, name, names)
    wanted = [each for each in found if not given or each.name in given]
    if not wanted:
        raise _nothing(function, chosen)
    return Space(tuple(_restricted(each, given[each.name]) if each.name in given else each for each in wanted))


def _firsts(problem: Problem, given: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """A value for each const that `problem` leaves open: its default, or the first one that is given."""
    found: dict[str, int] = {}
    for name, param in consts_of(problem.text, problem.file, problem.function):
        if name in problem.sizes:
            continue
        if isinstance(param.default, Number) and isinstance(param.default.value, int):
            found[name] = param.default.value
        elif name in given:
            found[name] = given[name][0]
        elif param.default is None:
            reason = f"const `{name}` of `{problem.function}` has no default, so it is not known what to search around"
            raise error("E0841", param.span, reason, help=f"give values, --space {name}=16,32, or one: --size {name}=16")
    return found


def _restricted(dimension: Dimension, values: tuple[int, ...]) -> Dimension:
    if not dimension.labels:
        if dimension.default in values:
            return replace(dimension, values=values)
        return replace(dimension, values=values, default=values[0], is_written=False)
    for value in values:
        if value not in dimension.values:
            reason = f"`{dimension.name}` has candidates 0 to {dimension.values[-1]}, and no number {value}"
            raise error("E0841", None, reason)
    labels = tuple(dimension.label(value) for value in values)
    first = 0 if 0 in values else values[0]
    return replace(dimension, values=values, default=first, labels=labels, is_written=first == 0)


def _of_planner(problem: Problem, function: Function) -> tuple[Dimension, ...]:
    chooser = Chooser({})
    plan(fix(function, problem.open(function))[0], resolve(problem.target), chooser=chooser)
    last: dict[str, Choice] = {each.name: each for each in chooser.points}
    return of_choices(last.values())


def _of_consts(problem: Problem, firsts: Mapping[str, int], given: Mapping[str, tuple[int, ...]]) -> tuple[Dimension, ...]:
    """The consts that the schedule uses, and the program does not. Raises TexprError E0841 for others that are `given`."""
    found: list[Dimension] = []
    for name, param in consts_of(problem.text, problem.file, problem.function):
        if name not in firsts:
            continue
        in_program, in_schedule = _moved(problem, firsts, name)
        if in_schedule and not in_program:
            found.append(Dimension(name, around(firsts[name]), firsts[name]))
        elif name in given:
            what = "says what is computed: another value is another program" if in_program else "is not used by the schedule"
            raise error("E0841", param.span, f"const `{name}` of `{problem.function}` {what}",
                        help="search over consts that only the schedule uses")  # fmt: skip
    return tuple(found)


def _moved(problem: Problem, firsts: Mapping[str, int], name: str) -> tuple[bool, bool]:
    """Whether another value of a const changes the program, and whether it changes the schedule."""

    def texts(value: int) -> tuple[str, list[str]]:
        function = problem.program({**firsts, name: value})
        chosen = problem.selected(function)
        directives = chosen.directives if isinstance(chosen, Schedule) else ()
        return print_function(replace(function, where=(), schedules=())), [*map(print_directive, directives)]

    one = texts(firsts[name])
    try:
        other = texts(2 * firsts[name] if firsts[name] else 1)
    except TexprError:
        return True, False
    return one[0] != other[0], one[1] != other[1]


def _nothing(function: Function, chosen: Selected) -> TexprError:
    match chosen:
        case Schedule():
            reason = f"the schedule of `{function.name}` uses no const of its own, so there is nothing to search"
            help = "make a number of it a const: fn f(…, const tile: i32 = 128), and split(i, tile) in the schedule"
            return error("E0841", chosen.span, reason, help=help)
        case None:
            return error("E0841", function.span, "no schedule has nothing to search", help="leave --schedule away")
        case _:
            reason = f"the planner has no candidates for `{function.name}`, so there is nothing to search"
            help = "write a schedule whose numbers are consts of the function"
            return error("E0841", function.span, reason, help=help)


def _no_dimension(problem: Problem, function: Function, chosen: Selected, name: str, names: list[str]) -> TexprError:
    whose = "the planner's candidates" if chosen == AUTO else "consts that only the schedule uses"
    help = f"there are: {', '.join(names)}" if names else None
    return error("E0841", function.span, f"`{name}` is none of {whose} of `{problem.function}`", help=help)


def identity(problem: Problem, space: Space) -> str:
    """A name for the search that is the same exactly for the same program, space and release of the compiler; comments, and
    the defaults of what is searched, are no part of it."""
    function = problem.program({name: value for name, value in space.at(0).items() if "." not in name})
    chosen = problem.selected(function)
    described = {
        **{key: value for key, value in problem.data.items() if key not in ("text", "file")},
        "version": __version__,
        "program": print_function(replace(function, schedules=())),
        "directives": [*map(print_directive, chosen.directives)] if isinstance(chosen, Schedule) else [],
        "space": [[each.name, list(each.values), list(each.labels)] for each in space.dimensions],
    }
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    return f"{problem.function} for {problem.target} by {problem.objective} {digest[:16]}"


def schedule_at(problem: Problem, point: Point) -> tuple[Function, Schedule | None]:
    """The function and the schedule of a point. Raises TexprError, with the reason why the planner's candidate was refused."""
    function = problem.program({name: value for name, value in point.items() if "." not in name})
    chosen = problem.selected(function)
    if chosen != AUTO:
        assert not isinstance(chosen, str)
        return function, chosen
    sizes = problem.open(function)
    if not any(point.values()):
        return function, driver.lower(function, problem.target, sizes, schedule=AUTO).schedule
    try:
        return function, plan(fix(function, sizes)[0], resolve(problem.target), chooser=Chooser(point)).schedule
    except (Refused, NoPlan) as reason:
        raise limitation("E0914", function.span, str(reason)) from None


def compiled_at(problem: Problem, point: Point) -> Compiled:
    """The function of a point, lowered and proved. Raises TexprError."""
    function, schedule = schedule_at(problem, point)
    return lowered(function, problem.target, problem.open(function), schedule)
