"""Butterfly reductions: loops that combine registers with those of lane ^ 16, then lane ^ 8, …, lane ^ 1, of 32."""

from __future__ import annotations

from collections.abc import Collection

from texpr.affine.expr import ONE, ZERO, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Ref, Value, walk


def joins_lanes(loop: k.Stmt) -> bool:
    """Whether `loop` is a butterfly reduction of the registers that it assigns, and does nothing else.

    Then a register combines the values of all these lanes, each other lane's once, as follows by induction over the iterations,
    from the lane at half the warp's distance on. All assigned values, and tests of them, are computed from exchanged values, so
    no other rule can match them.
    """
    if not isinstance(loop, k.For) or loop.uniform:
        return False
    moved = {s.target: s.source.sym for s in loop.body if isinstance(s, k.Exchange)}
    first, rest = loop.body[: len(moved)], loop.body[len(moved) :]
    chosen = [s for s in rest if isinstance(s, k.If) and not s.orelse]
    assigned = [t for s in rest for t in (s.then if s in chosen else (s,))]
    return (
        bool(moved)
        and all(isinstance(s, k.Exchange) and _halves(s, loop) for s in first)
        and all(isinstance(s, k.Assign) and {moved[x] for x in _named(s.value, moved)} == {s.sym} for s in assigned)
        and all(_named(s.condition, moved) for s in chosen)
    )


def _named(value: Value, some: Collection[Sym]) -> list[Sym]:
    """Those of `some` registers that a value uses."""
    return [node.sym for node in walk(value) if isinstance(node, Ref) and node.sym in some]


def _halves(exchange: k.Exchange, loop: k.For) -> bool:
    """Whether an exchange has a power of two as mask in the first iteration, halved in each iteration until it is 1."""
    turns = loop.lo, loop.step, loop.hi, exchange.shift
    return exchange.mask.bit_count() == 1 and turns == (ZERO, ONE, expr(exchange.mask.bit_length()), expr(loop.sym))
