"""A plan's kernels as one CUDA source, flat and readable.

It needs texpr_device.h alone, and means the same under nvcc and under a host compiler with the emulator's header.
"""

from __future__ import annotations

from math import prod

from texpr.backends.c.arguments import KernelArgument, axis_variable, distinct, kernel_arguments
from texpr.backends.c.body import INDENT, Body, signature
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import comment, file_of, line_of, place_of, string
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import element_text, value_text
from texpr.ir.kernel import (
    Array,
    Atomic,
    Axis,
    Barrier,
    CommitAsync,
    Covered,
    Exchange,
    For,
    Kernel,
    Level,
    Plan,
    Space,
    WaitAsync,
    kernels,
)
from texpr.ir.value import Buffer
from texpr.support.diagnostic import CompilerBug, limitation
from texpr.support.span import Source

MOST_THREADS = 1024
"""Threads a block may have (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""

MOST_SHARED = 48 << 10
"""Bytes of shared memory that a kernel may declare statically (same table)."""


def print_kernels(plan: Plan) -> str:
    """The `.cu` with every distinct kernel of `plan`.

    Raises `Limitation` for a kernel with more threads (E0552) or shared memory (E0553) than CUDA has.
    """
    found = distinct(kernels(plan.steps))
    names = [kernel.name for kernel in found]
    if len(set(names)) != len(names):
        raise CompilerBug(f"two kernels of {plan.name} have one name: {names}")
    lines = ['#include "texpr_device.h"']
    if line_of(plan.span) is not None:
        lines += ["", f"TX_SOURCE({string(file_of(plan.span))})"]
    for kernel in found:
        lines += ["", *_kernel(kernel, plan)]
    return "\n".join(lines) + "\n"


def _kernel(kernel: Kernel, plan: Plan) -> list[str]:
    _check(kernel)
    scope, arguments = kernel_arguments(kernel, plan)
    body = Body.of(kernel, _Cuda(kernel, plan.span.source))
    bounds = f"{kernel.threads}, {kernel.min_blocks}" if kernel.min_blocks else f"{kernel.threads}"
    lines = [*_heading(kernel), f'extern "C" __global__ void __launch_bounds__({bounds})']
    lines += signature(kernel.name, [_parameter(argument, kernel) for argument in arguments])
    for axis in kernel.axes:
        scope, line = _axis(axis, scope)
        lines.append(INDENT + line)
    for array in kernel.arrays:
        scope, line = _array(array, scope)
        lines.append(INDENT + line)
    lines += [*body.lines(kernel.body, scope, 1), "}", f"TX_EXPORT({kernel.name})"]
    return lines


def _check(kernel: Kernel) -> None:
    """Refuse what no CUDA device runs."""
    if kernel.threads > MOST_THREADS:
        told = f"kernel {kernel.name} has {kernel.threads} threads in a block, and CUDA allows {MOST_THREADS}"
        raise limitation("E0552", kernel.span, told, help="split the loops that are bound to the block")
    shared = sum(_bytes(array.buffer) for array in kernel.arrays if array.space is Space.SHARED)
    if shared > MOST_SHARED:
        told = f"kernel {kernel.name} has {shared} bytes of shared memory in a block, and a kernel may declare {MOST_SHARED}"
        raise limitation("E0553", kernel.span, told, help="make tiles smaller")


def _count(buffer: Buffer) -> int:
    return prod(extent.constant for extent in buffer.shape)


def _bytes(buffer: Buffer) -> int:
    return _count(buffer) * buffer.dtype.bytes


def _heading(kernel: Kernel) -> list[str]:
    """What is launched, and where it comes from."""
    shape = {level: [f"{a.dim}: {a.extent}" for a in kernel.axes if a.level is level] for level in (Level.GRID, Level.BLOCK)}
    told = "; ".join(f"{level.value} {', '.join(extents) or 1}" for level, extents in shape.items())
    place = "" if line_of(kernel.span) is None else f", from {place_of(kernel.span)}"
    return [f"// {comment(f'{kernel.name}{place}: {told}')}"]


def _parameter(argument: KernelArgument, kernel: Kernel) -> str:
    match argument.key:
        case Buffer() as buffer if argument.scalar:
            return f"{C_NAMES[buffer.dtype]} const {argument.name}"
        case Buffer() as buffer:
            constant = "" if buffer.name in kernel.written else " const"
            return f"TX_GLOBAL({C_NAMES[buffer.dtype]}{constant}) {argument.name}"
        case _:
            return f"int const {argument.name}"


def _axis(axis: Axis, scope: Scope) -> tuple[Scope, str]:
    match axis.level:
        case Level.GRID:
            register = f"blockIdx.{axis.dim}"
        case Level.BLOCK:
            register = f"threadIdx.{axis.dim}"
        case Level.CLUSTER:
            raise limitation("E0554", None, "clusters of blocks are not supported")
        case Level.WARP | Level.THREAD | Level.CORE | Level.LANE:
            raise CompilerBug(f"an axis of level {axis.level.value} in a CUDA kernel")
    first = "" if axis.base is None else f" + {scope.variables[axis.base].text}"
    scope, variable = axis_variable(axis, scope)
    ctype = variable.type.ctype
    return scope, f"{ctype} const {variable.text} = ({ctype}){register}{first};"


def _array(array: Array, scope: Scope) -> tuple[Scope, str]:
    scope, name = scope.name(array.buffer)
    match array.space:
        case Space.SHARED:
            macro = "TX_SHARED"
        case Space.LOCAL:
            macro = "TX_LOCAL"
        case Space.GLOBAL:
            raise CompilerBug(f"{array.buffer.name} is an array of a kernel in global memory")
    reason = f"  // {comment(array.reason)}" if array.reason else ""
    return scope, f"{macro}({C_NAMES[array.buffer.dtype]}, {name}, {_count(array.buffer)});{reason}"


class _Cuda:
    """CUDA's own forms of the statements that not every machine has."""

    def __init__(self, kernel: Kernel, source: Source):
        self._kernel, self._source = kernel, source

    tracked = True

    def place(self, line: int) -> str:
        """`TX_AT(line)`, with the line itself beside it."""
        return f"TX_AT({line})  // {comment(self._source.line(line))}"

    def before_loop(self, loop: For, scope: Scope) -> list[str]:
        """Only an unrolled loop has a pragma."""
        match loop.kind:
            case "serial":
                return []
            case "unroll":
                return [f"#pragma unroll {loop.factor}" if loop.factor else "#pragma unroll"]
            case _:
                raise CompilerBug(f"a {loop.kind} loop in a CUDA kernel")

    def in_loop(self, loop: For, scope: Scope) -> list[str]:
        """Nothing: other warps run while one waits for memory."""
        return []

    def atomic(self, stmt: Atomic, scope: Scope) -> list[str]:
        """Relaxed, on the whole device: wider than asked where the plan says less."""
        function = f"atomic{stmt.op.capitalize()}"
        return [f"{function}(&{element_text(stmt.target, scope)}, {value_text(stmt.value, scope)});"]

    def barrier(self, stmt: Barrier) -> list[str]:
        """A barrier of the block, or of a group of consecutive lanes."""
        match stmt.level:
            case Level.BLOCK:
                barrier = "__syncthreads();"
            case Level.WARP:
                barrier = "__syncwarp(0xffffffffu);" if stmt.lanes == 32 else f"__syncwarp(tx_group({stmt.lanes}));"
            case _:
                raise CompilerBug(f"a barrier of level {stmt.level.value} in a CUDA kernel")
        return [*_reasons(stmt.covers), barrier]

    def exchange(self, stmt: Exchange, scope: Scope, target: str, source: str) -> list[str]:
        """A shuffle among all lanes of the warp; a block of fewer than 32 threads has fewer lanes."""
        if self._kernel.threads % 32 and self._kernel.threads > 32:
            raise CompilerBug(f"an exchange in blocks of {self._kernel.threads} threads, whose last warp is not whole")
        mask = (1 << min(self._kernel.threads, 32)) - 1
        ctype = C_NAMES[stmt.source.dtype]
        return [f"{ctype} const {target} = __shfl_xor_sync({mask:#x}u, {source}, {stmt.mask}, {stmt.width});"]

    def commit(self, stmt: CommitAsync) -> list[str]:
        """The copies that this thread started are a group."""
        return ["tx_commit_async();"]

    def wait(self, stmt: WaitAsync) -> list[str]:
        """A wait of this thread alone."""
        return [*_reasons(stmt.covers), f"tx_wait_async<{stmt.pending}>();"]


def _reasons(covers: tuple[Covered, ...]) -> list[str]:
    return [f"// {comment(_covered(c))}" for c in covers]


def _covered(dependence: Covered) -> str:
    carried = f", carried by {dependence.carried.base}" if dependence.carried is not None else ""
    ends = [line_of(dependence.source), line_of(dependence.sink)]
    lines = "" if None in ends else f": line {ends[0]} -> line {ends[1]}"
    return f"{dependence.kind} {dependence.buffer}{lines}{carried}"
