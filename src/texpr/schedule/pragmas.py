"""Pragmas on loops: directives written in place.

    par M |i| #grid { par 128 |j| #block { … } }    is    bind(i, grid.x)  bind(j, block.x)
    seq 4 |k| #unroll { … }                         is    unroll(k)

`#grid`, `#cluster` and `#block` give the innermost such loop the dimension x, the next y, then z. The directives of a
schedule are applied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from texpr.ir import program as ir
from texpr.ir.program.marked import ATOMIC
from texpr.ir.program.marks import IEEE
from texpr.ir.program.rewrite import with_blocks
from texpr.isa.target import Target
from texpr.schedule.edits import words
from texpr.schedule.levels import BLOCK, CLUSTERS, GRID, WARPS, levels
from texpr.schedule.tree import Body, exactly
from texpr.support.diagnostic import error
from texpr.support.record import replace

IN_PLACE = ("bind", "unroll", "vectorize", "partition", "together")
"""The directives on one loop that may be written as a pragma."""

LEVELS = ("grid", "cluster", "block")

ALIGN = "align"
"""The lane of the first iteration of a `fully par`."""


def in_place(function: ir.Function, target: Target) -> tuple[ir.Function, tuple[ir.Directive, ...]]:
    """`function` without the pragmas that are directives, and those directives, outer loops first.

    A level that `target` does not have is dropped, and so are launch parameters where it launches nothing: one text serves
    every machine.
    """
    known = levels(target)
    every = _directives(function.body, function.body)
    found = tuple(d for d in every if d.name != "bind" or len(d.args) != 2 or d.args[1].value in known or not _level(d))
    found = tuple(d for d in found if d.name != "together" or target.is_launched)
    return replace(function, body=_bare(function.body)), found


def _directives(body: Body, whole: Body) -> Iterator[ir.Directive]:
    for stmt in body:
        if isinstance(stmt, ir.Par | ir.Seq):
            for pragma in stmt.directives:
                if isinstance(pragma, ir.Directive):
                    yield from _directive(stmt, pragma, whole)
        for block in ir.blocks(stmt):
            yield from _directives(block, whole)


def _directive(loop: ir.Loop, pragma: ir.Directive, whole: Body) -> Iterator[ir.Directive]:
    subject = ir.Argument(exactly(loop.sym.name, whole), span=pragma.span)
    if pragma.name in IN_PLACE:
        yield replace(pragma, args=(subject, *pragma.args))
        return
    fully = isinstance(loop, ir.Par) and loop.fully
    if pragma.name == ATOMIC or (fully and pragma.name in (*LEVELS, ALIGN)):
        return
    if pragma.name == ALIGN:
        reason = f"the loop over `{loop.sym.base}` is no `fully par`, whose iterations are lanes"
        raise error("E0908", pragma.span, reason, offers=words(pragma.span, "leave it out", ""))
    if pragma.name in LEVELS:
        inner = _depth(loop.body, pragma.name)
        if inner > 2:
            raise error("E0908", pragma.span, f"there are three dimensions of a {pragma.name}, and {inner + 1} loops want one")
        level = ir.Argument(f"{pragma.name}.{'xyz'[inner]}", span=pragma.span)
        yield ir.Directive("bind", (subject, level), span=pragma.span)
        return
    known = (*IN_PLACE, *LEVELS, ATOMIC, IEEE)
    near = get_close_matches(pragma.name, known, n=1)
    listed = ", ".join(f"#{name}" for name in known)
    hint = f"there are {listed}; other directives stand in a schedule"
    new = pragma.span.text.replace(pragma.name, near[0], 1) if near else ""
    offers = words(pragma.span, f"did you mean `#{near[0]}`?", new) if near else ()
    raise error("E0901", pragma.span, f"there is no pragma `#{pragma.name}`", help=hint, offers=offers)


def _level(bind: ir.Directive) -> bool:
    """Whether a bind names a level of some machine."""
    return bind.args[1].value in (*GRID, *CLUSTERS, *BLOCK, *WARPS, "core")


def _depth(body: Body, name: str) -> int:
    """The number of nested loops with that pragma in `body`."""
    deepest = 0
    for stmt in body:
        own = isinstance(stmt, ir.Par | ir.Seq) and any(d.name == name for d in stmt.directives)
        if isinstance(stmt, ir.Par) and stmt.fully and not any(d.name in LEVELS for d in stmt.directives):
            own = name == "block"
        deepest = max(deepest, own + max((_depth(block, name) for block in ir.blocks(stmt)), default=0))
    return deepest


def _bare(body: Body) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_bare(block) for block in ir.blocks(stmt)))
        if isinstance(made, ir.Par | ir.Seq):
            fully = isinstance(made, ir.Par) and made.fully
            kept = tuple(d for d in made.directives if d.name not in IN_PLACE and (fully or d.name not in LEVELS))
            made = made if len(kept) == len(made.directives) else replace(made, directives=kept)
        found.append(made)
    return tuple(found)
