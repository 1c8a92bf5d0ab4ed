"""The life of tensor memory: taken by one warp, known behind a barrier, given back behind all that is done there.

Columns that are not given back are lost to the blocks that come later, which wait for some for ever; what touches them behind
that touches another block's. PTX ISA, "tcgen05.alloc", "tcgen05.dealloc".
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym
from texpr.ir.operation import Brings, Group, Lasts, Waits
from texpr.ir.ops.columns import BEFORE, FENCED
from texpr.ir.value import Buffer
from texpr.isa.levels import WARP, Space
from texpr.presburger.formula import TRUE, Formula, between, conj, disj, negate
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.flow import Access, Flow, ended
from texpr.proof.plan.landing import entered, known, not_landed, same
from texpr.proof.read.events import Launch, Site, Step
from texpr.proof.read.order import domains, not_behind, sides_of, unjoined, unordered


def questions(flow: Flow) -> Iterator[Asked]:
    """The obligations of all kernels that use tensor memory."""
    for launch in flow.reading.launches:
        arrays = [array for array in launch.kernel.arrays if array.space is Space.TENSOR]
        found = {
            word: [
                s for s in flow.reading.steps if s.site.launch is launch and isinstance(s.what, Lasts) and s.what.what == word
            ]
            for word in ("take", "have", "free")
        }
        if arrays or any(found.values()):
            yield from _of(flow, launch, found)
        led = {s.barrier.buffer for s in flow.reading.signals if isinstance(s.what, Brings) and s.what.led}
        for wait in (s for s in flow.reading.signals if isinstance(s.what, Waits) and s.barrier.buffer in led):
            if wait.site.launch is launch:
                told = Claim("a block is there", "for a copy", "it ends behind a barrier of its cluster", wait.stmt.span)
                yield told, _left, (flow, wait.site)


def _left(flow: Flow, wait: Site) -> Point | None:
    """A wait in the first block of a pair for what is copied to both, behind which the second one may have ended."""
    return witness((*wait.where, unjoined(wait)), flow.premises)


def _of(flow: Flow, launch: Launch, found: dict[str, list[Step]]) -> Iterator[Asked]:
    kernel = launch.kernel
    for word, how in (("take", "by one warp, once"), ("have", "by all, once"), ("free", "by the warp that took them, once")):
        told = Claim("tensor memory", word, how, kernel.span, kernel.name)
        yield told, _done, (flow, launch, found[word], word == "have")
    if [len(each) for each in found.values()] != [1, 1, 1]:
        return
    (take,), (have,), (free,) = found.values()
    told = Claim("tensor memory", "where it begins", "a barrier is between", kernel.span, kernel.name)
    yield told, _unknown, (flow, take.site, have.site)
    for home, accesses in flow.by_home.items():
        if isinstance(home, Buffer) and flow.space(home) is Space.TENSOR:
            for access in (each for each in accesses if each.site.launch is launch):
                span = access.event.span
                told = Claim("tensor memory", str(access), "behind it is known", span, kernel.name)
                yield told, _early, (flow, have.site, access.site)
                told = Claim("tensor memory", str(access), "done with before it is given back", span, kernel.name)
                yield told, _late, (flow, access, free.site)


def _done(flow: Flow, launch: Launch, steps: list[Step], by_all: bool) -> Point | None:
    """A thread that does it and is not meant to, or the other way round; any, where it is done never, or more than once."""
    if len(steps) != 1 or steps[0].site.loops or steps[0].site.tests or launch.kernel.warp != WARP:
        return witness(launch.domain, flow.premises)
    site = steps[0].site
    meant = TRUE if by_all else between(0, launch.thread, WARP)
    unlike = disj((conj((*site.where, negate(meant))), conj((meant, negate(conj(site.domain))))))
    return witness((*launch.domain, unlike), flow.premises)


def _unknown(flow: Flow, take: Site, have: Site) -> Point | None:
    """A thread that asks where columns begin and has not met those that take them; of a pair, those of both blocks."""
    sides = sides_of(take, have, _own(take))
    late = unordered(take, have, sides, Space.TENSOR, later=False)
    return witness((*domains(take, have, sides), disj(late)), flow.premises)


def _own(site: Site) -> tuple[Sym, ...]:
    """The coordinates of the block whose columns they are; of a pair, both blocks have some together."""
    block, at = site.path[-1]
    return () if getattr(block[at], "pair", False) else (*site.launch.host, *site.launch.blocks)


def _early(flow: Flow, have: Site, access: Site) -> Point | None:
    """An access in a thread that has not asked where columns begin."""
    sides = sides_of(have, access, access.launch.threads)
    return witness((*domains(have, access, sides), disj(not_behind(have, access, sides, False))), flow.premises)


def _late(flow: Flow, access: Access, free: Site) -> Point | None:
    """An access that may be under way where columns are given back."""
    here, entry = access.site, entered(free, flow.reading)
    if access.event.group is Group.TENSOR:
        found = flow.landed(access.event, True)
    else:
        found = known(here, same(here), flow.ends.get(ended(access.event), ()), flow.reading, FENCED[BEFORE])
    if entry is None:
        return witness(here.where, flow.premises)
    sides = sides_of(here, entry, _own(free))
    late: Formula = not_landed(here, entry, found, sides, Space.TENSOR, later=False)
    return witness((*domains(here, entry, sides), late), flow.premises)
