"""Triangular nests made rectangular, so that they are tiled like any other: a guard excludes the added iterations.

    par n |i| { par i + 1 |j| { … } }        resize(j, to=n) -> j_r

For each triangular loop a tile computes at most twice as much as needed, and saves as much traffic as any tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import substitute_block
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest, NoPlan, Subscript, outermost, outermost_of
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.support.record import replace


class Squared(Script, kw_only=True):
    """Gives every loop of `nest` an extent that depends on no loop of the nest."""

    subject: Subject
    nest: Nest

    def run(self) -> Sequence[Subject]:
        """Applies every directive, and leaves the new nest to be tiled. Raises Refused."""
        names: dict[Sym, Sym] = {}
        for sym, extent in self.nest.whole.items():
            (name,) = self.fresh(sym.name, "r")
            self.must("resize", sym.name, to=extent, results=(name,))
            names[sym] = Sym(name)
        nest = self.nest

        def subscript(old: Subscript) -> Subscript:
            steps = {names.get(sym, sym): step for sym, step in old.steps.items()}
            return replace(old, steps=steps, bent=frozenset(names.get(sym, sym) for sym in old.bent))

        def squared(loop: ir.Loop) -> ir.Loop:
            body = substitute_block(loop.body, {sym: expr(name) for sym, name in names.items()})
            made = replace(loop, body=body)
            return replace(made, sym=names[loop.sym], extent=nest.whole[loop.sym]) if loop.sym in names else made

        made = replace(
            nest,
            loops=tuple(map(squared, nest.loops)),
            touches=tuple(
                replace(
                    touch,
                    index=None if touch.index is None else tuple(map(subscript, touch.index)),
                    around=frozenset(names.get(sym, sym) for sym in touch.around),
                )
                for touch in nest.touches
            ),
            trips={names.get(sym, sym): trips for sym, trips in nest.trips.items()},
            whole={},
            masked=True,
        )
        return (replace(self.subject, nest=made, tiles_only=True),)

    def finish(self) -> None:
        """Leaves out what a block has nothing of: whole sums, or their last iterations."""
        ours = self._parts(self.nest.loops[0].sym.name)
        for par in outermost(self.state.function.body):
            for loop in outermost_of(ir.Seq, par.body) if par.sym.name in ours else ():
                if not self.may("skip", loop.sym.name):
                    self.dropped.pop()

    def _parts(self, name: str) -> set[str]:
        """The loops that one has become."""
        found = {name}
        for transform in self.state.transforms:
            if any(domain.sym.name in found for domain in transform.inputs):
                found |= {domain.sym.name for domain in transform.outputs}
        return found


def _applies(subject: Subject) -> bool:
    return isinstance(subject.nest, Nest) and bool(subject.nest.whole)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    if refused:
        raise NoPlan("a loop depends on another one")
    return Proposal(Squared(subject.state, subject.span, subject=subject, nest=subject.nest))


STRATEGY = Strategy(Rank.TILE, _applies, _propose)
