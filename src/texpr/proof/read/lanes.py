"""Loops that join registers over lanes: each with what lane ^ 16 has of it, then lane ^ 8, …, then lane ^ 1, of 32."""

from __future__ import annotations

from collections.abc import Collection

from texpr.affine.expr import ONE, ZERO, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Ref, Value, walk


def joins_lanes(loop: k.Stmt) -> bool:
    """Whether `loop` does nothing else, if each register that it assigns is joined with what was exchanged of it.

    Then that holds behind it what all of these lanes held: what the others held joins once, as is seen turn by turn, from the
    lane half of them away on. All that is assigned, and each test of that, is computed of what is exchanged: so nobody can take
    it for anything else.
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
    """Which of some registers a value names."""
    return [node.sym for node in walk(value) if isinstance(node, Ref) and node.sym in some]


def _halves(exchange: k.Exchange, loop: k.For) -> bool:
    """Whether an exchange is by a power of two in the first turn, and by half as much in each turn up to by 1."""
    turns = loop.lo, loop.step, loop.hi, exchange.shift
    return exchange.mask.bit_count() == 1 and turns == (ZERO, ONE, expr(exchange.mask.bit_length()), expr(loop.sym))
