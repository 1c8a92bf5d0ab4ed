"""Assembly of the steps form from the results of the passes; the kernel is emitted from the form alone.

Before: the steps of a nest, as a tree over its program; the places of its locals; and the operations at program points.

    all run { new t }   all spread { t[j] = … }   |(0, 1): barrier|   all spread { y[i, j'1] = t[63 - j'1] }

After: one text (`texpr.ir.steps.text`) with its head:

    place t: f32[64] in t
    …
        all spread reads x writes t { … }
        all order { barrier block covers RAW t from 5 to 6 }
        all spread reads t writes y { … }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation import Group
from texpr.ir.program.uses import loads, symbols
from texpr.ir.steps import (
    Along,
    AtBarrier,
    Branch,
    Completion,
    Dealt,
    InGroup,
    Loop,
    Node,
    Reduction,
    Step,
    Steps,
    Vectors,
    leaves,
    program,
)
from texpr.ir.steps.names import names_in
from texpr.ir.steps.place import Place
from texpr.ir.steps.plain import head, plain, touches
from texpr.ir.steps.threads import ALL
from texpr.ir.steps.threads import ONE as FIRST
from texpr.ir.steps.work import Decide, Does, End, Half, Issue, Partial, Points, Run, Spread, Together
from texpr.ir.steps.work import Order as Ordering
from texpr.ir.value import Buffer, Load, Ref
from texpr.isa.levels import WARP
from texpr.isa.target import Target
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.coordinates import Coordinates
from texpr.lowering.build.instructions import instrs_of
from texpr.lowering.build.paths import lists
from texpr.lowering.engine.instruct import instructed
from texpr.lowering.names import Names
from texpr.lowering.place.placement import Placement
from texpr.lowering.sync.phases import Tensors
from texpr.lowering.sync.synchronise import Order
from texpr.mapping.nest import Nest, Role
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Mutable, Record, field, replace
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


def assemble(
    title: Title,
    nest: Nest,
    nodes: tuple[Node, ...],
    target: Target,
    names: Names,
    at: Coordinates,
    cluster: Cluster,
    placement: Placement,
    tensors: Tensors,
    order: Order,
) -> Steps:
    """The form of the kernel of `nest`. Raises Limitation for statements that kernels do not support."""
    if nest.team == 1:
        begin, body, end = (), (_effective(Step(ALL, Points(), plain(nest.body))),), ()
    else:
        begin, body, end = _Assembly(nodes, cluster, tensors, order, placement.places, at.thread, nest.threads).nodes()
    reductions = tuple(_reductions((*begin, *body, *end), nest, at.rank, names))
    own = map(tensors.aligned, placement.arrays)
    arrays = order.arena.placed((*own, *_scratch(reductions), *tensors.arrays))
    memory = {array.buffer for array in arrays}
    places = tuple((b, replace(p, reason="") if p.buffer in memory else p) for b, p in placement.places.items())
    function, grid = title.function, tuple(_along(nest, at, cluster))
    stmts = program((*begin, *body, *end))
    used = symbols(stmts).union(*(along.loop.extent.syms() for along in grid))
    lets = tuple(ir.Let(sym, Load(b, ()), b.span) for sym, b in title.lets.items() if sym in used)
    touched = frozenset(_touched((*lets, *stmts), places, (*begin, *body, *end), grid)) - memory - {b for b, _ in places}
    every = dict.fromkeys((*function.params, *function.results, *sorted(touched, key=lambda b: b.name)))
    buffers = tuple(buffer for buffer in every if buffer in touched)
    assumes = tuple(each for each in function.assumes if each.buffer in touched)
    steps = Steps(
        title.name, function.name, buffers, function.sizes, title.hosts, (*function.where, *title.where), assumes, lets,
        nest.threads, nest.team, at.axes, at.prelude, grid, tuple(_dealt(nest, body)), nest.digits, places, arrays,
        tuple(sorted(placement.unrolled, key=str)), tuple(tensors.maps.found), reductions, begin, body, end,
        nest.warp if nest.threads > 1 else WARP, title.min_blocks if nest.threads > 1 else 0, (),
        Vectors(target.reductions.lanes, target.global_memory.line) if target.has_vector_lanes else None, title.span,
        instrs_of(nest.body),
    )  # fmt: skip
    return replace(steps, avoid=tuple(sorted(names.plain - {*names_in(steps)})))


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


def _touched(
    body: Sequence[ir.Stmt], places: Iterable[tuple[Buffer, Place]], nodes: tuple[Node, ...], grid: Iterable[Along]
) -> Iterator[Buffer]:
    """The memory that a form names."""
    for stmt in ir.walk(tuple(body)):
        yield from (load.buffer for load in loads(stmt))
        yield from stmt.reduce if isinstance(stmt, ir.Par | ir.Seq) else ()
    yield from (buffer for along in grid for buffer in along.loop.reduce)
    yield from (place.buffer for _, place in places if place.register is None)
    for step in leaves(nodes):
        if isinstance(step.work, Does):
            yield from (load.buffer for found in k.memory(step.work.does) for load in found)


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


class _Assembly(Mutable):
    """A tree with the operations at its program points; annotations are removed from its statements."""

    tree: tuple[Node, ...]
    cluster: Cluster
    tensors: Tensors
    order: Order
    places: Mapping[Buffer, Place]
    thread: Expr
    threads: int
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    plain: dict[ir.Stmt, ir.Stmt] = field(default_factory=dict[ir.Stmt, ir.Stmt])

    def nodes(self) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
        """The nodes before, in and after an iteration: barriers of engines are initialised first, and stores awaited last."""
        self.numbers = {id(steps.nodes): steps.number for steps in lists(self.tree)}
        body = tuple(self._list(self.tree))
        begin, tensors = list[Node](), self.tensors
        made, asked = tensors.start(), tensors.maps.prefetches()
        if made or asked:
            begin.append(Step(FIRST, Ordering((*asked, *made))))
        if made:
            level = k.Level.CLUSTER if tensors.shared else k.Level.BLOCK
            begin.append(Step(ALL, Ordering((k.Barrier(level, tensors.made),))))
        ended = tensors.finish()
        return tuple(begin), body, (Step(FIRST, Ordering(ended)),) if ended else ()

    def _list(self, nodes: tuple[Node, ...]) -> Iterator[Node]:
        number = self.numbers[id(nodes)]
        yield from self._gap((number, -1))
        for at, node in enumerate(nodes):
            match node:
                case Step():
                    yield self._step(node)
                case Loop(stmt, body):
                    loop = head(stmt)
                    assert isinstance(loop, ir.Seq)
                    yield Loop(loop, tuple(self._list(body)))
                case Branch(stmt, decided, then, orelse):
                    test = self._test(stmt)
                    yield Branch(test, decided, tuple(self._list(then)), tuple(self._list(orelse)))
            if node in self.order.closing:
                yield Step(ALL, Ordering((k.CommitAsync(span=_span(node)),)))
            if node in self.order.committing:
                yield Step(ALL, Ordering((k.CommitWarpgroup(span=_span(node)),)))
            yield from self._gap((number, at))

    def _gap(self, gap: tuple[int, int]) -> Iterator[Step]:
        if does := self.order.gaps.get(gap):
            yield Step(ALL, Ordering(does))

    def _test(self, stmt: ir.If) -> ir.If:
        made = self.plain.setdefault(stmt, replace(stmt, then=(), orelse=()))
        assert isinstance(made, ir.If)
        return made

    def _step(self, step: Step) -> Step:
        match step.work:
            case End():
                return replace(step, stmts=())
            case Decide(symbol):
                assert isinstance(step.stmt, ir.If)
                alike = bool(self.cluster.along) and self.cluster.alike(step.stmt.condition)
                return _effective(replace(step, work=Decide(symbol, alike), stmts=(self._test(step.stmt),)))
            case Issue():
                copy = self.tensors.steps[step]
                made = replace(step, work=Issue(tuple(self.tensors.issue(copy))), completion=self._completion(step))
                return _effective(replace(made, stmts=plain(step.stmts)))
            case Run() if isinstance(use := step.stmts[0], ir.Instruction) and use.instr is not None:
                started = self.tensors.started.get(step)
                op = instructed(use, use.instr, self.places, self.thread, self.threads, started.matrices if started else {})
                return Step(ALL, Together((op,)))
            case _:
                for stmt in step.stmts:
                    if stmt not in self.plain:
                        (self.plain[stmt],) = plain((stmt,))
                stmts = tuple(self.plain[stmt] for stmt in step.stmts)
                completion = InGroup(Group.ASYNC) if step in self.order.copying else None
                return _effective(replace(step, stmts=stmts, completion=completion))

    def _completion(self, step: Step) -> Completion:
        barrier = self.tensors.barrier_of(step)
        return InGroup(Group.BULK) if barrier is None else AtBarrier(barrier)


def _effective(step: Step) -> Step:
    """A step with its reads and writes."""
    read, written = touches(step)
    return replace(step, reads=read, writes=written)


def _span(node: Node) -> Span:
    return node.stmt.span
