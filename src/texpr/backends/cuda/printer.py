"""A plan's kernels as one CUDA source.

It includes texpr_device.h alone, and has the same meaning under nvcc and under a host compiler with the emulator's header.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from math import prod

from texpr.affine.expr import Sym
from texpr.backends.c.arguments import axis_variable, distinct, kernel_arguments
from texpr.backends.c.body import INDENT, Body, signature
from texpr.backends.c.printing import Here
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import comment, file_of, line_of, place_of, string
from texpr.backends.c.types import C_NAMES
from texpr.backends.cuda import warps
from texpr.backends.cuda.instructions import instr_lines
from texpr.backends.cuda.together import BLOCK, block_function, opening, parameter, together_lines
from texpr.ir.instr.registers import columns_of
from texpr.ir.kernel import (
    Array,
    Axis,
    For,
    Kernel,
    Plan,
    Role,
    Space,
    kernels,
    walk,
)
from texpr.ir.kernel.roles import parted
from texpr.ir.kernel.shared import USUAL_ALIGNMENT, part, shared_bytes, shared_places
from texpr.ir.kernel.together import dynamic_bytes, joint, together
from texpr.ir.kernel.turns.apart import spread
from texpr.ir.kernel.turns.trimmed import trimmed
from texpr.ir.operation import Operation
from texpr.ir.value import Buffer, Literal
from texpr.isa.cuda import MOST_CLUSTER, MOST_SHARED, MOST_THREADS, TMA, TMA_ROWS, registers_at_launch
from texpr.isa.levels import WARP, Level
from texpr.isa.target import Target
from texpr.support.diagnostic import CompilerBug, limitation
from texpr.support.span import Source

PART_BARRIERS = 15
"""The number of barriers for __syncthreads and for parts of a block, which have the lowest numbers."""


def print_kernels(plan: Plan, target: Target | None = None) -> str:
    """The `.cu` with every distinct kernel of `plan`, and of its wide plan.

    Raises `Limitation` for a kernel with more threads (E0552) or shared memory (E0553) than `target`, or any CUDA device, has;
    E0555 for copies of tiles, or gather4 and scatter4, on a target without these features.
    """
    plans = {kernel: each for each in plan.versions for kernel in kernels(each.steps)}
    found = distinct(plans)
    names = [kernel.name for kernel in found]
    if len(set(names)) != len(names):
        raise CompilerBug(f"two kernels of {plan.name} have one name: {names}")
    lines = [*_warps(plan, found), '#include "texpr_device.h"']
    if line_of(plan.span) is not None:
        lines += ["", f"TX_SOURCE({string(file_of(plan.span))})"]
    instrs = {instr.name: instr for kernel in found for instr in kernel.instrs}
    if not all(instr.alike(instrs[instr.name]) for kernel in found for instr in kernel.instrs):
        raise CompilerBug(f"instructions of {plan.name} that differ have one name")
    for instr in instrs.values():
        lines += ["", *instr_lines(instr, target, _Cuda(found[0], plan.span.source, False))]
    loops = tuple(together(plan.steps))
    inside = {kernel: joint(loop).threads for loop in loops for kernel in kernels((loop,))}
    for kernel in found:
        _check(kernel, target)
        lines += ["", *(_step(kernel, plan, inside[kernel]) if kernel in inside else _kernel(kernel, plans[kernel]))]
    for loop in loops:
        lines += ["", *together_lines(loop, plan)]
    return "\n".join(lines) + "\n"


def _warps(plan: Plan, found: tuple[Kernel, ...]) -> list[str]:
    """The macro with the number of lanes in a warp, if it is not the header's default."""
    lanes = {kernel.warp for kernel in found if kernel.threads > 1}
    if len(lanes) > 1:
        raise CompilerBug(f"kernels of {plan.name} have warps of {sorted(lanes)} lanes")
    return [f"#define TX_WARP {each}u" for each in lanes - {WARP}]


def _kernel(kernel: Kernel, plan: Plan) -> list[str]:
    scope, arguments = kernel_arguments(kernel, plan)
    blocks = {dim: f"blockIdx.{dim}" for dim in "xyz"}
    parameters = [parameter(argument, kernel) for argument in arguments]
    lines = [*_heading(kernel), opening(kernel), *signature(kernel.name, parameters)]
    return [*lines, *_body(kernel, plan, scope, blocks), "}", f"TX_EXPORT({kernel.name})"]


def _step(kernel: Kernel, plan: Plan, threads: int) -> list[str]:
    """A kernel that is also a step of a joint kernel with so many threads in a block: the work of its block is a function of
    the block's index, executed by the first threads."""
    scope, arguments = kernel_arguments(kernel, plan)
    parameters = [parameter(argument, kernel) for argument in arguments]
    lines = [*_heading(kernel), "TX_FN void"]
    lines += signature(block_function(kernel), [*parameters, *(f"unsigned const {name}" for name in BLOCK.values())])
    lines += [
        *_body(kernel, plan, scope, BLOCK, some=threads > kernel.threads),
        "}",
        "",
        opening(kernel),
        *signature(kernel.name, parameters),
    ]
    given = ", ".join((*(argument.name for argument in arguments), *(f"blockIdx.{dim}" for dim in BLOCK)))
    return [*lines, f"{INDENT}{block_function(kernel)}({given});", "}", f"TX_EXPORT({kernel.name})"]


def _body(kernel: Kernel, plan: Plan, scope: Scope, blocks: Mapping[str, str], *, some: bool = False) -> list[str]:
    """The work of a block with the index `blocks`, by dimension; with `some` there are more threads, which do nothing."""
    body, lines = Body.of(kernel, _Cuda(kernel, plan.span.source, some)), list[str]()
    for axis in kernel.axes:
        scope, line = _axis(axis, scope, blocks)
        lines.append(INDENT + line)
    thread = warps.counted(kernel)
    if thread is not None:
        scope, line = warps.numbered(kernel, thread, scope)
        lines.append(INDENT + line)
    size, places = dynamic_bytes(kernel), dict(shared_places(kernel))
    if size:
        lines.append(f"{INDENT}TX_SHARED_BLOCK({size});")
    elif any(array.at is not None for array in kernel.arrays):
        size = shared_bytes(kernel)
        lines.append(f"{INDENT}TX_SHARED_ARENA({size});")
    for array in kernel.arrays:
        scope, line = _array(array, places[array] if size and array in places else None, scope, kernel.rank)
        lines.append(INDENT + line)
    return [*lines, *body.lines(trimmed(parted(spread(kernel.body))), scope, 1)]


def _check(kernel: Kernel, target: Target | None) -> None:
    """Refuses a kernel that no CUDA device, or not `target`, can run."""
    who = "CUDA" if target is None else target.name
    if target is not None and kernel.threads > 1 and kernel.warp != target.warp:
        raise CompilerBug(f"kernel {kernel.name} has warps of {kernel.warp} lanes, and {who} of {target.warp}")
    if kernel.threads > MOST_THREADS:
        told = f"kernel {kernel.name} has {kernel.threads} threads in a block, and CUDA allows {MOST_THREADS}"
        raise limitation("E0552", kernel.span, told, help="split the loops that are bound to the block")
    shared, most = shared_bytes(kernel), MOST_SHARED if target is None else target.shared
    if shared > most:
        told = f"kernel {kernel.name} has {shared} bytes of shared memory in a block, and {who} allows {most}"
        raise limitation("E0553", kernel.span, told, help="make tiles smaller")
    blocks, together = prod(kernel.cluster), MOST_CLUSTER if target is None else target.max_cluster
    if blocks > together:
        told = f"kernel {kernel.name} has {blocks} blocks in a cluster, and {who} promises {together}"
        raise limitation("E0554", kernel.span, told, help="make clusters smaller, or build for sm_90 or later")
    needed = {feature for stmt in walk(kernel.body) if isinstance(stmt, Operation) for feature in stmt.needs}
    needed |= {TMA} if kernel.maps else set()
    for feature, (what, has_none, help) in _LACKING.items():
        if target is not None and feature in needed - target.features:
            raise limitation("E0555", kernel.span, f"kernel {kernel.name} {what}, and {has_none.format(target)}", help=help)


_LACKING = {
    TMA: (
        "copies tiles of tensors",
        "{} has no engine that does",
        "build for sm_90 or later, or copy by threads",
    ),
    TMA_ROWS: (
        "copies rows by their numbers",
        "the engine of {} does not",
        "build for sm_100a or sm_103a, or copy by threads",
    ),
}
"""The messages for features that a kernel needs and a target lacks."""


def _heading(kernel: Kernel) -> list[str]:
    """The comment with the launch configuration and the source."""
    levels = (Level.GRID, *((Level.CLUSTER,) if prod(kernel.cluster) > 1 else ()), Level.BLOCK)
    shape = {level: [f"{a.dim}: {a.extent}" for a in kernel.axes if a.level is level] for level in levels}
    told = "; ".join(f"{level.value} {', '.join(extents) or 1}" for level, extents in shape.items())
    place = "" if line_of(kernel.span) is None else f", from {place_of(kernel.span)}"
    return [f"// {comment(f'{kernel.name}{place}: {told}')}"]


def _axis(axis: Axis, scope: Scope, blocks: Mapping[str, str]) -> tuple[Scope, str]:
    match axis.level:
        case Level.GRID:
            register = blocks[axis.dim]
        case Level.BLOCK:
            register = f"threadIdx.{axis.dim}"
        case Level.CLUSTER:
            register = f"({blocks[axis.dim]} % {axis.extent})"
        case Level.WARP | Level.THREAD | Level.CORE | Level.LANE:
            raise CompilerBug(f"an axis of level {axis.level.value} in a CUDA kernel")
    first = "" if axis.base is None else f" + {scope.names[axis.base]}"
    scope, variable = axis_variable(axis, scope)
    ctype = variable.ctype
    return scope, f"{ctype} const {variable.text} = ({ctype}){register}{first};"


def _array(array: Array, at: int | None, scope: Scope, rank: Sym | None) -> tuple[Scope, str]:
    """The declaration of an array; `at`: its offset in the block's shared memory, if that is allocated as a whole."""
    apart = rank if array.space is Space.CLUSTER else None
    scope, name = scope.name(array.buffer) if apart is None else scope.part(array.buffer, apart)
    ctype, count = C_NAMES[array.buffer.dtype], max(1, part(array))  # C++ has no empty arrays
    match array.space:
        case Space.SHARED if array.barrier:
            text = f"TX_BARRIERS({name}, {count})" if at is None else f"TX_BARRIERS_AT({name}, {count}, {at})"
        case Space.SHARED | Space.CLUSTER if at is not None:
            text = f"TX_SHARED_AT({ctype}, {name}, {count}, {array.align}, {at})"
        case Space.SHARED | Space.CLUSTER:
            aligned = array.align != USUAL_ALIGNMENT
            text = (
                f"TX_SHARED_ALIGNED({ctype}, {name}, {count}, {array.align})"
                if aligned
                else f"TX_SHARED({ctype}, {name}, {count})"
            )
        case Space.TENSOR:  # `HaveColumns` declares it
            first, end = array.at or 0, (array.at or 0) + columns_of(array.buffer.dtype, count)
            return scope, f"// {name}: columns {first} to {end} of tensor memory: {comment(array.reason)}"
        case Space.LANES:
            text = f"TX_LANES({ctype}, {name}, {count})"
        case Space.LOCAL:
            text = f"TX_LOCAL({ctype}, {name}, {count})"
        case Space.GLOBAL:
            raise CompilerBug(f"{array.buffer.name} is an array of a kernel in global memory")
    reason = f"  // {comment(array.reason)}" if array.reason else ""
    return scope, f"{text};{reason}"


class _Cuda:
    """CUDA's dialect of C."""

    def __init__(self, kernel: Kernel, source: Source, some: bool):
        self._kernel, self._source, self._some = kernel, source, some

    tracked = True
    machine = "CUDA"

    @property
    def parted(self) -> int | None:
        """The number after those of parts of a block, if those are used."""
        if not self._some:
            return None
        found = (each for each in walk(self._kernel.body) if isinstance(each, Operation))
        parts = any(each.joined is Level.BLOCK and each.meets for each in found)
        return PART_BARRIERS if parts else 1

    def place(self, line: int) -> str:
        """`TX_AT(line)`, with the source line as a comment."""
        return f"TX_AT({line})  // {comment(self._source.line(line))}"

    def takes_role(self, role: Role, scope: Scope) -> str | None:
        """The test by the number of the warp."""
        return warps.takes(role, self._kernel, scope)

    def in_role(self, role: Role) -> list[str]:
        """Its registers, where roles share them anew."""
        have = registers_at_launch(self._kernel.threads, self._kernel.min_blocks)
        return [f"tx_keep_registers<{role.registers}, {have}>();"] if role.registers else []

    def before_loop(self, loop: For, scope: Scope) -> list[str]:
        """The pragma of an unrolled loop; none for others."""
        match loop.kind:
            case "serial":
                return []
            case "unroll":
                return [f"#pragma unroll {loop.factor}" if loop.factor else "#pragma unroll"]
            case _:
                raise CompilerBug(f"a {loop.kind} loop in a CUDA kernel")

    def rows(self, loop: For, scope: Scope) -> None:
        """None: lanes are threads."""
        return

    def in_loop(self, loop: For, scope: Scope) -> list[str]:
        """Nothing: other warps execute while one waits for memory."""
        return []

    def hides(self, stmt: Operation) -> bool:
        """A whole number with which begins what a warpgroup's product sums up. Of loops whose first turns have no product nvcc
        would set such registers anew in front of the first product, and ptxas then waits behind each (C7515); it does not do so
        with floating-point numbers."""
        known = all(isinstance(value, Literal) and value.dtype.is_integer for value in stmt.computed)
        return known and all(load.buffer in self._summed for load in stmt.writes)

    @cached_property
    def _summed(self) -> frozenset[Buffer]:
        """What products sum up that go on while lanes do."""
        maps = self._kernel.map_of
        every = (each for each in walk(self._kernel.body) if isinstance(each, Operation) and each.together)
        return frozenset(load.buffer for each in every if each.completion(maps) is not None for load in each.writes)

    def operation(self, stmt: Operation, here: Here) -> Iterable[str]:
        """The lines of an operation in CUDA."""
        return stmt.cuda(here)
