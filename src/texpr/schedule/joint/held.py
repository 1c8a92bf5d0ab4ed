"""Who holds what goes through a tile of lanes: another tile, or one value for each of its rows, in the lanes that hold the row.

    s[r, j] by ((4,8),(2,2,8)) : ((2@1,1@0),(1@1,8@0,8@1))      lane 4 * g + q: rows g and g + 8, and of each 16 columns
    m[r]    by ((4,8),2)       : ((0,1@0),8@0)                  lane 4 * g: rows g and g + 8; lanes 4 * g + q ask it for them

So what lacks a dimension of a tile is held as the tile is, without the digits along that dimension. Of the lanes that differ in
such a digit alone, and so hold one row together, the first *owns* it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir.instr.fragment import Digit, Fragment, Misfit
from texpr.ir.value import Buffer
from texpr.support.record import Record, replace


class Held(Record):
    """A local in registers of `lanes`: `shape` and `digits` are as of a fragment, and `gone` are digits of lanes that hold one
    element together. `made`: the registers, by lane."""

    lanes: int
    shape: tuple[int, ...]
    digits: tuple[Digit, ...]
    gone: tuple[Digit, ...]
    made: Buffer

    @property
    def own(self) -> tuple[Digit, ...]:
        """The digits of a register, the slowest first."""
        return tuple(sorted((d for d in self.digits if not d.of_lane), key=lambda digit: -digit.weight))

    def is_like(self, other: Held) -> bool:
        """Whether equal elements of both are in equal lanes and registers."""
        return (self.lanes, self.shape, self.digits, self.gone) == (other.lanes, other.shape, other.digits, other.gone)

    def owner(self, lane: Expr) -> Expr:
        """The lane that owns what `lane` holds with others."""
        return lane - sum((digit.of(lane, self.lanes) * digit.weight for digit in self.gone), ZERO)

    def element(self, lane: Expr, names: Sequence[Sym]) -> tuple[Expr, ...]:
        """The element of a lane in the register whose digits are called `names`, the slowest first."""
        found = [ZERO for _ in self.shape]
        named = dict(zip(self.own, names, strict=True))
        for digit in self.digits:
            assert digit.dim is not None, "what is held has no copies but those that are gone"
            value = digit.of(lane, self.lanes) if digit.of_lane else expr(named[digit])
            found[digit.dim] += value * digit.step
        return tuple(found)

    def register(self, index: Sequence[Expr]) -> Expr:
        """The register of an element."""
        return sum((d.at(index[d.dim or 0], self.shape[d.dim or 0]) * d.weight for d in self.own), ZERO)

    def lane(self, index: Sequence[Expr]) -> Expr:
        """The lane that owns an element."""
        lanes = (digit for digit in self.digits if digit.of_lane)
        return sum((d.at(index[d.dim or 0], self.shape[d.dim or 0]) * d.weight for d in lanes), ZERO)


def tile_of(held: Fragment, made: Buffer) -> Held:
    """A tile that is summed up."""
    return Held(held.lanes, held.shape, _sorted(digit for digit in held.digits if digit.size > 1), (), made)


def part_of(tile: Held, index: Sequence[Expr], of: Sequence[Expr], buffer: Buffer) -> Held | None:
    """`buffer`, touched at `of` where a tile is at `index`, if its subscripts are some of these."""
    dims = dims_of(index, of)
    if dims is None or tuple(e.constant if e.is_constant else -1 for e in buffer.shape) != tuple(tile.shape[d] for d in dims):
        return None
    to = {dim: at for at, dim in enumerate(dims)}
    kept, gone, weight = list[Digit](), list(tile.gone), 1
    for digit in tile.digits:
        own = None if digit.dim is None else to.get(digit.dim)
        if own is None:
            gone += [replace(digit, dim=None)] if digit.of_lane else []
        elif digit.of_lane:
            kept.append(replace(digit, dim=own))
        else:
            kept.append(replace(digit, dim=own, weight=weight))
            weight *= digit.size
    shape = (expr(tile.lanes), expr(weight))
    return Held(tile.lanes, tuple(tile.shape[d] for d in dims), _sorted(kept), _sorted(gone), replace(buffer, shape=shape))


def dims_of(index: Sequence[Expr], of: Sequence[Expr]) -> tuple[int, ...] | None:
    """The dimensions of a tile that subscripts `of` are, where it is touched at `index`; None if they are others."""
    found = tuple(next((dim for dim, each in enumerate(index) if each is e), -1) for e in of)
    return None if -1 in found or len(set(found)) < len(found) else found


def register_of(part: Held, tile: Held, names: Mapping[Digit, Sym], dims: Sequence[int]) -> Expr:
    """The register of `part` for that of a tile whose digits are called `names`; `dims`: the tile's dimensions that it has.

    Raises Misfit.
    """
    total = ZERO
    for digit in part.own:
        of = (dims[digit.dim or 0], digit.size, digit.step)
        same = next((each for each in tile.own if (each.dim, each.size, each.step) == of), None)
        if same is None:
            raise Misfit(f"`{part.made.name}` is not held as `{tile.made.name}` is")
        total += expr(names[same]) * digit.weight
    lanes = {(dims[d.dim or 0], d.size, d.step, d.weight) for d in part.digits if d.of_lane}
    if not lanes <= {(d.dim, d.size, d.step, d.weight) for d in tile.digits if d.of_lane}:
        raise Misfit(f"`{part.made.name}` is in other lanes than `{tile.made.name}`")
    return total


def _sorted(digits: Iterable[Digit]) -> tuple[Digit, ...]:
    return tuple(sorted(digits, key=lambda digit: (digit.of_lane, digit.weight)))
