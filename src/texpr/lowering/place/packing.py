"""Packing: the fewest bytes for blocks of which certain pairs must not overlap, each at a multiple of its alignment.

In an optimal solution move every block to lower offsets as far as possible: then it is at 0, or on a block that it must not
overlap. So an order of the blocks defines a solution, each block in turn on the highest earlier one that it must not overlap,
and some order is optimal. Orders are searched by branch and bound, with ascending offsets; a clique of pairwise disjoint blocks
is a lower bound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from texpr.support.record import Mutable, Record, field

TRIES = 20_000
"""The greatest number of nodes of a search."""


class Packed(Record):
    """The offsets by number, the end of the last block, a proved lower bound, and the number of nodes searched."""

    offsets: tuple[int, ...]
    total: int
    bound: int
    tried: int


def pack(sizes: Sequence[int], aligns: Sequence[int], apart: Collection[tuple[int, int]], limit: int = TRIES) -> Packed:
    """Packs blocks; `apart`: pairs that must not overlap. At the `limit` of nodes the best solution found, perhaps above the
    bound.

    Of equally good solutions the first is returned: the result is deterministic.
    """
    beside = [frozenset(b for a, b in (*apart, *((b, a) for a, b in apart)) if a == each) for each in range(len(sizes))]
    search = _Search(sizes, aligns, beside, limit)
    search.run()
    return Packed(search.best, search.total, search.bound, search.tried)


class _Search(Mutable):
    sizes: Sequence[int]
    aligns: Sequence[int]
    beside: Sequence[frozenset[int]]
    limit: int
    best: tuple[int, ...] = ()
    total: int = 0
    bound: int = 0
    tried: int = 0
    offsets: dict[int, int] = field(default_factory=dict[int, int])

    def run(self) -> None:
        largest = sorted(range(len(self.sizes)), key=lambda each: (-self.sizes[each], each))
        for each in largest:
            self.offsets[each] = self._fit(each)
        self.best = tuple(self.offsets[each] for each in range(len(self.sizes)))
        self.total = self._end(self.offsets)
        self.bound = self._clique(largest)
        self.offsets = {}
        if self.total > self.bound and self._visit(0, largest):
            self.bound = self.total

    def _fit(self, block: int) -> int:
        """The lowest gap between placed blocks that fits."""
        size, align = self.sizes[block], self.aligns[block]
        taken = sorted((at, at + self.sizes[o]) for o, at in self.offsets.items() if o in self.beside[block])
        at = 0
        for start, end in taken:
            if at + size > start and end > at:
                at = max(at, -(-end // align) * align)
        return at

    def _end(self, offsets: dict[int, int]) -> int:
        return max((at + self.sizes[each] for each, at in offsets.items()), default=0)

    def _clique(self, largest: Sequence[int]) -> int:
        """The bytes of a clique: the heaviest that grows from any block by the largest fitting blocks."""
        most = max(self.sizes, default=0)
        for first in largest:
            clique = {first}
            for each in largest:
                if each != first and clique <= self.beside[each]:
                    clique.add(each)
            most = max(most, sum(self.sizes[each] for each in clique))
        return most

    def _visit(self, lowest: int, order: Sequence[int]) -> bool:
        """Tries each next block, at `lowest` or above. False if the limit is reached."""
        self.tried += 1
        if self.tried > self.limit:
            return False
        left = [each for each in order if each not in self.offsets]
        if not left:
            self.best, self.total = tuple(self.offsets[each] for each in range(len(order))), self._end(self.offsets)
            return True
        at = {each: self._on_top(each) for each in left}
        if max(at[each] + self.sizes[each] for each in left) >= self.total:
            return True
        for each in left:
            if at[each] < lowest:
                continue
            self.offsets[each] = at[each]
            done = self._visit(at[each], order)
            del self.offsets[each]
            if not done:
                return False
            if self.total == self.bound:
                return True
        return True

    def _on_top(self, block: int) -> int:
        end = max((at + self.sizes[each] for each, at in self.offsets.items() if each in self.beside[block]), default=0)
        return -(-end // self.aligns[block]) * self.aligns[block]
