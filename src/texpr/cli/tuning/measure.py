"""The measurement of one candidate of a search: proved, compared with the interpreter at small sizes, then measured.

`measure` is what workers run, here or on another machine; a task and its outcome are text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from texpr import __version__, interp
from texpr.affine.expr import Sym
from texpr.cli.arrays import make_arrays
from texpr.cli.bench.places import bound_threads, place_of
from texpr.cli.bench.point import RUNS
from texpr.cli.bounds import bounds_of
from texpr.cli.compare import judge
from texpr.cli.execute import Setting, call
from texpr.delivery import loaded, lowered
from texpr.explain.speed import speed
from texpr.interp.dtypes import Array
from texpr.ir.program import Function, Par, Schedule, Seq, Stmt, blocks
from texpr.runtime import Kernel
from texpr.runtime.timing import Timed, measured, spread
from texpr.support.diagnostic import TexprError
from texpr.support.faults import told_of
from texpr.toolchain import Toolchain, this_machine
from texpr.tune.alone import alone, beside_others
from texpr.tune.outcome import MEASURED, Outcome, failed, read_task, refused
from texpr.tune.problem import Problem, schedule_at

MOST_INSTANCES = 1 << 22
"""Executions of statements that the interpreter is given to compare with."""

SMALL = tuple(1 << bits for bits in range(7, 2, -1))
"""Sizes beyond twice of these are cut to one of them and what is left beyond whole ones."""

RANDOM = "random"

SECONDS = 0.6
"""For calls of a candidate."""


def measure(task: str) -> str:
    """The outcome of a task, as text. It raises nothing: a candidate that is refused is an outcome, and so is a fault."""
    with bound_threads():
        return json.dumps(_measured(task).data)


def _measured(text: str) -> Outcome:
    version, problem, point = read_task(text)
    if version != __version__:
        return failed(f"the worker has release {__version__}, the search is one of {version}")
    tools = Toolchain(this_machine())
    turns = tools.machine.cache / "tune.lock"
    try:
        with beside_others(turns):
            function, schedule = schedule_at(problem, point)
            compiled = lowered(function, problem.target, problem.open(function), schedule)
            details: dict[str, Any] = {"checked": _checked(problem, function, schedule, tools)}
            if problem.objective == "bound":
                data = speed(compiled, None, {})
                assert data is not None, "the command asked for a device"
                details |= {"device": data["device"], "sizes": data["sizes"]}
                return Outcome(MEASURED, data["bound_us"] / 1e6, details=details)
            kernel = loaded(compiled, tools)
            arrays, known = _arrays(function, problem.sizes, problem.seed)
        with alone(turns):
            return _timed(kernel, arrays, Setting(problem.open(function), known), details)
    except TexprError as reason:
        return refused(reason)
    except MemoryError:
        return failed("there is not enough memory")
    except Exception as fault:
        what, where = told_of(fault)
        return failed(f"internal error: {what}, in {where}")


def _timed(kernel: Kernel, arrays: Mapping[str, Array], setting: Setting, details: dict[str, Any]) -> Outcome:
    """The time of a call on arrays of its own."""
    results = call(kernel, arrays, setting)
    written = {param.name for param in kernel.function.params if param.role == "inout"}
    given = {param.name: np.array(arrays[param.name]) if param.name in written else arrays[param.name]
             for param in kernel.function.params}  # fmt: skip
    outs = tuple(results[each.name] for each in kernel.function.results if each.name not in written)
    sizes = {sym.name: setting.sizes[sym.name] for sym in kernel.function.sizes if sym.name not in setting.fixed}
    named: dict[str, Any] = {**sizes, **({"out": outs} if outs else {})}

    def prepare() -> None:
        for name in written:
            given[name][...] = arrays[name]

    with ExitStack() as stack:
        place = place_of(kernel, False, stack)
        timed = Timed(lambda: kernel(*given.values(), **named), place.watch, prepare, place.rest)
        (times,) = measured({kernel.function.name: timed}, SECONDS, runs=RUNS).values()
    found = spread(times)
    details |= {"median": found.median, "low": found.low, "high": found.high, "calls": found.runs}
    return Outcome(MEASURED, min(times), details=details)


def _checked(problem: Problem, function: Function, schedule: Schedule | None, tools: Toolchain) -> dict[str, Any]:
    """At which sizes a candidate was compared with the interpreter, or why at none. Raises TexprError E0858 where it computes
    something else."""
    last: TexprError | None = None
    for sizes in small_sizes(function, problem.open(function)):
        try:
            compiled = lowered(function, problem.target, sizes, schedule)
            kernel = loaded(compiled, tools, emulate=compiled.target.is_launched)
            arrays, known, expected = _expected(problem, function, sizes)
        except TexprError as reason:
            last = reason
            continue
        results = call(kernel, arrays, Setting(sizes, known))
        _, found = judge(function, results, expected, bounds_of(function, kernel.plan, arrays, known))
        if found:
            raise TexprError(found)
        return {"sizes": sizes, "equal": True}
    reason = "too large for the interpreter at any size" if last is None else str(last)
    return {"sizes": None, "equal": None, "reason": reason}


def small_sizes(function: Function, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Sizes like those given, but small enough for the interpreter, the largest first.

    What a size leaves beyond multiples of a power of two stays, and with it which tiles are whole.
    """
    seen: list[dict[str, int]] = []
    for most in (math.inf, *SMALL):
        found = {name: size if size <= 2 * most else int(most) + size % int(most) for name, size in sizes.items()}
        if found not in seen and instances(function.body, {Sym(name): size for name, size in found.items()}) <= MOST_INSTANCES:
            seen.append(found)
            yield found


def instances(body: Iterable[Stmt], sizes: Mapping[Sym, int]) -> float:
    """About how many statements run; of an extent that changes, that halfway is taken."""
    total = 0.0
    for stmt in body:
        times, inside = 1.0, sizes
        if isinstance(stmt, Par | Seq):
            known = {**{sym: 1 for sym in stmt.extent.syms()}, **sizes}
            times = max(0, stmt.extent.evaluate(known))
            inside = {**sizes, stmt.sym: int(times) // 2}
        total += 1 + times * sum(instances(block, inside) for block in blocks(stmt))
    return total


def _arrays(function: Function, sizes: Mapping[str, int], seed: int) -> tuple[dict[str, Array], dict[str, int]]:
    """Random inputs, and every size."""
    names = {sym.name for sym in function.sizes}
    return make_arrays(
        function, {param.name: RANDOM for param in function.params}, {n: s for n, s in sizes.items() if n in names}, seed
    )


def _expected(
    problem: Problem, function: Function, sizes: Mapping[str, int]
) -> tuple[dict[str, Array], dict[str, int], dict[str, Array]]:
    """Random inputs at small sizes, every size, and the interpreter's results: consts of schedules do not change them, so they
    are those of the first candidate of a worker."""
    key = (problem.text, problem.function, problem.seed, tuple(sorted(problem.sizes.items())), tuple(sorted(sizes.items())))
    arrays, known = _arrays(function, sizes, problem.seed)
    if key not in _kept():
        _kept()[key] = interp.run(function, arrays, known)
    return arrays, known, _kept()[key]


@lru_cache(1)
def _kept() -> dict[object, dict[str, Array]]:
    """The interpreter's results in this process."""
    return {}


def folder_of(file: Path) -> Path:
    """Where the results of a search go by default: beside the program."""
    return file.with_name(f"{file.stem}.tune")
