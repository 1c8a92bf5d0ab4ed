"""Copies of the engine altered: to which blocks they go, what their maps say, runs, sums, tiles, and who does it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import cast

from tests.proof.plan.altered.memory import staged, waited
from tests.proof.plan.altered.tree import Body, near, put, spots

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir.value import Index, Load, Op, Ref, Value
from texpr.support.record import replace

_OWN = k.Declare | k.Assign | k.Store | k.Atomic | k.Barrier | k.Exchange | k.Shuffle
"""What threads do with what is their own, or together: all else has to do with copies."""


def peered(body: Body, rng: random.Random) -> Body | None:
    """A box goes to fewer blocks, to more, to others, or to its own alone."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.CopyTensor)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    ranks = [s.first for _, s in found] + [e for _, s in found for e in s.at]
    made = rng.choice([
        replace(stmt, peers=stmt.peers[:-1]),
        replace(stmt, peers=()),
        replace(stmt, peers=(0,)),
        replace(stmt, peers=(0, 1)),
        replace(stmt, peers=(0, 2)),
        replace(stmt, peers=(0, 1, 2)),
        replace(stmt, peers=(0, 1, 2, 3)),
        replace(stmt, first=stmt.first + rng.choice([1, -1])),
        replace(stmt, first=expr(rng.randrange(3))),
        replace(stmt, first=1 - stmt.first),
        replace(stmt, first=rng.choice(ranks)),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)


def sent(body: Body, rng: random.Random) -> Body | None:
    """One copy is done as another is: to the same blocks, at the same barrier, from the same place."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.CopyTensor)]
    if len(found) < 2:
        return None
    (spot, stmt), (_, other) = rng.sample(found, 2)
    made = rng.choice([
        replace(stmt, peers=other.peers, first=other.first),
        replace(stmt, barrier=other.barrier),
        replace(stmt, target=other.target),
        replace(stmt, at=other.at),
        replace(stmt, map=other.map),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)


def tiled(body: Body, rng: random.Random) -> Body | None:
    """A tile, a run or a barrier begins elsewhere."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.CopyTensor | k.StoreTensor | k.CopyBulk)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    own = [expr(s.sym) for _, s in spots(body) if isinstance(s, k.For)]
    values = [*own, *(e % 2 for e in own), *(load.index[0] for load in stmt.values if _indexed(load))]

    def other(load: Load) -> Load:
        at = rng.randrange(len(load.index))
        moved: Expr = rng.choice([load.index[at] + 1, load.index[at] + 4, load.index[at] - 1, expr(0), *values])
        return replace(load, index=(*load.index[:at], moved, *load.index[at + 1 :]))

    if isinstance(stmt, k.StoreTensor):
        return put(body, spot, replace(stmt, source=other(stmt.source)), drop=1)
    fields = ["target", *(["source"] if isinstance(stmt, k.CopyBulk) else []), *(["barrier"] if stmt.barrier else [])]
    name = rng.choice(fields)
    made = replace(stmt, **{name: other(cast("Load", getattr(stmt, name)))})
    return put(body, spot, made, drop=1)


def _indexed(value: Value) -> bool:
    return isinstance(value, Load) and bool(value.index)


def combined(body: Body, rng: random.Random) -> Body | None:
    """What goes out is combined in another way, or not; a run is longer, shorter, or of a length that is computed."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.StoreTensor | k.CopyBulk)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    if isinstance(stmt, k.StoreTensor) or (stmt.barrier is None and rng.random() < 0.6):
        return put(body, spot, replace(stmt, reduce=rng.choice([None, "add", "max", "min", "or", "xor"])), drop=1)
    own = [expr(s.sym) for _, s in spots(body) if isinstance(s, k.For)]
    lengths: list[Expr | None] = [None, expr(4), expr(8), *(4 * e for e in own), *(4 + 4 * (e % 2) for e in own)]
    made = rng.choice([
        replace(stmt, count=stmt.count + 4),
        replace(stmt, count=max(4, stmt.count - 4)),
        replace(stmt, exactly=rng.choice(lengths)),
        replace(stmt, reduce=rng.choice([None, "add"])),
    ])  # fmt: skip
    return put(body, spot, made, drop=1)


def expected(body: Body, rng: random.Random) -> Body | None:
    """An arrival expects other bytes, at another barrier, or none: or arrives for another one."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.BarrierExpect | k.BarrierWait | k.BarrierInit)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    slots = [s.barrier for _, s in found]
    made: list[k.Stmt] = [replace(stmt, barrier=rng.choice(slots))]
    if isinstance(stmt, k.BarrierExpect):
        made += [replace(stmt, bytes=stmt.bytes + by) for by in (-16, 16, -32, 32, stmt.bytes)]
        made += [k.BarrierArrive(stmt.barrier), replace(stmt, exactly=expr(stmt.bytes))]
    changed = rng.choice(made)
    if isinstance(changed, k.BarrierExpect) and changed.bytes < 0:
        return None
    return put(body, spot, changed, drop=1)


def levelled(body: Body, rng: random.Random) -> Body | None:
    """At a barrier meet the threads of the block, not of its cluster, or the other way round; or it stands elsewhere."""
    found = [(spot, s) for spot, s in spots(body) if isinstance(s, k.Barrier)]
    if not found:
        return None
    spot, stmt = rng.choice(found)
    levels = [each for each in (k.Level.CLUSTER, k.Level.BLOCK) if each is not stmt.level]
    made = replace(stmt, level=rng.choice(levels), part=0)
    left = put(body, spot, drop=1)
    return put(body, spot, made, drop=1) if rng.random() < 0.6 else put(left, near(left, spot, rng), rng.choice([stmt, made]))


def who(body: Body, rng: random.Random) -> Body | None:
    """A test of a rank or of a thread asks for another one, or is gone; or stands around one more thing."""
    tests = [(spot, s) for spot, s in spots(body) if isinstance(s, k.If) and _asks(s.condition)]
    if not tests:
        return None
    spot, stmt = rng.choice(tests)
    op = cast("Op", stmt.condition)
    match rng.randrange(5):
        case 0:
            other = Index(expr(rng.randrange(3)), op.args[1].dtype)
            return put(body, spot, replace(stmt, condition=replace(op, args=(op.args[0], other))), drop=1)
        case 1:
            return put(body, spot, replace(stmt, condition=replace(op, name=rng.choice(["ne", "le", "ge", "lt"]))), drop=1)
        case 2:
            return put(body, spot, *stmt.then, drop=1)
        case 3 if stmt.then:  # what stands first, or last, comes before it, or behind it
            first = rng.random() < 0.5
            rest, out = (stmt.then[1:], stmt.then[0]) if first else (stmt.then[:-1], stmt.then[-1])
            return put(body, spot, *((out, replace(stmt, then=rest)) if first else (replace(stmt, then=rest), out)), drop=1)
        case _:
            taken = rng.choice(tests)[1].condition
            inner = [(where, s) for where, s in spots(body) if isinstance(s, k.Operation) and not isinstance(s, _OWN)]
            place, moved = rng.choice(inner) if inner else (spot, stmt)
            return put(body, place, k.If(taken, (moved,)), drop=1)


def _asks(value: Value) -> bool:
    """Whether a test compares an index with a number."""
    return isinstance(value, Op) and value.name == "eq" and all(isinstance(arg, Index | Ref) for arg in value.args)


def mapped(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """A map says something else of its tensor, or of its boxes."""
    if not kernel.maps:
        return None
    at = rng.randrange(len(kernel.maps))
    map = kernel.maps[at]
    dim, by = rng.randrange(map.rank), rng.choice([1, -1, 4])

    def off(numbers: Sequence[int], amount: int) -> tuple[int, ...]:
        return tuple(n + amount * (d == dim) for d, n in enumerate(numbers))

    made = rng.choice([
        replace(map, sizes=tuple(e + by * (d == dim) for d, e in enumerate(map.sizes))),
        replace(map, strides=tuple(e * 2 for e in map.strides)),
        replace(map, box=off(map.box, rng.choice([4, -4] if dim == 0 else [1, -1, 2]))),
        replace(map, steps=off(map.steps, 1)),
        replace(map, swizzle=rng.choice([0, 32, 64, 128])),
        replace(map, offset=map.offset + rng.choice([4, 8, -4])),
        replace(map, sizes=map.sizes[::-1]),
    ])  # fmt: skip
    return (
        None
        if any(extent <= 0 for extent in made.box)
        else replace(kernel, maps=(*kernel.maps[:at], made, *kernel.maps[at + 1 :]))
    )


def clustered(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """A cluster of more blocks, or fewer, or along another dimension, with a grid that is whole, or not."""
    found = [at for at, axis in enumerate(kernel.axes) if axis.level is k.Level.CLUSTER]
    if not found:
        return None
    at = rng.choice(found)
    axis = kernel.axes[at]
    grid = next((a for a in kernel.axes if a.level is k.Level.GRID and a.dim == axis.dim), None)
    if grid is None:
        return None
    extent = rng.choice([1, 2, 3, 4])
    made = replace(axis, extent=expr(extent))
    if rng.random() < 0.3:
        made = replace(axis, dim=rng.choice("xyz"))
    whole = replace(grid, extent=(grid.extent + extent - 1) // extent * extent) if rng.random() < 0.7 else grid
    return replace(kernel, axes=tuple(made if a is axis else whole if a is grid else a for a in kernel.axes))


WAITING: Sequence[Callable[[Body, random.Random], Body | None]] = (waited, waited, staged, levelled, levelled, expected, who)
"""What of a plan says who waits for whom."""

BODIES: Sequence[Callable[[Body, random.Random], Body | None]] = (peered, sent, tiled, combined, expected, who, who)
KERNELS: Sequence[Callable[[k.Kernel, random.Random], k.Kernel | None]] = (mapped, mapped, clustered)
