"""The thread of a block that accesses each element, by evaluation of the kernel's indices for each thread, without data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.point import Point, holds, number, touched
from texpr.ir.value import Buffer, Load
from texpr.isa.levels import Level
from texpr.support.record import Mutable, Record, field

MOST_STEPS = 400_000
"""The most statements that are evaluated for all threads together; each thread gets an equal share."""


class Owner(Record):
    """A thread by its number in the block, and whether it writes the element or only reads it."""

    thread: int
    writes: bool


class Owners(Mutable):
    """Per buffer, the first thread that writes each element, or else the first that reads it. `whole`: every statement was
    evaluated."""

    of: dict[Buffer, dict[tuple[int, ...], Owner]] = field(default_factory=dict[Buffer, "dict[tuple[int, ...], Owner]"])
    whole: bool = True

    def note(self, load: Load, at: Point, kind: str, count: int, thread: int) -> None:
        """Records that a thread accesses `count` consecutive elements."""
        first = [number(index, at) for index in load.index]
        if load.data or None in first:
            return
        found = self.of.setdefault(load.buffer, {})
        writes = kind != "load"
        for more in range(count):
            *outer, last = [each for each in first if each is not None] or [0]
            index = (*outer, last + more) if load.index else ()
            before = found.get(index)
            if before is None or (writes and not before.writes):
                found[index] = Owner(thread, writes)


def owners(kernel: k.Kernel, sizes: dict[Sym, int]) -> Owners:
    """The accesses of the threads of the first block. Conditions on data count as true; loops with data-dependent extents are
    skipped."""
    found = Owners()
    own = [axis for axis in kernel.axes if axis.level in (Level.BLOCK, Level.LANE, Level.WARP)]
    outer = {axis.sym: 0 for axis in kernel.axes if axis not in own}
    bases = {axis.base: 0 for axis in kernel.axes if axis.base is not None}
    ranges = [range(axis.extent.constant) for axis in reversed(own)]
    for thread, indices in enumerate(product(*ranges)):
        point = {**sizes, **outer, **bases, **dict(zip((axis.sym for axis in reversed(own)), indices, strict=True))}
        for step, (stmt, at) in enumerate(run(kernel.body, point)):
            if step * kernel.threads > MOST_STEPS:
                found.whole = False
                break
            for load, kind, count in touched(stmt):
                found.note(load, at, kind, count, thread)
    return found


def run(body: tuple[k.Stmt, ...], at: Point) -> Iterator[tuple[k.Stmt, Point]]:
    """Evaluates the statements of a thread; `at` has the values of symbols, and is extended on the way."""
    for stmt in body:
        yield stmt, at
        match stmt:
            case k.For():
                lo, hi, step = (number(each, at) for each in (stmt.lo, stmt.hi, stmt.step))
                if lo is not None and hi is not None and step is not None:
                    for index in range(lo, hi, step):
                        yield from run(stmt.body, {**at, stmt.sym: index})
            case k.If():
                yield from run(stmt.then if holds(stmt.condition, at, True) else stmt.orelse, at)
            case _:
                known = {sym: number(value, at) for sym, value in k.indices(stmt).items()}
                at.update({sym: value for sym, value in known.items() if value is not None})
