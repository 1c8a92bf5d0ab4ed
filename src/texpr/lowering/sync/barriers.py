"""Barriers of least total cost that cover every dependence between threads of a team.

A dependence is covered if each path between its ends (`lowering.build.paths`) contains a barrier of a scope that contains both
ends. Any program point may have one: in a loop or before it, in both arms of a branch or around it. The cost of a barrier is
the weight of its scope × its execution count; the total is minimal, and then the number of barriers, by the exact solver
`lowering.cover`, which proves it.

Unknown execution counts are estimated (`lowering.build.trips`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Branch, Loop, Node, below
from texpr.isa.levels import WARP
from texpr.lowering.build.paths import Paths, ProgramPoint, lists
from texpr.lowering.build.trips import Trips
from texpr.lowering.cover import TRIES, cover
from texpr.lowering.dependences.dependence import Dependence, Scope, reach
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, field


class Proof(Record):
    """The proof that no other choice costs less: `cost` and `bound` are equal. `by`: "payments" (a dual solution: each
    dependence pays part of the cost of barriers, and the sum is the bound), "search" (exhaustive), or "limit", if the optimum
    may be lower.

    `number` of barriers; `needs`: dependences; `tried`: nodes of the search.
    """

    cost: Fraction
    bound: Fraction
    number: int
    needs: int
    tried: int
    by: str


Barriers: TypeAlias = Mapping[ProgramPoint, k.Barrier]
"""The barriers that cover dependences between threads, by program point."""


class Placed(Record):
    """Barriers, and the proof that their cost is minimal."""

    barriers: Barriers = field(default_factory=dict[ProgramPoint, k.Barrier])
    proof: Proof | None = None


def behind_start(made: tuple[k.Covered, ...], shared: bool) -> k.Stmt:
    """The barrier behind what makes the barriers of engines, or is the last use of them. `shared`: by blocks of a cluster."""
    return k.Barrier(k.Level.CLUSTER if shared else k.Level.BLOCK, made)


def passing(covers: tuple[k.Covered, ...]) -> k.Stmt:
    """The barrier at which all of a cluster come, before engines do what those who came late would not see any more."""
    return k.Barrier(k.Level.CLUSTER, covers, relaxed=True)


def weight(scope: Scope, team: int, warp: int = WARP) -> int:
    """The cost of one barrier, in arrivals of a warp: 1 for lanes of a warp, else the number of its warps, and four.

    A barrier of a cluster costs as much as eight of a block, the greatest size of a cluster.
    """
    level, part = scope
    if level is k.Level.WARP:
        return 1
    return (4 + -(-(part or team) // warp)) * (8 if level is k.Level.CLUSTER else 1)


def surely_runs(loop: ir.Seq) -> bool:
    """Whether the trip count of a loop is a positive constant."""
    return loop.extent.is_constant and loop.extent.constant > 0


def is_settled(need: Dependence) -> bool:
    """The default for `settled`: whether engines do both ends of a need."""
    return False


def is_alike(node: Loop | Branch) -> bool:
    """The default for `alike`: whether all blocks of a cluster execute a node uniformly."""
    return False


def place(
    nodes: tuple[Node, ...],
    needs: Sequence[Dependence],
    team: int,
    runs: Callable[[ir.Seq], bool] = surely_runs,
    alike: Callable[[Loop | Branch], bool] = is_alike,
    limit: int = TRIES,
    warp: int = WARP,
    settled: Callable[[Dependence], bool] = is_settled,
) -> Placed:
    """The barriers by program point, so that every need is covered. Lists are numbered as in `lists(nodes)`.

    `team`: threads that execute `nodes` together, `warp`: lanes of a warp. A team that is smaller than a warp, and no power of
    two, uses a barrier of the block. `runs`: whether a loop always has an iteration where it is reached. `alike`: whether all
    blocks of a cluster execute a node uniformly; only such nodes contain barriers of the cluster. `settled`: whether engines do
    both ends of a need; a barrier of a cluster that has no others is relaxed.
    """
    lanes = min(warp, team)
    odd = lanes & (lanes - 1) != 0
    ways = Paths(nodes, runs)
    asked = [(need, way) for need in needs for way in need.paths(ways)]
    if not asked:
        return Placed()
    scopes = {need: _scope(need, odd) for need, _ in asked}
    offered = sorted(set(scopes.values()), key=reach)
    trips = Trips.of(nodes)
    together = frozenset(_together(nodes, alike))
    meets = {scope: scope[0] is not k.Level.CLUSTER for scope in offered}
    places = [(gap, scope) for gap in trips.gaps for scope in offered if meets[scope] or gap[0] in together]
    number = {place: at for at, place in enumerate(places)}
    once = len(places) + 1
    costs = [trips.cost(gap, weight(scope, team, warp)) * once + 1 for gap, scope in places]
    enough = {scope: [each for each in offered if reach(each) >= reach(scope)] for scope in offered}
    sets = [
        frozenset(number[gap, scope] for gap in way for scope in enough[scopes[need]] if (gap, scope) in number)
        for need, way in asked
    ]
    apart = next((need for (need, _), each in zip(asked, sets, strict=True) if not each), None)
    if apart is not None:
        reason = f"blocks of a cluster would have to meet for `{apart.covered.buffer}` where some of them may not come"
        help = "memory of a cluster is accessed outside of such a test or loop"
        raise limitation("E0918", apart.covered.source, reason, help=help)
    best = cover(sets, costs, limit)
    proved = best.bound == best.cost and not ways.coarse
    by = ("payments" if best.paid == best.cost else "search") if proved else "limit"
    cost, bound = (each // once * trips.unit for each in (best.cost, best.bound))
    proof = Proof(cost, bound, len(best.chosen), len(scopes), best.tried, by)
    found: dict[ProgramPoint, k.Barrier] = {}
    for chosen in best.chosen:
        gap, (level, part) = places[chosen]
        met = [need for (need, _), each in zip(asked, sets, strict=True) if chosen in each]
        covers, together = tuple(dict.fromkeys(need.covered for need in met)), lanes if level is k.Level.WARP else WARP
        relaxed = level is k.Level.CLUSTER and all(map(settled, met))
        found[gap] = k.Barrier(level, covers, together, part=part, relaxed=relaxed)
    return Placed(found, proof)


def _scope(need: Dependence, odd: bool) -> Scope:
    """The scope of a need; `odd`: the team cannot use barriers of lanes, so the scope is the block."""
    assert need.scope is not None
    return (k.Level.BLOCK, 0) if odd and need.level is k.Level.WARP else need.scope


def _together(nodes: tuple[Node, ...], alike: Callable[[Loop | Branch], bool]) -> Iterator[int]:
    """The lists that all blocks of a cluster execute uniformly."""
    every = {id(steps.nodes): steps.number for steps in lists(nodes)}

    def visit(nodes: tuple[Node, ...]) -> Iterator[int]:
        yield every[id(nodes)]
        for node in nodes:
            if isinstance(node, Loop | Branch) and alike(node):
                for inner in below(node):
                    yield from visit(inner)

    return visit(nodes)
