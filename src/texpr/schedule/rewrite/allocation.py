"""Directives on the memory of a local: its dimensions are the IterDomains `As.d0`, `As.d1`, …, outermost first.

new As: f32[32, 16]        resize(As.d1, 0, 1)           As is allocated as 32 × 17: rows start in different banks
                           swizzle(As.d0, As.d1, xor=8)  As[x, y] lies where [x, y ^ (x % 8)] was
                           reorder(As.d1, As.d0)         column by column
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from texpr.affine.expr import Expr
from texpr.domain.graph import DomainGraph
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.schedule.call import Call
from texpr.schedule.edits import Offers, Said, touching
from texpr.schedule.rewrite.shape import sizes_known
from texpr.schedule.state import State
from texpr.schedule.tree import exactly
from texpr.support.record import replace

PLACED = ("tma", "im2col", "gather4", "scatter4")
"""Copies whose memory has the engine's layout; runs (`via=bulk`) may be padded."""

Change = Callable[[DomainGraph, tuple[str, ...], tuple[str, ...]], DomainGraph]
"""A transform of the leaves `old` of a graph, whose outputs are named `new`."""


def on_allocation(call: Call, count: int, bases: Sequence[str], change: Change) -> State | None:
    """The state after `change` of a buffer's allocation, if the first `count` arguments name its dimensions; None otherwise.

    `bases`: names of the results, `{}` standing for the first dimension's.
    """
    arguments = call.plain[:count]
    words = [a.value for a in arguments if isinstance(a.value, str)]
    if not words or not all(_is_dimension(call, word) for word in words) or len(words) < len(arguments):
        return None
    buffers = {word.split(".", 1)[0] for word in words}
    if len(buffers) > 1:
        raise call.wrong(f"names dimensions of several buffers: {', '.join(sorted(buffers))}")
    buffer = _local(call, buffers.pop(), arguments[0])
    if any(staged.name == buffer.name and staged.via in PLACED for staged in call.state.staged):
        reason = f"the memory of `{buffer.name}` lies as the tensor memory accelerator copies it"
        raise call.refuse("E0913", reason, at=arguments[0], help="what `swizzle=` and `box=` of `stage` say shapes such memory")
    graph = call.state.allocations.get(buffer) or start(buffer)
    leaves = {d.sym.name for d in graph.leaves}
    for argument, word in zip(arguments, words, strict=True):
        if word not in leaves:
            listed = ", ".join(str(d) for d in graph.leaves) or "none"
            raise call.refuse("E0903", f"`{word}` is no dimension of that memory", at=argument, help=f"it has {listed}")
    names = _names(call, buffer, graph, words[0], bases)
    try:
        changed = change(graph, tuple(words), names)
    except ValueError as problem:
        raise call.refuse("E0902", str(problem)) from None
    return replace(call.state, allocations={**call.state.allocations, buffer: changed})


def start(buffer: Buffer) -> DomainGraph:
    """The initial graph of a buffer's memory."""
    return DomainGraph.of(*((f"{buffer.name}.d{n}", extent) for n, extent in enumerate(buffer.shape)))


def require_padding(call: Call, *expands: Expr) -> None:
    """Refuses negative expands: memory may grow, not shrink."""
    known = sizes_known(call)
    if not all(known.nonnegative(e) for e in expands):
        raise call.refuse("E0915", "memory would be too small for its elements", offers=no_less(call))


def _is_dimension(call: Call, word: str) -> bool:
    """Whether `word` is a dotted name that starts with a buffer's."""
    name, dot, _ = word.partition(".")
    return bool(dot) and any(b.name == name for b in ir.buffers(call.state.function))


def _local(call: Call, name: str, argument: ir.Argument) -> Buffer:
    function = call.state.function
    for new in ir.walk(function.body):
        if isinstance(new, ir.New) and new.buffer.name == name and new.buffer not in function.results:
            return new.buffer
    reason = f"the memory of `{name}` is the caller's, so its shape must stay"
    raise call.refuse("E0913", reason, at=argument, offers=stage_offers(call, name, None))


def _names(call: Call, buffer: Buffer, graph: DomainGraph, first: str, bases: Sequence[str]) -> tuple[str, ...]:
    """The results' names, as `As.v` in the graph; fresh ones where none are given."""
    given = call.directive.results
    taken = {d.sym.name for d in graph.domains()}
    if not given:
        return tuple(_fresh(base.format(first), taken) for base in bases)
    if len(given) != len(bases):
        raise call.wrong(f"gives {len(bases)} name{'s' if len(bases) != 1 else ''}, not {len(given)}")
    names = tuple(f"{buffer.name}.{name}" for name in given)
    for name in names:
        if name in taken:
            free = _fresh(f"{name}2", taken).partition(".")[2]
            offers = call.instead(f"call it `{free}`", lambda said, old=name, free=free: _called(said, old, free))
            raise call.refuse("E0907", f"the name `{name}` is taken", offers=offers)
    return names


def _called(said: Said, old: str, new: str) -> Said:
    """The directive with another name for that dimension."""
    return replace(said, results=tuple(new if old.endswith(f".{each}") else each for each in said.results))


def stage_offers(call: Call, name: str, space: str | None) -> Offers:
    """The offers to stage a parameter, at each loop that accesses it, the innermost first."""
    body = call.state.function.body
    spaces = (space,) if space in ("shared", "cluster", "registers") else ("shared", "registers")
    names = [exactly(loop.sym.name, body) for loop in touching(body, name)]
    each = (f"stage({name}, at={at}, in={where})" for at in names for where in spaces)
    return tuple(offer for new in each for offer in call.instead("stage it: %", lambda _, new=new: new))


def no_less(call: Call) -> Offers:
    """The offer to replace negative numbers by 0."""

    def change(said: Said) -> Said:
        return replace(said, args=tuple("0" if a.startswith("-") else a for a in said.args))

    return call.instead("use numbers of 0 or more: %", change)


def _fresh(base: str, taken: set[str]) -> str:
    number = 0
    while (name := f"{base}{number or ''}") in taken:
        number += 1
    return name
