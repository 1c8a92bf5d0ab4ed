"""Running a plan's kernels in the emulator, step by step, without the launcher: an executor that shares no code with it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from tests.emulator.tensors import encoded, registered
from tests.kept import EMULATED

from texpr.affine.expr import Sym
from texpr.backends.cuda.headers import headers
from texpr.backends.cuda.printer import print_kernels
from texpr.driver import Compiled
from texpr.emulator.harness import Emulated, build
from texpr.emulator.report import Report
from texpr.interp.arguments import bind, shape_of
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.kernel.together import joint
from texpr.ir.program import Compare, Function
from texpr.ir.value import Buffer
from texpr.isa.levels import Level
from texpr.runtime.memory import aligned_empty
from texpr.support.record import Mutable, field

Array = NDArray[Any]


@lru_cache(maxsize=8)
def kernels_of(plan: k.Plan) -> str:
    """The source of a plan, which is run in one order after the other."""
    return print_kernels(plan)


@cache
def module(text: str) -> Emulated:
    return build(text, headers(), EMULATED)


class Run(Mutable, dict=True):
    """Arrays by buffer name, and what was found. `count`: accesses are added to the module's counts."""

    arrays: dict[str, Array]
    sizes: dict[Sym, int]
    seed: int | None = None
    reports: list[Report] = field(default_factory=list[Report])
    unwritten: set[str] = field(default_factory=set[str])
    launches: int = 0
    count: bool = False
    together: bool = False


def run_plan(
    function: Function,
    plan: k.Plan,
    arguments: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    seed: int | None = None,
    text: str | None = None,
    count: bool = False,
    together: bool = False,
) -> Run:
    """The plan on `arguments`; results are in `arrays`. `together`: loops that one launch may run are one."""
    bound = bind(function, arguments, sizes)
    values = {**bound.sizes, **dict(plan.fixed)}
    strides = {p.name: tuple(e.evaluate(bound.sizes) for e in p.strides) for p in function.params if p.strides is not None}
    arrays = {
        name: _spread(np.array(a), strides[name]) if name in strides else _placed(np.array(a, order="C"))
        for name, a in bound.arrays.items()
    }
    fresh = (*(b for b in plan.results if b.role == "result"), *plan.workspace)
    for buffer in fresh:
        poison = np.frombuffer(b"\xa5" * numpy_dtype(buffer.dtype).itemsize, numpy_dtype(buffer.dtype))[0]
        array = np.full(tuple(max(0, e) for e in shape_of(buffer, values)), poison)
        apart = tuple(e.evaluate(values) for e in buffer.strides or ())
        arrays[buffer.name] = _spread(array, apart) if apart else _placed(array)
    run = Run(arrays, values, seed, unwritten={b.name for b in fresh}, count=count, together=together)
    emulated = module(text or kernels_of(plan))
    for step in plan.steps:
        _step(step, run, emulated)
    return run


def require_right(made: Compiled, arguments: Mapping[str, Any], wanted: Array, seed: int | None = None) -> None:
    """The plan on `arguments` gives no report, and `wanted` in C."""
    found = run_plan(made.function, made.plan, arguments, seed=seed)
    assert not found.reports, found.reports[0]
    np.testing.assert_array_equal(found.arrays["C"], wanted)


def _placed(array: Array) -> Array:
    """A copy that begins as memory of a device does, so that sectors are counted as they would be there."""
    made = aligned_empty(array.dtype, array.shape, 256)
    made[...] = array
    return made


def _spread(array: Array, strides: tuple[int, ...]) -> Array:
    """The memory of an array whose elements lie `strides` apart, in elements; between them is what nobody may use."""
    ends = 1 + sum((size - 1) * stride for size, stride in zip(array.shape, strides, strict=True))
    memory = _placed(np.full(ends if array.size else 0, np.frombuffer(b"\xa5" * array.itemsize, array.dtype)[0]))
    if array.size:
        as_strided(memory, array.shape, tuple(stride * array.itemsize for stride in strides))[...] = array
    return memory


def _step(step: k.HostStep, run: Run, emulated: Emulated) -> None:
    match step:
        case k.Launch(kernel):
            _launch(kernel, run, emulated)
        case k.HostLoop(together=k.Together()) if run.together:
            _launch(joint(step), run, emulated, most_blocks(step, run.sizes))
        case k.HostLoop(sym, extent, steps):
            for value in range(extent.evaluate(run.sizes)):
                run.sizes[sym] = value
                for inner in steps:
                    _step(inner, run, emulated)
            run.sizes.pop(sym, None)
        case k.HostIf(conditions, steps):
            if all(_holds(c, run.sizes) for c in conditions):
                for inner in steps:
                    _step(inner, run, emulated)


def _holds(fact: Compare, sizes: Mapping[Sym, int]) -> bool:
    left, right = fact.left.evaluate(sizes), fact.right.evaluate(sizes)
    return {
        "==": left == right, "!=": left != right, "<": left < right,
        "<=": left <= right, ">": left > right, ">=": left >= right,
    }[fact.op]  # fmt: skip


def most_blocks(step: k.HostStep, sizes: Mapping[Sym, int]) -> int:
    """The most blocks that a launch among `step` has."""
    match step:
        case k.Launch(kernel):
            extents = [a.extent.evaluate(sizes) for a in kernel.axes if a.level is Level.GRID]
            return prod(max(0, extent) for extent in extents)
        case k.HostLoop(sym, extent, steps):
            turns = range(extent.evaluate(sizes))
            return max((most_blocks(inner, {**sizes, sym: at}) for at in turns for inner in steps), default=0)
        case k.HostIf(conditions, steps):
            return max((most_blocks(inner, sizes) for inner in steps if all(_holds(c, sizes) for c in conditions)), default=0)


def _launch(kernel: k.Kernel, run: Run, emulated: Emulated, meeting: int | None = None) -> None:
    """One kernel; `meeting`: how many blocks it has, which all run at once."""
    grid, block = [1 if meeting is None else meeting, 1, 1], [1, 1, 1]
    values = dict(run.sizes)
    for axis in kernel.axes:
        if axis.level is Level.CLUSTER:
            continue  # said in the text
        into = grid if axis.level is Level.GRID else block
        into["xyz".index(axis.dim)] = axis.extent.evaluate(values)
        if axis.base is not None:
            values[axis.base] = 0
    if min(grid) <= 0:
        return
    args = [
        *(run.arrays[b.name][()] for b in kernel.scalars),
        *(_flat(run.arrays[b.name]) for b in kernel.buffers),
        *(values[s] for s in kernel.sizes),
    ]
    named = {**run.arrays, **{s.name: v for s, v in values.items()}}
    args += [encoded(emulated, map, named) for map in kernel.maps]
    hidden = {m.buffer.name for m in kernel.maps} - {b.name for b in kernel.buffers}
    unwritten = [n for n in run.unwritten if n in hidden or any(b.name == n for b in kernel.buffers)]
    with ExitStack() as stack:
        for name in hidden:
            stack.enter_context(registered(emulated, run.arrays[name], name, written=name not in unwritten))
        run.reports += emulated.launch(
            kernel.name, tuple(grid), tuple(block), args, seed=run.seed, unwritten=unwritten, count=run.count,
            cluster=None if meeting is None else meeting,
        )  # fmt: skip
    run.unwritten -= kernel.written
    run.launches += 1


def _flat(array: Array) -> Array:
    return array.reshape(-1)


def results(function: Function, run: Run) -> dict[str, Array]:
    """What the function returns: results, and inouts."""
    wanted: tuple[Buffer, ...] = (*function.results, *(p for p in function.params if p.role == "inout"))
    return {b.name: _gathered(b, run) for b in wanted}


def _gathered(buffer: Buffer, run: Run) -> Array:
    """The elements of a buffer, which lie apart where its text says so."""
    memory = run.arrays[buffer.name]
    if buffer.strides is None or not memory.size:
        return memory.reshape(shape_of(buffer, run.sizes))
    strides = tuple(each.evaluate(run.sizes) * memory.itemsize for each in buffer.strides)
    return as_strided(memory, shape_of(buffer, run.sizes), strides)
