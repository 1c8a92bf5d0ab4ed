"""The coordinates of a kernel: its axes, and the indices of the grid's loops in terms of them.

Before: the loops of a nest that are mapped to the grid, with their tiles. After: hardware axes, and variables declared first.

    par m |r| by blocks of 4, a warp each     →     axis block.x thread < 128     axis grid.x r_block < (m + 3) / 4
                                                    let r: i32 = i32(4 * r_block + thread / 32)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum
from texpr.ir import kernel as k
from texpr.isa.target import Target
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.names import Names
from texpr.mapping.nest import Nest
from texpr.presburger.formula import Ge
from texpr.presburger.solve.products import is_never_negative
from texpr.relation.facts import known
from texpr.support.diagnostic import limitation
from texpr.support.record import Mutable, Record, field


class Coordinates(Record):
    """`axes` of a kernel; `prelude`: declarations of indices in terms of these; `blocks`: the index of a block along each loop
    of the grid; `thread`: the number of a thread in its block; `rank`: the rank of a block among those that share an
    iteration."""

    axes: tuple[k.Axis, ...]
    prelude: tuple[k.Stmt, ...]
    blocks: tuple[Expr, ...]
    thread: Expr
    rank: Sym | None


def coordinates(nest: Nest, target: Target, names: Names, cluster: Cluster, given: Iterable[Expr]) -> Coordinates:
    """The coordinates of a nest. `given`: expressions of sizes that are at least 0.

    Raises Limitation if the grid lacks a dimension that is asked for, or if clusters are of two kinds.
    """
    rank = names.sym("rank") if nest.blocks > 1 else None
    return _Coordinates(nest, target, names, cluster, tuple(given), rank).run()


class _Coordinates(Mutable):
    nest: Nest
    target: Target
    names: Names
    cluster: Cluster
    given: tuple[Expr, ...]
    rank: Sym | None
    thread: Expr = ZERO
    axes: list[k.Axis] = field(default_factory=list[k.Axis])
    prelude: list[k.Stmt] = field(default_factory=list[k.Stmt])

    def run(self) -> Coordinates:
        axes, prelude = self.axes, self.prelude
        if self.nest.threads > 1:
            thread = self.names.sym("thread")
            self.thread = expr(thread)
            axes.append(k.Axis(thread, k.Level.BLOCK, expr(self.nest.threads)))
        blocks = self._block_coordinates(axes, prelude)
        for loop_map, block in zip(self.nest.grid, blocks, strict=True):
            if loop_map.tile > 1 and loop_map.points == 1:
                index = block * loop_map.tile + loop_map.share(self.thread, self.nest.threads)
                prelude.append(k.let(loop_map.loop.sym, index, loop_map.loop.span))
        return Coordinates(tuple(axes), tuple(prelude), blocks, self.thread, self.rank)

    def _block_coordinates(self, axes: list[k.Axis], prelude: list[k.Stmt]) -> tuple[Expr, ...]:
        syms = tuple(m.loop.sym if m.tile == 1 else self.names.sym(f"{m.loop.sym.base}_block") for m in self.nest.grid)
        extents = tuple(map(self.cluster.extent, self.nest.grid))
        if self.rank is not None:
            return self._with_rank(syms, extents, axes, prelude)
        if self.target.has_cores:
            axes.extend(k.Axis(s, k.Level.CORE, e) for s, e in zip(syms, extents, strict=True))
            return tuple(map(expr, syms))
        direct = 3 if len(syms) <= 3 else 2
        asked = {m.dim: place for place, m in enumerate(self.nest.grid) if m.dim}
        for place, dim in self._dimensions(asked, len(syms), direct):
            base = None if dim == "x" else self.names.sym(f"{syms[place].base}_base")
            axes.append(k.Axis(syms[place], k.Level.GRID, extents[place], dim, base))
        axes.extend(self.cluster.axes)
        folded = len(syms) - direct
        if folded > 0:
            self._fold(syms[:folded], extents[:folded], axes, prelude)
        return tuple(map(expr, syms))

    def _with_rank(
        self, syms: tuple[Sym, ...], extents: tuple[Expr, ...], axes: list[k.Axis], prelude: list[k.Stmt]
    ) -> tuple[Expr, ...]:
        """The block coordinates if the blocks of a cluster share an iteration: the rank has a dimension of its own."""
        assert self.rank is not None
        if any(m.cluster > 1 for m in self.nest.grid):
            reason = "blocks along a loop of the grid are in clusters, and so are those that share one of its iterations"
            raise limitation("E0918", self.nest.grid[0].loop.span, reason, help="a kernel has clusters of one kind")
        own, blocks = self.names.sym("cluster_block"), expr(self.nest.blocks)
        cut = max(len(syms) - 1, 0)
        every, wide = (*syms[:cut], own, *syms[cut:]), (*extents[:cut], blocks, *extents[cut:])
        asked = {m.dim: place + (place >= cut) for place, m in enumerate(self.nest.grid) if m.dim}
        direct = 3 if len(every) <= 3 else 2
        for place, dim in self._dimensions(asked, len(every), direct):
            base = None if dim == "x" or place == cut else self.names.sym(f"{every[place].base}_base")
            axes.append(k.Axis(every[place], k.Level.GRID, wide[place], dim, base))
            if place == cut:
                axes.append(k.Axis(self.rank, k.Level.CLUSTER, blocks, dim))
        if len(every) > direct:
            self._fold(every[: len(every) - direct], wide[: len(every) - direct], axes, prelude)
        return tuple(map(expr, syms))

    def _dimensions(self, asked: Mapping[str, int], count: int, direct: int) -> Iterator[tuple[int, str]]:
        """The dimension of the grid for each of `count` loops: as asked for, else x for the innermost, and so on."""
        if asked and count > 3:
            reason = f"a grid has three dimensions, and {count} loops are to share it"
            raise limitation("E0910", self.nest.grid[0].loop.span, reason)
        free = (place for place in range(count - 1, count - 1 - direct, -1) if place >= 0 and place not in asked.values())
        for dim in "xyz":
            place = asked[dim] if dim in asked else next(free, None)
            if place is not None:
                yield place, dim

    def _fold(self, syms: Sequence[Sym], extents: Sequence[Expr], axes: list[k.Axis], prelude: list[k.Stmt]) -> None:
        """Folds surplus loops into dimension z: the outer ones become digits of its coordinate.

        A negative extent is of an empty loop, but a product of two negative extents is positive, so extents are clamped.
        """
        extents = tuple([e if self._is_never_negative(e) else maximum(e, 0) for e in extents])
        total = ONE
        for extent in extents:
            total = total * extent
        z = self.names.sym("outer_blocks")
        axes.append(k.Axis(z, k.Level.GRID, total, "z", self.names.sym("outer_base")))
        rest = expr(z)
        for number, (sym, count) in enumerate(zip(reversed(syms), reversed(extents), strict=True)):
            last = number == len(syms) - 1
            extent = ONE if count is ZERO else count  # no block executes then
            prelude.append(k.let(sym, rest if last else rest % extent))
            if not last:
                left = self.names.sym("outer_left")
                prelude.append(k.let(left, rest // extent))
                rest = expr(left)

    def _is_never_negative(self, extent: Expr) -> bool:
        """Whether the promises on sizes prove it."""
        return known(self.given).nonnegative(extent) or is_never_negative(extent, map(Ge, self.given))
