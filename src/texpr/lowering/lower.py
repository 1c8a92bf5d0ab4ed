"""A function for one target: its plan, kernels and all.

Before: a checked function. After: `ir.kernel.Plan`. Each pass is one file: `mapping.fully` (what runs at once),
`mapping.reductions.arrange` (parallel reductions made explicit), `fuse` (fewer kernels), `promote` (running totals), `host`
(what is a kernel), `mapping.default` (what is a thread, by shape), `place.undecided` (which arrays threads meet in whatever the
mapping), `mapping.dealt` (bands solved that this leaves free), and `nests`: steps, their places, their order, statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import Expr, Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import LaunchBounds, Together
from texpr.ir.value import Buffer
from texpr.isa.levels import WARP
from texpr.isa.target import Target
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.host.bounded import bounded
from texpr.lowering.host.divide import Choose, Item, Piece, Repeat, divide
from texpr.lowering.host.fuse import fuse
from texpr.lowering.host.promote import promote
from texpr.lowering.host.together import gather
from texpr.lowering.names import Names
from texpr.lowering.nests import Lowered, lower_nest
from texpr.lowering.notes import Notes, notes
from texpr.lowering.place.placement import require_sizes
from texpr.lowering.place.undecided import met
from texpr.mapping.cost.streams import representatives
from texpr.mapping.cut import cut
from texpr.mapping.dealt import deal
from texpr.mapping.default import THREADS, for_grid, map_nest
from texpr.mapping.fully import at_once
from texpr.mapping.nest import Nest
from texpr.mapping.reductions.arrange import arrange
from texpr.relation.collect import model
from texpr.support.record import Mutable, field, replace


def lower(function: ir.Function, target: Target, fixed: Mapping[Sym, int] | None = None) -> tuple[k.Plan, tuple[Notes, ...]]:
    """The plan of `function`, whose sizes `fixed` were substituted before, and notes on each kernel.

    Raises Limitation for what cannot be lowered yet.
    """
    bound = at_once(function, target)
    arranged = arrange(bound, target.reductions)
    arranged = fuse(arranged, model(arranged))
    values = representatives(function.sizes, function.where)
    if target.has_blocks:
        arranged = cut(arranged, function.sizes, values, THREADS, target.coalescing)
    names = Names(arranged)
    arranged = replace(arranged, body=promote(arranged.body, names))
    host = divide(arranged, names, for_grid)
    lowering = _Lowering(function, target, names, Needs(model(arranged)), host.lets, values)
    steps, meetings = tuple(lowering.steps(host.items)), ()
    if target.has_blocks:
        steps, meetings = gather(function.name, steps, names, lowering.together, target.shared)
    kept = [b for b in host.locals if b not in function.results]
    for buffer in kept:
        require_sizes(buffer, frozenset(function.sizes))
    workspace = (*kept, *lowering.workspace, *meetings)
    plan = k.Plan(
        function.name,
        function.params,
        function.results,
        function.sizes,
        tuple(sorted((fixed or {}).items(), key=lambda item: item[0].name)),
        workspace,
        function.where,
        function.assumes,
        steps,
        function.span,
    )
    return bounded(plan), tuple(lowering.notes)


class _Lowering(Mutable):
    function: ir.Function
    target: Target
    names: Names
    needs: Needs
    lets: Mapping[Sym, Buffer]
    values: Mapping[Sym, int]
    workspace: list[Buffer] = field(default_factory=list[Buffer])
    notes: list[Notes] = field(default_factory=list[Notes])
    loops: tuple[Sym, ...] = ()
    together: dict[Sym, Together] = field(default_factory=dict[Sym, Together])

    def steps(self, items: tuple[Item, ...]) -> Iterator[k.HostStep]:
        """Host steps of `items`, in order."""
        for item in items:
            match item:
                case Piece(body):
                    yield k.Launch(self._kernel(body))
                case Repeat(stmt, inner):
                    outer, wish = self.loops, mark(stmt, Together)
                    if wish is not None:
                        self.together[stmt.sym] = wish
                    self.loops = (*outer, stmt.sym)
                    yield k.HostLoop(stmt.sym, stmt.extent, tuple(self.steps(inner)))
                    self.loops = outer
                case Choose(conditions, inner):
                    yield k.HostIf(conditions, tuple(self.steps(inner)))

    def _kernel(self, body: tuple[ir.Stmt, ...]) -> k.Kernel:
        known = frozenset((*self.function.sizes, *self.loops))
        nest = map_nest(body, self.target, known, self.values)
        nest = deal(nest, self.values, met(nest, self.names.fork(), self.needs), self.target.shared_static)
        own = self.names.fork()
        lowered = lower_nest(nest, self.target, own, self.needs, frozenset(self.function.sizes), self.lets)
        self.workspace.extend(lowered.placement.workspace)
        kernel = self._finish(lowered, nest, body)
        self.notes.append(notes(kernel, nest, lowered.placement, lowered.copies, lowered.proof, lowered.arena, lowered.steps))
        return kernel

    def _finish(self, lowered: Lowered, nest: Nest, origin: tuple[ir.Stmt, ...]) -> k.Kernel:
        """A kernel with its arguments collected from what its body uses."""
        body = lowered.body
        own = {a.buffer for a in lowered.arrays}
        read, written = k.memory(body)
        touched = {load.buffer for load in (*read, *written)} - own
        order = (*self.function.params, *self.function.results, *sorted(touched, key=lambda b: b.name))
        buffers = tuple(b for b in dict.fromkeys(order) if b in touched)
        scalars = tuple(b for b in buffers if b.rank == 0 and b.role == "input")
        memory = tuple(b for b in buffers if b not in scalars)
        used = k.symbols(body) | {s for b in memory for s in _layout_symbols(b)}
        used |= {
            s for a in lowered.axes if a.level is not k.Level.BLOCK and a.level is not k.Level.GRID for s in a.extent.syms()
        }
        bases = tuple(a.base for a in lowered.axes if a.base is not None)
        sizes = (*(s for s in (*self.function.sizes, *self.loops) if s in used), *bases)
        return k.Kernel(
            self.names.name(f"{self.function.name}_{_title(origin)}"),
            lowered.axes,
            memory,
            scalars,
            sizes,
            lowered.arrays,
            body,
            frozenset(load.buffer.name for load in written if load.buffer not in own) | _stored(lowered),
            origin[0].span,
            min_blocks=self.min_blocks if nest.threads > 1 else 0,
            maps=lowered.maps,
            warp=nest.warp if nest.threads > 1 else WARP,
        )

    @property
    def min_blocks(self) -> int:
        """Blocks of a multiprocessor that a schedule asks for."""
        asked = mark(self.function, LaunchBounds)
        return 0 if asked is None else asked.blocks


def _stored(lowered: Lowered) -> frozenset[str]:
    """Buffers that are written through a map."""
    maps = {map.name: map for map in lowered.maps}
    every = (stmt.moved(maps) for stmt in k.walk(lowered.body) if isinstance(stmt, k.Operation))
    return frozenset(moved.target.name for moved in every if moved and moved.tile and moved.tile.buffer is moved.source)


def _layout_symbols(buffer: Buffer) -> frozenset[Sym]:
    """Sizes that are needed to find an element's address."""
    shape: tuple[Expr, ...] = buffer.shape[1:] if buffer.strides is None else buffer.strides
    return frozenset(s for e in shape for s in e.syms())


def _title(origin: tuple[ir.Stmt, ...]) -> str:
    """A loop's label, or what the kernel writes first."""
    stmt = origin[0]
    if isinstance(stmt, ir.Par | ir.Seq) and stmt.label is not None:
        return stmt.label
    own = {s.buffer for s in ir.walk(origin) if isinstance(s, ir.New)}
    written = [t.buffer for s in ir.walk(origin) if isinstance(s, ir.Bind) for t in s.targets if t.buffer not in own]
    return written[0].name.replace("'", "_") if written else "empty"
