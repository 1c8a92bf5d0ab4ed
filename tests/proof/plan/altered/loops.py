"""Loops of a kernel altered: split, unrolled by hand, turned round, cut, joined, exchanged; with other ends."""

from __future__ import annotations

import random

from tests.proof.plan.altered.tree import Body, copied, fresh, lists, put, renamed, spots, transformed

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Index, Op
from texpr.ir.value.types import BOOL, DTYPES
from texpr.support.record import replace


def at_value(loop: k.For, sym: Sym, value: Expr, mark: str) -> Body:
    """The body of a loop for one value of its index, which may name `sym`."""
    inner = copied(loop.body, (loop,), mark)
    return transformed(inner, lambda p: p.substitute({loop.sym: value}) if isinstance(p, Expr) else None)


def looped(body: Body, rng: random.Random) -> Body | None:
    """A loop split, unrolled by hand, turned round, cut in two, joined with the next, exchanged with the one in it."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.For)]
    if not found:
        return None
    spot, loop = rng.choice(found)
    index, none = DTYPES["i64"], ()

    def guard(value: Expr, then: Body) -> k.If:
        return k.If(Op("lt", (Index(value, index), Index(loop.hi, index)), BOOL), then, none, loop.uniform)

    match rng.randrange(9):
        case 0 | 1:  # by hand, two turns in one
            ends = (loop.hi - loop.lo) % (2 * loop.step)
            next_one = expr(loop.sym) + loop.step
            second = at_value(loop, loop.sym, next_one, "u")
            both = (*loop.body, *(second if ends.is_constant and ends.constant == 0 else (guard(next_one, second),)))
            return put(body, spot, replace(loop, body=both, step=loop.step * 2), drop=1)
        case 2:  # the last one, or the first, behind or before it
            first = replace(loop, lo=loop.lo + loop.step)
            alone = at_value(loop, loop.sym, loop.lo, "p")
            made = (guard(loop.lo, alone), first)
            return put(body, spot, *(made if rng.random() < 0.7 else made[::-1]), drop=1)
        case 3:
            ki, ko = fresh(body, f"{loop.sym.name}_i"), fresh(body, f"{loop.sym.name}_o")
            value = loop.lo + (2 * expr(ko) + ki) * loop.step
            inner = guard(value, at_value(loop, loop.sym, value, "s"))
            turns = (loop.hi - loop.lo + 2 * loop.step - 1) // (2 * loop.step)
            low = replace(loop, sym=ki, lo=expr(0), hi=expr(2), step=expr(1), body=(inner,), kind="serial", reductions=())
            return put(body, spot, replace(low, sym=ko, hi=turns, body=(low,), uniform=loop.uniform), drop=1)
        case 4:
            back = loop.lo + loop.hi - 1 - expr(loop.sym)
            changed = transformed(loop.body, lambda p: p.substitute({loop.sym: back}) if isinstance(p, Expr) else None)
            return put(body, spot, replace(loop, body=changed), drop=1)
        case 5 if len(loop.body) > 1:
            at = rng.randrange(1, len(loop.body))
            return put(body, spot, *(replace(loop, body=b) for b in (loop.body[:at], loop.body[at:])), drop=1)
        case 6 if len(loop.body) == 1 and isinstance(loop.body[0], k.For):
            inside = loop.body[0]
            return put(body, spot, replace(inside, body=(replace(loop, body=inside.body),)), drop=1)
        case 7:
            path, at = spot
            following = dict(lists(body))[path][at + 1 : at + 2]
            if following and isinstance(following[0], k.For):
                other = renamed(following[0].body, {following[0].sym: loop.sym})
                return put(body, spot, replace(loop, body=(*loop.body, *other)), drop=2)
            return None
        case _:
            other = rng.choice([kind for kind in ("serial", "unroll", "simd") if kind != loop.kind])
            made = replace(loop, kind=other) if rng.random() < 0.6 else replace(loop, uniform=not loop.uniform)
            return put(body, spot, made, drop=1)


def bounded(body: Body, rng: random.Random) -> Body | None:
    """A loop with another begin, end, or step."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.For)]
    if not found:
        return None
    spot, loop = rng.choice(found)
    made = rng.choice([
        replace(loop, lo=loop.lo + 1), replace(loop, lo=loop.lo - loop.step), replace(loop, hi=loop.hi - 1),
        replace(loop, hi=loop.hi + 1), replace(loop, hi=loop.hi + loop.step), replace(loop, step=loop.step * 2),
        replace(loop, step=expr(1)), replace(loop, hi=loop.lo + loop.step),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)
