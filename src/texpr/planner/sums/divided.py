"""Few results, each of a long sum: blocks sum up parts of it, and a second launch adds these up.

    par M |i| { par N |j| { … seq K |k| reduce(C) { … } … } }      split(k, 4096) -> (k_o, k_i)  partial(k_o, at=i)

As many tiles as results have would leave multiprocessors without work. What a strategy would propose for the sums of parts says
what is saved; parts are written and read once, and another launch takes its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.planner.budget import MULTIPROCESSORS
from texpr.planner.nest import Nest, NoPlan, nests, outermost
from texpr.planner.strategy import Proposal, Script, Strategy, Subject
from texpr.schedule.rewrite.materialise import materialise
from texpr.support.record import replace

GAIN = 0.75
"""What has to be left of the cost: another launch is not all that a bound does not know."""

LEAST, EVEN = 256, 64
"""Iterations of a part: at least, and of how many they are a multiple, as tiles are."""

MOST = 8
"""Blocks that a multiprocessor has at most, from parts."""

RESULTS = 64 * 64
"""Results of the smallest tile that is worth it."""

AHEAD = 16
"""Parts that a thread reads before it adds them up."""


class Divided(Script, kw_only=True):
    """Divides the sum of `nest` into parts of `part` iterations, and leaves both nests to other strategies."""

    nest: Nest
    part: int

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        at, loop = self.nest.loops[0].sym, self.nest.seqs[-1].sym.name
        before = {par.sym for par in outermost(self.state.function.body)}
        outer, inner = self.fresh(loop, "o", "i")
        self.must("split", loop, self.part, results=(outer, inner))
        self.must("partial", outer, at=at.name)
        joins = next(each for each in self.state.copies(self.loop(outer)) if each.sym.name != outer)
        self.may("unroll", joins.sym.name, min(AHEAD, joins.extent.constant))
        return [
            Subject(par, nest, self.state, tiles_only=True, is_part=True, named=self.nest.line)
            for par, nest in nests(materialise(self.state).function)
            if par.sym not in before
        ]


def divided(subject: Subject, strategies: Sequence[Strategy], byte: float, launch: float) -> Proposal | None:
    """The cheapest way to divide the sum of a nest, by the costs of what `strategies` propose, if that is cheaper than what
    they propose for the whole of it. `byte`: the cost of a byte that is written and read, `launch`: that of a launch."""
    assert isinstance(subject.nest, Nest), "as it applies"
    nest = subject.nest
    ways = [*_ways(nest)]
    if not ways or nest.loops[-1] is not nest.seqs[-1]:
        return None
    whole, said = min(_costs(subject, nest, strategies), default=(0.0, 0.0))
    if whole * GAIN < launch:
        return None
    found = list[tuple[float, int]]()
    for count, part in ways:
        costs = [cost for cost, _ in _costs(subject, _in_parts(nest, count, part), strategies)]
        if costs:  # whichever has the parts then
            found.append((max(costs) + launch + byte * count * _results(nest), part))
    if not found or min(found)[0] > GAIN * whole:
        return None
    cost, part = min(found)
    script = Divided(subject.state, subject.span, nest=nest, part=part)
    return Proposal(script, said * cost / whole, said=f"sums of {part} terms first")


def _ways(nest: Nest) -> Iterator[tuple[int, int]]:
    """Numbers of parts, with their iterations: all alike, and no more than there are multiprocessors for."""
    loop = nest.seqs[-1]
    if not loop.extent.is_constant or not loop.reduce or not all(par.extent.is_constant for par in nest.pars):
        return
    length, tiles = loop.extent.constant, max(1, _results(nest) // RESULTS)
    most = min(MOST * MULTIPROCESSORS // tiles, length // LEAST)
    yield from ((n, length // n) for n in range(2, most + 1) if length % n == 0 and (length // n) % EVEN == 0)


def _results(nest: Nest) -> int:
    """The results of a nest."""
    return prod(nest.trips[loop.sym] for loop in nest.pars)


def _in_parts(nest: Nest, count: int, part: int) -> Nest:
    """The nest of the sums of `count` parts, as strategies see it."""
    *outer, last = nest.loops
    block, around = Sym(f"{last.sym.base} part"), [loop for loop in outer if isinstance(loop, ir.Par)]
    loops = (ir.Par(block, expr(count), (), span=last.span), *around, *nest.seqs[:-1], replace(last, extent=expr(part)))
    return replace(nest, loops=loops, trips={**nest.trips, block: count, last.sym: part})


def _costs(subject: Subject, nest: Nest, strategies: Sequence[Strategy]) -> Iterator[tuple[float, float]]:
    """The costs of what strategies propose for a nest, as far as somebody knows them: with idle multiprocessors, as said."""
    for each in strategies:
        try:
            proposal = each.propose(replace(subject, nest=nest), ())
        except NoPlan:
            continue
        if proposal is not None and proposal.cost:
            yield proposal.cost * _idle(nest, proposal), proposal.cost


def _idle(nest: Nest, proposal: Proposal) -> float:
    """The multiprocessors for one that has a block: memory does not give a few of them all that it could."""
    if proposal.tile is None:
        return 1.0
    sizes = proposal.tile.data()["tile"]
    blocks = prod(ceil(nest.trips[loop.sym] / sizes.get(str(loop.sym), 1)) for loop in nest.pars)
    return max(1.0, MULTIPROCESSORS / blocks)
