"""The lemmas of groups that take turns (docs/theory/channels.md), tried in every order of small rings: an oracle that has
nothing of the proof.

Barriers are as PTX has them: a phase completes with its arrivals, and a wait ends if the phase that is open has another parity.
In each state that can be reached, a wait that ends has its phase; and some thread can go on, or all have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from texpr.support.record import Record

Barrier = tuple[str, int]
State = tuple[tuple[int, ...], tuple[tuple[Barrier, tuple[int, int]], ...], tuple[int, ...]]
"""Where threads are; phases that have completed, and arrivals of the open one; bytes on their way, by slot."""


class Step(Record):
    """A wait for a parity at a barrier, of which `done` phases are to have completed; or an arrival, perhaps with bytes."""

    what: str
    barrier: Barrier
    parity: int = 0
    done: int = 0


class Block(Record):
    """A block with `tiles` of so many turns, and groups of so many warps; a slot is released `lag` turns late. `wrong`: what is
    otherwise."""

    slots: int
    turns: int
    tiles: int
    groups: int = 2
    warps: int = 1
    lag: int = 0
    wrong: str = ""

    def rank(self, tile: int, turn: int) -> int:
        """How many turns before have this one's slot, counted one by one."""
        return sum(
            1
            for t, n in product(range(tile + 1), range(self.turns))
            if n % self.slots == turn % self.slots and (t, n) < (tile, turn)
        )

    def copies(self) -> Iterator[Step]:
        """What the thread that copies does."""
        for tile, turn in product(range(self.tiles), range(self.turns)):
            rank = self.rank(tile, turn)
            yield Step("wait", ("empty", turn % self.slots), (rank + 1) % 2, rank)
            yield Step("expect", ("full", turn % self.slots))

    def uses(self, group: int) -> Iterator[Step]:
        """What a warp of a group does."""
        for tile in (each for each in range(self.tiles) if each % self.groups == group):
            take = Step("wait", ("order", tile % self.groups), ((tile - 1) // self.groups) % 2, (tile - 1) // self.groups + 1)
            give = Step("arrive", ("order", (tile + 1) % self.groups))
            if self.wrong != "no turns":
                yield take
            if self.wrong == "handed over early":
                yield give
            for turn in range(self.turns):
                rank = self.rank(tile, turn)
                yield Step("wait", ("full", turn % self.slots), rank % 2, rank + 1)
                if turn >= self.lag:
                    yield Step("arrive", ("empty", (turn - self.lag) % self.slots))
            if self.wrong not in ("handed over early", "no turns"):
                yield give
            for turn in range(max(0, self.turns - self.lag), self.turns):
                if self.wrong != "not drained":
                    yield Step("arrive", ("empty", turn % self.slots))

    @property
    def threads(self) -> list[list[Step]]:
        """All of them."""
        return [[*self.copies()], *([*self.uses(group)] for group in range(self.groups) for _ in range(self.warps))]

    def counts(self, barrier: Barrier) -> int:
        """The arrivals of a phase; bytes are one."""
        return 2 if barrier[0] == "full" else self.warps * (self.groups if self.wrong == "counts of all" else 1)

    def after(self, state: State, threads: list[list[Step]]) -> Iterator[State]:
        """The states that may be next. Raises AssertionError for a wait that ends with another phase."""
        at, phases, moved = state
        known = dict(phases)

        def arrived(barrier: Barrier) -> tuple[tuple[Barrier, tuple[int, int]], ...]:
            done, came = known.get(barrier, (0, 0))
            new = (done + 1, 0) if came + 1 == self.counts(barrier) else (done, came + 1)
            return tuple(sorted({**known, barrier: new}.items()))

        for slot, bytes in enumerate(moved):
            if bytes:
                yield at, arrived(("full", slot)), tuple(n - (s == slot) for s, n in enumerate(moved))
        for thread, steps in enumerate(threads):
            if at[thread] == len(steps):
                continue
            step = steps[at[thread]]
            on = tuple(n + (t == thread) for t, n in enumerate(at))
            match step.what:
                case "wait":
                    done, _ = known.get(step.barrier, (0, 0))
                    if done % 2 != step.parity:
                        assert done == step.done, (step, done)
                        yield on, phases, moved
                case "expect":
                    yield on, arrived(step.barrier), tuple(n + (s == step.barrier[1]) for s, n in enumerate(moved))
                case _:
                    yield on, arrived(step.barrier), moved

    def explored(self) -> int:
        """The number of states that can be reached. Raises AssertionError where one is wrong."""
        threads = self.threads
        start: State = (0,) * len(threads), (), (0,) * self.slots
        seen: set[State] = {start}
        left = [start]
        while left:
            state = left.pop()
            found = [*self.after(state, threads)]
            assert found or all(at == len(steps) for at, steps in zip(state[0], threads, strict=True)), (
                "nobody goes on",
                state,
            )
            new = [each for each in found if each not in seen]
            seen.update(new)
            left += new
        return len(seen)


RINGS = [
    Block(slots, turns, tiles, groups, 1, lag)
    for slots, turns, tiles, groups, lag in product((1, 2, 3), (0, 1, 2, 3), (0, 1, 4, 5), (2, 3), (0, 1))
    if lag < slots
]


@pytest.mark.parametrize("block", RINGS, ids=str)
def test_each_wait_has_its_phase_and_none_is_for_ever(block: Block) -> None:
    assert block.explored() >= 1


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_so_it_is_of_groups_of_two_warps(turns: int) -> None:
    assert Block(2, turns, 4, 2, 2, 1).explored() > 100


@pytest.mark.parametrize("wrong", ["no turns", "handed over early", "not drained", "counts of all"])
def test_what_is_left_out_is_missed(wrong: str) -> None:
    with pytest.raises(AssertionError):
        Block(2, 4, 4, 2, 1, 1, wrong).explored()
