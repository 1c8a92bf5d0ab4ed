"""Every kind of picture of a function, by name: what `texpr draw` and the explorer show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from texpr.domain.graph import DomainGraph
from texpr.domain.predicates.needed import Predicates, predicates
from texpr.draw.allocation import allocation_picture, held
from texpr.draw.allocation import describe as describe_allocation
from texpr.draw.copies import draw_copies
from texpr.draw.domain import NO_LOWER, Marks, describe, domain_picture
from texpr.draw.fragment import Use, draw_fragments
from texpr.draw.mapping import draw_mapping
from texpr.draw.page.picture import captioned, document, line, stacked
from texpr.draw.page.text import CAPTION
from texpr.draw.staged import written
from texpr.draw.timeline.columns import NO_COLUMNS, draw_columns
from texpr.draw.timeline.statements import draw_timeline
from texpr.draw.timeline.turns import turns_of
from texpr.driver import fix_schedule, lower
from texpr.ir import program as ir
from texpr.ir.kernel import Kernel, collectives, kernels
from texpr.ir.kernel.point import SIZE
from texpr.ir.program.selection import select_schedule
from texpr.isa.registry import DEVICES
from texpr.isa.target import Target
from texpr.planner.plan import plan
from texpr.relation.facts import known
from texpr.schedule.apply import followed, start
from texpr.schedule.joint.records import by_name
from texpr.schedule.rewrite.materialise import given
from texpr.sizes import fix
from texpr.support.record import Record


class Undrawable(Exception):
    """A picture that a function does not have, or not at these sizes or for this target; the message says why."""


class Nest(Record):
    """The loops around an innermost loop, and that loop: the graph with these as leaves, and the guards of the body."""

    loops: tuple[ir.Loop, ...]
    graph: DomainGraph
    predicates: Predicates

    @property
    def caption(self) -> str:
        """The loops as they run, and the line of the innermost one."""
        words = ", ".join(f"{'par' if isinstance(loop, ir.Par) else 'seq'} {loop.sym}" for loop in self.loops)
        return f"{words} (line {self.loops[-1].span.line})"


def graphs(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> tuple[Nest, ...]:
    """Every nest of loops of `function` after `schedule`, each with its graph from the loops as written.

    Raises TexprError or Limitation at a directive that is refused.
    """
    state = start(function, target) if schedule is None else followed(function, schedule, target)
    facts = known(given(function))
    found = ((loops, state.graph(loops)) for loops in _nests(state.function.body, ()))
    return tuple(Nest(loops, graph, predicates(graph, facts)) for loops, graph in found)


def _nests(body: tuple[ir.Stmt, ...], around: tuple[ir.Loop, ...]) -> Iterator[tuple[ir.Loop, ...]]:
    """The loops around each innermost loop, outermost first, in textual order."""
    for stmt in body:
        path = (*around, stmt) if isinstance(stmt, ir.Par | ir.Seq) else around
        inside = [nest for block in ir.blocks(stmt) for nest in _nests(block, path)]
        yield from inside or ([path] if path is not around else [])


def draw_loops(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """One graph a nest, stacked. Raises Undrawable for a function without loops."""
    nests = graphs(function, schedule, target)
    if not nests:
        raise Undrawable(f"`{function.name}` has no loops to draw")
    marks = [Marks(nest.predicates) for nest in nests]
    pictures = [
        captioned(nest.caption, domain_picture(nest.graph, each, explained=False))
        for nest, each in zip(nests, marks, strict=True)
    ]
    if any(each.hides_lower for each in marks):
        pictures.append(line(NO_LOWER, CAPTION))
    words = " ".join(f"{nest.caption}: {describe(nest.graph, nest.predicates)}" for nest in nests)
    return document(stacked(pictures), f"{function.name}: the IterDomains of its loops", words)


def draw_allocations(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """The layout of each buffer whose memory a schedule changed. Raises Undrawable where there is none, or its sizes
    are open."""
    state = start(function, target) if schedule is None else followed(function, schedule, target)
    found = sorted(state.allocations.items(), key=lambda item: item[0].name)
    if not found:
        raise Undrawable(f"no directive changes how a buffer of `{function.name}` lies in memory")
    try:
        pictures = [captioned(buffer.name, allocation_picture(graph)) for buffer, graph in found]
    except ValueError as reason:
        raise Undrawable(f"the memory cannot be drawn: {reason}") from None
    words = " ".join(f"{buffer.name}: {describe_allocation(graph, held(graph))}" for buffer, graph in found)
    return document(stacked(pictures), f"{function.name}: how its buffers lie", words)


def draw_tma(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """The copies of boxes by the tensor memory accelerator. Raises Undrawable where there are none."""
    built = lower(function, target.name, schedule=schedule)
    every = tuple(kernels(built.plan.steps))
    if not any(kernel.maps for kernel in every):
        raise Undrawable(f"`{function.name}` copies nothing by TMA; say so with `stage(…, via=tma)`")
    state = start(function, target) if schedule is None else followed(function, schedule, target)
    by_schedule = written(state, function, every, known(given(function)))
    return draw_copies(function.name, every, {name: copy for note in built.notes for name, copy in note.copies}, by_schedule)


def draw_owners(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """The thread that accesses each element. Raises Undrawable for open sizes, or a target without threads."""
    if function.sizes:
        names = " ".join(f"--size {size}=…" for size in function.sizes)
        raise Undrawable(f"who owns what depends on sizes that are open: give {names}")
    if not target.has_blocks:
        raise Undrawable("a CPU's code has no threads of a block to draw; take a GPU for --for")
    every = tuple(kernels(lower(function, target.name, schedule=schedule).plan.steps))
    return draw_mapping(function.name, every, {size: 0 for kernel in every for size in kernel.sizes}, target.coalescing)


def draw_time(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """Buffers and barriers in statement order; above them, where products go on by themselves, a few turns by the model."""
    made = lower(function, target.name, schedule=schedule)
    every = tuple(kernels(made.plan.steps))
    sizes = {**{sym: SIZE for sym in made.plan.sizes}, **dict(made.plan.fixed)}
    device = DEVICES.get(target.name)
    charts = {kernel.name: turns_of(kernel, sizes, target, device) for kernel in every} if device is not None else {}
    return draw_timeline(function.name, every, {name: chart for name, chart in charts.items() if chart is not None})


def draw_tensor_memory(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """The columns of tensor memory over time. Raises Undrawable where no kernel has any."""
    found = draw_columns(function.name, tuple(kernels(lower(function, target.name, schedule=schedule).plan.steps)))
    if found is None:
        raise Undrawable(f"`{function.name}` is not drawn: {NO_COLUMNS}")
    return found


def draw_instructions(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> str:
    """The fragments of each instruction that lanes do together. Raises Undrawable where there is none."""
    found = uses(tuple(kernels(lower(function, target.name, schedule=schedule).plan.steps)))
    if not found:
        help = "`texpr explain` says why; --instr NAME draws one by its name"
        raise Undrawable(f"`{function.name}` gives nothing to an instruction of lanes: {help}")
    return draw_fragments(function.name, found)


def uses(every: tuple[Kernel, ...]) -> tuple[Use, ...]:
    """The instructions of lanes in kernels, each once, with the first descriptors that it is given."""
    found: dict[str, Use] = {}
    for kernel in every:
        for stmt, instr in collectives(kernel):
            if stmt.name not in found:
                pairs = zip(instr.operands, stmt.registers, strict=True)
                how = {operand.name: held.how for operand, held in pairs if held.how is not None}
                found[stmt.name] = Use(instr, how)
    return tuple(found.values())


def draw_instruction(function: ir.Function, name: str) -> str:
    """The fragments of one instruction, of the text or of the compiler's own. Raises Undrawable where there is none."""
    instr = by_name(function, name)
    if instr is None:
        raise Undrawable(f"there is no instruction `{name}` whose operands have fragments")
    return draw_fragments(name, (Use(instr, {}),))


Draw = Callable[[ir.Function, ir.Schedule | None, Target], str]

KINDS: Mapping[str, Draw] = {
    "domain": draw_loops,
    "layout": draw_allocations,
    "mapping": draw_owners,
    "fragment": draw_instructions,
    "tma": draw_tma,
    "timeline": draw_time,
    "columns": draw_tensor_memory,
}
"""The kinds of pictures, by name."""


def drawn(
    function: ir.Function, what: str, target: Target, sizes: Mapping[str, int], schedule: ir.Schedule | str, instr: str | None
) -> str:
    """One of the `KINDS` of pictures, as SVG, of `function` with `sizes` fixed, after `schedule`, as `select_schedule` has it.

    `instr`: for "fragment", an instruction by its name, whether it is used or not. Raises Undrawable, and `TexprError` as
    `driver.lower` does.
    """
    chosen = select_schedule(function, schedule, target)
    function, fixed = fix(function, sizes)
    if isinstance(chosen, str):
        chosen = plan(function, target).schedule
    if instr is not None:
        return draw_instruction(function, instr)
    return KINDS[what](function, chosen and fix_schedule(chosen, fixed), target)
