"""`texpr draw`: pictures of a function, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from texpr.cli.console import Console
from texpr.cli.files import write_whole
from texpr.cli.program import FILE, FUNCTION, JSON, SCHEDULE, SIZE, legal_function, parse_sizes
from texpr.domain.graph import DomainGraph
from texpr.domain.predicates import Predicates, predicates
from texpr.draw.domain import NO_LOWER, Marks, describe, domain_picture
from texpr.draw.picture import captioned, document, line, stacked
from texpr.draw.text import CAPTION
from texpr.driver import fix, fix_schedule
from texpr.ir import program as ir
from texpr.ir.selection import select_schedule
from texpr.isa.registry import resolve
from texpr.isa.target import Target
from texpr.planner.plan import plan
from texpr.relation.facts import known
from texpr.schedule.apply import followed, start
from texpr.schedule.materialise import given


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops around an innermost loop, and it: the graph that they are the leaves of, what guards its body."""

    loops: tuple[ir.Loop, ...]
    graph: DomainGraph
    predicates: Predicates

    @property
    def caption(self) -> str:
        """The loops as they run, and the line of the innermost one."""
        words = ", ".join(f"{'par' if isinstance(loop, ir.Par) else 'seq'} {loop.sym}" for loop in self.loops)
        return f"{words} (line {self.loops[-1].span.line})"


def graphs(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> tuple[Nest, ...]:
    """Every nest of loops of `function` as `schedule` lays it out, each with its graph from the loops that were written.

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
    """One graph a nest, one below the other. Raises click.UsageError for a function without loops."""
    nests = graphs(function, schedule, target)
    if not nests:
        raise click.UsageError(f"`{function.name}` has no loops to draw")
    marks = [Marks(nest.predicates) for nest in nests]
    pictures = [
        captioned(nest.caption, domain_picture(nest.graph, each, explained=False))
        for nest, each in zip(nests, marks, strict=True)
    ]
    if any(each.hides_lower for each in marks):
        pictures.append(line(NO_LOWER, CAPTION))
    words = " ".join(f"{nest.caption}: {describe(nest.graph, nest.predicates)}" for nest in nests)
    return document(stacked(pictures), f"{function.name}: the IterDomains of its loops", words)


Draw = Callable[[ir.Function, ir.Schedule | None, Target], str]

KINDS: Mapping[str, Draw] = {"domain": draw_loops}
"""What can be drawn, by the word for it."""


@click.command("draw")
@FILE
@FUNCTION
@click.option("--what", type=click.Choice(list(KINDS)), required=True, help="What to draw.")
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, metavar="OUT.svg", help="Where to write it.")
@click.option("--for", "target", default="sm_90a", show_default=True, metavar="TARGET", help="The target of the schedule.")
@SIZE
@SCHEDULE
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path,
    name: str | None,
    what: str,
    output: Path,
    target: str,
    sizes: tuple[str, ...],
    schedule: str,
    json: bool,
) -> int:
    """Draw a function as SVG: its IterDomains, from the loops as written to the loops that run, and what guards them."""
    if output.suffix != ".svg":
        raise click.UsageError(
            f"-o takes a name that ends in .svg, not `{output.name}`; `rsvg-convert` makes PNG and PDF of it"
        )
    machine = resolve(target)
    function, given_sizes = legal_function(file, name, parse_sizes(sizes))
    with console.working(f"drawing {function.name}"):
        chosen = select_schedule(function, schedule, machine)
        function, fixed = fix(function, given_sizes)
        if isinstance(chosen, str):
            chosen = plan(function, machine).schedule
        picture = KINDS[what](function, chosen and fix_schedule(chosen, fixed), machine)
    write_whole(output, lambda stream: stream.write(picture.encode()))
    console.say(f"{output}: {what} of {function.name}")
    console.data({"ok": True, "function": function.name, "what": what, "file": str(output)})
    return 0
