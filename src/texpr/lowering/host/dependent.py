"""Launches that start while the one before them ends.

Before: the steps of a plan, each launch after the one before. After: each launch but the first is *dependent*, if the target
has such launches: its kernel waits for those before it, in front of the first thing that it does to what they have to do
with, and each launch but the last lets the next one start as soon as its own blocks have waited.

So a kernel's start (its launch, its indices, barriers, descriptors of tensors) is hidden behind the end of the one before it;
one that has nothing to do with those before it waits at its end, and runs beside them. Arrays that none of them writes may be
read before the wait: the first launch is not dependent, so whatever ran on the stream before the plan has ended when that
begins. That each wait is where it has to be is proved of the plan (`texpr.proof.common.launches`). The last launch admits none:
what a caller runs next starts when it would anyway.

Steps of a loop that one launch may run whole are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.ir import kernel as k
from texpr.ir.kernel.together import together
from texpr.ir.operation import Lasts
from texpr.ir.value import Load, walk
from texpr.isa.cuda import DEPENDENT
from texpr.isa.target import Target
from texpr.support.record import Record, replace


def overlap(steps: tuple[k.HostStep, ...], target: Target) -> tuple[k.HostStep, ...]:
    """`steps` with dependent launches, if `target` has such."""
    if DEPENDENT not in target.features:
        return steps
    every = list(k.kernels(steps))
    whole = {kernel for loop in together(steps) for kernel in k.kernels((loop,))}
    made: dict[k.Kernel, k.Launch] = {}
    for at, kernel in enumerate(every):
        again = _beside(kernel, steps)
        if kernel not in whole:
            before = [*every[:at], *again]
            made[kernel] = _launch(kernel, before, last=at == len(every) - 1 and not again)
    return tuple(_steps(steps, made))


class Uses(Record):
    """The names of the arrays in global memory that a kernel has, and of those that it writes."""

    has: frozenset[str]
    written: frozenset[str]


def _uses(kernel: k.Kernel) -> Uses:
    names = frozenset(buffer.name for buffer in (*kernel.buffers, *(map.buffer for map in kernel.maps)))
    return Uses(names, kernel.written)


def _beside(kernel: k.Kernel, steps: tuple[k.HostStep, ...]) -> list[k.Kernel]:
    """The kernels of the outermost loop of the host that launches `kernel`: each of them is launched before each other."""
    for step in steps:
        if not isinstance(step, k.Launch) and kernel in (inside := list(k.kernels(step.steps))):
            return inside if isinstance(step, k.HostLoop) else _beside(kernel, step.steps)
    return []


def _launch(kernel: k.Kernel, before: list[k.Kernel], *, last: bool) -> k.Launch:
    """The launch of a kernel behind those `before`, with what its text says of them."""
    mine, known, body = _uses(kernel), map(_uses, before), kernel.body
    shared = frozenset(name for each in known for name in each.has & mine.has & (each.written | mine.written))
    admits = () if last else (k.AdmitLaunch(),)
    if before:
        start = next((at for at, stmt in enumerate(body) if _has_to_wait(stmt, shared, kernel)), len(body))
        admits = (k.AwaitLaunches(tuple(sorted(shared))), *admits)
    else:
        start = next((at for at, stmt in enumerate(body) if not k.declares(stmt)), len(body))
    return k.Launch(replace(kernel, body=(*body[:start], *admits, *body[start:])), dependent=bool(before))


def _has_to_wait(stmt: k.Stmt, shared: frozenset[str], kernel: k.Kernel) -> bool:
    """Whether a statement touches what those before have to do with, or waits for room that their blocks may have."""
    for each in k.walk((stmt,)):
        if isinstance(each, k.Operation):
            moved = each.moved(kernel.map_of)
            if moved is not None and not shared.isdisjoint((moved.source.name, moved.target.name)):
                return True
            if isinstance(each.completion(kernel.map_of), Lasts):
                return True
        nodes = (node for value in k.values(each) for node in walk(value))
        if any(isinstance(node, Load) and node.buffer.name in shared for node in nodes):
            return True
    return False


def _steps(steps: tuple[k.HostStep, ...], made: dict[k.Kernel, k.Launch]) -> Iterator[k.HostStep]:
    for step in steps:
        match step:
            case k.Launch(kernel):
                yield made.get(kernel, step)
            case k.HostLoop() | k.HostIf():
                yield replace(step, steps=tuple(_steps(step.steps, made)))
