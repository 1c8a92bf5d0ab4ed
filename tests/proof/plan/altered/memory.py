"""Where arrays lie, and what waits for copies, altered: places in the memory of a block, groups, stages, signals."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

from tests.proof.plan.altered.tree import Body, at_one, near, places, put, spots, transformed

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.shared import IN_BLOCK, array_bytes, shared_places
from texpr.ir.value import Load
from texpr.support.record import names, replace

WAITED = (
    k.CommitAsync | k.WaitAsync | k.CommitBulk | k.WaitBulk | k.BarrierInit | k.BarrierExpect | k.BarrierArrive
    | k.BarrierWait | k.Fence | k.Barrier
)  # fmt: skip
COPIES = k.CopyAsync | k.CopyTensor | k.StoreTensor | k.CopyBulk
NUMBERS = {"pending", "count", "bytes", "lanes", "part"}


def placed(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """An array that a block shares begins elsewhere: where another does, or ends, or between; or two exchange places."""
    found = [(array, at) for array, at in shared_places(kernel) if not array.barrier]
    if not found:
        return None
    at = {id(array): place for array, place in shared_places(kernel)}
    one, there = rng.choice(found)
    ends = [*at.values(), *(at[id(array)] + array_bytes(array) for array, _ in found)]
    near_ends = [end + by for end in ends for by in (0, 0, -one.align, one.align, -array_bytes(one))]
    others = [a for a, place in found if a is not one and place != there]
    if others and rng.random() < 0.3:
        other = rng.choice(others)
        at[id(one)], at[id(other)] = at[id(other)], there
    else:
        at[id(one)] = rng.choice([place for place in near_ends if place >= 0]) // one.align * one.align
    arrays = tuple(replace(a, at=at[id(a)]) if a.space in IN_BLOCK else a for a in kernel.arrays)
    return replace(kernel, arrays=arrays)


def waited(body: Body, rng: random.Random) -> Body | None:
    """What waits for copies, or ends groups of them: dropped, moved, twice, of another number."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, WAITED)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    numbers = [name for name in names(stmt) if name in NUMBERS]
    path, at = spot
    left = put(body, spot, drop=1)
    match rng.randrange(8):
        case 0:
            return left
        case 1:
            return put(body, near(body, spot, rng), stmt)
        case 2 if numbers:
            name = rng.choice(numbers)
            old = getattr(stmt, name)
            new = rng.choice([old + 1, max(0, old - 1), old + 16, 2 * old])
            return put(left, spot, replace(stmt, **cast("Any", {name: new})))
        case 3 | 4 | 5:  # past its neighbours
            return put(left, (path, max(0, at + rng.choice([-3, -2, -1, 1, 2, 3]))), stmt)
        case _:
            return put(left, near(left, spot, rng), stmt)


def copies(body: Body, rng: random.Random) -> Body | None:
    """A copy done elsewhere, twice, in another way, or under another condition."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, COPIES)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    match rng.randrange(5):
        case 0:
            left = put(body, spot, drop=1)
            return put(left, near(left, spot, rng), stmt)
        case 1:
            return put(body, rng.choice(places(body)), stmt)
        case 2 if isinstance(stmt, k.CopyAsync):
            taken = [s.condition for _, s in spots(body) if isinstance(s, k.If)]
            made = rng.choice([None, *taken])
            return put(body, spot, replace(stmt, when=made), drop=1)
        case 3 if isinstance(stmt, k.CopyAsync):
            return put(body, spot, k.Store(stmt.target, stmt.source, span=stmt.span), drop=1)
        case _:
            stores = [(at, s) for at, s in spots(body) if isinstance(s, k.Store) and isinstance(s.value, Load)]
            if not stores:
                return None
            at, store = rng.choice(stores)
            return put(body, at, k.CopyAsync(store.target, cast("Load", store.value), 1), drop=1)


def staged(body: Body, rng: random.Random) -> Body | None:
    """Another stage of a ring, everywhere or in one place; or a parity of another phase."""
    rings = [(p.buffer, p.index[0]) for _, s in spots(body) for p in _loads(s) if p.index and not p.index[0].is_constant]
    if rings and rng.random() < 0.7:
        buffer, _ = rng.choice(rings)
        by, wide = rng.choice([1, -1, 2]), buffer.shape[0] if buffer.shape[0].is_constant else expr(2)
        change = rng.choice([lambda e: (e + by) % wide, lambda e: e + by, lambda e: (e + by) % 2, lambda e: e % 2])

        def other(load: Load) -> Load:
            return replace(load, index=(change(load.index[0]), *load.index[1:]))

        def wanted(part: Any) -> bool:
            return isinstance(part, Load) and part.buffer is buffer

        if rng.random() < 0.2:
            return transformed(body, lambda part: other(part) if wanted(part) else None)
        return at_one(body, wanted, other, rng)
    waits = [(spot, s) for spot, s in spots(body) if isinstance(s, k.BarrierWait)]
    if not waits:
        return None
    spot, stmt = rng.choice(waits)
    made: Expr = rng.choice([(stmt.parity + 1) % 2, expr(0), expr(1), *(e for _, e in rings)])
    return put(body, spot, replace(stmt, parity=made % 2), drop=1)


def _loads(stmt: k.Stmt) -> Sequence[Load]:
    return [value for value in k.values(stmt) if isinstance(value, Load)]


def ranked(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """A cluster of other blocks, or barriers of it that are of the block alone; and the other way round."""
    found = [(spot, s) for spot, s in spots(kernel.body) if isinstance(s, k.Barrier)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    levels = [each for each in (k.Level.CLUSTER, k.Level.BLOCK, k.Level.WARP) if each is not stmt.level]
    return replace(kernel, body=put(kernel.body, spot, replace(stmt, level=rng.choice(levels), part=0), drop=1))


BODIES: Sequence[Callable[[Body, random.Random], Body | None]] = (waited, waited, waited, copies, staged)
KERNELS: Sequence[Callable[[k.Kernel, random.Random], k.Kernel | None]] = (placed, ranked)
