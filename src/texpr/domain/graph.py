"""The graph from a logical domain to what is looped over or allocated, and the indices along it.

    graph     = logical IterDomains, transforms in order, leaves in order
    transform = Split | Merge | Resize | Swizzle          each takes leaves and gives new ones

A tensor has two graphs over one logical domain: logical → loop, and logical → allocation. Graphs are values: each step gives
a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from texpr.affine.expr import Expr, IntoExpr, Sym, expr
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transform import Transform
from texpr.domain.transforms.merge import Merge
from texpr.domain.transforms.resize import Resize
from texpr.domain.transforms.split import Split
from texpr.domain.transforms.swizzle import Permutation, Swizzle, Xor
from texpr.support.record import Record, replace


class DomainGraph(Record):
    """IterDomains from the logical ones down to the leaves; a leaf's index is the symbol of its name."""

    logical: tuple[IterDomain, ...]
    transforms: tuple[Transform, ...]
    leaves: tuple[IterDomain, ...]

    @classmethod
    def of(cls, *domains: tuple[str, IntoExpr]) -> DomainGraph:
        """The graph whose leaves are the logical IterDomains. Raises ValueError for invalid names or extents."""
        made = tuple(IterDomain(Sym(name), expr(extent)) for name, extent in domains)
        if len({d.sym for d in made}) < len(made):
            raise ValueError("two IterDomains have one name")
        _require_sizes_apart(made)
        for each in made:
            if each.extent.is_constant and each.extent.constant < 0:
                raise ValueError(f"an extent is not negative: {each}")
        return cls(made, (), made)

    def domains(self) -> tuple[IterDomain, ...]:
        """Every IterDomain, logical ones first, then in the order in which transforms made them."""
        return (*self.logical, *(d for t in self.transforms for d in t.outputs))

    def __getitem__(self, name: str) -> IterDomain:
        """The IterDomain called `name`. Raises KeyError."""
        for domain in self.domains():
            if domain.sym.name == name:
                return domain
        raise KeyError(name)

    def split(self, name: str, factor: IntoExpr, names: tuple[str, str] | None = None, *, outer: bool = False) -> DomainGraph:
        """`name` split by `factor`: the extent of the inner part, or with `outer` that of the outer one."""
        domain = self._leaf(name)
        size = expr(factor)
        if size.is_constant and size.constant <= 0:
            raise ValueError(f"a split needs a positive factor, not {size}")
        other = -((-domain.extent) // size)
        first, second = names or (f"{name}_o", f"{name}_i")
        sizes = (size, other) if outer else (other, size)
        made = [IterDomain(Sym(each), extent) for each, extent in zip((first, second), sizes, strict=True)]
        return self.apply(Split(domain, made[0], made[1]))

    def merge(self, outer: str, inner: str, name: str | None = None) -> DomainGraph:
        """`outer` and `inner` merged to one IterDomain, `inner` fastest."""
        one, other = self._leaf(outer), self._leaf(inner)
        if one is other:
            raise ValueError(f"`{outer}` cannot be merged with itself")
        made = IterDomain(Sym(name or f"{outer}_{inner}"), one.extent * other.extent)
        return self.apply(Merge(one, other, made))

    def resize(self, name: str, left: IntoExpr, right: IntoExpr, new: str | None = None) -> DomainGraph:
        """`name` with room for `left` more indices before and `right` after; negative numbers drop indices."""
        domain = self._leaf(name)
        before, after = expr(left), expr(right)
        made = IterDomain(Sym(new or f"{name}_r"), domain.extent + before + after)
        if made.extent.is_constant and made.extent.constant < 0:
            raise ValueError(f"a resize of {domain} by {before} and {after} leaves less than nothing")
        return self.apply(Resize(domain, before, after, made))

    def swizzle(self, outer: str, inner: str, how: Permutation, names: tuple[str, str] | None = None) -> DomainGraph:
        """The index of `inner` permuted for each index of `outer`."""
        one, other = self._leaf(outer), self._leaf(inner)
        if one is other:
            raise ValueError(f"`{outer}` cannot be swizzled with itself")
        if isinstance(how, Xor) and other.extent.is_constant and other.extent.constant % (1 << how.bits):
            raise ValueError(f"an xor swizzle of {1 << how.bits} needs an extent that is a multiple of it, not {other.extent}")
        first, second = names or (f"{outer}_s", f"{inner}_s")
        made = IterDomain(Sym(first), one.extent), IterDomain(Sym(second), other.extent)
        return self.apply(Swizzle(one, other, how, *made))

    def reorder(self, *names: str) -> DomainGraph:
        """The named leaves in this order, in the positions that they occupy; other leaves stay."""
        chosen = [self._leaf(name) for name in names]
        if len({d.sym for d in chosen}) < len(chosen):
            raise ValueError("an IterDomain is named twice")
        order = iter(chosen)
        return replace(self, leaves=tuple(next(order) if d in chosen else d for d in self.leaves))

    def apply(self, transform: Transform) -> DomainGraph:
        """The graph with one more transform of leaves; the first of its outputs takes the position of the first of its
        inputs.

        Raises ValueError where an input is not a leaf, or a name is taken.
        """
        taken = {d.sym for d in self.domains()}
        outputs = transform.outputs
        if taken & {d.sym for d in outputs} or len({d.sym for d in outputs}) < len(outputs):
            raise ValueError(f"{transform.title} gives a name that is taken")
        _require_sizes_apart((*self.domains(), *outputs))
        places = [self.leaves.index(d) for d in transform.inputs]
        leaves: list[IterDomain] = []
        for place, leaf in enumerate(self.leaves):
            if place == min(places) and len(places) > len(outputs):
                leaves.extend(outputs)
            elif len(places) <= len(outputs) and place in places:
                at = transform.inputs.index(leaf)
                leaves.extend(outputs[at : at + 1] if len(places) == len(outputs) else outputs)
            elif place not in places:
                leaves.append(leaf)
        return DomainGraph(self.logical, (*self.transforms, transform), tuple(leaves))

    def premises(self) -> tuple[Expr, ...]:
        """The expressions that must be ≥ 0 at every size for the graph to be valid: logical extents, and split factors less
        one.

        A caller that splits by a symbolic factor has to prove it positive, or to have it checked before a launch.
        """
        positive = [each for transform in self.transforms for each in transform.positive]
        return (*(d.extent for d in self.logical), *(each - 1 for each in positive))

    def indices(self, given: Mapping[Sym, IntoExpr] | None = None) -> dict[Sym, Expr]:
        """The index of every IterDomain that `given` determines (all, from the leaves, by default).

        `given`: indices of any IterDomains; those above follow by `up`.
        """
        found = {s: expr(e) for s, e in (given if given is not None else {d.sym: d.sym for d in self.leaves}).items()}
        for transform in reversed(self.transforms):
            if all(d.sym in found for d in transform.outputs):
                above = transform.up(tuple(found[d.sym] for d in transform.outputs))
                for domain, index in zip(transform.inputs, above, strict=True):
                    found.setdefault(domain.sym, index)
        return _closed(found)

    def below(self, given: Mapping[Sym, IntoExpr]) -> dict[Sym, Expr]:
        """The index of every IterDomain that follows by `down` from those in `given`, which must be in bounds."""
        found = {s: expr(e) for s, e in given.items()}
        for transform in self.transforms:
            if all(d.sym in found for d in transform.inputs):
                made = transform.down(tuple(found[d.sym] for d in transform.inputs))
                for domain, index in zip(transform.outputs, made, strict=True):
                    found.setdefault(domain.sym, index)
        return found

    def above(self, leaves: Iterable[Sym]) -> DomainGraph:
        """The subgraph that ends in `leaves` (any IterDomains): the transforms all of whose outputs they determine."""
        chosen = set(leaves)
        known = set(chosen)
        kept: list[Transform] = []
        for transform in reversed(self.transforms):
            if all(d.sym in known for d in transform.outputs):
                kept.append(transform)
                known |= {d.sym for d in transform.inputs}
        kept.reverse()
        made = {d.sym for t in kept for d in t.outputs}
        logical = tuple(d for d in self.domains() if d.sym in known and d.sym not in made)
        return DomainGraph(logical, tuple(kept), tuple(d for d in self.domains() if d.sym in chosen))

    def _leaf(self, name: str) -> IterDomain:
        for leaf in self.leaves:
            if leaf.sym.name == name:
                return leaf
        listed = ", ".join(str(d) for d in self.leaves)
        raise ValueError(f"`{name}` is not a leaf; the leaves are {listed}")


def _require_sizes_apart(domains: Iterable[IterDomain]) -> None:
    """Raises ValueError where an IterDomain has the name of a size: its index symbol would be that size."""
    found = tuple(domains)
    both = {d.sym for d in found} & {name for d in found for name in d.extent.syms()}
    if both:
        raise ValueError(f"`{min(both, key=str)}` names an IterDomain, and a size in an extent")


def _closed(found: dict[Sym, Expr]) -> dict[Sym, Expr]:
    """Indices with IterDomains that have an index substituted by it: extents may have introduced them."""
    made = {s: e for s, e in found.items() if e.as_sym != s}
    while any(not made.keys().isdisjoint(e.syms()) for e in found.values()):
        found = {s: e.substitute(made) for s, e in found.items()}
    return found
