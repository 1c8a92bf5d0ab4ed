"""Order of instances in the program: by their times, of which that of the earlier one is lexicographically smaller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.presburger.formula import FALSE, Eq, Formula, compare, conj, disj
from texpr.presburger.isl.raw import Undecided
from texpr.proof.read.actions import ARMS, Spot

When: TypeAlias = tuple["int | tuple[ir.Loop, Expr]", ...]
Case: TypeAlias = tuple[bool, Formula]


def when(spot: Spot, indices: Mapping[Sym, Sym | Expr], last: int) -> When:
    """The time of an instance in the program, in coordinates of the kernel; of a whole loop if its index is not given.

    `last`: the position within one statement; negative for accesses that are not in the program.
    """
    found: list[int | tuple[ir.Loop, Expr]] = []
    for step in spot.time:
        if not isinstance(step, int) and step.sym not in indices:
            break
        found.append(step if isinstance(step, int) else (step, expr(indices[step.sym])))
    return (*found, last)


def is_free(loop: ir.Loop, stored: Buffer | Sym | None) -> bool:
    """Whether iterations are unordered, except for their effects on memory other than `stored`."""
    return isinstance(loop, ir.Par) and stored not in loop.reduce


def cases(a: When, b: When, free: Buffer | Sym | None, *, whole: bool = False, either: int = 0) -> Iterator[Case]:
    """The cases in which `a` precedes `b` in the program: whether they first differ in a `par` that does not reduce into
    `free`.

    For the first `either` such loops, both orders count. Of statements in the two arms of a branch, in one iteration of all
    loops around it, only one executes.

    If one represents all iterations of a loop that reduces into `free`, and the other is in one of them, they are updates whose
    order is free. That is undecided, or with `whole` neither precedes the other.
    """
    before, depth = list[Formula](), 0
    for mine, theirs in zip(a, b, strict=False):
        if isinstance(mine, int) or isinstance(theirs, int):
            if mine == theirs:
                continue
            if not (isinstance(mine, int) and isinstance(theirs, int)):
                if whole:
                    return
                raise Undecided("one stands for a whole loop of which the other is a part")
            if mine < theirs and not in_arms(a, b, mine, theirs):
                yield False, conj(before)
            return
        (loop, x), (_, y) = mine, theirs
        op = "!=" if is_free(loop, free) and depth < either else "<"
        yield is_free(loop, free), FALSE if x is y else conj((*before, compare(op, x, y)))
        depth += 1
        before += equals(x, y)


def in_arms(a: When, b: When, mine: int, theirs: int) -> bool:
    """Whether two positions are in arms of which one executes. Copies and holes are not in the program: the arm that has their
    time may be the one that does not execute, so they are ordered with the other arm, too."""
    return [mine, theirs] == ARMS and all(not isinstance(x[-1], int) or x[-1] >= 0 for x in (a, b))


def precedes(a: When, b: When, free: Buffer | Sym | None) -> Formula:
    """The condition that `a` precedes `b` in the program, where that is known."""
    return disj(f for _, f in cases(a, b, free, whole=True))


def equals(x: Expr, y: Expr) -> tuple[Formula, ...]:
    """The condition that two numbers are equal; empty if they are the same expression."""
    return () if x is y else (Eq(x - y),)
