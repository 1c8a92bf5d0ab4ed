"""Random alterations of a plan, rich ones: most are wrong, some change nothing that counts, and the verifier must know.

Each alteration takes the body of a kernel, or a whole plan, and a source of chance, and gives another, or None where there is
nothing that it could alter. What comes out is well formed, or is thrown away by who asks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

from tests.proof.plan.altered.loops import bounded, looped
from tests.proof.plan.altered.statements import (
    barriers,
    counted,
    dropped,
    duplicated,
    moved,
    swapped,
    turned,
    unwrapped,
    wrapped,
)
from tests.proof.plan.altered.tree import Body, at_one, spots, transformed
from tests.proof.plan.altered.values import assigned_elsewhere, atomics, exchanged, kept, one_register, reindexed, revalued

from texpr.ir import kernel as k
from texpr.ir.value import Buffer, Load, Ref
from texpr.isa.levels import Space
from texpr.support.record import replace

BODIES: Sequence[Callable[[Body, random.Random], Body | None]] = (
    swapped, moved, moved, duplicated, dropped, unwrapped, wrapped, turned, looped, looped, reindexed, reindexed, exchanged,
    bounded, revalued, one_register, one_register, assigned_elsewhere, kept, barriers, counted, atomics,
)  # fmt: skip


def rebuffered(body: Body, old: Buffer, new: Buffer, rng: random.Random, whole: bool) -> Body | None:
    """One array for another: everywhere, or in one place."""

    def wanted(part: Any) -> bool:
        return isinstance(part, Load) and part.buffer is old

    if whole:
        return transformed(body, lambda p: new if p is old else None)
    return at_one(body, wanted, lambda load: replace(load, buffer=new), rng)


def one_array(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """One array for another of the same type and rank; or two become one."""
    every = [*kernel.buffers, *(a.buffer for a in kernel.arrays if not a.barrier)]
    used = {id(load.buffer) for load in (*k.memory(kernel.body)[0], *k.memory(kernel.body)[1])}
    pairs = [(a, b) for a in every for b in every if a is not b and a.dtype == b.dtype and a.rank == b.rank and id(b) in used]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    body = rebuffered(kernel.body, b, a, rng, rng.random() < 0.5)
    return None if body is None else replace(kernel, body=body)


def respaced(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """An array in another memory, or a dimension smaller or larger."""
    found = [at for at, a in enumerate(kernel.arrays) if not a.barrier and a.space in (Space.SHARED, Space.LOCAL)]
    if not found:
        return None
    at = rng.choice(found)
    array = kernel.arrays[at]
    if array.buffer.rank and rng.random() < 0.5:
        dim, by = rng.randrange(array.buffer.rank), rng.choice([-1, -1, 1])
        shape = tuple(e + by if n == dim else e for n, e in enumerate(array.buffer.shape))
        new = replace(array.buffer, shape=shape)
        made = replace(array, buffer=new)
        body = transformed(kernel.body, lambda p: new if p is array.buffer else None)
        return replace(kernel, body=body, arrays=(*kernel.arrays[:at], made, *kernel.arrays[at + 1 :]))
    other = Space.LOCAL if array.space is Space.SHARED else Space.SHARED
    made = replace(array, space=other, at=None)
    return replace(kernel, arrays=(*kernel.arrays[:at], made, *kernel.arrays[at + 1 :]))


def axes(kernel: k.Kernel, rng: random.Random) -> k.Kernel | None:
    """An axis longer or shorter, or two of them exchanged."""
    at = rng.randrange(len(kernel.axes)) if kernel.axes else 0
    if not kernel.axes:
        return None
    axis = kernel.axes[at]
    if axis.level is k.Level.BLOCK:
        extent = rng.choice([axis.extent // 2, axis.extent - 1, axis.extent + 1])
    else:
        extent = rng.choice([axis.extent - 1, axis.extent + 1, axis.extent // 2])
    return replace(kernel, axes=(*kernel.axes[:at], replace(axis, extent=extent), *kernel.axes[at + 1 :]))


KERNELS: Sequence[Callable[[k.Kernel, random.Random], k.Kernel | None]] = (one_array, one_array, one_array, respaced, axes)


def resteps(steps: tuple[k.HostStep, ...], rng: random.Random) -> tuple[k.HostStep, ...] | None:
    """Launches exchanged, done twice, dropped, moved into or out of a loop of the host."""
    if not steps:
        return None
    loops = [at for at, s in enumerate(steps) if isinstance(s, k.HostLoop)]
    if loops and rng.random() < 0.4:
        at = rng.choice(loops)
        loop = cast("k.HostLoop", steps[at])
        if rng.random() < 0.3:
            return (*steps[:at], replace(loop, extent=loop.extent + rng.choice([1, -1]), together=None), *steps[at + 1 :])
        if at and rng.random() < 0.5:
            return (*steps[: at - 1], replace(loop, steps=(steps[at - 1], *loop.steps), together=None), *steps[at + 1 :])
        inner = resteps(loop.steps, rng)
        return None if inner is None else (*steps[:at], replace(loop, steps=inner, together=None), *steps[at + 1 :])
    at = rng.randrange(len(steps))
    match rng.randrange(4):
        case 0:
            return (*steps[:at], *steps[at + 1 :])
        case 1:
            other = rng.randrange(len(steps) + 1)
            return (*steps[:other], steps[at], *steps[other:])
        case _ if len(steps) > 1:
            a, b = sorted(rng.sample(range(len(steps)), 2))
            made = list(steps)
            made[a], made[b] = made[b], made[a]
            return tuple(made)
        case _:
            return None


def repaired(kernel: k.Kernel, plan: k.Plan) -> k.Kernel:
    """With the memory that it touches among its arguments: which these are, is no bug of interest."""
    read, written = k.memory(kernel.body)
    known = {*plan.params, *plan.results, *plan.workspace}
    used = [b for b in dict.fromkeys(load.buffer for load in (*read, *written)) if b in known and b not in kernel.scalars]
    names = {load.buffer.name for load in written if load.buffer in known}
    mapped = {name for name in kernel.written if name not in {b.name for b in kernel.buffers}}
    return replace(kernel, buffers=tuple(dict.fromkeys((*kernel.buffers, *used))), written=frozenset(names | mapped))


def is_said(kernel: k.Kernel) -> bool:
    """Whether the text of a plan can say it: lanes exchange registers, and read rows."""
    read = {k.Exchange: Ref, k.Shuffle: Load}
    return all(type(s.source) is read[type(s)] for s in k.walk(kernel.body) if isinstance(s, k.Exchange | k.Shuffle))


def with_kernel(steps: tuple[k.HostStep, ...], old: k.Kernel, new: k.Kernel) -> tuple[k.HostStep, ...]:
    """`steps` with one kernel for another."""
    made: list[k.HostStep] = []
    for step in steps:
        if isinstance(step, k.Launch):
            made.append(k.Launch(new) if step.kernel is old else step)
        else:
            made.append(replace(step, steps=with_kernel(step.steps, old, new)))
    return tuple(made)


def altered(
    plan: k.Plan,
    rng: random.Random,
    bodies: Sequence[Callable[[Body, random.Random], Body | None]] = BODIES,
    kernels: Sequence[Callable[[k.Kernel, random.Random], k.Kernel | None]] = KERNELS,
) -> tuple[str, k.Plan] | None:
    """`plan` with one alteration, and its name."""
    every = list(dict.fromkeys(k.kernels(plan.steps)))
    if rng.random() < 0.06 or not every:
        steps = resteps(plan.steps, rng)
        return None if steps is None else ("steps", replace(plan, steps=steps))
    kernel = rng.choice([x for x in every for _ in range(1 + len(spots(x.body)))])
    if rng.random() < 0.2 or not kernel.body:
        change = rng.choice(kernels)
        made = change(kernel, rng)
        name = change.__name__
    else:
        kind = rng.choice(bodies)
        body = kind(kernel.body, rng)
        made, name = None if body is None else replace(kernel, body=body), kind.__name__
    if made is None or made is kernel or not is_said(made):
        return None
    return name, replace(plan, steps=with_kernel(plan.steps, kernel, repaired(made, plan)))
