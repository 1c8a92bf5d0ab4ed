"""Statements of a kernel altered: in another order, elsewhere, twice, not at all, under another test; barriers."""

from __future__ import annotations

import random
from typing import Any, cast

from tests.proof.plan.altered.tree import Body, lists, near, places, put, spots, with_list

from texpr.ir import kernel as k
from texpr.ir.value import Literal, Op, conjuncts
from texpr.ir.value.types import BOOL
from texpr.support.record import names, replace

COUNTS = {"mask", "width", "pending", "count", "lanes", "part", "factor"}
"""Fields of statements that are numbers."""


def swapped(body: Body, rng: random.Random) -> Body | None:
    pairs = [(path, at) for path, block in lists(body) for at in range(len(block) - 1)]
    if not pairs:
        return None
    path, at = rng.choice(pairs)
    return with_list(body, path, lambda b: (*b[:at], b[at + 1], b[at], *b[at + 2 :]))


def moved(body: Body, rng: random.Random) -> Body | None:
    spot, stmt = rng.choice(spots(body))
    count = rng.choice([1, 1, 1, 2])
    path, at = spot
    taken = dict(lists(body))[path][at : at + count]
    left = put(body, spot, drop=len(taken))
    return put(left, near(left, spot, rng), *taken) if stmt else None


def duplicated(body: Body, rng: random.Random) -> Body | None:
    spot, stmt = rng.choice(spots(body))
    return put(body, near(body, spot, rng), stmt)


def dropped(body: Body, rng: random.Random) -> Body | None:
    spot, _ = rng.choice(spots(body))
    return put(body, spot, drop=1)


def unwrapped(body: Body, rng: random.Random) -> Body | None:
    """The statements of a loop or a branch without it."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.If)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    return put(body, spot, *rng.choice(k.blocks(stmt)), drop=1)


def wrapped(body: Body, rng: random.Random) -> Body | None:
    """A statement under a condition, or in a loop, that stands elsewhere."""
    heads = [s for _, s in spots(body) if isinstance(s, k.For | k.If)]
    spot, stmt = rng.choice(spots(body))
    if not heads:
        return None
    head = rng.choice(heads)
    made = replace(head, body=(stmt,)) if isinstance(head, k.For) else replace(head, then=(stmt,), orelse=())
    return put(body, spot, made, drop=1)


def turned(body: Body, rng: random.Random) -> Body | None:
    """A branch with its arms exchanged, its test turned round or weakened."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.If)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    tests = list(conjuncts(stmt.condition))
    made = rng.choice([
        replace(stmt, then=stmt.orelse, orelse=stmt.then),
        replace(stmt, condition=Op("not", (stmt.condition,), BOOL)),
        replace(stmt, condition=rng.choice(tests)),
        replace(stmt, condition=Literal(1, BOOL)),
        replace(stmt, orelse=stmt.then),
        replace(stmt, uniform=not stmt.uniform),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)


def barriers(body: Body, rng: random.Random) -> Body | None:
    """A barrier weakened, or one more."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Barrier)]
    if not found or rng.random() < 0.1:
        return put(body, rng.choice(places(body)), k.Barrier(rng.choice([k.Level.WARP, k.Level.BLOCK])))
    spot, stmt = rng.choice(found)
    if rng.random() < 0.4:
        return put(body, spot, drop=1)
    if rng.random() < 0.5:
        return put(left := put(body, spot, drop=1), near(left, spot, rng), stmt)
    return put(body, spot, replace(stmt, level=k.Level.WARP, lanes=rng.choice([32, 32, 16, 8])), drop=1)


def counted(body: Body, rng: random.Random) -> Body | None:
    """A number of a statement: the mask of an exchange, how many groups are waited for."""
    found = [(spot, s, name) for spot, s in spots(body) for name in names(s) if name in COUNTS]
    if not found:
        return None
    spot, stmt, name = rng.choice(found)
    old = getattr(stmt, name)
    new = rng.choice([old + 1, max(0, old - 1), old * 2, old // 2])
    return put(body, spot, replace(stmt, **cast("Any", {name: new})), drop=1)
