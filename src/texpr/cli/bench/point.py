"""One point of a measurement: a function at some sizes, built, compared with its references, and timed beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np

from texpr.affine.expr import Sym
from texpr.cli.bench.places import Held, Place, bound_threads, place_of, several
from texpr.cli.bench.references import Reference, same_shapes
from texpr.cli.compare import judge
from texpr.cli.execute import Setting, built, call
from texpr.interp.dtypes import Array
from texpr.ir.program import Function
from texpr.isa.registry import device_of, resolve
from texpr.model.least import least, needs
from texpr.model.total import total
from texpr.runtime import Kernel
from texpr.runtime.timing import Action, Timed, by_clock, measured
from texpr.sizes import fix
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace


class Asked(Record):
    """How to measure: where, against what, how long each, with emptied caches or not; how far floats of a reference may be from
    ours, as a part of the largest one (None: as far as those of the interpreter)."""

    on: str
    references: tuple[Reference, ...]
    seconds: float
    cold: bool
    tolerance: float | None


class Limit(Record):
    """What the model of the target's device says, in microseconds: no run of the plan, and none of any program, takes less."""

    device: str
    bound_us: float
    least_us: float


class Point(Record):
    """`times`: seconds of each run, ours first, by the name of what ran; `moved`: bytes that must move; `flops`: operations on
    floats; `how`: how a call of ours is made and timed; `agreed`: what was compared."""

    sizes: Mapping[str, int]
    times: Mapping[str, Sequence[float]]
    moved: float
    flops: float
    limit: Limit | None
    device: str
    flushed: int
    how: str
    agreed: tuple[str, ...]


OURS = "texpr"

RUNS = 10
"""Of each call in its turn, where caches are not emptied: they then hold what the run before left."""


def measure(function: Function, arrays: Mapping[str, Array], setting: Setting, asked: Asked) -> Point:
    """Raises TexprError where it cannot be built or called; E0858, E0865, E0866 where a reference does not give the same."""
    with ExitStack() as stack:
        stack.enter_context(bound_threads())
        kernel = built(asked.on, function, setting)
        assert kernel is not None
        results = call(kernel, arrays, setting)
        agreed = tuple(line for each in asked.references for line in _agree(function, arrays, results, each, asked.tolerance))
        place = place_of(kernel, asked.cold, stack)
        calls = {OURS: _ours(function, kernel, arrays, results, setting, place, stack)}
        calls |= {each.name: _reference(function, arrays, setting, place, each) for each in asked.references}
        if asked.references:
            calls = {name: replace(each, rest=place.rest) for name, each in calls.items()}
        times = measured(calls, asked.seconds, runs=1 if asked.cold else RUNS)
        how = place.how
    fixed, values = fix(function, setting.sizes)
    needed = needs(fixed, values)
    limit = _limit(kernel, fixed, setting.sizes, place.device)
    return Point(setting.sizes, times, needed.moved, needed.flops, limit, place.device, place.flushed, how, agreed)


def _limit(kernel: Kernel, function: Function, sizes: Mapping[str, int], card: str) -> Limit | None:
    """None where nobody has written down how fast the target's machines are."""
    device = device_of(kernel.target, card)
    if device is None:
        return None
    values = {Sym(name): size for name, size in sizes.items()}
    bound = total(kernel.plan, values, resolve(kernel.target), device)
    return Limit(device.name, bound, least(function, values, device).us)


def _agree(
    function: Function, arrays: Mapping[str, Array], ours: Mapping[str, Array], reference: Reference, tolerance: float | None
) -> tuple[str, ...]:
    """What is told of a reference that gives the same. Raises TexprError."""
    given = {param.name: _own(arrays[param.name]) if param.role == "inout" else arrays[param.name] for param in function.params}
    expected = reference.results(function, reference.given(function, given))
    same_shapes(reference.name, function, ours, expected)
    lines, found = judge(function, ours, expected, {}, reference.name, tolerance)
    if found:
        raise TexprError(found)
    return lines


def _own(array: Array) -> Array:
    return np.array(array)


def _ours(
    function: Function, kernel: Kernel, arrays: Mapping[str, Array], results: Mapping[str, Array], setting: Setting,
    place: Place, stack: ExitStack,
) -> Timed:  # fmt: skip
    """The kernel on arrays of its own; what it changes is restored before each run."""
    params = kernel.function.params
    given: dict[str, Held] = {param.name: place.put(param, arrays[param.name], setting.sizes) for param in params}
    out = [place.empty(results[buffer.name]) for buffer in kernel.function.results if buffer not in params]
    sizes = {sym.name: setting.sizes[sym.name] for sym in kernel.function.sizes if sym.name not in setting.fixed}
    before = _restoring(function, given, arrays, setting, place)
    return Timed(stack.enter_context(place.ours(kernel, list(given.values()), sizes, several(out))), place.watch, before)


def _reference(function: Function, arrays: Mapping[str, Array], setting: Setting, place: Place, reference: Reference) -> Timed:
    """A reference on arrays of its own, in the same place if it takes tensors; NumPy's are on the host, timed by its clock."""
    there = reference.torch is not None
    given: dict[str, Held] = {
        param.name: place.put(param, arrays[param.name], setting.sizes) if there else _own(arrays[param.name])
        for param in function.params
    }
    arguments = reference.given(function, given)
    before = _restoring(function, given, arrays, setting, place)
    return Timed(lambda: reference.function(*arguments), place.watch if there else by_clock(), before)


def _restoring(
    function: Function, given: Mapping[str, Held], arrays: Mapping[str, Array], setting: Setting, place: Place
) -> Action:
    """What undoes a run, and then empties the caches, if they are to be."""
    undo: list[Action] = []
    for param in function.params:
        held = given[param.name]
        if param.role != "inout":
            continue
        if isinstance(held, np.ndarray):
            undo.append(partial(np.copyto, held, arrays[param.name]))
        else:
            undo.append(partial(place.restore, held, place.put(param, arrays[param.name], setting.sizes)))

    def before() -> None:
        for each in undo:
            each()
        place.flush()

    return before
