"""What each launch of a plan asks of a machine, at given sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from math import prod

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.shared import shared_bytes
from texpr.ir.value import Buffer
from texpr.isa.levels import Level
from texpr.isa.target import Target
from texpr.model.plan.reach import Reach, extent_of, reach, size_of
from texpr.model.plan.walk import Counted, walk_of
from texpr.model.work import Shape, Work
from texpr.support.record import Record

_NAMES = ("issued", "requests", "sectors", "l1", "shared", "barriers", "engine")


class Launched(Record, eq=False):
    """A kernel, how often the host launches it, and what one launch is and asks. `data`: some of its addresses depend on data,
    and count as dense."""

    kernel: k.Kernel
    times: int
    shape: Shape
    work: Work
    elements: int
    """Of the array of which it touches most, each counted once."""


def launches(plan: k.Plan, sizes: Mapping[Sym, int], target: Target) -> tuple[Launched, ...]:
    """Every launch, each kernel once, in the order of the host's steps."""
    found: dict[k.Kernel, int] = {}
    values: dict[Sym, int] = dict(sizes)
    for kernel, times in launched(plan.steps, values):
        found[kernel] = found.get(kernel, 0) + times
    return tuple(_launched(kernel, times, values, target) for kernel, times in found.items())


def launched(steps: tuple[k.HostStep, ...], values: dict[Sym, int], times: int = 1) -> Iterator[tuple[k.Kernel, int]]:
    """The kernels that a host launches at these sizes, and how often; indices of its own loops are added to `values`."""
    for step in steps:
        match step:
            case k.Launch():
                yield step.kernel, times
            case k.HostLoop():
                values[step.sym] = 0
                yield from launched(step.steps, values, times * max(0, step.extent.evaluate(values)))
            case k.HostIf():
                if all(_holds(each, values) for each in step.conditions):
                    yield from launched(step.steps, values, times)


def _holds(fact: k.Compare, values: Mapping[Sym, int]) -> bool:
    left, right = fact.left.evaluate(dict(values)), fact.right.evaluate(dict(values))
    return _COMPARED[fact.op](left, right)


_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def instructed(kernel: k.Kernel, sizes: Mapping[Sym, int], target: Target) -> tuple[Work, Shape]:
    """What lanes of one launch run, by a block from between, and its shape: no requests of memory."""
    sums = (counted := walk_of(kernel, sizes, target.coalescing, roughly=True).run()).sums
    return Work(sums["issued"], _units(sums), counted.products), shape_of(kernel, sizes)


def _units(sums: Mapping[str, float]) -> dict[str, float]:
    return {name: amount for name, amount in sums.items() if name not in _NAMES}


def shape_of(kernel: k.Kernel, sizes: Mapping[Sym, int]) -> Shape:
    """How a launch is cut, its registers unknown."""
    blocks = prod(extent_of(axis.extent, sizes) for axis in kernel.axes if axis.level is Level.GRID)
    return Shape(blocks, kernel.threads, 0, shared_bytes(kernel))


def _launched(kernel: k.Kernel, times: int, sizes: Mapping[Sym, int], target: Target) -> Launched:
    counted = walk_of(kernel, sizes, target.coalescing).run()
    shape = shape_of(kernel, sizes)
    everywhere = _reach(kernel, sizes, False)
    sums = counted.sums
    l2, dram = sum(_l2(kernel, counted, sizes, shape.blocks)), sum(_dram(kernel, counted, everywhere, sizes))
    again, own = _again(kernel, counted, everywhere, sizes, shape.blocks)
    work = Work(
        sums["issued"],
        _units(sums),
        counted.products,
        sums["requests"],
        sums["l1"],
        sums["shared"],
        float(l2),
        float(dram),
        sums["barriers"],
        again=again,
        own=own,
    )
    elements = max(_elements(counted, everywhere, sizes), default=0)
    return Launched(kernel, times, shape, work, elements)


def _reach(kernel: k.Kernel, sizes: Mapping[Sym, int], one_block: bool) -> Reach:
    grid = {axis.sym: extent_of(axis.extent, sizes) for axis in kernel.axes if axis.level is Level.GRID}
    inner = {a.sym: (0, a.extent.constant - 1) for a in kernel.axes if a.level in (Level.BLOCK, Level.CLUSTER)}
    bases = {axis.base: 0 for axis in kernel.axes if axis.base is not None}
    outer = {sym: (extent // 2, extent // 2) if one_block else (0, extent - 1) for sym, extent in grid.items()}
    return reach(kernel, {**sizes, **bases}, {**outer, **inner})


def _dram(kernel: k.Kernel, counted: Counted, everywhere: Reach, sizes: Mapping[Sym, int]) -> Iterator[int]:
    """Bytes that are touched at least once, of each buffer: no more than are asked of it. What a kernel writes and reads again
    comes from a cache, unless it was there before."""
    written = {buffer for buffer, kind in counted.asked if kind == "store"}
    for (buffer, kind), asked in counted.asked.items():
        if kind == "load" and buffer in written and buffer.role not in ("input", "inout"):
            continue
        box = everywhere.bytes_of(buffer, kind) or size_of(buffer, sizes)
        yield min(asked, box, size_of(buffer, sizes))


def _elements(counted: Counted, everywhere: Reach, sizes: Mapping[Sym, int]) -> Iterator[int]:
    for (buffer, kind), asked in counted.asked.items():
        yield min(asked, everywhere.bytes_of(buffer, kind) or size_of(buffer, sizes)) // buffer.dtype.bytes


def _l2(kernel: k.Kernel, counted: Counted, sizes: Mapping[Sym, int], blocks: int) -> Iterator[int]:
    """Bytes between multiprocessors and the second-level cache. A block brings each byte that it loads at least once: what it
    loads again may lie in its first-level cache."""
    one = _reach(kernel, sizes, True)
    past = {moved.source for _, moved in k.moves(kernel)}
    for (buffer, kind), asked in counted.asked.items():
        box = one.bytes_of(buffer, kind) * blocks
        yield asked if kind == "store" or buffer in past or not box else min(asked, box)


def _again(kernel: k.Kernel, counted: Counted, everywhere: Reach, sizes: Mapping[Sym, int], blocks: int) -> tuple[float, float]:
    """Bytes that blocks load again, of rows that each has for itself, and how many of these a block has."""
    one, again, own = _reach(kernel, sizes, True), 0.0, 0.0
    for (buffer, kind), asked in counted.asked.items():
        box, mine = everywhere.bytes_of(buffer, kind), one.bytes_of(buffer, kind)
        if kind == "load" and box and mine and mine * blocks <= box < asked:
            again, own = again + asked - box, own + mine
    return again, own


def touched_once(plan: k.Plan, sizes: Mapping[Sym, int]) -> int:
    """Bytes of inputs and results, each once, those that are both twice: what must move at least."""
    buffers: dict[Buffer, int] = {}
    for buffer in (*plan.params, *plan.results):
        buffers[buffer] = 2 if buffer.role == "inout" else 1
    return sum(size_of(buffer, sizes) * times for buffer, times in buffers.items() if buffer.rank)
