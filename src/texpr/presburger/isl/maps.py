"""Relations between integer points over named dimensions, with parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from texpr.affine.expr import Expr, IntoExpr, Sym, expr
from texpr.presburger.formula import TRUE, Eq, Formula, conj, differ, equal
from texpr.presburger.isl.build import build_map
from texpr.presburger.isl.raw import limited, param_names
from texpr.presburger.isl.sets import Set
from texpr.support.lazy import Module
from texpr.support.record import Record

if TYPE_CHECKING:
    import islpy as isl
else:  # imported on first use: many programs are decided without isl
    isl = Module("islpy")


class Map(Record, eq=False):
    """Pairs of a point over `ins` and a point over `outs`; the two may use the same names."""

    ins: tuple[Sym, ...]
    outs: tuple[Sym, ...]
    raw: isl.Map

    @staticmethod
    def of(
        ins: Sequence[Sym],
        outs: Sequence[Sym],
        formula: Formula = TRUE,
        *,
        exists: Sequence[Sym] = (),
        params: Sequence[Sym] = (),
    ) -> Map:
        """{ ins → outs : ∃ exists : formula }; every other symbol is a parameter.

        In `formula` a symbol that stands on both sides is written `left(s)` or `right(s)`. Raises NotAffine, Undecided.
        """
        both = set(ins) & set(outs)
        lefts = [left(s) if s in both else s for s in ins]
        rights = [right(s) if s in both else s for s in outs]
        return Map(tuple(ins), tuple(outs), build_map(lefts, rights, formula, exists, params))

    @staticmethod
    def function(ins: Sequence[Sym], outs: Sequence[Sym], values: Sequence[IntoExpr], domain: Set | None = None) -> Map:
        """{ ins → outs : outs = values }, the values being expressions over `ins` and parameters."""
        fresh = [Sym(f"⟨{k}⟩") for k in range(len(outs))]
        built = build_map(ins, fresh, equal(fresh, values))
        found = Map(tuple(ins), tuple(outs), built)
        return found if domain is None else found.intersect_domain(domain)

    @property
    def params(self) -> tuple[Sym, ...]:
        """The parameters of the map's space, used or not."""
        return tuple(map(Sym, param_names(self.raw.get_space())))

    def __str__(self) -> str:
        raw = self.raw
        for position, dim in enumerate(self.ins):
            raw = raw.set_dim_name(isl.dim_type.in_, position, dim.name)
        for position, dim in enumerate(self.outs):
            raw = raw.set_dim_name(isl.dim_type.out, position, dim.name + ("'" if dim in self.ins else ""))
        return raw.to_str()

    def left(self, value: IntoExpr) -> Expr:
        """`value`, an expression over `ins`, in the names that `where` uses for the side of `ins`."""
        return expr(value).substitute({s: left(s) for s in self.ins})

    def right(self, value: IntoExpr) -> Expr:
        """`value`, an expression over `outs`, in the names that `where` uses for the side of `outs`."""
        return expr(value).substitute({s: right(s) for s in self.outs})

    def where(self, formula: Formula) -> Map:
        """Pairs at which a formula over `self.left(…)`, `self.right(…)` and parameters holds. Raises NotAffine."""
        raw = build_map([left(s) for s in self.ins], [right(s) for s in self.outs], formula)
        return Map(self.ins, self.outs, limited(lambda: self.raw.intersect(raw)))

    def where_equal(self, lefts: Sequence[IntoExpr], rights: Sequence[IntoExpr]) -> Map:
        """Pairs at which `lefts` (over `ins`) equals `rights` (over `outs`), entry by entry."""
        return self.where(equal(map(self.left, lefts), map(self.right, rights)))

    def where_differ(self, lefts: Sequence[IntoExpr], rights: Sequence[IntoExpr]) -> Map:
        """Pairs at which `lefts` (over `ins`) and `rights` (over `outs`) differ in some entry."""
        return self.where(differ(map(self.left, lefts), map(self.right, rights)))

    def is_empty(self) -> bool:
        """Whether the map has no pair for any value of the parameters."""
        return limited(self.raw.is_empty)

    def is_subset(self, other: Map) -> bool:
        """Whether every pair is in `other`, for all values of the parameters."""
        return limited(lambda: self.raw.is_subset(other.raw))

    def is_equal(self, other: Map) -> bool:
        """Whether both hold the same pairs, for all values of the parameters."""
        return limited(lambda: self.raw.is_equal(other.raw))

    def is_single_valued(self) -> bool:
        """Whether each point of the domain has one partner at most."""
        return limited(self.raw.is_single_valued)

    def is_injective(self) -> bool:
        """Whether each point of the range has one partner at most."""
        return limited(self.raw.is_injective)

    def domain(self) -> Set:
        """The domain."""
        return Set(self.ins, limited(self.raw.domain))

    def range(self) -> Set:
        """The range."""
        return Set(self.outs, limited(self.raw.range))

    def inverse(self) -> Map:
        """The inverse relation."""
        return Map(self.outs, self.ins, limited(self.raw.reverse))

    def intersect(self, other: Map) -> Map:
        """The intersection."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.intersect(other.raw)))

    def union(self, other: Map) -> Map:
        """The union."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.union(other.raw)))

    def subtract(self, other: Map) -> Map:
        """The difference."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.subtract(other.raw)))

    def intersect_domain(self, domain: Set) -> Map:
        """Pairs whose first point lies in `domain`."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.intersect_domain(domain.raw)))

    def intersect_range(self, range: Set) -> Map:
        """Pairs whose second point lies in `range`."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.intersect_range(range.raw)))

    def image(self, points: Set) -> Set:
        """The image of `points`."""
        return Set(self.outs, limited(lambda: points.raw.apply(self.raw)))

    def then(self, other: Map) -> Map:
        """The composition: first this map, then `other`."""
        return Map(self.ins, other.outs, limited(lambda: self.raw.apply_range(other.raw)))

    def coalesce(self) -> Map:
        """The same pairs in fewer pieces."""
        return Map(self.ins, self.outs, limited(self.raw.coalesce))

    def gist(self, context: Map) -> Map:
        """A simpler map that is equal within `context`."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.gist(context.raw)))

    def gist_domain(self, context: Set) -> Map:
        """A simpler map that is equal where the first point lies in `context`."""
        return Map(self.ins, self.outs, limited(lambda: self.raw.gist_domain(context.raw)))

    def range_product(self, other: Map) -> Map:
        """x → (y, z) for x → y here and x → z in `other`, as flat tuples."""
        return Map(self.ins, (*self.outs, *other.outs), limited(lambda: self.raw.flat_range_product(other.raw)))

    def product(self, other: Map) -> Map:
        """(w, y) → (x, z) for w → x here and y → z in `other`, as flat tuples."""
        ins, outs = (*self.ins, *other.ins), (*self.outs, *other.outs)
        return Map(ins, outs, limited(lambda: self.raw.flat_product(other.raw)))

    def project_out(self, ins: Collection[Sym] = (), outs: Collection[Sym] = ()) -> Map:
        """The projection that drops some dimensions of either side."""
        drop_ins = [k for k, d in enumerate(self.ins) if d in ins]
        drop_outs = [k for k, d in enumerate(self.outs) if d in outs]

        def answer() -> isl.Map:
            raw = self.raw
            for position in reversed(drop_ins):
                raw = raw.project_out(isl.dim_type.in_, position, 1)
            for position in reversed(drop_outs):
                raw = raw.project_out(isl.dim_type.out, position, 1)
            return raw

        raw = limited(answer)
        return Map(tuple(d for d in self.ins if d not in ins), tuple(d for d in self.outs if d not in outs), raw)

    def pairs(self) -> Set:
        """The pairs as flat points over `left` of `ins` and `right` of `outs`."""
        raw = limited(lambda: self.raw.move_dims(isl.dim_type.out, 0, isl.dim_type.in_, 0, len(self.ins)).range())
        return Set((*map(left, self.ins), *map(right, self.outs)), raw)

    def renamed(self, ins: Sequence[Sym] | None = None, outs: Sequence[Sym] | None = None) -> Map:
        """The same pairs with other names of the dimensions."""
        return Map(self.ins if ins is None else tuple(ins), self.outs if outs is None else tuple(outs), self.raw)

    def fix(self, values: Mapping[Sym, int]) -> Map:
        """The pairs at the given values of the parameters."""
        return self.where(conj(Eq(expr(sym) - value) for sym, value in values.items())) if values else self

    def sample(self) -> dict[Sym, int] | None:
        """A pair and its parameters, as `Set.sample` of `pairs`; None if there is none."""
        return self.pairs().sample()


def left(sym: Sym) -> Sym:
    """The name of an input dimension in a formula over pairs."""
    return Sym(sym.name + "◁")


def right(sym: Sym) -> Sym:
    """The name of an output dimension in a formula over pairs."""
    return Sym(sym.name + "▷")
