"""Lowers a function for one target to its plan.

Before: a checked function. After: `ir.kernel.Plan`. Each pass is one file: `mapping.fully` (loops whose iterations execute
concurrently), `mapping.reductions.arrange` (parallel reductions made explicit), `fuse` (fewer kernels), `promote` (running
totals in registers), `host.divide` (division into kernels), `mapping.default` (mapping by shape), `place.undecided` (arrays
that need barriers under any mapping), `mapping.dealt` (bands that these leave free, by the solver), `nests` (the steps of a
kernel: built, placed, put in order), `emit.kernel`, and, of all kernels, `host.together` and `host.dependent` (launches that
overlap).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import Expr, Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Dependent, LaunchBounds, Together
from texpr.ir.value import Buffer, Load
from texpr.isa.target import Target
from texpr.lowering.build import signals
from texpr.lowering.build.build import Title
from texpr.lowering.build.instructions import require_templates
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.emit.kernel import emit
from texpr.lowering.host.bounded import bounded
from texpr.lowering.host.dependent import overlap
from texpr.lowering.host.divide import Choose, Item, Piece, Repeat, divide
from texpr.lowering.host.fuse import fuse
from texpr.lowering.host.promote import in_memory, promote
from texpr.lowering.host.together import gather
from texpr.lowering.names import Names
from texpr.lowering.nests import lower_nest
from texpr.lowering.notes import Notes, notes
from texpr.lowering.place.placement import require_sizes, workspace_of
from texpr.lowering.place.undecided import met
from texpr.lowering.sync.channel.roles import require_found
from texpr.mapping.cost.streams import representatives
from texpr.mapping.dealt import deal
from texpr.mapping.default import THREADS, for_grid, map_nest
from texpr.mapping.fully import at_once
from texpr.mapping.radix_splits import split_at_radices
from texpr.mapping.reductions.arrange import arrange
from texpr.relation.collect import model
from texpr.support.record import Mutable, field, replace


def lower(
    function: ir.Function, target: Target, fixed: Mapping[Sym, int] | None = None, ending: str = ""
) -> tuple[k.Plan, tuple[Notes, ...]]:
    """The plan of `function`, in which the sizes `fixed` are substituted already, and notes on each kernel.

    `ending`: a suffix of the names of its kernels.

    Raises Limitation for a program that is not supported.
    """
    require_templates(function, target)
    function = signals.without(function) if not target.has_blocks else signals.supported(function, target)
    bound = at_once(function, target)
    arranged = arrange(bound, target.reductions)
    arranged = fuse(arranged, model(arranged))
    values = representatives(function.sizes, function.where)
    if target.has_blocks:
        arranged = split_at_radices(arranged, function.sizes, values, THREADS, target.coalescing)
    names = Names(arranged)
    kept = dict[Buffer, Load]()
    arranged = replace(arranged, body=promote(arranged.body, names, kept))
    host = divide(arranged, names, for_grid)
    lowering = _Lowering(function, target, names, Needs(model(arranged)), host.lets, values, kept, ending)
    steps, meetings = tuple(lowering.steps(host.items)), ()
    require_found(function, k.kernels(steps))
    if target.has_blocks:
        steps, meetings = gather(function.name, steps, names, lowering.together, target.shared)
        asked = mark(function, Dependent)
        steps = overlap(steps, target) if asked is None or asked.on else steps
    held = [b for b in host.locals if b not in function.results]
    for buffer in held:
        require_sizes(buffer, frozenset(function.sizes))
    workspace = (*held, *lowering.workspace, *meetings)
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
    kept: Mapping[Buffer, Load]
    ending: str
    workspace: list[Buffer] = field(default_factory=list[Buffer])
    notes: list[Notes] = field(default_factory=list[Notes])
    hosts: tuple[tuple[Sym, Expr], ...] = ()
    where: tuple[ir.Compare, ...] = ()
    together: dict[Sym, Together] = field(default_factory=dict[Sym, Together])

    def steps(self, items: tuple[Item, ...]) -> Iterator[k.HostStep]:
        """The host steps of `items`, in order."""
        for item in items:
            match item:
                case Piece(body):
                    yield k.Launch(self._kernel(body))
                case Repeat(stmt, inner):
                    outer, wish = self.hosts, mark(stmt, Together)
                    if wish is not None:
                        self.together[stmt.sym] = wish
                    self.hosts = (*outer, (stmt.sym, stmt.extent))
                    yield k.HostLoop(stmt.sym, stmt.extent, tuple(self.steps(inner)))
                    self.hosts = outer
                case Choose(conditions, inner):
                    before = self.where
                    self.where = (*before, *conditions)
                    yield k.HostIf(conditions, tuple(self.steps(inner)))
                    self.where = before

    def _kernel(self, body: tuple[ir.Stmt, ...]) -> k.Kernel:
        known = frozenset((*self.function.sizes, *(sym for sym, _ in self.hosts)))
        nest = in_memory(map_nest(body, self.target, known, self.values), self.kept)
        nest = deal(nest, self.values, met(nest, self.names.fork(), self.needs), self.target.shared_static)
        own = self.names.fork()
        name = self.names.name(f"{self.function.name}_{_title(body)}{self.ending}")
        title = Title(name, self.function, self.hosts, self.where, self.lets, self.min_blocks, body[0].span)
        lowered = lower_nest(nest, self.target, own, self.needs, frozenset(self.function.sizes), title)
        self.workspace.extend(workspace_of(dict(lowered.placed.places)))
        self.notes.append(notes(nest, lowered.placed, lowered.ordered))
        return emit(lowered.ordered.steps)

    @property
    def min_blocks(self) -> int:
        """The number of resident blocks on a multiprocessor that a schedule requires."""
        asked = mark(self.function, LaunchBounds)
        return 0 if asked is None else asked.blocks


def _title(origin: tuple[ir.Stmt, ...]) -> str:
    """A loop's label, or the first buffer that the kernel writes."""
    stmt = origin[0]
    if isinstance(stmt, ir.Par | ir.Seq) and stmt.label is not None:
        return stmt.label
    own = {s.buffer for s in ir.walk(origin) if isinstance(s, ir.New)}
    written = [t.buffer for s in ir.walk(origin) if isinstance(s, ir.Bind) for t in s.targets if t.buffer not in own]
    return written[0].name.replace("'", "_") if written else "empty"
