"""Uniformity: which values are equal in all threads of a group.

A group is a number of consecutive threads: all of a block, some lanes of a warp, or all threads of a cluster. Threads are
numbered x first, then y, then z, so that a group that divides the x axis has one y and one z, and x = group · w + lane. A value
whose simplified expression has no lane in it is uniform in the group; in a cluster, one that has no rank in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.operation import BLOCK, CLUSTER
from texpr.ir.value import Index, Load, Ref, Value, operands
from texpr.isa.levels import Level, Space
from texpr.support.limits import LARGEST_INT
from texpr.support.record import Record, field

_LANE, _GROUP = Sym("lane of the group"), Sym("group of the block")


class Meanings(Record):
    """The values of symbols: of loop indices and integer variables in terms of axes, and of other variables that never
    change."""

    exprs: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    values: Mapping[Sym, Value] = field(default_factory=dict[Sym, Value])
    unknown: frozenset[Sym] = frozenset()

    def index(self, sym: Sym, meaning: Expr) -> Meanings:
        """These values and that of one more index expression."""
        return Meanings({**self.exprs, sym: meaning.substitute(self.exprs)}, self.values, self.unknown)

    def variable(self, sym: Sym, value: Value) -> Meanings:
        """These values and that of a variable that is never assigned."""
        if isinstance(value, Index):
            return self.index(sym, value.expr)
        return Meanings(self.exprs, {**self.values, sym: value}, self.unknown)

    def lacking(self, sym: Sym) -> Meanings:
        """These values and a variable with an unknown one."""
        return Meanings(self.exprs, self.values, self.unknown | {sym})


class Threads:
    """The threads of a kernel's block. The `group` `BLOCK` is all of them, `CLUSTER` those of the cluster.

    Answers are `True` (proved uniform), `False` (the simplified expression depends on the lane) and `None` (undecided).
    """

    def __init__(self, kernel: k.Kernel):
        self._axes = [axis for axis in kernel.axes if axis.level is Level.BLOCK]
        self._own = frozenset(a.sym for a in kernel.axes if a.level in (Level.WARP, Level.THREAD, Level.LANE))
        self._ranges: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in kernel.sizes}
        self._ranks = frozenset(axis.sym for axis in kernel.axes if axis.level is Level.CLUSTER)
        self._parted = {array.buffer for array in kernel.arrays if array.space is not Space.CLUSTER}  # each block has its own
        self._clustered: dict[Sym, Expr] = {}
        shape = dict(zip("xyz", kernel.cluster, strict=True))
        for axis in kernel.axes:
            if axis.level is Level.GRID and (wide := shape.get(axis.dim, 1)) > 1:
                rank, number = Sym(f"rank along {axis.dim}"), Sym(f"cluster along {axis.dim}")
                self._ranges |= {rank: (0, wide - 1), number: (0, LARGEST_INT)}
                self._ranks |= {rank}
                self._clustered[axis.sym] = expr(number) * wide + rank
        for axis in kernel.axes:
            self._ranges[axis.sym] = (0, axis.extent.constant - 1 if axis.extent.is_constant else LARGEST_INT)
        self._simplifiers: dict[int, Simplifier] = {}

    def loop_alike(self, loop: k.For, group: int, meanings: Meanings) -> bool | None:
        """Whether all threads of a group execute the same number of iterations."""
        return _both([self._alike(loop.hi - loop.lo, group, meanings), self._alike(loop.step, group, meanings)])

    def value_alike(self, value: Value, group: int, meanings: Meanings) -> bool | None:
        """Whether a value is the same in all threads of a group.

        A loaded element is uniform where its indices are, since a well-formed program has no race on it.
        """
        match value:
            case Index():
                return self._alike(value.expr, group, meanings)
            case Ref():
                return self._alike(expr(value.sym), group, meanings)
            case Load() if group == CLUSTER and value.buffer in self._parted:
                return None
            case Load():
                for sym, meaning in value.data:
                    meanings = meanings.variable(sym, meaning)
                return True if all(self._alike(e, group, meanings) for e in value.index) else None
            case _:
                return _both([self.value_alike(part, group, meanings) for part in operands(value)])

    def _alike(self, value: Expr, group: int, meanings: Meanings) -> bool | None:
        changing, lanes = self._lanes(group)
        syms = self._simplifier(group)(value.substitute(meanings.exprs).substitute(lanes)).syms()
        if not syms.isdisjoint(changing):
            return False
        kept = [self.value_alike(meanings.values[sym], group, meanings) for sym in syms if sym in meanings.values]
        return _both([*kept, True if syms.isdisjoint(meanings.unknown) else None])

    def _lanes(self, group: int) -> tuple[frozenset[Sym], Mapping[Sym, Expr]]:
        """The symbols that vary within a group, and axes in terms of them."""
        if group == CLUSTER:
            return self._own | self._ranks | {axis.sym for axis in self._axes}, self._clustered
        wide = [axis for axis in self._axes if axis.extent is not expr(1)]
        first = next((axis for axis in wide if axis.dim == "x"), None)
        if group == BLOCK or first is None or (len(wide) > 1 and first.extent.constant % group != 0):
            return self._own | {axis.sym for axis in wide}, {}
        return self._own | {_LANE}, {first.sym: expr(_GROUP) * group + expr(_LANE)}

    def _simplifier(self, group: int) -> Simplifier:
        found = self._simplifiers.get(group)
        if found is None:
            lanes: dict[Sym, Range] = {_LANE: (0, group - 1), _GROUP: (0, LARGEST_INT)} if group > 0 else {}
            found = self._simplifiers[group] = Simplifier(Known({**self._ranges, **lanes}))
        return found


def _both(answers: list[bool | None]) -> bool | None:
    """`True` if all are, else `None` if any is undecided, else `False`."""
    return True if all(answers) else None if None in answers else False
