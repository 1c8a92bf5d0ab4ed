"""Which thread of a block touches which element, by running the kernel's indices for each of them: no data are looked at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.kernel.point import Point, holds, number, touched
from texpr.ir.value import Buffer, Index, Load
from texpr.isa.levels import Level
from texpr.support.record import Mutable, Record, field

MOST_STEPS = 400_000
"""Statements that are run, of all threads together; each thread is run as far as its share."""


class Owner(Record):
    """A thread by its number in the block, and whether it writes the element or reads it alone."""

    thread: int
    writes: bool


class Owners(Mutable):
    """Per buffer, the first thread that writes each element, or else reads it. `whole`: whether every statement was run."""

    of: dict[Buffer, dict[tuple[int, ...], Owner]] = field(default_factory=dict[Buffer, "dict[tuple[int, ...], Owner]"])
    whole: bool = True

    def note(self, load: Load, at: Point, kind: str, count: int, thread: int) -> None:
        """That a thread touches `count` elements from one on."""
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
    """What the threads of the first block touch. Conditions on data count as true; loops over data's ends are not run."""
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
    """The statements that a thread runs, with what is known of symbols there; `at` is filled as the thread goes on."""
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
            case k.Declare(value=Index(value)):
                known = number(value, at)
                if known is not None:
                    at[stmt.sym] = known
            case _:
                pass
