"""Clusters in one kernel: the rank of a block, multicast copies, and control flow that is uniform in a cluster.

    grid x: bj < 2 · ⌈n / 2⌉     cluster x: bj_rank = bj % 2     a copy for all blocks along bj: to [0, 1] from 2 · bi_rank

A grid is a whole number of clusters. Surplus blocks of the last cluster execute no iteration: they only do their share of
copies, and take part in barriers of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.steps import Branch, Loop
from texpr.ir.value import Index, Load, Op, Ref, Value, conjunction, operands
from texpr.ir.value.types import BOOL, I32
from texpr.lowering.names import Names
from texpr.mapping.nest import LoopMap
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.schedule.edits import without
from texpr.schedule.rewrite.cluster import apart
from texpr.support.diagnostic import limitation
from texpr.support.limits import LARGEST_INT
from texpr.support.record import Record, field
from texpr.support.span import Span


class Along(Record):
    """The blocks of a cluster along one loop of the grid. `rank`: the coordinate of a block among them; `stride`: the
    difference in cluster rank between neighbours."""

    map: LoopMap
    rank: Sym
    stride: int

    @property
    def blocks(self) -> int:
        """The number of blocks along the loop."""
        return self.map.cluster


class Share(Record):
    """The boxes that a block copies, by their numbers along each dimension; `when`: the condition for copying any, if there is
    one."""

    numbers: Sequence[tuple[int | Expr, ...]]
    when: Value | None = None


class Cluster(Record):
    """The clusters of one kernel; `along` is empty if it has none. `ragged`: loops whose blocks are no whole number of
    clusters."""

    along: Mapping[str, Along] = field(default_factory=dict[str, Along])
    ragged: tuple[LoopMap, ...] = ()

    @classmethod
    def of(cls, grid: Sequence[LoopMap], names: Names, known: Known) -> Cluster:
        """The clusters of a grid's loops, by dimension. `known`: facts about sizes."""
        found: dict[str, Along] = {}
        stride = 1
        for map in sorted((m for m in grid if m.cluster > 1), key=lambda m: m.dim):
            found[map.dim] = Along(map, names.sym(f"{map.loop.sym.base}_rank"), stride)
            stride *= map.cluster
        ragged = (a.map for a in found.values() if not known.multiple(a.map.blocks(), a.blocks))
        return cls(found, tuple(ragged))

    @property
    def size(self) -> int:
        """The number of blocks in a cluster."""
        return prod(a.blocks for a in self.along.values())

    @property
    def axes(self) -> Iterator[k.Axis]:
        """The hardware coordinates within a cluster."""
        for dim, along in self.along.items():
            yield k.Axis(along.rank, k.Level.CLUSTER, expr(along.blocks), dim)

    def extent(self, map: LoopMap) -> Expr:
        """The number of blocks of the grid along a loop, rounded up to whole clusters."""
        count = map.blocks()
        return (count + (map.cluster - 1)) // map.cluster * map.cluster if map in self.ragged else count

    @property
    def runs(self) -> Value | None:
        """The condition that a block has an iteration, if some blocks have none."""
        return conjunction([Op("lt", (Index(expr(m.loop.sym), I32), Index(m.loop.extent, I32)), BOOL) for m in self.ragged])

    def peers(self, dims: Sequence[str]) -> tuple[int, ...]:
        """The ranks of the blocks along `dims`, relative to the first of them."""
        return tuple(sorted(sum(steps) for steps in product(*(self._steps(dim) for dim in dims))))

    def _steps(self, dim: str) -> range:
        along = self.along[dim]
        return range(0, along.blocks * along.stride, along.stride)

    def first(self, dims: Sequence[str]) -> Expr:
        """The rank of the first of the blocks along `dims` that include this one."""
        return self._total((a, a.stride) for dim, a in self.along.items() if dim not in dims)

    def number(self, dims: Sequence[str]) -> Expr:
        """The number of this block among the blocks along `dims`."""
        weight, parts = 1, list[tuple[Along, int]]()
        for dim in sorted(dims):
            parts.append((self.along[dim], weight))
            weight *= self.along[dim].blocks
        return self._total(iter(parts))

    def share(self, numbers: Sequence[tuple[int, ...]], counts: Sequence[int], dims: Sequence[str]) -> Share:
        """The share of the boxes `numbers`, of which `counts` are along each dimension, that each of the blocks along `dims`
        copies.

        All blocks copy equally many; if that is impossible, the first block copies all.
        """
        own, most = self.number(dims), prod(self.along[dim].blocks for dim in dims)
        if len(numbers) % most:
            return Share(numbers, Op("eq", (Index(own, I32), Index(ZERO, I32)), BOOL))
        each = len(numbers) // most
        simple = Simplifier(Known({rank: (0, n - 1) for rank, n in self._ranks.items()}))
        return Share([tuple(map(simple, _unravelled(own * each + n, counts))) for n in range(each)])

    def _total(self, parts: Iterator[tuple[Along, int]]) -> Expr:
        total = ZERO
        for along, weight in parts:
            total = total + expr(along.rank) * weight
        return total

    # Uniformity in a cluster.

    def is_alike(self, node: Loop | Branch) -> bool:
        """Whether a loop or branch is proved uniform in a cluster."""
        return self.alike(node.stmt.extent if isinstance(node, Loop) else node.stmt.condition)

    def require_alike(self, around: Iterable[Loop | Branch], what: str, span: Span) -> None:
        """Refuses control flow around a joint operation of a cluster unless it is proved uniform there: E0918."""
        for node in around:
            if self.is_alike(node):
                continue
            why = f"how often `{node.stmt.sym.base}` runs" if isinstance(node, Loop) else "a test around it"
            reason = f"blocks of a cluster {what} together, and {why} may differ from one of them to another"
            raise limitation("E0918", span, reason, offers=without(span, "multicast"))

    def require_same(self, corner: Sequence[Expr], dims: Sequence[str], facts: Sequence[Expr], span: Span) -> None:
        """Refuses a copy unless its boxes are proved equal for the blocks along `dims`: E0918."""
        if any(dim not in self.along for dim in dims):
            raise limitation("E0918", span, "the loop along which blocks of a cluster share the copy is in no cluster any more")
        among = {self.along[dim].map.loop.sym: self.along[dim].blocks for dim in dims}
        kept = [e for e in facts if e.syms().isdisjoint(among)] + [expr(sym) for sym in among]
        try:
            same = apart(corner, among, kept, {s for e in kept for s in e.syms()} - among.keys()) is None
        except (NotAffine, Undecided):
            same = False
        if not same:
            raise limitation("E0918", span, "blocks of a cluster may copy different boxes", offers=without(span, "multicast"))

    def alike(self, value: Value | Expr) -> bool:
        """Whether a value is proved uniform in a cluster: simplified, it depends on no rank."""
        match value:
            case Expr():
                return self._simple(value).syms().isdisjoint(self._ranks.keys())
            case Index():
                return self.alike(value.expr)
            case Load():
                return all(map(self.alike, value.index)) and all(self.alike(meaning) for _, meaning in value.data)
            case Ref():
                return False
            case _:
                return all(map(self.alike, operands(value)))

    @property
    def _ranks(self) -> Mapping[Sym, int]:
        return {a.rank: a.blocks for a in self.along.values()}

    def _simple(self, value: Expr) -> Expr:
        numbers = {a.map.loop.sym: Sym(f"cluster of {a.map.loop.sym}") for a in self.along.values()}
        meaning = {a.map.loop.sym: expr(numbers[a.map.loop.sym]) * a.blocks + expr(a.rank) for a in self.along.values()}
        ranges = {**{rank: (0, n - 1) for rank, n in self._ranks.items()}, **{s: (0, LARGEST_INT) for s in numbers.values()}}
        return Simplifier(Known(ranges))(value.substitute(meaning))


def _unravelled(number: Expr, counts: Sequence[int]) -> tuple[Expr, ...]:
    """The number along each dimension of the box with this number in all."""
    found: list[Expr] = []
    for dim in reversed(range(len(counts))):
        found.append(number % counts[dim] if dim else number)
        number = number // counts[dim]
    return tuple(reversed(found))
