"""The graph of a copy as its schedule wrote it: from the tensor's dimensions to the loops, with the bulk leaves.

The accesses to a staged tile in a nest show how the tensor was split: the engine runs the loops inside of the one that
contains the copy. The graph is used only if its plan is the kernel's copy; otherwise the kernel's own graph of boxes is
shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, Sym, maximum
from texpr.affine.facts import Known
from texpr.domain.contiguity import Memory
from texpr.domain.correctness.holes import Strong
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transform import Transform
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import element
from texpr.ir.value import Load, walk
from texpr.schedule.stage.boxes import dense_strides
from texpr.schedule.state import Staged, State
from texpr.support.record import Record
from texpr.tma.correctness import Lowering, Plain, lower_load
from texpr.tma.model import Copy, Refusal, plan


class Written(Record):
    """A copy as the schedule wrote it, and its lowering; `lowering` is None for a store."""

    copy: Copy
    lowering: Lowering | None


def written(state: State, function: ir.Function, kernels: Collection[k.Kernel], known: Known) -> Mapping[str, Written]:
    """For each tensor map of the kernels, by name, the copy in the schedule of `function`, if known.

    `state`: after the schedule's last directive. `known`: of sizes.
    """
    found: dict[str, Written] = {}
    for kernel in kernels:
        maps = kernel.map_of
        for _, moved in k.moves(kernel):
            name, tile = moved.map, moved.tile
            if name is None or tile is None or name in found:
                continue
            every = (s for s in state.staged if s.name == tile.buffer.name and s.of == maps[name].buffer.name)
            staged = next(every, None)
            copy = staged and _copy(state, function, staged, maps[name], known)
            if copy and staged:
                found[name] = Written(copy, None if moved.source is tile.buffer else _lowering(copy, staged))
    return found


def part_of(graph: DomainGraph, dims: Sequence[Sym]) -> DomainGraph | None:
    """The subgraph that starts at the logical IterDomains `dims`, in their order; None if it is merged with others."""
    tops = {d.sym: d for d in graph.logical}
    if any(sym not in tops for sym in dims):
        return None
    known, kept = set(dims), list[Transform]()
    for transform in graph.transforms:
        joined = {d.sym in known for d in transform.inputs}
        if joined == {True, False}:
            return None
        if True in joined:
            kept.append(transform)
            known |= {d.sym for d in transform.outputs}
    leaves = tuple(leaf for leaf in graph.leaves if leaf.sym in known)
    return DomainGraph(tuple(tops[sym] for sym in dims), tuple(kept), leaves)


def trimmed(graph: DomainGraph, bulk: Collection[Sym]) -> tuple[DomainGraph, tuple[str, ...]]:
    """The graph without transforms inside of the box, and the IterDomains of the box, in the order of dimensions."""
    inside, kept = set(bulk), list[Transform]()
    for transform in reversed(graph.transforms):
        if all(d.sym in inside for d in transform.outputs):
            inside |= {d.sym for d in transform.inputs}
        else:
            kept.append(transform)
    kept.reverse()
    used = {d.sym for transform in kept for d in transform.inputs}
    ends = tuple(d for d in (*graph.logical, *(d for t in kept for d in t.outputs)) if d.sym in inside and d.sym not in used)
    box = tuple(sorted(ends, key=lambda d: _dimension(graph, d)))
    outer = tuple(leaf for leaf in graph.leaves if leaf.sym not in inside)
    return DomainGraph(graph.logical, tuple(kept), (*outer, *box)), tuple(d.sym.name for d in box)


def is_same(copy: Copy, map: k.TensorMap) -> bool:
    """Whether a planned copy agrees with the tensor map: sizes, strides, element strides, and elements of the tile.

    The box may differ if the tile is the same, as 4 and 6 with an element stride of 3.
    """
    dims = copy.dimensions
    steps = tuple(each.element_stride.constant for each in dims)
    if len(dims) != map.rank or map.corners or steps != map.steps:
        return False
    size = map.buffer.dtype.bytes
    strides = tuple(each.stride * size for each in dims[1:])
    tile = tuple(-(-each.box.constant // step) for each, step in zip(dims, steps, strict=True))
    sizes = zip((each.size for each in dims), map.sizes, strict=True)
    return strides == map.strides and tile == map.tile and all(there in (own, maximum(own, ONE)) for own, there in sizes)


def _dimension(graph: DomainGraph, domain: IterDomain) -> int:
    """The first dimension of the tensor from which an IterDomain derives."""
    above = {domain.sym}
    for transform in reversed(graph.transforms):
        if any(d.sym in above for d in transform.outputs):
            above |= {d.sym for d in transform.inputs}
    return next(n for n, d in enumerate(graph.logical) if d.sym in above)


def _lowering(copy: Copy, staged: Staged) -> Lowering | None:
    """The lowering of a load: plain, or as its fill requires."""
    if staged.fill is None:
        return Plain()
    made = lower_load(copy, Strong(staged.fill))
    return None if isinstance(made, Refusal) else made


def _copy(state: State, function: ir.Function, staged: Staged, map: k.TensorMap, known: Known) -> Copy | None:
    """The first graph, among the nests that use the tile, whose plan agrees with the tensor map."""
    for dims in _indices(function, map.buffer.name):
        for loops, inside in _users(state, staged):
            graph = part_of(state.graph(loops), dims)
            if graph is None:
                continue
            bulk = {state.domain(loop).sym for loop in inside}
            whole = graph, tuple(leaf.sym.name for leaf in graph.leaves if leaf.sym in bulk)
            for shown, box in (whole, trimmed(graph, bulk)):
                made = plan(Memory(shown, dense_strides(map.buffer)), box, element(map.buffer.dtype), known)
                if isinstance(made, Copy) and is_same(made, map):
                    return made
    return None


def _indices(function: ir.Function, name: str) -> Iterator[tuple[Sym, ...]]:
    """The subscripts of a buffer's accesses that are distinct loop indices."""
    for stmt in ir.walk(function.body):
        if isinstance(stmt, ir.Bind):
            loads = (part for value in stmt.values for part in walk(value) if isinstance(part, Load))
            for load in (*stmt.targets, *loads):
                syms = tuple(index.as_sym for index in load.index)
                if load.buffer.name == name and None not in syms and len(set(syms)) == len(syms):
                    yield tuple(sym for sym in syms if sym is not None)


def _users(state: State, staged: Staged) -> Iterator[tuple[tuple[ir.Loop, ...], tuple[ir.Loop, ...]]]:
    """The loops around each statement that uses the tile (without copies), and those of them around the stage."""
    for bind, loops in _binds(state.function.body, ()):
        loads = (part for value in bind.values for part in walk(value) if isinstance(part, Load))
        names = {load.buffer.name for load in (*bind.targets, *loads)}
        at = next((n for n, loop in enumerate(loops) if staged.at in (loop.sym.name, state.domain(loop).sym.name)), None)
        if staged.name in names and staged.of not in names and at is not None:
            yield loops, loops[at + 1 :]


def _binds(body: tuple[ir.Stmt, ...], around: tuple[ir.Loop, ...]) -> Iterator[tuple[ir.Bind, tuple[ir.Loop, ...]]]:
    for stmt in body:
        if isinstance(stmt, ir.Bind):
            yield stmt, around
        inner = (*around, stmt) if isinstance(stmt, ir.Par | ir.Seq) else around
        for block in ir.blocks(stmt):
            yield from _binds(block, inner)
