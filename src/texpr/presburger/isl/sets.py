"""Sets of integer points over named dimensions, with parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from texpr.affine.expr import IntoExpr, Sym, expr
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, conj
from texpr.presburger.isl.build import build_map
from texpr.presburger.isl.raw import integer, limited, param_names, points_of
from texpr.support.lazy import Module
from texpr.support.record import Record

if TYPE_CHECKING:
    import islpy as isl
else:  # imported on first use: many programs are decided without isl
    isl = Module("islpy")


class Set(Record, eq=False):
    """Points over `dims`, by position; parameters are identified by name across sets."""

    dims: tuple[Sym, ...]
    raw: isl.Set

    @staticmethod
    def of(dims: Sequence[Sym], formula: Formula = TRUE, *, exists: Sequence[Sym] = (), params: Sequence[Sym] = ()) -> Set:
        """{ dims : ∃ exists : formula }; every other symbol is a parameter. Raises NotAffine, Undecided."""
        return Set(tuple(dims), limited(build_map((), dims, formula, exists, params).range))

    @staticmethod
    def empty(dims: Sequence[Sym]) -> Set:
        """The empty set."""
        universe = Set.of(dims)
        return Set(universe.dims, limited(lambda: isl.Set.empty(universe.raw.get_space())))

    @property
    def params(self) -> tuple[Sym, ...]:
        """The parameters of the set's space, used or not."""
        return tuple(map(Sym, param_names(self.raw.get_space())))

    def __str__(self) -> str:
        return _named(self.raw, self.dims).to_str()

    def is_empty(self) -> bool:
        """Whether the set has no point for any value of the parameters."""
        return limited(self.raw.is_empty)

    def is_subset(self, other: Set) -> bool:
        """Whether every point is in `other`, for all values of the parameters."""
        return limited(lambda: self.raw.is_subset(other.raw))

    def is_equal(self, other: Set) -> bool:
        """Whether both hold the same points, for all values of the parameters."""
        return limited(lambda: self.raw.is_equal(other.raw))

    def intersect(self, other: Set) -> Set:
        """The intersection."""
        return Set(self.dims, limited(lambda: self.raw.intersect(other.raw)))

    def union(self, other: Set) -> Set:
        """The union."""
        return Set(self.dims, limited(lambda: self.raw.union(other.raw)))

    def subtract(self, other: Set) -> Set:
        """The difference."""
        return Set(self.dims, limited(lambda: self.raw.subtract(other.raw)))

    def where(self, formula: Formula) -> Set:
        """Points at which `formula`, over the dimensions and parameters, holds."""
        return self.intersect(Set.of(self.dims, formula))

    def coalesce(self) -> Set:
        """The same points in fewer pieces."""
        return Set(self.dims, limited(self.raw.coalesce))

    def gist(self, context: Set) -> Set:
        """A simpler set that is equal within `context`."""
        return Set(self.dims, limited(lambda: self.raw.gist(context.raw)))

    def project_out(self, dims: Collection[Sym]) -> Set:
        """The projection onto the other dimensions."""
        drop = [k for k, d in enumerate(self.dims) if d in dims]

        def answer() -> isl.Set:
            raw = self.raw
            for position in reversed(drop):
                raw = raw.project_out(isl.dim_type.set, position, 1)
            return raw

        return Set(tuple(d for d in self.dims if d not in dims), limited(answer))

    def product(self, other: Set) -> Set:
        """Pairs of points, as flat tuples."""
        return Set((*self.dims, *other.dims), limited(lambda: self.raw.flat_product(other.raw)))

    def renamed(self, dims: Sequence[Sym]) -> Set:
        """The same points with other names of the dimensions."""
        return Set(tuple(dims), self.raw)

    def fix(self, values: Mapping[Sym, int]) -> Set:
        """The points at the given values of parameters and dimensions; the dimensions stay."""
        if not values:
            return self
        return self.where(conj(Eq(expr(sym) - value) for sym, value in values.items()))

    def params_as_dims(self) -> Set:
        """Parameters moved in front of the dimensions."""
        params = self.params
        moved = limited(lambda: self.raw.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, len(params)))
        return Set((*params, *self.dims), moved)

    def sample(self) -> dict[Sym, int] | None:
        """A point and values of the parameters for it, small and non-negative where possible; None if there is none."""
        free = self.params_as_dims()
        if free.is_empty():
            return None
        positive = free.where(conj(_nonnegative(free.dims)))
        chosen = free if positive.is_empty() else positive
        found: dict[Sym, int] = {}
        for position, dim in enumerate(free.dims):
            value = chosen._least(position)
            found[dim] = value
            chosen = chosen.fix({dim: value})
        return found

    def _least(self, position: int) -> int:
        """The value closest to zero in one dimension of a non-empty set without parameters."""
        low = integer(limited(lambda: self.raw.dim_min_val(position)))
        if low is not None and low >= 0:
            return low
        dim = self.dims[position]
        right, left = self.where(_at_least(dim, 0)), self.where(_at_most(dim, 0))
        least = None if right.is_empty() else integer(limited(lambda: right.raw.dim_min_val(position)))
        most = None if left.is_empty() else integer(limited(lambda: left.raw.dim_max_val(position)))
        candidates = [v for v in (least, most) if v is not None]
        return min(candidates, key=lambda v: (abs(v), -v))

    def bounds(self, value: IntoExpr) -> tuple[int | None, int | None]:
        """The minimum and maximum of an expression over all points and parameters; None where unbounded."""
        free = self.params_as_dims()
        probe = Sym("⟨probe⟩")
        line = Set.of((*free.dims, probe), Eq(expr(probe) - value))
        joined = limited(lambda: free.raw.flat_product(isl.Set.universe(Set.of((probe,)).raw.get_space())).intersect(line.raw))
        position = len(free.dims)
        if limited(joined.is_empty):
            return (0, -1)
        return (
            integer(limited(lambda: joined.dim_min_val(position))),
            integer(limited(lambda: joined.dim_max_val(position))),
        )

    def points(self, params: Mapping[Sym, int] | None = None) -> frozenset[tuple[int, ...]]:
        """Every point at the given values of all parameters. The set must be bounded there."""
        fixed = self.fix(params or {})
        count = len(fixed.params)
        closed = limited(lambda: fixed.raw.project_out(isl.dim_type.param, 0, count))
        return frozenset(limited(lambda: points_of(closed)))


def _nonnegative(dims: Sequence[Sym]) -> list[Formula]:
    return [_at_least(d, 0) for d in dims]


def _at_least(dim: Sym, bound: int) -> Formula:
    return Ge(expr(dim) - bound)


def _at_most(dim: Sym, bound: int) -> Formula:
    return Ge(bound - expr(dim))


def _named(raw: isl.Set, dims: Sequence[Sym]) -> isl.Set:
    for position, dim in enumerate(dims):
        raw = raw.set_dim_name(isl.dim_type.set, position, dim.name)
    return raw
