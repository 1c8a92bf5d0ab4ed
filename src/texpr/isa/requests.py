"""The cost of one request of a warp, each lane at its own bytes: the only model of sectors, lines and banks.

Global memory transfers whole sectors of lines. Each bank of shared memory gives one word at a time, so that lanes that read
one word are served at once, and different words of one bank in turn. Wide accesses are served in parts: those of 8 bytes in
two halves of a warp, of 16 in four quarters (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory" and "Shared
Memory and Memory Banks"). The emulator counts independently (`counts.hpp`), for the tests to compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from texpr.isa.memories import SHARED

REMEMBERED = 1 << 14


def windows(starts: Iterable[int], size: int, width: int = 1) -> set[int]:
    """The numbers of the sectors, or lines, of `size` bytes that an access of `width` ≤ `size` bytes from each of `starts`
    touches."""
    if width == 1:
        return {start // size for start in starts}
    return {byte // size for start in starts for byte in (start, start + width - 1)}


def stored(starts: Iterable[int], width: int, sector: int, line: int) -> int:
    """Bytes that the second-level cache could have moved while it takes a store of a warp: sectors that are written whole, and
    a line for each in which a sector is written in part.

    Measured on an H200: pieces of 16 bytes are stored at 0.7 TB/s, of 32 and more at 3.8 (bench/results/probes.json); a product
    whose lanes stored 51.4 MB so took 53 µs, in which that cache moves as many lines as there were pieces, and half more.
    """
    written: Counter[int] = Counter()
    for first, last in {(start, start + width) for start in starts}:
        for each in range(first // sector, (last - 1) // sector + 1):
            written[each] += min(last, (each + 1) * sector) - max(first, each * sector)
    cut = {each * sector // line for each, count in written.items() if count < sector}
    return len(cut) * line + sum(sector for each in written if each * sector // line not in cut)


@lru_cache(REMEMBERED)
def touching(offsets: tuple[int, ...], unit: int, size: int) -> tuple[int, ...]:
    """The number of windows of `size` bytes that elements at `offsets` touch, for each start that is a multiple of its
    divisor `unit`.

    Each element is in the window of the one before it, or, where a window ends between them, in another.
    """
    found = [1] * (size // unit)
    far = 0
    for one, other in pairwise(offsets):
        if other - one >= size:
            far += 1
            continue
        for past in range(other % unit, other - one, unit):
            found[(past - other) % size // unit] += 1
    return tuple(n + far for n in found)


def row_bytes(row: int, size: int, sector: int, *, begins_even: bool) -> int:
    """The bytes transferred for a row of `row` bytes, of elements of `size`, that starts at a sector; or at any element: the
    mean."""
    return -(-row // sector) * sector if begins_even else row + sector - size


def _served(lanes: Sequence[int | None], width: int, banks: int, word: int) -> Iterator[set[int]]:
    """The words that lanes request, in the parts that are served together; None is an inactive lane."""
    each, words = banks * word // max(width, word), range(max(1, width // word))
    for first in range(0, len(lanes), each):
        yield {at // word + n for at in lanes[first : first + each] if at is not None for n in words}


def busy(
    lanes: Sequence[int | None], width: int, banks: int = SHARED.banks, word: int = SHARED.bank_width
) -> Iterator[Counter[int]]:
    """The number of words that each bank gives, of `width` bytes from each lane's address, for each part of the lanes that is
    served together."""
    return (Counter(found % banks for found in words) for words in _served(lanes, width, banks, word))


def bank_rounds(lanes: Sequence[int | None], width: int, banks: int = SHARED.banks, word: int = SHARED.bank_width) -> int:
    """The number of rounds of a shared memory request: the maximum over banks of the words that they give."""
    return sum(max(each.values(), default=0) for each in busy(lanes, width, banks, word))


def conflicts(lanes: Sequence[int | None], width: int, banks: int = SHARED.banks, word: int = SHARED.bank_width) -> int:
    """Bank conflicts: the rounds beyond those needed if the words were spread over all banks."""
    least = sum(-(-len(words) // banks) for words in _served(lanes, width, banks, word))
    return bank_rounds(lanes, width, banks, word) - least
