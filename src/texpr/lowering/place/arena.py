"""Storage sharing: shared arrays with disjoint live ranges may have the same bytes.

They share if that saves memory and needs no further barrier, by the cost of barriers. If a block would exceed its shared memory
otherwise, they share at the cost of barriers, and a note reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Generic, TypeVar

from texpr.ir import kernel as k
from texpr.ir.kernel.shared import IN_BLOCK, array_bytes
from texpr.ir.value import Buffer
from texpr.lowering.dependences.lives import Lives, Turn
from texpr.lowering.place.packing import Packed, pack
from texpr.support.record import Mutable, Record, field, replace

MOST = 16
"""The most arrays that are considered together; of more, the largest."""

T = TypeVar("T")


class Met(Record, Generic[T]):
    """The barriers and waits for some dependences: `made`, and their cost."""

    made: T
    cost: tuple[Fraction, int]


class Arena(Record):
    """The bytes of a kernel's arrays: in total, without sharing (`apart`), and a lower bound (`bound`).

    `at`: offsets by array. `paid`: the cost of additional barriers, in arrivals of warps.
    """

    at: Mapping[Buffer, int] = field(default_factory=dict[Buffer, int])
    lives: Mapping[Buffer, tuple[int, int]] = field(default_factory=dict[Buffer, "tuple[int, int]"])
    bytes: int = 0
    apart: int = 0
    bound: int = 0
    paid: Fraction = Fraction(0)

    def placed(self, arrays: Sequence[k.Array]) -> tuple[k.Array, ...]:
        """The arrays of a kernel with their offsets; arrays that are not in the arena are placed after it."""
        if not self.at:
            return tuple(arrays)
        end, found = self.bytes, list[k.Array]()
        for array in arrays:
            at = self.at.get(array.buffer)
            if array.space in IN_BLOCK and at is None:
                at = -(-end // array.align) * array.align
                end = at + array_bytes(array)
            life = self.lives.get(array.buffer)
            reason = array.reason if life is None else f"{array.reason}; lives in lines {life[0]} to {life[1]}"
            found.append(replace(array, at=at, reason=reason))
        return tuple(found)


def room(sizes: Sequence[tuple[Buffer, int]], lives: Lives) -> int:
    """The bytes of locals of these sizes if all share that can."""
    pairs = [(a, b) for a, b in combinations(range(len(sizes)), 2) if not lives.disjoint(sizes[a][0], sizes[b][0])]
    return pack([size for _, size in sizes], [1] * len(sizes), pairs).total


def share(
    arrays: Sequence[tuple[Buffer, k.Array]], lives: Lives, meet: Callable[[Sequence[Turn]], Met[T]], budget: int
) -> tuple[Arena, Met[T]]:
    """The offsets of the shared `arrays`, each with its local, and the barriers that sharing needs. `meet` places barriers.

    `budget`: bytes of shared memory that a block may have.
    """
    sharing = _Sharing(arrays, lives, meet, budget)
    return sharing.run()


class _Sharing(Mutable, Generic[T]):
    arrays: Sequence[tuple[Buffer, k.Array]]
    lives: Lives
    meet: Callable[[Sequence[Turn]], Met[T]]
    budget: int

    def run(self) -> tuple[Arena, Met[T]]:
        base = self.meet(())
        apart = self._pack(())
        largest = sorted(range(len(self.arrays)), key=lambda each: (-array_bytes(self.arrays[each][1]), each))[:MOST]
        pairs = [(a, b) for a, b in combinations(sorted(largest), 2) if self._disjoint(a, b)]
        best = self._pack(pairs)
        if best.total == apart.total:
            return Arena(), base
        met = self.meet(self._turns(best))
        if met.cost > base.cost:
            free = [pair for pair in pairs if self.meet(tuple(self.lives.turns(*self._locals(pair)))).cost <= base.cost]
            found = self._free(free, base)
            if self._pack(found).total <= self.budget:
                best, met = self._pack(found), base
                if best.total == apart.total:
                    return Arena(), base
                met = self.meet(self._turns(best))
        return self._arena(best, apart, met.cost[0] - base.cost[0]), met

    def _free(self, pairs: list[tuple[int, int]], base: Met[T]) -> list[tuple[int, int]]:
        """Those of `pairs` that need no further barrier even together."""
        while pairs and self.meet(self._turns(self._pack(pairs))).cost > base.cost:
            pairs = pairs[:-1]
        return pairs

    def _disjoint(self, a: int, b: int) -> bool:
        return self.lives.disjoint(*self._locals((a, b)))

    def _locals(self, pair: tuple[int, int]) -> tuple[Buffer, Buffer]:
        return self.arrays[pair[0]][0], self.arrays[pair[1]][0]

    def _pack(self, pairs: Sequence[tuple[int, int]]) -> Packed:
        """The best offsets if the arrays of these pairs may overlap."""
        apart = [pair for pair in combinations(range(len(self.arrays)), 2) if pair not in pairs]
        return pack([array_bytes(a) for _, a in self.arrays], [a.align for _, a in self.arrays], apart)

    def _meeting(self, packed: Packed) -> list[tuple[int, int]]:
        ends = [at + array_bytes(array) for at, (_, array) in zip(packed.offsets, self.arrays, strict=True)]
        every = combinations(range(len(self.arrays)), 2)
        return [(a, b) for a, b in every if max(packed.offsets[a], packed.offsets[b]) < min(ends[a], ends[b])]

    def _turns(self, packed: Packed) -> tuple[Turn, ...]:
        return tuple(turn for pair in self._meeting(packed) for turn in self.lives.turns(*self._locals(pair)))

    def _arena(self, packed: Packed, apart: Packed, paid: Fraction) -> Arena:
        at = {array.buffer: offset for offset, (_, array) in zip(packed.offsets, self.arrays, strict=True)}
        spans = {array.buffer: span for local, array in self.arrays if (span := self.lives.span(local)) is not None}
        return Arena(at, spans, packed.total, apart.total, packed.bound, paid)
