"""Requirements of a stage on accesses, each with its refusal; names of the loops that copy."""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.checks.coverage import reads_undefined
from texpr.checks.subject import Subject
from texpr.ir import program as ir
from texpr.schedule.call import Call
from texpr.schedule.edits import Offers, left_out, promise, staged_at
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.stage.region import Box, NoBox, Use, box, is_met_again, varying
from texpr.schedule.stage.staging import Staging
from texpr.schedule.stage.views import told_in_views, viewed
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, loops
from texpr.support.diagnostic import Note, TexprError
from texpr.support.record import replace
from texpr.tma.boxing import MOST_ELEMENT_STRIDE


def own(call: Call, staging: Staging) -> Use:
    """An access equal to every other one, of elements that no other iteration accesses."""
    for use in staging.uses:
        if use.tested and use.writes:
            raise untouchable(call, use, "it is written under a condition, so what to copy out is not known")
    for loop in staging.outer:
        if isinstance(loop, ir.Par) and staging.buffer in loop.reduce:
            reason = f"iterations of `{loop.sym.base}` meet in `{staging.buffer.name}`, which is theirs together"
            offers = (*_elsewhere(call, staging), *left_out(call.directive.span, "leave it out"))
            raise call.refuse("E0912", reason, offers=offers)
    like = alike(call, staging)
    chosen = varying(staging.state, like)
    viewed_so = () if staging.view is None else (replace(like, load=replace(like.load, index=like.index)),)
    if all(is_met_again(staging.state, told, chosen) for told in (*viewed_so, *told_in_views(staging.state, like))):
        reason = "another iteration may touch the same element, and would not see what this one writes"
        raise untouchable(call, like, reason, offers=_elsewhere(call, staging))
    return like


def defined(call: Call, staging: Staging, use: Use, state: State) -> State:
    """`state`, unless the copy may read an element that was never written."""
    buffer = staging.buffer
    if buffer.role in ("local", "result") and reads_undefined(Subject(materialise(state).function), buffer.name):
        raise untouchable(call, use, "an element would be copied that may not be written yet")
    return state


def undefined(state: State, name: str) -> bool:
    """Whether a read of the local `name` may be undefined."""
    new = next(s for s in ir.walk(state.function.body) if isinstance(s, ir.New) and s.buffer.name == name)
    return reads_undefined(Subject(materialise(state.alone(new)).function), name)


def alike(call: Call, staging: Staging) -> Use:
    """A use with the same element as every other one, in loops over the same constant IterDomains."""
    state = staging.state
    like = next((use for use in staging.uses if use.writes), staging.uses[0])
    domains = {state.domain(loop) for loop in varying(state, like)}
    for use in staging.uses:
        if use.load.data:
            raise untouchable(call, use, "its subscripts are data")
        if use.load.index != like.load.index or {state.domain(loop) for loop in varying(state, use)} != domains:
            raise untouchable(call, use, "another access there has other subscripts or loops", like)
    for domain in map(state.domain, varying(state, like)):
        if not domain.extent.is_constant:
            offers = in_parts(call, domain.sym)
            reason = f"the extent of `{domain.sym.base}`, {domain.extent}, is not a constant"
            raise untouchable(call, like, reason, offers=offers)
    return like


def depends_on_more(staging: Staging, use: Use) -> bool:
    """Whether the set of elements that loops like those of `use` reach depends on loops that are not around the copy."""
    state = staging.state
    domains = {state.domain(loop) for loop in (*staging.outer, *varying(state, use))}
    for transform in reversed(state.transforms):
        if domains.issuperset(transform.outputs):
            domains.update(transform.inputs)
    have = {domain.sym for domain in domains}
    inside = {state.domain(s).sym for s in ir.walk((staging.at,)) if isinstance(s, ir.Par | ir.Seq)}
    inside |= {domain.sym for transform in state.transforms for domain in transform.inputs}
    return any(domain.extent.syms() & inside - have for domain in domains)


def as_walked(staging: Staging, use: Use) -> list[int]:
    """The dimensions of the buffer in the order in which the loops traverse them, outermost first."""
    graph = staging.state.graph((*use.outer, *use.inner)).indices()
    chosen = [staging.state.domain(loop).sym for loop in varying(staging.state, use)]
    walked = [max((chosen.index(s) for s in e.substitute(graph).syms() if s in chosen), default=-1) for e in use.load.index]
    return sorted(range(len(walked)), key=lambda dim: walked[dim])


def box_of(call: Call, staging: Staging) -> Box:
    """The bounding box of all accesses; refused (E0912) where there is none."""
    try:
        return box(staging.state, staging.uses)
    except NoBox as problem:
        raise refused_box(call, problem) from None


def seen(call: Call, staging: Staging) -> tuple[Staging, Box]:
    """The same for the engine: if the tensor's own dimensions have no box, one in a view by splits and merges of loops."""
    try:
        found = viewed(staging.state, staging.uses, MOST_ELEMENT_STRIDE)
    except NoBox as problem:
        raise refused_box(call, problem) from None
    return replace(staging, uses=found.uses, view=found.view), found.box


def copy_loops(call: Call, name: str, rank: int) -> tuple[Sym, ...]:
    """The indices `name`_0, `name`_1, …, none of which may be in use (E0907)."""
    taken = call.state.taken()
    names = [f"{name}_{d}" for d in range(rank)]
    for each in names:
        if each in taken:
            reason = f"the name `{each}`, which a loop of the copy would have, is taken"
            raise call.refuse("E0907", reason, offers=call.renamed(0, name))
    return tuple(map(Sym, names))


def refused_box(call: Call, problem: NoBox) -> TexprError:
    """The error (E0912) for a region without a box: with the offer to split a loop of no constant extent."""
    clause = () if problem.clause is None else promise(call.state.function, problem.clause, "promise it:")
    offers = (*clause, *(offer for sym in problem.open for offer in in_parts(call, sym)))
    return untouchable(call, problem.use, str(problem), help=problem.help, offers=offers)


def in_parts(call: Call, sym: Sym) -> Offers:
    """The offer to split a loop inside of the stage by a number, and to stage at the outer part."""
    loop = next((s for s in loops(call.state.function.body) if call.state.domain(s).sym == sym), None)
    if loop is None:
        return ()
    return call.split(
        loop, 16, lambda said, outer, inner: said.having("at", outer), "split the loop, and stage at the outer part"
    )


def _elsewhere(call: Call, staging: Staging) -> Offers:
    """The offers to stage at loops around, the nearest first."""
    body = call.state.function.body
    return staged_at(call.directive.span, [exactly(loop.sym.name, body) for loop in reversed(staging.outer[:-1])])


def untouchable(
    call: Call, use: Use, reason: str, other: Use | None = None, help: str | None = None, offers: Offers = ()
) -> TexprError:
    """The error (E0912) for an access that forbids the stage, perhaps together with `other`."""
    notes = [Note("this access", use.load.span)]
    offers = (*offers, *left_out(call.directive.span, f"leave it out, and `{use.load.buffer.name}` is touched where it is"))
    if other is not None:
        notes.append(Note("the other access", other.load.span))
    return call.refuse(
        "E0912", f"what is touched of `{use.load.buffer.name}` cannot be staged: {reason}", *notes, help=help, offers=offers
    )
