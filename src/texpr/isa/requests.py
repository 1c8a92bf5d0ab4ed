"""What a memory does for one request of a warp, each lane at its own bytes: the one model of sectors, lines and banks.

Global memory moves whole sectors, out of lines. Each bank of shared memory hands out one word at a time, so that lanes in one
word are served at once, and words of one bank in turn. Lanes are served together as far as all banks have words for them:
those of 8 bytes in two halves of a warp, of 16 in four quarters (CUDA C++ Best Practices Guide, "Coalesced Access to Global
Memory" and "Shared Memory and Memory Banks"). The emulator counts the same on its own (`counts.hpp`), for the tests to compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from texpr.isa.memories import SHARED

REMEMBERED = 1 << 14


def windows(starts: Iterable[int], size: int, width: int = 1) -> set[int]:
    """The numbers of the sectors, or lines, of `size` bytes that hold `width` bytes, at most as many, from each of `starts`."""
    if width == 1:
        return {start // size for start in starts}
    return {byte // size for start in starts for byte in (start, start + width - 1)}


@lru_cache(REMEMBERED)
def touching(offsets: tuple[int, ...], unit: int, size: int) -> tuple[int, ...]:
    """How many windows of `size` bytes elements at `offsets` touch, for each start that is a multiple of `unit`, its divisor.

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
    """What is moved for a row of `row` bytes, of elements of `size`, that begins at a sector; or at any element: the mean."""
    return -(-row // sector) * sector if begins_even else row + sector - size


def _served(lanes: Sequence[int | None], width: int, banks: int, word: int) -> Iterator[set[int]]:
    """The words that lanes ask for which are served together; None is a lane that idles."""
    each, words = banks * word // max(width, word), range(max(1, width // word))
    for first in range(0, len(lanes), each):
        yield {at // word + n for at in lanes[first : first + each] if at is not None for n in words}


def busy(
    lanes: Sequence[int | None], width: int, banks: int = SHARED.banks, word: int = SHARED.bank_width
) -> Iterator[Counter[int]]:
    """How many words each bank gives, of `width` bytes from where each lane is, for each part of the lanes served together."""
    return (Counter(found % banks for found in words) for words in _served(lanes, width, banks, word))


def bank_rounds(lanes: Sequence[int | None], width: int, banks: int = SHARED.banks, word: int = SHARED.bank_width) -> int:
    """How often shared memory is asked: as many times as the busiest bank has words to give."""
    return sum(max(each.values(), default=0) for each in busy(lanes, width, banks, word))


def conflicts(lanes: Sequence[int | None], width: int, banks: int = SHARED.banks, word: int = SHARED.bank_width) -> int:
    """Rounds beyond those in which all banks could give as many words."""
    least = sum(-(-len(words) // banks) for words in _served(lanes, width, banks, word))
    return bank_rounds(lanes, width, banks, word) - least
