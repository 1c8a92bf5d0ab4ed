"""The opening of a kernel; and joint kernels, which execute all steps of a host loop, with a barrier of the grid after each.

The work of a block in a step is a function of its own, which the step's kernel calls as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import prod
from operator import mul
from typing import assert_never

from texpr.affine.expr import ONE
from texpr.backends.c.arguments import KernelArgument, kernel_arguments
from texpr.backends.c.body import INDENT, signature
from texpr.backends.c.checks import condition_text
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, comment
from texpr.backends.c.types import C_NAMES
from texpr.ir.kernel import HostIf, HostLoop, HostStep, Kernel, Launch, Plan
from texpr.ir.kernel.knowledge import host_loop
from texpr.ir.kernel.roles import shared_anew
from texpr.ir.kernel.together import asked, grid, joint
from texpr.ir.operation.maps import TensorMap
from texpr.ir.ops.launches import awaited
from texpr.ir.value import Buffer
from texpr.support.limits import LARGEST_SIZE

BLOCK = {dim: f"tx_block_{dim}" for dim in "xyz"}
"""The index of a block, by dimension, as parameters of a function."""


def block_function(kernel: Kernel) -> str:
    """The name of the function with the work of a block of `kernel`."""
    return f"tx_block_of_{kernel.name}"


def opening(kernel: Kernel) -> str:
    """The line before a kernel's name."""
    blocks = kernel.min_blocks or int(shared_anew(kernel))
    bounds = f"{kernel.threads}, {blocks}" if blocks else f"{kernel.threads}"
    shape = ", ".join(map(str, kernel.cluster))
    clusters = f"__cluster_dims__({shape}) " if prod(kernel.cluster) > 1 else ""
    return f'extern "C" __global__ void {clusters}__launch_bounds__({bounds})'


def parameter(argument: KernelArgument, kernel: Kernel) -> str:
    """The declaration of an argument."""
    match argument.key:
        case Buffer() as buffer if argument.scalar:
            return f"{C_NAMES[buffer.dtype]} const {argument.name}"
        case Buffer() as buffer:
            constant = "" if buffer.name in kernel.written else " const"
            how = "TX_COMMON" if buffer.name in (awaited(kernel.body) or ()) else "TX_GLOBAL"
            return f"{how}({C_NAMES[buffer.dtype]}{constant}) {argument.name}"
        case TensorMap():
            return f"const __grid_constant__ tx_tensor_map {argument.name}"
        case _:
            return f"int const {argument.name}"


def together_lines(loop: HostLoop, plan: Plan) -> list[str]:
    """The kernel that executes `loop`; it must be launched with at least as many blocks as any of its steps has."""
    kernel = joint(loop)
    assert loop.together is not None
    scope, arguments = kernel_arguments(kernel, plan)
    said = f"{kernel.name}: all steps of the loop over {loop.sym} in one launch, where the device holds its blocks at once"
    lines = [f"// {comment(said)}", opening(kernel)]
    lines += signature(kernel.name, [parameter(argument, kernel) for argument in arguments])
    meet = f"tx_grid_sync({scope.named[loop.together.meeting]});"
    return [*lines, *_indented(_lines(loop, plan, scope, meet, kernel.threads)), "}", f"TX_EXPORT({kernel.name})"]


def _lines(step: HostStep, plan: Plan, scope: Scope, meet: str, threads: int) -> Iterator[str]:
    match step:
        case Launch(kernel):
            yield f"{{  // {comment(kernel.name)}"
            yield from _indented(_block(kernel, plan, scope, threads))
            yield "}"
            yield meet
        case HostLoop():
            extent = index_text(step.extent, scope).at(Binds.SHIFT)
            inner, variable = scope.inner().known_as(step.sym, host_loop(step.sym, step.extent, scope.here))
            yield f"for (int {variable.text} = 0; {variable.text} < {extent}; ++{variable.text}) {{"
            yield from _indented(line for inside in step.steps for line in _lines(inside, plan, inner, meet, threads))
            yield "}"
        case HostIf():
            yield f"if ({condition_text(step.conditions, scope)}) {{"
            yield from _indented(line for inside in step.steps for line in _lines(inside, plan, scope.inner(), meet, threads))
            yield "}"
        case _:
            assert_never(step)


def _block(kernel: Kernel, plan: Plan, scope: Scope, threads: int) -> Iterator[str]:
    """One step: the work of the block with this block's number, if there is one, by its first threads."""
    axes = grid(kernel)
    for dim, after in (("x", "yz"), ("y", "z")):
        if dim in axes and any(other in axes for other in after):
            yield f"unsigned const tx_blocks_{dim} = (unsigned)({index_text(axes[dim].extent, scope)});"
    count = index_text(reduce(mul, (axis.extent for axis in axes.values()), ONE), scope).at(Binds.SHIFT)
    along = {"x": "blockIdx.x", "y": "0u", "z": "0u"}
    rest = "blockIdx.x"
    for dim, after in (("x", "yz"), ("y", "z")):
        if dim in axes and any(other in axes for other in after):
            along[dim], rest = f"{rest} % tx_blocks_{dim}", f"{rest} / tx_blocks_{dim}"
        elif dim in axes:
            along[dim] = rest
    if "z" in axes:
        along["z"] = rest
    bases = {axis.base for axis in kernel.axes}
    _, wanted = kernel_arguments(kernel, plan)
    given = ("0" if argument.key in bases else _name(argument, scope) for argument in wanted)
    signed = [axis.extent for axis in axes.values() if (scope.bounds(axis.extent)[0] or 0) < 0]
    first = [f"tx_thread() < {kernel.threads}u"] if kernel.threads < threads else []
    some = [f"{index_text(extent, scope).at(Binds.SHIFT)} > 0" for extent in signed]
    yield f"if ({' && '.join((*first, *some, f'(int)blockIdx.x < {count}'))})"
    yield f"{INDENT}{block_function(kernel)}({', '.join((*given, *along.values()))});"


def blocks_text(kernel: Kernel, scope: Scope) -> str:
    """The number of blocks of a launch along x, y and z, in the launcher's C."""
    axes = grid(kernel)
    return ", ".join(f"tx_blocks({index_text(axes[dim].extent, scope)})" if dim in axes else "1" for dim in "xyz")


def most_lines(step: HostStep, scope: Scope) -> Iterator[str]:
    """The launcher's C for the most blocks of a launch in `step`. A loop without effect on the number is entered once."""
    match step:
        case Launch(kernel):
            yield f"tx_most = tx_most_blocks(tx_most, {blocks_text(kernel, scope)});"
        case HostLoop():
            extent = index_text(step.extent, scope).at(Binds.SHIFT)
            inner, variable = scope.inner().known_as(step.sym, host_loop(step.sym, step.extent, scope.here))
            lines = tuple(line for inside in step.steps for line in most_lines(inside, inner))
            turns = f"for (int {variable.text} = 0; {variable.text} < {extent}; ++{variable.text})"
            yield f"if ({extent} > {LARGEST_SIZE}) return TEXPR_BAD_SIZE;"
            yield f"{turns if step.sym in asked(step.steps) else f'if (0 < {extent})'} {{"
            yield from _indented(iter(lines))
            yield "}"
        case HostIf():
            yield f"if ({condition_text(step.conditions, scope)}) {{"
            yield from _indented(line for inside in step.steps for line in most_lines(inside, scope.inner()))
            yield "}"
        case _:
            assert_never(step)


def _name(argument: KernelArgument, scope: Scope) -> str:
    key = argument.key
    assert not isinstance(key, TensorMap), "a kernel with maps is launched alone"
    return scope.named[key] if isinstance(key, Buffer) else str(scope.names[key])


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (INDENT + line for line in lines)
