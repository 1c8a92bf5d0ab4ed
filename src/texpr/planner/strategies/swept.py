"""Rows with a maximum, and sums that need it, as a softmax before a product has, or sums of what each key has alone: one sweep
over blocks of keys.

    par L |i| { …  par L |j| reduce(m) { m max= s[j] }  …  par D |d| { par L |j| reduce(o) { o[d] += p[j] * V[j, d] } }  … }

online     the row in blocks of 64, 128 or 32 keys, so that what it keeps of them has a constant size

Then it is a row with products, for which there are other strategies (`joined`, `linked`); where none of them has a tile for
it, it stays as it was. Which block is taken is decided by the bounds that they give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Load
from texpr.planner.follow import Follower, Refused
from texpr.planner.nest import NoPlan, nests, outermost
from texpr.planner.strategies import joined, linked
from texpr.planner.strategies.phases import way_of
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.schedule.state import State

KEYS, FEW = (64, 128), 32
"""Keys of a block, those first that are taken where costs are equal; and where a row with more of them fits nothing."""

ROWS = (joined.STRATEGY, linked.STRATEGY)
"""What has tiles for rows with products."""


class SweptScript(Script, kw_only=True):
    """One sweep for the maximum of the loop `over`, or for sums alone, over blocks of so many `keys`."""

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


def _leads(par: ir.Par) -> Iterator[ir.Loop]:
    """The loops of a row that make a maximum of it, or else the first one that gives a local an element in each iteration."""
    row = way_of(par)[-1]
    own = {s.buffer for s in row.body if isinstance(s, ir.New)}
    every = [s for s in row.body if isinstance(s, ir.Par | ir.Seq)]
    maxima = [loop for loop in every if any(_is_maximum(s, own) for s in loop.body)]
    yield from maxima or [loop for loop in every if any(t.buffer in own for t in _along(loop))][:1]


def _is_maximum(stmt: ir.Stmt, own: set[Buffer]) -> bool:
    """Whether it makes a maximum of a row."""
    return isinstance(stmt, ir.Bind) and stmt.update == "max" and stmt.targets[0].buffer in own and not stmt.targets[0].index


def _along(loop: ir.Loop) -> Iterator[Load]:
    """What a loop writes in each iteration."""
    for stmt in ir.walk(loop.body):
        if isinstance(stmt, ir.Bind):
            yield from (target for target in stmt.targets if expr(loop.sym) in target.index)


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and isinstance(subject.nest, NoPlan) and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = sorted(_proposals(subject), key=lambda each: each.cost)
    return found[len(refused)] if len(refused) < len(found) else None


def _proposals(subject: Subject) -> Iterator[Proposal]:
    for loop in _leads(subject.par):
        fits = False
        for keys in (*KEYS, FEW):
            script = SweptScript(subject.state, subject.span, subject=subject, over=loop.sym.name, keys=keys)
            tried = Follower(subject.state, subject.span)
            try:
                tried.must("online", loop.sym.name, keys, results=script.fresh(loop.sym.name, "b"))
            except Refused:
                continue  # as of more keys than a page has
            row = _row(subject, tried.state)
            costs = [made.cost for each in ROWS if each.applies(row) and (made := each.propose(row, ())) is not None]
            if costs and not (fits and keys == FEW):
                fits = True
                yield Proposal(script, min(costs), said=f"one sweep over blocks of {keys} keys")


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
"""Rows whose products have no constant size before."""
