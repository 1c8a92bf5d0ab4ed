"""A plan as stand-alone C++17 for a CPU: kernels as loops distributed over cores, and the host's steps around them.

The public functions are those of `texpr.backends.c.arguments`; no kernel starts before every argument is checked.
"""

from __future__ import annotations

from math import prod

from texpr.backends.c.arguments import KernelArgument, axis_variable, distinct, kernel_arguments
from texpr.backends.c.body import INDENT, Body, signature
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.status import print_statuses
from texpr.backends.c.text import Binds, comment, line_of, place_of
from texpr.backends.c.types import C_NAMES
from texpr.backends.cpu.dialect import Cpu
from texpr.backends.cpu.entry import entry_lines
from texpr.backends.cpu.instructions import instr_lines
from texpr.ir.kernel import Array, Axis, Kernel, Plan, kernels
from texpr.ir.kernel.turns.apart import spread
from texpr.ir.value import Buffer
from texpr.isa.levels import Level, Space
from texpr.isa.target import Target
from texpr.support.diagnostic import CompilerBug

LARGE = 16 * 1024
"""Bytes of local memory from which an iteration counts as long."""


def print_cpu(plan: Plan, target: Target | None = None) -> str:
    """The `.cpp` of `plan`; it includes `texpr.backends.cpu.headers.headers()` and needs no library but that of C++."""
    lines = ['#include "texpr_cpu.h"', "", *print_statuses().splitlines()]
    found = distinct(kernels(plan.steps))
    for instr in {instr.name: instr for kernel in found for instr in kernel.instrs}.values():
        lines += ["", *instr_lines(instr, target, Cpu(plan.span.source))]
    for kernel in found:
        lines += ["", *_kernel(kernel, plan)]
    return "\n".join([*lines, "", *entry_lines(plan)]) + "\n"


def _kernel(kernel: Kernel, plan: Plan) -> list[str]:
    scope, arguments = kernel_arguments(kernel, plan)
    head = signature(f"static void {kernel.name}", [_parameter(a, kernel) for a in arguments])
    lines = [_heading(kernel), *head]
    cores = [axis for axis in kernel.axes if axis.level is Level.CORE]
    if len(cores) != len(kernel.axes):
        raise CompilerBug(f"kernel {kernel.name} for a CPU has axes that are not shared out over cores")
    if cores:
        collapse = f" collapse({len(cores)})" if len(cores) > 1 else ""
        several = " || ".join(f"{index_text(axis.extent, scope).at(Binds.SHIFT)} > 1" for axis in cores)
        lines.append(f"{INDENT}#pragma omp parallel for{collapse} schedule({_dealt(kernel)}) if ({several})")
    for depth, axis in enumerate(cores, 1):
        scope, line = _axis(axis, scope)
        lines.append(INDENT * depth + line)
    depth = len(cores) + 1
    for array in kernel.arrays:
        scope, line = _array(array, scope)
        lines.append(INDENT * depth + line)
    lines += Body.of(kernel, Cpu(plan.span.source, frozenset(a.buffer for a in kernel.arrays))).lines(
        spread(kernel.body), scope, depth
    )
    return [*lines, *(INDENT * at + "}" for at in range(len(cores), -1, -1))]


def _dealt(kernel: Kernel) -> str:
    """The OpenMP schedule: dynamic, one by one, if each iteration fills local memory, and so takes much longer than its
    scheduling. Then a core that is delayed gets fewer."""
    own = sum(prod(extent.constant for extent in array.buffer.shape) * array.buffer.dtype.bytes for array in kernel.arrays)
    return "dynamic" if own >= LARGE else "static"


def _heading(kernel: Kernel) -> str:
    """The comment with the distributed loops and their source."""
    place = "" if line_of(kernel.span) is None else f", from {place_of(kernel.span)}"
    extents = ", ".join(str(axis.extent) for axis in kernel.axes) or "1"
    return f"// {comment(f'{kernel.name}{place}: shared out {extents}')}"


def _parameter(argument: KernelArgument, kernel: Kernel) -> str:
    match argument.key:
        case Buffer() as buffer if argument.scalar:
            return f"{C_NAMES[buffer.dtype]} const {argument.name}"
        case Buffer() as buffer:
            constant = "" if buffer.name in kernel.written else " const"
            return f"{C_NAMES[buffer.dtype]}{constant} *TX_RESTRICT {argument.name}"
        case _:
            return f"int const {argument.name}"


def _axis(axis: Axis, scope: Scope) -> tuple[Scope, str]:
    """The head of the loop over a core axis."""
    extent = index_text(axis.extent, scope).at(Binds.SHIFT)
    scope, variable = axis_variable(axis, scope)
    name = variable.text
    return scope, f"for ({variable.ctype} {name} = 0; {name} < {extent}; ++{name}) {{"


def _array(array: Array, scope: Scope) -> tuple[Scope, str]:
    """The declaration of a core's local array, aligned for vectors."""
    if array.space is Space.GLOBAL:
        raise CompilerBug(f"{array.buffer.name} is an array of a kernel in global memory")
    count = max(1, prod(extent.constant for extent in array.buffer.shape))  # ISO C++ has no empty arrays
    scope, name = scope.name(array.buffer)
    reason = f"  // {comment(array.reason)}" if array.reason else ""
    return scope, f"alignas(64) {C_NAMES[array.buffer.dtype]} {name}[{count}];{reason}"
