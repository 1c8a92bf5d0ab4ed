"""The index arithmetic of a mapping: the instructions for iterations, and for the addresses of accesses.

The digits of the thread number are computed once. A thread of a grid band computes its iteration, dividing where loops share
a dimension, and its guard; one of a team steps through loops with compares. Weighted by execution counts, in warp
instructions.
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
"""The dimensions of a grid. With more loops, the two innermost have one each, and the others share one."""


def of_thread(band: Band, digits: Digits) -> Operations:
    """The instructions that a thread runs once for its (first) iteration: digits, block offsets, the guard."""
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
    """The loops of which some threads may have no iteration."""
    tiles = (prod(d.radix for d in each) for each in of_loops(digits, len(band.loops)))
    return sum(1 for tile, extent in zip(tiles, band.extents, strict=True) if tile > 1 and (extent is None or extent % tile))


def least_of_warps(band: Band, chosen: Digits) -> Fraction:
    """A lower bound of the arithmetic of any warp with the digits `chosen`, and others."""
    own = _digits(of_loops(chosen, len(band.loops)), prod(radix for _, radix in chosen))
    if band.entered is None:
        moved = [2 + (band.extents[loop] is None) for loop in {loop for loop, _ in chosen}]
        own += Operations(sum(moved) or 2 + all(e is None for e in band.extents))
    return addresses(band) + Fraction(prod(band.counted) * own.instructions, band.request.lanes)


def addresses(band: Band) -> Fraction:
    """The instructions for the addresses of all accesses, independent of the mapping."""
    return Fraction(prod(band.counted), band.request.lanes) * sum(s.trips * s.arithmetic for s in band.streams)


def _digits(own: Sequence[Sequence[Digit]], threads: int) -> Operations:
    """The `share` of each loop; a test checks that it is."""
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
    """The loops that share the last dimension of the grid: each but the outermost takes a remainder and a quotient."""
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
    """The instructions of a team's loops at each execution of the band: additions and compares."""
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
    """The index arithmetic of all warps of a band: of its mapping, and of the addresses of its accesses."""
    warps = -(-prod(radix for _, radix in digits) // band.request.lanes)
    own = Fraction(of_thread(band, digits).instructions)
    if band.entered is None:
        return addresses(band) + own * warps * prod(_blocks(band, digits), start=Fraction(1))
    return addresses(band) + warps * (own + band.entered * _steps(band, digits))


def _blocks(band: Band, digits: Digits) -> Iterator[Fraction]:
    """The number of blocks along each loop of a grid."""
    for each, extent in zip(of_loops(digits, len(band.loops)), band.extents, strict=True):
        tile = prod(d.radix for d in each)
        yield Fraction(INSIDE, tile) if extent is None else Fraction(-(-extent // tile))
