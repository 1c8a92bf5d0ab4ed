"""Sums around what they sum up, moved inside, so that a tile keeps its sums and the nest is one launch.

    seq T |t| reduce(C) { par M |i| { par N |j| { C[i, j] += U[t, i] * V[t, j] } } }      reorder(i, j, t)

A launch for each t reads and writes all of C. The order of the sum is free, so each element may be summed up by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.ir import program as ir
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest, nests, outermost
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.tree import loops, path_to


class Inward(Script, kw_only=True):
    """Moves `around`, sequential loops around `nest`, inside of its parallel ones."""

    subject: Subject
    nest: Nest
    around: tuple[ir.Seq, ...]

    def run(self) -> Sequence[Subject]:
        """Applies the directive, and leaves the nest to be tiled. Raises Refused."""
        before = {par.sym for par in outermost(self.state.function.body)} - {self.subject.par.sym}
        loops = (*self.nest.pars, *self.around, *self.nest.seqs)
        self.must("reorder", *(loop.sym.name for loop in loops))
        return [
            Subject(par, nest, self.state, tiles_only=True, named=self.subject.line)
            for par, nest in nests(materialise(self.state).function)
            if par.sym not in before
        ]


def around(subject: Subject) -> tuple[ir.Seq, ...]:
    """The loops around a nest whose sums may come in any order, and that have nothing else inside."""
    found, body = list[ir.Seq](), subject.state.function.body
    par = next((loop for loop in loops(body) if loop.sym == subject.par.sym), None)
    for stmt in reversed(((par and path_to(body, par)) or ())[:-1]):
        if not isinstance(stmt, ir.Seq) or not stmt.reduce or stmt.directives or len(stmt.body) != 1:
            break
        found.insert(0, stmt)
    return tuple(found)


def _applies(subject: Subject) -> bool:
    return isinstance(subject.nest, Nest) and not subject.nest.whole and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    found = () if refused else around(subject)
    if not found:
        return None
    return Proposal(Inward(subject.state, subject.span, subject=subject, nest=subject.nest, around=found))


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
