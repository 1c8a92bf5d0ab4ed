"""Index arithmetic of a mapping: what it takes threads to find their iterations, and the elements that these touch.

A thread has the digits of its number once. One of a grid finds its iteration, past loops that share a dimension, and whether it
is one; one of a team steps on in loops, and compares. Weighed with how often it is done, in instructions of warps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from texpr.ir.steps.digits import Digit
from texpr.mapping.cost.digits import Digits, of_loops
from texpr.mapping.cost.operations import Operations, divisions, is_power, remainders
from texpr.mapping.cost.streams import INSIDE, Band
from texpr.mapping.cost.weights import INSTRUCTIONS

DIMENSIONS = 3
"""Of a grid. Where there are more loops, the inner two have one each, and the others share one."""


def of_thread(band: Band, digits: Digits) -> Operations:
    """What a thread needs once to find its iteration, or the first of them: digits, places of blocks, what keeps it in."""
    threads = prod(radix for _, radix in digits)
    own = of_loops(digits, len(band.loops))
    total = _digits(own, threads)
    if band.entered is not None:
        return total
    tiles = [prod(d.radix for d in each) for each in own]
    for tile, extent in zip(tiles, band.extents, strict=True):
        if tile > 1:
            guarded = extent is None or extent % tile != 0
            total += Operations(1 + guarded, not is_power(tile), is_power(tile))
    return total + _folded(band, tiles)


def compared(band: Band, digits: Digits) -> int:
    """Loops of which some threads may have no iteration."""
    tiles = (prod(d.radix for d in each) for each in of_loops(digits, len(band.loops)))
    return sum(1 for tile, extent in zip(tiles, band.extents, strict=True) if tile > 1 and (extent is None or extent % tile))


def least_of_warps(band: Band, chosen: Digits) -> Fraction:
    """What arithmetic of any warp that has the digits `chosen`, and others, is not below."""
    own = _digits(of_loops(chosen, len(band.loops)), prod(radix for _, radix in chosen))
    if band.entered is None:
        moved = [2 + (band.extents[loop] is None) for loop in {loop for loop, _ in chosen}]
        own += Operations(sum(moved) or 2 + all(e is None for e in band.extents))
    return addresses(band) + Fraction(prod(band.counted) * own.instructions, band.request.lanes)


def addresses(band: Band) -> Fraction:
    """Instructions for the addresses of all accesses, which no mapping changes."""
    return Fraction(prod(band.counted), band.request.lanes) * sum(s.trips * s.arithmetic for s in band.streams)


def _digits(own: Sequence[Sequence[Digit]], threads: int) -> Operations:
    """`share` of each loop, which is tested to be this."""
    strides = {d.stride for each in own for d in each}
    total = Operations()
    for each in own:
        for digit in each:
            total += divisions(digit.stride)
            if digit.radix * digit.stride != threads:
                total += remainders(digit.radix, digit.stride == 1 and digit.radix in strides)
            if digit.weight > 1:
                total += Operations(0, not is_power(digit.weight), is_power(digit.weight))
        total += Operations(max(0, len(each) - 1))
    return total


def _folded(band: Band, tiles: Sequence[int]) -> Operations:
    """The loops that share the last dimension of the grid: each but the outermost is a remainder and leaves a quotient."""
    total = Operations()
    if len(tiles) <= DIMENSIONS:
        return total
    for tile, extent in list(zip(tiles, band.extents, strict=True))[1 : len(tiles) - DIMENSIONS + 1]:
        blocks = None if extent is None else -(-extent // tile)
        total += divisions(blocks) + remainders(blocks, True)
        if blocks is None and tile > 1:
            total += Operations(1) + divisions(tile)
    return total


def _steps(band: Band, digits: Digits) -> Fraction:
    """Instructions for steps of a team's loops, each time it comes to the band: to add, and to compare."""
    tiles = [prod(d.radix for d in each) for each in of_loops(digits, len(band.loops))]
    total, turns = Fraction(0), Fraction(1)
    for extent, span, tile in zip(band.extents, band.spans, tiles, strict=True):
        if extent is not None and extent <= tile:
            total += turns * (extent < tile) * INSTRUCTIONS.addition
            continue
        turns *= -(-span // tile)
        total += turns * 2 * INSTRUCTIONS.addition
    return total


def of_warps(band: Band, digits: Digits) -> Fraction:
    """Instructions of index arithmetic of all warps of a band: of its mapping, and of the addresses of its accesses."""
    warps = -(-prod(radix for _, radix in digits) // band.request.lanes)
    own = Fraction(of_thread(band, digits).instructions)
    if band.entered is None:
        return addresses(band) + own * warps * prod(_blocks(band, digits), start=Fraction(1))
    return addresses(band) + warps * (own + band.entered * _steps(band, digits))


def _blocks(band: Band, digits: Digits) -> Iterator[Fraction]:
    """Blocks along each loop of a grid."""
    for each, extent in zip(of_loops(digits, len(band.loops)), band.extents, strict=True):
        tile = prod(d.radix for d in each)
        yield Fraction(INSIDE, tile) if extent is None else Fraction(-(-extent // tile))
