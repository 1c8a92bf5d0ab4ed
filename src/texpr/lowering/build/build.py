"""From a nest to its steps: who takes each, what it reads and writes, and the coordinates of the kernel.

Before: a mapped nest (`mapping.nest`). After: the form of steps with a whole head, but for what later passes decide: places of
locals, the order between steps, operations of engines. The statements are those of the nest, with the annotations and the
identity by which dependences are asked.

    par n |i| {                                    axis block.x thread < 64        axis grid.x i < n
        new t: f32[64]                             along par n |i| block i         dealt j by 64:1   dealt j'1 by 64:1
        par 64 |j| { t[j] = 2 * x[i, j] }     →    all run { new t }
        par 64 |j| { y[i, j] = t[63 - j] }         all spread reads x writes t { par 64 |j| { t[j] = … } }
    }                                              all spread reads t writes y { par 64 |j'1| { y[i, j'1] = … } }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.uses import loads, symbols
from texpr.ir.steps import Along, Branch, Dealt, Loop, Node, Part, Reduction, Step, Steps, Vectors, leaves, program
from texpr.ir.steps.plain import head, touches
from texpr.ir.steps.threads import ALL
from texpr.ir.steps.work import Decide, Half, Partial, Points, Spread
from texpr.ir.value import Buffer, Load, Ref
from texpr.isa.levels import WARP
from texpr.isa.target import Target
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.coordinates import Coordinates, coordinates
from texpr.lowering.build.instructions import instrs_of
from texpr.lowering.build.team import tree
from texpr.lowering.names import Names
from texpr.mapping.nest import Nest, Role
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record, field, replace
from texpr.support.span import NOWHERE, Span


class Title(Record):
    """The name of a kernel, its position in the source, and its context on the host, for `ir.steps.Steps`."""

    name: str
    function: ir.Function
    hosts: tuple[tuple[Sym, Expr], ...] = ()
    where: tuple[ir.Compare, ...] = ()
    lets: Mapping[Sym, Buffer] = field(default_factory=dict[Sym, Buffer])
    min_blocks: int = 0
    span: Span = NOWHERE


def build(title: Title, nest: Nest, target: Target, names: Names, cluster: Cluster, given: Iterable[Expr]) -> Steps:
    """The steps of `nest`. `given`: expressions of sizes that are at least 0.

    Raises Limitation as `coordinates` does.
    """
    at = coordinates(nest, target, names, cluster, given)
    if nest.team == 1:
        body: tuple[Node, ...] = (_effective(Step(ALL, Points(), nest.body)),)
    else:
        decided = {s: names.sym("decided") for s in ir.walk(nest.body) if isinstance(s, ir.If)}
        body = tuple(map(_told, tree(nest, decided)))
    reductions = tuple(_reductions(body, nest, at.rank, names))
    function, grid = title.function, tuple(_along(nest, at, cluster))
    stmts = program(body)
    used = symbols(stmts).union(*(along.loop.extent.syms() for along in grid))
    lets = tuple(ir.Let(sym, Load(b, ()), b.span) for sym, b in title.lets.items() if sym in used)
    touched = frozenset(_touched((*lets, *stmts), grid)) - {s.buffer for s in ir.walk(nest.body) if isinstance(s, ir.New)}
    every = dict.fromkeys((*function.params, *function.results, *sorted(touched, key=lambda b: b.name)))
    assumes = tuple(each for each in function.assumes if each.buffer in touched)
    return Steps(
        title.name, function.name, tuple(b for b in every if b in touched), function.sizes, title.hosts,
        (*function.where, *title.where), assumes, lets, nest.threads, nest.team, at.axes, at.prelude, grid,
        tuple(_dealt(nest, body)), nest.digits, (), tuple(_scratch(reductions)), (), (), reductions, (), body, (),
        nest.warp if nest.threads > 1 else WARP, title.min_blocks if nest.threads > 1 else 0, (),
        Vectors(target.reductions.lanes, target.global_memory.line) if target.has_vector_lanes else None, title.span,
        instrs_of(nest.body),
    )  # fmt: skip


def _told(node: Node) -> Node:
    """A node with the effects of its steps."""
    match node:
        case Step():
            return _effective(node)
        case Loop() | Part():
            return replace(node, body=tuple(map(_told, node.body)))
        case Branch():
            return replace(node, then=tuple(map(_told, node.then)), orelse=tuple(map(_told, node.orelse)))


def _effective(step: Step) -> Step:
    """A step with its reads and writes. What a condition decides is no part of the step that evaluates it."""
    own = step
    if isinstance(step.work, Decide) and isinstance(step.stmt, ir.If):
        own = replace(step, stmts=(replace(step.stmt, then=(), orelse=()),))
    read, written = touches(own)
    return replace(step, reads=read, writes=written)


def _along(nest: Nest, at: Coordinates, cluster: Cluster) -> Iterator[Along]:
    for found, block in zip(nest.grid, at.blocks, strict=True):
        loop, sym = head(found.loop), block.as_sym
        assert isinstance(loop, ir.Par) and sym is not None
        yield Along(loop, sym, found.tile, found.digits, found.lane, found in cluster.ragged)


def _dealt(nest: Nest, nodes: tuple[Node, ...]) -> Iterator[Dealt]:
    """The loops that are distributed over a team, each once, without those of an engine's copies."""
    shared = (step.stmts for step in leaves(nodes) if isinstance(step.work, Spread | Half))
    own = {stmt.sym for stmts in shared for stmt in ir.walk(stmts) if isinstance(stmt, ir.Par)}
    found: dict[Sym, Dealt] = {}
    for loop, each in nest.loops.items():
        if each.role is not Role.GRID and loop.sym in own:
            dealt = Dealt(loop.sym, each.digits, each.role is Role.REDUCE)
            if found.setdefault(loop.sym, dealt) != dealt:
                raise CompilerBug(f"loops over {loop.sym} are dealt out in two ways")
    return iter(found.values())


def _touched(body: tuple[ir.Stmt, ...], grid: Iterable[Along]) -> Iterator[Buffer]:
    """The memory that statements name."""
    for stmt in ir.walk(body):
        yield from (load.buffer for load in loads(stmt))
        yield from stmt.reduce if isinstance(stmt, ir.Par | ir.Seq) else ()
    yield from (buffer for along in grid for buffer in along.loop.reduce)


def _reductions(nodes: tuple[Node, ...], nest: Nest, rank: Sym | None, names: Names) -> Iterator[Reduction]:
    """The registers of reductions, and the arrays between warps and blocks if a team has several, with fresh names."""
    warps = min(nest.team, nest.threads) // nest.warp

    def scratch(own: Ref, what: str, shape: tuple[Expr, ...]) -> Buffer:
        return Buffer(names.name(f"{own.sym.name}_{what}"), own.dtype, shape, "local")

    for step in leaves(nodes):
        if isinstance(step.work, Partial) and isinstance(step.stmt, ir.Par):
            own = tuple(tuple(_own(target, names) for target in a.targets) for a in step.work.accumulators)
            across = tuple(tuple(scratch(r, "warps", (expr(warps),)) for r in refs) for refs in own) if warps > 1 else ()
            blocks = tuple(tuple(scratch(r, "blocks", (expr(nest.blocks), ONE)) for r in refs) for refs in own) if rank else ()
            yield Reduction(step.stmt.sym, own, across, blocks)


def _own(target: Load, names: Names) -> Ref:
    return Ref(names.sym(f"{target.buffer.name.split(chr(39))[0]}_own"), target.dtype)


def _scratch(reductions: Iterable[Reduction]) -> Iterator[k.Array]:
    """The scratch arrays for partial sums."""
    for reduction in reductions:
        for array in (array for arrays in reduction.warps for array in arrays):
            yield k.Array(array, k.Space.SHARED, "partial values of the warps of one block")
        for array in (array for arrays in reduction.blocks for array in arrays):
            yield k.Array(array, k.Space.CLUSTER, "partial values of the blocks of a cluster")
