"""The verifier of plans. A violation is a bug of the compiler, and is reported with the name of the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import TypeAlias, TypeVar

from texpr.affine.expr import Expr, Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.place import Place
from texpr.ir.kernel.roles import shared_anew
from texpr.ir.kernel.shared import IN_BLOCK, shared_bytes
from texpr.ir.kernel.stmt_verify import body_complaints
from texpr.ir.kernel.text import stmt_text
from texpr.ir.kernel.tile_verify import TILE_HEAD_RULES
from texpr.ir.kernel.together import together, why_apart
from texpr.ir.kernel.uniformity import Threads
from texpr.ir.value import PITCHES, Buffer, pitched
from texpr.ir.value.scanner import is_name
from texpr.ir.value.types import U64
from texpr.ir.value.verify import Scope
from texpr.isa.cuda import SETMAXNREG
from texpr.isa.levels import WARP, Level, Space
from texpr.isa.target import Target
from texpr.support.diagnostic import CompilerBug

_GPU = frozenset({Level.GRID, Level.CLUSTER, Level.BLOCK, Level.WARP, Level.THREAD})
_CPU = frozenset({Level.CORE, Level.THREAD, Level.LANE})

Thing = TypeVar("Thing")

KernelRule: TypeAlias = Callable[[k.Kernel], Iterator[str]]
"""Yields the complaints about a kernel's head."""


def verify(plan: k.Plan, target: Target | None = None) -> None:
    """Checks the rules of plans, also of wide ones, and the limits of `target` if given. Raises CompilerBug for a violation."""
    if plan.wide is not None:
        verify(plan.wide, target)
    for kernel in dict.fromkeys(k.kernels(plan.steps)):
        verify_kernel(kernel, target)
    for rule in PLAN_RULES:
        for complaint in rule(plan):
            raise CompilerBug(f"plan {plan.name}: {rule.__name__}: {complaint}")
    for complaint in _step_complaints(plan.steps, frozenset(plan.sizes)):
        raise CompilerBug(f"plan {plan.name}: {complaint}")


def verify_kernel(kernel: k.Kernel, target: Target | None = None) -> None:
    """Checks the rules of kernels. Raises CompilerBug for a violation."""
    for rule in KERNEL_RULES:
        for complaint in rule(kernel):
            raise CompilerBug(f"kernel {kernel.name}: {rule.__name__}: {complaint}")
    if target is not None:
        for complaint in limit_complaints(kernel, target):
            raise CompilerBug(f"kernel {kernel.name}: {complaint}")
    for stmt, complaint in body_complaints(kernel.body, _start(kernel)):
        raise CompilerBug(f"kernel {kernel.name}: {complaint}\n    {stmt_text(stmt).splitlines()[0]}")


def _start(kernel: k.Kernel) -> Place:
    memory = (*kernel.buffers, *kernel.scalars, *(array.buffer for array in kernel.arrays))
    indices = frozenset((*kernel.sizes, *(axis.sym for axis in kernel.axes)))
    assigned = k.reassigned(kernel.body)
    return Place(kernel, Threads(kernel), Scope({b.name: b for b in memory}, indices), assigned=assigned)


def names_are_words(kernel: k.Kernel) -> Iterator[str]:
    """Names are words of the text form."""
    names = [kernel.name, *_names(kernel)]
    for stmt in k.walk(kernel.body):
        names += [stmt.sym.name] if isinstance(stmt, k.For) else []
        names += [new.sym.name for new in stmt.bound] if isinstance(stmt, k.Operation) else []
    yield from (f"{name!r} is no name" for name in names if not is_name(name))


def names_differ(kernel: k.Kernel) -> Iterator[str]:
    """No two buffers, arrays, maps, sizes or axes share a name."""
    yield from (f"{name} stands for {count} things" for name, count in _repeated(_names(kernel)))


def _names(kernel: k.Kernel) -> list[str]:
    return [named.name for named in (*_memory(kernel), *kernel.maps, *kernel.instrs, *_symbols(kernel))]


def _repeated(things: Iterable[Thing]) -> Iterator[tuple[Thing, int]]:
    """The items that occur more than once, and how often."""
    found: dict[Thing, int] = {}
    for each in things:
        found[each] = found.get(each, 0) + 1
    return ((each, count) for each, count in found.items() if count > 1)


def _memory(kernel: k.Kernel) -> tuple[Buffer, ...]:
    return (*kernel.buffers, *kernel.scalars, *(array.buffer for array in kernel.arrays))


def _symbols(kernel: k.Kernel) -> tuple[Sym, ...]:
    return (*kernel.sizes, *(axis.sym for axis in kernel.axes))


def scalars_are_scalar_inputs(kernel: k.Kernel) -> Iterator[str]:
    """An argument passed by value is a rank-0 input; no such input is passed by address."""
    for buffer in kernel.scalars:
        if buffer.rank or buffer.role != "input":
            yield f"{buffer} of role {buffer.role} cannot be passed by value"
    yield from (f"{buffer.name} has no address" for buffer in kernel.buffers if not buffer.rank and buffer.role == "input")


def layouts_are_in_scope(kernel: k.Kernel) -> Iterator[str]:
    """Strides and inner extents use the kernel's sizes only; the outermost extent is not needed for an address."""
    for buffer in kernel.buffers:
        needed = buffer.shape[1:] if buffer.strides is None else buffer.strides
        unknown = _syms(needed) - set(kernel.sizes)
        if unknown:
            yield f"{buffer.name} needs {_listed(unknown)}, which the kernel is not given"


def layouts_have_their_rank(kernel: k.Kernel) -> Iterator[str]:
    """There is a stride for each dimension."""
    for buffer in _memory(kernel):
        if buffer.strides is not None and len(buffer.strides) != buffer.rank:
            yield f"{buffer.name} has {buffer.rank} dimensions and {len(buffer.strides)} strides"


def arrays_are_of_known_size(kernel: k.Kernel) -> Iterator[str]:
    """A kernel's arrays have constant extents, which may be 0 where a size is, and constant strides."""
    for array in kernel.arrays:
        extents = (*array.buffer.shape, *(array.buffer.strides or ()))
        if not all(e.is_constant and e.constant >= 0 for e in extents):
            yield f"{array.buffer} has no known size"


def arrays_are_on_chip(kernel: k.Kernel) -> Iterator[str]:
    """No array of a kernel is in global memory; only a kernel with blocks has arrays in shared or cluster memory."""
    for array in kernel.arrays:
        if array.space is Space.GLOBAL:
            yield f"{array.buffer.name} cannot be made in global memory"
        if array.space in IN_BLOCK and not any(axis.level is Level.BLOCK for axis in kernel.axes):
            yield f"{array.buffer.name} is shared by a block, but the kernel has none"


def cluster_arrays_have_a_part_in_each_block(kernel: k.Kernel) -> Iterator[str]:
    """The cluster extends along one dimension, the first index of a cluster array is the rank, and it is no barrier array."""
    found = [array for array in kernel.arrays if array.space is Space.CLUSTER]
    whole = [axis.extent for axis in kernel.axes if axis.level is Level.CLUSTER]
    for array in found:
        if len(whole) != 1 or array.buffer.shape[:1] != tuple(whole) or array.buffer.strides is not None or array.barrier:
            yield f"{array.buffer} has no part in each block of a cluster"


def shared_arrays_have_places(kernel: k.Kernel) -> Iterator[str]:
    """Either all shared arrays have an offset, a multiple of their alignment, or none; local arrays have none."""
    shared = [array for array in kernel.arrays if array.space in IN_BLOCK]
    if len({array.at is None for array in shared}) > 1:
        yield "some shared arrays have places, and some have not"
    for array in kernel.arrays:
        if (
            array.at is not None
            and array.space is not Space.TENSOR
            and (array.space not in IN_BLOCK or array.at < 0 or array.at % array.align)
        ):
            yield f"{array.buffer.name} cannot lie at {array.at}"


def axes_are_of_one_machine(kernel: k.Kernel) -> Iterator[str]:
    """The levels of axes are those of a GPU or those of a CPU, not both."""
    levels = {axis.level for axis in kernel.axes}
    if not (levels <= _GPU or levels <= _CPU):
        yield f"no machine has the levels {_listed(level.value for level in levels)}"


def axes_have_places(kernel: k.Kernel) -> Iterator[str]:
    """GRID, CLUSTER and BLOCK axes are x, y or z, each at most once; each CLUSTER axis has a GRID axis of its dimension."""
    placed = [(axis.level, axis.dim) for axis in kernel.axes if axis.level in (Level.GRID, Level.CLUSTER, Level.BLOCK)]
    yield from (f"{count} axes are {level.value}.{dim}" for (level, dim), count in _repeated(placed))
    for level, dim in dict.fromkeys(placed):
        if dim not in ("x", "y", "z"):
            yield f"{level.value} has no dimension {dim}"
        if level is Level.CLUSTER and (Level.GRID, dim) not in placed:
            yield f"cluster.{dim} has no blocks along grid.{dim}"


def block_axes_are_constant(kernel: k.Kernel) -> Iterator[str]:
    """The extents of axes other than GRID and CORE are positive constants."""
    for axis in kernel.axes:
        if axis.level not in (Level.GRID, Level.CORE) and not (axis.extent.is_constant and axis.extent.constant > 0):
            yield f"{axis.level.value} axis {axis.sym} has extent {axis.extent}"


def warps_are_of_lanes(kernel: k.Kernel) -> Iterator[str]:
    """A warp is a power of two of lanes, at most the bits of a mask; only a kernel with threads has one of another size."""
    if kernel.warp & (kernel.warp - 1) or not 1 <= kernel.warp <= WARP:
        yield f"a warp of {kernel.warp} lanes"
    if kernel.warp != WARP and not any(axis.level is Level.BLOCK for axis in kernel.axes):
        yield "a warp of no threads"


def wish_is_for_blocks(kernel: k.Kernel) -> Iterator[str]:
    """Only a kernel with blocks has a required number of resident blocks."""
    if kernel.min_blocks < 0 or (kernel.min_blocks and not any(axis.level is Level.BLOCK for axis in kernel.axes)):
        yield f"a multiprocessor cannot hold {kernel.min_blocks} of its blocks"


def core_axes_are_in_scope(kernel: k.Kernel) -> Iterator[str]:
    """A CPU kernel executes its outer loops itself, so their extents use the kernel's sizes; the host evaluates those of a
    grid."""
    for axis in kernel.axes:
        unknown = _syms((axis.extent,)) - set(kernel.sizes)
        if axis.level is Level.CORE and unknown:
            yield f"the extent of {axis.sym} needs {_listed(unknown)}, which the kernel is not given"


def bases_are_given(kernel: k.Kernel) -> Iterator[str]:
    """Only GRID axes have a base, each a size of its own. A kernel behaves alike in every slab: it uses the base nowhere
    else."""
    named = k.symbols(kernel.body).union(*(axis.extent.syms() for axis in kernel.axes))
    for axis in kernel.axes:
        if axis.base is not None and axis.level is not Level.GRID:
            yield f"{axis.level.value} axis {axis.sym} has a base"
        if axis.base is not None and axis.base not in kernel.sizes:
            yield f"base {axis.base} is no argument"
        if axis.base in named:
            yield f"base {axis.base} decides what is done"
    for base, count in _repeated(axis.base for axis in kernel.axes if axis.base is not None):
        yield f"base {base} is that of {count} axes"


def written_buffers_are_there(kernel: k.Kernel) -> Iterator[str]:
    """Written buffers are buffers of the kernel, and no inputs."""
    roles = {buffer.name: buffer.role for buffer in (*kernel.buffers, *(map.buffer for map in kernel.maps))}
    for name in sorted(kernel.written):
        if name not in roles:
            yield f"{name} is written, but is no buffer of the kernel"
        elif roles[name] == "input":
            yield f"{name} is written, but is an input"


def limit_complaints(kernel: k.Kernel, target: Target) -> Iterator[str]:
    """The limits of a block on `target` that a kernel exceeds."""
    levels = {axis.level for axis in kernel.axes} - set(target.levels)
    if levels:
        yield f"{target} has no {_listed(level.value for level in levels)}"
    if kernel.threads > target.max_threads:
        yield f"{kernel.threads} threads in a block, {target} has {target.max_threads}"
    if prod(kernel.cluster) > target.max_cluster:
        yield f"{prod(kernel.cluster)} blocks in a cluster, {target} has {target.max_cluster}"
    for axis in kernel.axes:
        if axis.level is Level.BLOCK and axis.extent.constant > target.max_block["xyz".index(axis.dim)]:
            yield f"block.{axis.dim} has {axis.extent} threads, {target} has {target.max_block['xyz'.index(axis.dim)]}"
    if target.has_blocks and kernel.min_blocks > min(target.resident_blocks, target.resident_threads // kernel.threads):
        yield f"{target} holds no {kernel.min_blocks} blocks of {kernel.threads} threads at once"
    if target.has_warps and kernel.warp != target.warp and any(axis.level is Level.BLOCK for axis in kernel.axes):
        yield f"warps of {kernel.warp} lanes, {target} has {target.warp}"
    if shared_anew(kernel) and SETMAXNREG not in target.features:
        yield f"warps that share registers anew, {target} cannot do that"
    shared = shared_bytes(kernel)
    if shared > target.shared and target.has_blocks:
        yield f"{shared} bytes of shared memory in a block, {target} has {target.shared}"


KERNEL_RULES: tuple[KernelRule, ...] = (
    names_are_words,
    names_differ,
    scalars_are_scalar_inputs,
    layouts_have_their_rank,
    layouts_are_in_scope,
    arrays_are_of_known_size,
    arrays_are_on_chip,
    cluster_arrays_have_a_part_in_each_block,
    shared_arrays_have_places,
    axes_are_of_one_machine,
    axes_have_places,
    block_axes_are_constant,
    warps_are_of_lanes,
    wish_is_for_blocks,
    core_axes_are_in_scope,
    bases_are_given,
    written_buffers_are_there,
    *TILE_HEAD_RULES,
)

PlanRule: TypeAlias = Callable[[k.Plan], Iterator[str]]
"""Yields the complaints about a plan as a whole."""


def buffers_differ(plan: k.Plan) -> Iterator[str]:
    """Parameters, results and workspace have distinct names; an inout may be a result as well."""
    every = dict.fromkeys((*plan.params, *plan.results, *plan.workspace))
    yield from (f"{count} buffers are called {name}" for name, count in _repeated(b.name for b in every))


def roles_are_right(plan: k.Plan) -> Iterator[str]:
    """Parameters are inputs or inouts; a result is an inout parameter, or has the role "result"; workspace is local."""
    yield from (f"parameter {b.name} is {b.role}" for b in plan.params if b.role not in ("input", "inout"))
    for buffer in plan.results:
        if buffer.role != "result" and not (buffer.role == "inout" and buffer in plan.params):
            yield f"result {buffer.name} is {buffer.role}"
    yield from (f"workspace {b.name} is {b.role}" for b in plan.workspace if b.role != "local")


def rows_of_workspace_are_apart(plan: k.Plan) -> Iterator[str]:
    """Rows of the workspace have strides of their own only to begin at multiples of some elements: none overlaps the next."""
    for buffer in plan.workspace:
        if buffer.strides is not None and not any(buffer.strides == pitched(buffer.shape, count) for count in PITCHES):
            yield f"rows of {buffer.name} may overlap"


def shapes_are_in_sizes(plan: k.Plan) -> Iterator[str]:
    """Extents and strides use sizes of the plan only, so that the host can evaluate them."""
    for buffer in (*plan.params, *plan.results, *plan.workspace):
        unknown = _syms((*buffer.shape, *(buffer.strides or ()))) - set(plan.sizes)
        if unknown:
            yield f"{buffer.name} needs {_listed(unknown)}, which is no size"


def promises_are_in_sizes(plan: k.Plan) -> Iterator[str]:
    """Requirements and bounds use sizes, and assumptions name parameters."""
    for fact in (*plan.requires, *plan.bounds):
        unknown = _syms((fact.left, fact.right)) - set(plan.sizes)
        if unknown:
            yield f"{fact.left} {fact.op} {fact.right} needs {_listed(unknown)}, which is no size"
    for bound in plan.bounds:
        plain = all(c > 0 and all(isinstance(atom, Sym) for atom in monomial) for monomial, c in bound.left.terms)
        if bound.op != "<=" or not bound.right.is_constant or not plain or bound.left.constant < 0:
            yield f"{bound.left} {bound.op} {bound.right} is no bound on a polynomial of sizes"
    yield from (f"{a.buffer.name} is no parameter" for a in plan.assumes if a.buffer not in plan.params)


def fixed_sizes_are_gone(plan: k.Plan) -> Iterator[str]:
    """No size is both fixed and an argument."""
    yield from (f"{sym} = {value} is a size still" for sym, value in plan.fixed if sym in plan.sizes)


def kernels_differ(plan: k.Plan) -> Iterator[str]:
    """Kernels have distinct names."""
    names = [kernel.name for kernel in dict.fromkeys(k.kernels(plan.steps))]
    yield from (f"{count} kernels are called {name}" for name, count in _repeated(names))


def kernels_use_the_plans_memory(plan: k.Plan) -> Iterator[str]:
    """Buffers of kernels are parameters, results or workspace of the plan."""
    every = {*plan.params, *plan.results, *plan.workspace}
    for kernel in k.kernels(plan.steps):
        yield from (f"kernel {kernel.name}: {b.name} is no buffer of the plan" for b in kernel.buffers if b not in every)
        mapped = (map.buffer for map in kernel.maps)
        yield from (f"kernel {kernel.name}: {b.name} is mapped, and no buffer of the plan" for b in mapped if b not in every)
        yield from (f"kernel {kernel.name}: {b.name} is no parameter" for b in kernel.scalars if b not in plan.params)


def arrays_are_of_one_kernel(plan: k.Plan) -> Iterator[str]:
    """An array of a kernel is no buffer of the plan, and is not shared with another kernel."""
    made = [array.buffer for kernel in dict.fromkeys(k.kernels(plan.steps)) for array in kernel.arrays]
    found = _repeated([*made, *{*plan.params, *plan.results, *plan.workspace}])
    yield from (f"{buffer.name} is made by a kernel, and is something else" for buffer, _ in found)


def loops_are_run_together(plan: k.Plan) -> Iterator[str]:
    """A joint loop can be executed by one launch, has a name of its own, and a workspace buffer of its own for its barrier."""
    loops = tuple(together(plan.steps))
    if not loops:
        return
    taken = Counter(kernel.name for kernel in set(k.kernels(plan.steps)))
    places = Counter(loop.together.meeting for loop in loops if loop.together is not None)
    for loop in loops:
        assert loop.together is not None
        taken[loop.together.name] += 1
        why, place = why_apart(loop), loop.together.meeting
        if why is not None:
            yield f"the loop over {loop.sym} is no one launch: {why}"
        if place not in plan.workspace or place.dtype != U64 or place.shape or places[place] > 1:
            yield f"blocks cannot meet in {place.name}"
        if any(place in kernel.buffers for kernel in k.kernels(plan.steps)):
            yield f"blocks meet in {place.name}, which a step uses"
        if taken[loop.together.name] > 1:
            yield f"two kernels are called {loop.together.name}"


def wide_plan_is_of_the_same_function(plan: k.Plan) -> Iterator[str]:
    """The wide plan is called with the same arguments, and asks for what the plan does, and for more. Its kernels have other
    names; no loop of either is one launch."""
    wide = plan.wide
    if wide is None:
        return
    if wide.wide is not None:
        yield "the wide plan has another one"
    if (wide.name, wide.sizes, wide.fixed) != (plan.name, plan.sizes, plan.fixed):
        yield "the wide plan is of another function, or of other sizes"
    for ours, theirs in ((plan.params, wide.params), (plan.results, wide.results)):
        pairs = list(zip(ours, theirs, strict=False))
        if len(ours) != len(theirs) or any(_interface(a) != _interface(b) for a, b in pairs):
            yield "the wide plan has other parameters or results"
        yield from (f"{b.name} may begin elsewhere in the wide plan" for a, b in pairs if (b.align or 1) % (a.align or 1))
    asked = {(fact.left, fact.op, fact.right) for fact in wide.requires}
    if any((fact.left, fact.op, fact.right) not in asked for fact in plan.requires):
        yield "the wide plan asks for less"
    both = [kernel.name for each in plan.versions for kernel in dict.fromkeys(k.kernels(each.steps))]
    yield from (f"{count} kernels of both plans are called {name}" for name, count in _repeated(both))
    if any(True for each in plan.versions for _ in together(each.steps)):
        yield "a loop is one launch, and there is a wide plan"


def _interface(buffer: Buffer) -> tuple[object, ...]:
    return buffer.name, buffer.dtype, buffer.shape, buffer.strides, buffer.role


PLAN_RULES: tuple[PlanRule, ...] = (
    wide_plan_is_of_the_same_function,
    loops_are_run_together,
    buffers_differ,
    roles_are_right,
    rows_of_workspace_are_apart,
    shapes_are_in_sizes,
    promises_are_in_sizes,
    fixed_sizes_are_gone,
    kernels_differ,
    kernels_use_the_plans_memory,
    arrays_are_of_one_kernel,
)


def _step_complaints(steps: tuple[k.HostStep, ...], known: frozenset[Sym]) -> Iterator[str]:
    """host_steps_are_in_scope: extents, conditions and arguments of steps use sizes and indices of enclosing host loops."""
    for step in steps:
        match step:
            case k.Launch(kernel):
                bases = {axis.base for axis in kernel.axes if axis.base is not None}
                yield from (f"bases_are_given: base {base} is known to the host" for base in sorted(bases & known, key=str))
                needed = {s for s in kernel.sizes if s not in bases}
                needed |= _syms(axis.extent for axis in kernel.axes)
                needed |= _syms(e for map in kernel.maps for e in (*map.sizes, *map.strides, map.offset))
                unknown, inside = needed - known, known
            case k.HostLoop(sym, extent):
                unknown, inside = _syms((extent,)) - known, known | {sym}
                if sym in known:
                    yield f"host_steps_are_in_scope: {sym} is known already"
            case k.HostIf(conditions):
                unknown, inside = _syms(e for c in conditions for e in (c.left, c.right)) - known, known
        if unknown:
            yield f"host_steps_are_in_scope: the host does not know {_listed(unknown)}"
        if not isinstance(step, k.Launch):
            yield from _step_complaints(step.steps, inside)


def _syms(exprs: Iterable[Expr]) -> set[Sym]:
    return {s for e in exprs for s in e.syms()}


def _listed(things: Iterable[object]) -> str:
    return ", ".join(sorted(map(str, things)))
