"""A copy, element by element and byte by byte, with loops over Python integers: shares no code with the room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count as count_from
from itertools import product

from texpr.support.record import Mutable, field

TABLES: dict[int, tuple[str, ...]] = {
    0: ("01234567",),
    32: ("01234567", "10325476"),
    64: ("01234567", "10325476", "23016745", "32107654"),
    128: ("01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"),
}
"""PTX ISA, "Swizzling Modes": which chunk of 16 bytes a place in a line of 128 holds, line by line."""


def swizzled(address: int, span: int) -> int:
    """Where a byte goes that would lie at `address`."""
    line, byte = divmod(address, 128)
    chunk, rest = divmod(byte, 16)
    table = TABLES[span]
    return line * 128 + table[line % len(table)].index(str(chunk)) * 16 + rest


class Case(Mutable):
    """A copy in 1 to 5 dimensions; `pitch`: global strides in elements; `fill`: the bytes of an element outside."""

    x: Sequence[int]
    gs: Sequence[int]
    bs: Sequence[int]
    gr: Sequence[int]
    er: Sequence[int]
    size: int
    ga: int = 0
    sa: int = 0
    span: int = 0
    fill: bytes = field(default=b"")


Combine = Callable[[bytes, bytes], bytes]


def places(case: Case) -> list[tuple[int, int | None]]:
    """For each element of the tile in turn: its byte before chunks move, and its byte in global memory, None outside."""
    tile: list[int] = []
    for box, step in zip(case.bs, case.er, strict=True):
        count = 0
        while count * step < box:
            count += 1
        tile.append(count)
    row = max(tile[0] * case.size, case.span)
    found: list[tuple[int, int | None]] = []
    for number, outer in enumerate(product(*(range(n) for n in reversed(tile[1:])))):
        for inner in range(tile[0]):
            index = (inner, *reversed(outer))
            at = [x + k * e for x, k, e in zip(case.x, index, case.er, strict=True)]
            inside = all(0 <= a < s for a, s in zip(at, case.gs, strict=True))
            there = case.ga + case.size * sum(a * r for a, r in zip(at, case.gr, strict=True))
            found.append((case.sa + number * row + inner * case.size, there if inside else None))
    return found


def load(case: Case, tensor: bytes, shared: bytearray) -> None:
    for here, there in places(case):
        for k in range(case.size):
            shared[swizzled(here + k, case.span)] = case.fill[k] if there is None else tensor[there + k]


def store(case: Case, tensor: bytearray, shared: bytes, combine: Combine | None = None) -> None:
    for here, there in places(case):
        if there is not None:
            new = bytes(shared[swizzled(here + k, case.span)] for k in range(case.size))
            old = bytes(tensor[there : there + case.size])
            tensor[there : there + case.size] = new if combine is None else combine(old, new)


def column(
    x: Sequence[int], gs: Sequence[int], lower: Sequence[int], upper: Sequence[int], er: Sequence[int], count: int
) -> Iterator[list[int]]:
    """PTX ISA, "im2col mode": (w, …, image) of so many pixels, as loops over space that start anew after the first."""
    spaces = [(x[k], lower[k - 1], gs[k] - 1 + upper[k - 1], er[k]) for k in range(1, len(gs) - 1)]

    def walk(left: int, anew: bool) -> Iterator[tuple[int, ...]]:
        if left == 0:
            yield ()
            return
        start, low, last, step = spaces[left - 1]
        at = low if anew else start
        while at <= last:
            for inner in walk(left - 1, anew):
                yield (*inner, at)
            at, anew = at + step, True

    given = 0
    for image in count_from(x[-1]):
        for at in walk(len(spaces), image != x[-1]):
            if given == count:
                return
            given += 1
            yield [*at, image]
