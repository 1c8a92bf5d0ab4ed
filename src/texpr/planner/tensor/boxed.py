"""Words of a schedule for what the engine brings, in rows of as many bytes as the widest swizzle, and for orders of tiles."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.value import Load
from texpr.isa.engine import LINE
from texpr.planner.follow import Value

SPAN = LINE
"""Bytes of a row of an operand in shared memory: within as many a swizzle moves chunks."""


def grouped(rows: int) -> ir.Group:
    """The order of so many rows of tiles at a time."""
    return ir.Group((ir.Argument("grouped"), ir.Argument(rows)))


def by_engine(load: Load, sizes: Mapping[Sym, int]) -> dict[str, Value]:
    """How the engine copies what is read in iterations of so many: to rows of as many bytes as the swizzle."""
    keys: dict[str, Value] = {"via": "tma", "space": "shared", "swizzle": f"{SPAN}B"}
    extents, most = [extent(e, sizes) for e in load.index], SPAN // load.buffer.dtype.bytes
    if extents[-1] > most:
        keys["box"] = ir.Group(tuple(ir.Argument(size) for size in (*extents[:-1], most)))
    return keys


def extent(index: Expr, sizes: Mapping[Sym, int]) -> int:
    """Elements from the least to the greatest that a subscript is in a tile."""
    others = {sym: 1 for sym in index.syms() if sym not in sizes}  # which may divide
    first = index.evaluate({sym: others.get(sym, 0) for sym in index.syms()})
    return index.evaluate({sym: others.get(sym, sizes.get(sym, 1) - 1) for sym in index.syms()}) - first + 1
