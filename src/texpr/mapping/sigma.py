"""The maps of a band by the solver, where they are cheaper than the mapping by shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.isa.memories import Coalescing
from texpr.mapping.cost.digits import Digits, of_loops
from texpr.mapping.cost.streams import Band, band_of
from texpr.mapping.nest import LoopMap, Role, Solved
from texpr.mapping.solve import Solution, solve
from texpr.support.record import replace

REMEMBERED = 256


def by_solving(
    loops: tuple[ir.Par, ...],
    body: tuple[ir.Stmt, ...],
    shape: tuple[LoopMap, ...],
    values: Mapping[Sym, int],
    request: Coalescing,
    around: Iterable[ir.Loop] = (),
    shared: Mapping[Buffer, int] | None = None,
    banks: int = 0,
) -> tuple[tuple[LoopMap, ...], Solved]:
    """Maps of the band `loops` around `body`, and the solution. `shape`: the maps by shape, with every thread.

    A block of a grid band may get another number of threads. `values`: numbers for sizes; `request`: the machine's model of a
    request; `around`: loops around the band; `shared`: arrays in memory of the block, with the padding of their rows;
    `banks`: their number, if not the machine's.
    """
    role = shape[0].role
    request = replace(request, banks=banks) if banks else request
    band = band_of(loops, body, values, around, shared=shared or {}, team=role is not Role.GRID, request=request)
    first = _digits(loops, shape)
    threads = prod(radix for _, radix in first)
    found = _solved(band, threads, first, role is Role.GRID)
    maps = shape if found.digits == first else _maps(loops, found.digits, role)
    return maps, Solved(loops, band, found)


@lru_cache(REMEMBERED)
def _solved(band: Band, threads: int, shape: Digits, free: bool) -> Solution:
    """`solve`, memoised for equal bands."""
    return solve(band, threads, shape, free)


def forget() -> None:
    """Clears the memo, for measurements of time."""
    _solved.cache_clear()


def _digits(loops: tuple[ir.Par, ...], maps: tuple[LoopMap, ...]) -> Digits:
    """The digits of `maps`, fastest first."""
    every = sorted((digit.stride, loops.index(m.loop), digit.radix) for m in maps for digit in m.digits)
    return tuple((loop, radix) for _, loop, radix in every)


def _maps(loops: tuple[ir.Par, ...], digits: Digits, role: Role) -> tuple[LoopMap, ...]:
    own = zip(loops, of_loops(digits, len(loops)), strict=True)
    return tuple(LoopMap(p, role, tile=prod(d.radix for d in each) if role is Role.GRID else 1, digits=each) for p, each in own)
