"""Host loops that one launch may execute whole: which loops allow it, and the head of the joint kernel.

A barrier of the grid follows each step, so that all of a step precedes all of the next, as with a launch for each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from texpr.affine.expr import Sym
from texpr.ir.kernel import Axis, HostIf, HostLoop, HostStep, Kernel, Launch, Level, Stmt, kernels, walk
from texpr.ir.kernel.shared import shared_bytes
from texpr.ir.operation import Agent, Operation
from texpr.ir.value import Buffer
from texpr.ir.value.types import U64
from texpr.isa.cuda import MOST_DECLARED, MOST_SHARED


def why_apart(loop: HostLoop, shared: int = MOST_SHARED) -> str | None:
    """The reason why one launch cannot execute `loop`; None if it can. `shared`: bytes of shared memory that a block may
    have."""
    found = tuple(dict.fromkeys(kernels(loop.steps)))
    if not found:
        return "it launches nothing"
    if len({tuple(sorted(_threads(kernel).items())) for kernel in found}) > 1 and not _are_rows(found):
        return "blocks of its steps have shapes that do not lie in each other"
    if any(prod(kernel.cluster) > 1 for kernel in found):
        return "blocks of a step are in clusters"
    if any(kernel.maps or any(map(_is_an_engine_s, walk(kernel.body))) for kernel in found):
        return "a step copies tiles, and waits for what it stores by its end alone"
    declared = sum(shared_bytes(kernel) - dynamic_bytes(kernel) for kernel in found)
    if declared > MOST_DECLARED or declared + max(map(dynamic_bytes, found)) > shared:
        return "its steps together need more shared memory than a block may have"
    return None


def dynamic_bytes(kernel: Kernel) -> int:
    """The bytes of dynamic shared memory of a launch: all arrays if they exceed the limit of static shared memory, else 0."""
    size = shared_bytes(kernel)
    return size if size > MOST_DECLARED else 0


def joint_bytes(loop: HostLoop) -> int:
    """The bytes of dynamic shared memory of one launch of `loop`, which its steps use in turn."""
    return max(map(dynamic_bytes, kernels((loop,))))


def meeting(name: str) -> Buffer:
    """The workspace buffer in which the grid's barrier counts arrived blocks."""
    return Buffer(name, U64, (), "local")


def joint(loop: HostLoop) -> Kernel:
    """The head of the joint kernel: its arguments and threads. It has no grid axes; its blocks are numbered."""
    assert loop.together is not None
    found = tuple(dict.fromkeys(kernels(loop.steps)))
    largest = max(found, key=lambda kernel: kernel.threads)
    place = loop.together.meeting
    inside = {step.sym for step in _loops((loop,))}
    bases = {axis.base for kernel in found for axis in kernel.axes}
    sizes = dict.fromkeys(sym for kernel in found for sym in kernel.sizes)
    sizes |= dict.fromkeys(sorted(asked((loop,)), key=str))
    return Kernel(
        loop.together.name,
        tuple(axis for axis in largest.axes if axis.level is Level.BLOCK),
        (*dict.fromkeys(buffer for kernel in found for buffer in kernel.buffers), place),
        tuple(dict.fromkeys(buffer for kernel in found for buffer in kernel.scalars)),
        tuple(sym for sym in sizes if sym not in inside and sym not in bases),
        (),
        (),
        frozenset(name for kernel in found for name in kernel.written) | {place.name},
        found[0].span,
        min_blocks=max(kernel.min_blocks for kernel in found),
        warp=largest.warp,
    )


def grid(kernel: Kernel) -> dict[str, Axis]:
    """The axes of the grid, by dimension."""
    return {axis.dim: axis for axis in kernel.axes if axis.level is Level.GRID}


def together(steps: tuple[HostStep, ...]) -> Iterator[HostLoop]:
    """The loops of a plan that have a joint kernel, in order; a loop nested in such a loop is part of it."""
    for step in steps:
        match step:
            case Launch():
                pass
            case HostLoop() if step.together is not None:
                yield step
            case HostLoop() | HostIf():
                yield from together(step.steps)


def _threads(kernel: Kernel) -> dict[str, int]:
    return {axis.dim: axis.extent.constant for axis in kernel.axes if axis.level is Level.BLOCK and axis.extent.constant > 1}


def _are_rows(found: tuple[Kernel, ...]) -> bool:
    """Whether the threads of each smaller block are the first of the largest one: whole warps, if they synchronise or
    exchange."""
    largest = max(found, key=lambda kernel: kernel.threads)
    most, warp = largest.threads, largest.warp
    rows = all(set(_threads(kernel)) <= {"x"} for kernel in found)
    return rows and all(kernel.threads in (most, *range(0, most, warp)) or not _meets(kernel) for kernel in found)


def _is_an_engine_s(stmt: Stmt) -> bool:
    return isinstance(stmt, Operation) and stmt.AGENT is Agent.ENGINE


def _meets(kernel: Kernel) -> bool:
    return any(isinstance(stmt, Operation) and stmt.meets is not None for stmt in walk(kernel.body))


def _loops(steps: tuple[HostStep, ...]) -> Iterator[HostLoop]:
    for step in steps:
        if isinstance(step, HostLoop):
            yield step
        if not isinstance(step, Launch):
            yield from _loops(step.steps)


def asked(steps: tuple[HostStep, ...]) -> set[Sym]:
    """The symbols that trip counts and grids of the steps depend on."""
    found: set[Sym] = set()
    for step in steps:
        match step:
            case Launch(kernel):
                found.update(sym for axis in grid(kernel).values() for sym in axis.extent.syms())
            case HostLoop():
                found |= step.extent.syms() | asked(step.steps)
            case HostIf():
                found.update(sym for c in step.conditions for e in (c.left, c.right) for sym in e.syms())
                found |= asked(step.steps)
    return found
