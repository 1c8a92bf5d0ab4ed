"""Rows with a maximum, and sums that need it, as a softmax before a product has: one sweep over blocks of keys.

    par L |i| { …  par L |j| reduce(m) { m max= s[j] }  …  par D |d| { par L |j| reduce(o) { o[d] += p[j] * V[j, d] } }  … }

online     the row in blocks of 64 or 128 keys, so that what it keeps of them has a constant size

Then it is a row with products, for which there are other strategies (`joined`, `linked`); where none of them has a tile for
it, it stays as it was. Which block is taken is decided by the bounds that they give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.ir import program as ir
from texpr.planner.follow import Follower, Refused
from texpr.planner.nest import NoPlan, nests, outermost
from texpr.planner.strategies import joined, linked
from texpr.planner.strategies.phases import way_of
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.schedule.state import State

KEYS = (64, 128)
"""Keys of a block, those first that are taken where costs are equal."""

ROWS = (joined.STRATEGY, linked.STRATEGY)
"""What has tiles for rows with products."""


class SweptScript(Script, kw_only=True):
    """One sweep for the maximum of the loop `over`, over blocks of so many `keys`."""

    subject: Subject
    over: str
    keys: int

    def run(self) -> Sequence[Subject]:
        """Applies the directive, and leaves the row to other strategies. Raises Refused."""
        self.must("online", self.over, self.keys, results=self.fresh(self.over, "b"))
        return (_row(self.subject, self.state),)


def _row(subject: Subject, state: State) -> Subject:
    """The nest of a subject in another state."""
    par = next(each for each in outermost(state.function.body) if each.sym == subject.par.sym)
    alone = nests(state.alone(par).function)
    nest = next(nest for each, nest in alone if each is par)
    return Subject(par, nest, state, named=subject.line, in_step=subject.in_step)


def _maxima(par: ir.Par) -> Iterator[ir.Loop]:
    """The loops of a row that make a maximum of it."""
    row = way_of(par)[-1]
    own = {s.buffer for s in row.body if isinstance(s, ir.New) and not s.buffer.shape}
    for loop in (s for s in row.body if isinstance(s, ir.Par | ir.Seq)):
        if any(isinstance(s, ir.Bind) and s.update == "max" and s.targets[0].buffer in own for s in loop.body):
            yield loop


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and isinstance(subject.nest, NoPlan) and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = sorted(_proposals(subject), key=lambda each: each.cost)
    return found[len(refused)] if len(refused) < len(found) else None


def _proposals(subject: Subject) -> Iterator[Proposal]:
    for loop in _maxima(subject.par):
        for keys in KEYS:
            script = SweptScript(subject.state, subject.span, subject=subject, over=loop.sym.name, keys=keys)
            tried = Follower(subject.state, subject.span)
            try:
                tried.must("online", loop.sym.name, keys, results=script.fresh(loop.sym.name, "b"))
            except Refused:
                break
            row = _row(subject, tried.state)
            costs = [made.cost for each in ROWS if each.applies(row) and (made := each.propose(row, ())) is not None]
            if costs:
                yield Proposal(script, min(costs), said=f"one sweep over blocks of {keys} keys")


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
"""Rows whose products have no constant size before."""
