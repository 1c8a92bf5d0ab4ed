"""What statements leave at holes, where their guards were dropped: nobody may read it.

    par 8 |i_v| { acc[i_t + 16 * i_v] += … }          computed for all 8, though 128 * i_b + i_t + 16 * i_v < M may fail
    par 8 |i_v| { if … < M { C[…] = acc[i_t + 16 * i_v] } }        reads none of what was left

A reader is compared with each such statement: at an instance of its own, none of the two is at one element of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Load
from texpr.presburger.formula import Eq, Formula, conj, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine, without_products
from texpr.presburger.points import Points
from texpr.schedule.tree import Body
from texpr.support.diagnostic import Note, error
from texpr.support.record import Record
from texpr.support.span import Span

Path = tuple[ir.Loop, ...]


Asked = dict[tuple[Sym, Buffer | None], tuple[ir.Loop, Span]]
"""Unguarded loops along what statements write, with their directive, by their IterDomain, and by the sum, if it is one."""


class Unread(Record):
    """A statement that runs at holes, which are `failing`, and leaves something in memory there; `span`: the directive."""

    stmt: ir.Bind
    path: Path
    failing: Formula
    span: Span


class Paths(Protocol):
    """What is known of statements in loops."""

    def runs(self, path: Path) -> Iterator[Formula]:
        """That the loops run."""
        ...

    def guards(self, path: Path) -> Iterable[Formula]:
        """That an iteration is no hole."""
        ...

    def moved(self, load: Load, path: Path) -> Load:
        """An access over the actual loops."""
        ...


def require_freed(freed: Asked, kept: Asked) -> None:
    """Raises E0906 where an unguarded loop has guards, and no statement does without them; or where sums that holes add to
    begin where there are elements alone."""
    domains, help = {domain for domain, _ in freed}, "unguard loops over a local that begins with a number, alone"
    for (domain, buffer), (loop, span) in kept.items():
        if domain not in domains:
            reason = f"iterations of `{loop.sym.base}` have elements of their own, which others know"
            raise error("E0906", span, f"holes cannot be computed: {reason}", help=help)
        if buffer is not None and (domain, buffer) in freed:
            reason = f"`{buffer.name}` begins, or is added to, beside what others know"
            raise error("E0906", span, f"holes cannot be computed: {reason}", help=help)


def require_unread(holes: Iterable[Unread], body: Body, paths: Paths, sizes: Iterable[Sym]) -> None:
    """Raises E0906 where an element is read that a statement may have left at a hole."""
    named = sorted(sizes, key=str)
    for hole in holes:
        (target,) = hole.stmt.targets
        for stmt, path in _readers(body, target.buffer, ()):
            if not _is_apart(hole, stmt, path, paths, named):
                reason = f"what holes leave in `{target.buffer.name}` may be read"
                raise error("E0906", hole.span, f"holes cannot be computed: {reason}", Note("here", stmt.span))


def _readers(body: Body, buffer: Buffer, path: Path) -> Iterator[tuple[ir.Stmt, Path]]:
    for stmt in body:
        if any(load.buffer is buffer for load in loads(stmt)):
            yield stmt, path
        for block in ir.blocks(stmt):
            yield from _readers(block, buffer, (*path, stmt) if isinstance(stmt, ir.Par | ir.Seq) else path)


def _is_apart(hole: Unread, stmt: ir.Stmt, path: Path, paths: Paths, sizes: list[Sym]) -> bool:
    """Whether a statement, where it is no hole itself, never reads what another one left at a hole."""
    (target,) = hole.stmt.targets
    shared = [one for one, other in zip(hole.path, path, strict=False) if one is other]
    made = [
        n
        for n, loop in enumerate(shared)
        if any(isinstance(s, ir.New) and s.buffer is target.buffer for s in ir.walk(loop.body))
    ]
    common = {loop.sym for loop in shared[: made[-1] + 1]} if made else set[Sym]()
    own = {loop.sym: expr(Sym(f"{loop.sym.name} of a hole")) for loop in hole.path if loop.sym not in common}
    place = [e.substitute(own) for e in paths.moved(target, hole.path).index]
    facts = [rename(f, own) for f in (hole.failing, *paths.runs(hole.path))]
    facts += [*paths.runs(path), *paths.guards(path)]
    for load in (load for load in loads(stmt) if load.buffer is target.buffer):
        both = conj((*facts, *(Eq(a - b) for a, b in zip(paths.moved(load, path).index, place, strict=True))))
        try:
            if not Points(without_products(both), sizes).is_empty():
                return False
        except (NotAffine, Undecided):
            return False
    return True
