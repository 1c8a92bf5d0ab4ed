"""The subject of every rule: a function's model, and the description of witnesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property

from texpr.affine.expr import Expr, Sym
from texpr.ir.program import Function, values
from texpr.ir.value import Value
from texpr.presburger.formula import Formula, conj
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.solve.omega import system
from texpr.relation.collect import model
from texpr.relation.data import Hidden, needed, told
from texpr.relation.dependence import Dependence
from texpr.relation.model import Access, Instance, Model
from texpr.support.record import Record, field
from texpr.support.span import NOWHERE, Span

Witness = Mapping[Sym, int]


class Subject(Record, eq=False, dict=True):
    """A function under check. `fixed`: sizes that were replaced by numbers, named in witnesses."""

    function: Function
    fixed: Mapping[Sym, int] = field(default_factory=dict[Sym, int])

    @cached_property
    def model(self) -> Model:
        """The function's instances."""
        return model(self.function)

    @cached_property
    def given(self) -> tuple[Expr, ...]:
        """Expressions over sizes that are never negative."""
        return self.model.given

    def close(self, formula: Formula) -> tuple[Formula, bool]:
        """`formula` with products of sizes as opaque parameters; and whether all of it is affine then."""
        return self.model.close(formula)

    def values_of(self, instance: Instance) -> tuple[Value, ...]:
        """The values that an instance evaluates."""
        return values(instance.stmt)

    def point(self, dims: tuple[Sym, ...], formula: Formula) -> Witness | None:
        """A point over `dims` and the sizes at which `formula` and the facts on sizes hold. Raises Undecided.

        Where sizes are multiplied, a point may exist for the product and for no sizes; then Undecided is raised too.
        """
        asked = conj((self.model.facts, formula))
        if system(asked).is_empty():
            return None
        return self.real(Set.of(dims, asked, params=self.model.params))

    def may_be(self, formula: Formula) -> bool:
        """Whether it is quickly shown that `formula` holds at some sizes, products of sizes being any numbers."""
        return system(conj((self.model.facts, formula))).is_empty() is False

    def around(self, instance: Instance, value: Expr) -> tuple[tuple[Sym, ...], Formula]:
        """The dimensions and the formula of the points at which an instance evaluates `value`, including the data in it."""
        own = needed(instance.lets, value.syms())
        hidden = tuple({each.sym: each for each in (*instance.hidden, *own)}.values())
        told_of, _ = self.close(conj(told(hidden)))
        return (*instance.syms, *(each.sym for each in hidden)), conj((instance.context, told_of))

    def real(self, points: Set) -> Witness | None:
        """A point of a set, at sizes that exist; None if it is empty. Raises Undecided."""
        found = points.sample()
        if found is not None:
            try:
                real = all(meaning.evaluate(found) == found[s] for s, meaning in self.model.opaque.items() if s in found)
            except ZeroDivisionError:
                real = False
            if not real:
                raise Undecided("a witness in products of sizes")
        return found

    def sizes_text(self, witness: Witness, used: Iterable[Sym] | None = None) -> list[str]:
        """The sizes of a witness as `n = 8`, in the order of the function."""
        order = (*self.fixed, *self.function.sizes, *(s for s, _ in self.function.consts))
        values = {**witness, **self.fixed}
        wanted = set(order) if used is None else set(used) | set(self.fixed)
        return [f"{s.base} = {values[s]}" for s in order if s in values and s in wanted]

    def at(self, witness: Witness, instance: Instance, hidden: Iterable[Hidden] = ()) -> str:
        """`at n = 8, i = 7`: a witness with sizes, loop indices and data, or nothing if it is empty."""
        parts = self.sizes_text(witness)
        parts += [f"{s.base} = {witness[s]}" for s in instance.syms if s in witness]
        parts += dict.fromkeys(f"`{hidden_text(h)}` = {witness[h.sym]}" for h in hidden if h.sym in witness and not h.defined)
        return f", at {', '.join(parts)}" if parts else ""


def hidden_text(hidden: Hidden) -> str:
    """A data-dependent integer as the user wrote it."""
    if hidden.source is not None:
        name = hidden.source.buffer.name
        if hidden.let is None or hidden.sym.base in (name, f"{name}_at"):  # a generated `let`
            return element_text(name, hidden.source.index)
    return hidden.sym.base


def element_text(name: str, index: Iterable[Expr | int]) -> str:
    """`x[i, j]`, or just the name of a scalar."""
    subscripts = ", ".join(_subscript(i) for i in index)
    return f"{name}[{subscripts}]" if subscripts else name


def _subscript(value: Expr | int) -> str:
    return str(value) if isinstance(value, int) else text(value)


def text(value: Expr, access: Access | None = None, data: Iterable[Hidden] = ()) -> str:
    """An expression with the names of the source; data-dependent symbols, of `access` or `data`, as the loads that they are."""
    hidden = {h.sym: Sym(hidden_text(h)) for h in (data if access is None else access.hidden)}
    bases = Counter(s.base for s in value.syms())
    plain = {s: Sym(s.base) if bases[s.base] == 1 else s for s in value.syms()}
    return str(value.substitute({s: hidden.get(s, plain[s]) for s in value.syms()}))


def place(access: Access) -> Span | None:
    """The span of an access."""
    span = access.load.span
    return span if span is not NOWHERE else statement(access.instance)


def statement(instance: Instance) -> Span | None:
    """The span of a statement."""
    return written(instance.stmt.span)


def written(span: Span) -> Span | None:
    """The span, unless the node was generated."""
    return None if span is NOWHERE else span


def sides(dependence: Dependence, witness: Witness) -> tuple[dict[Sym, int], dict[Sym, int]]:
    """A witness of a pair, split: values for the source and for the sink, with the parameters in both."""
    ends: list[dict[Sym, int]] = []
    for access, tag in ((dependence.source, left), (dependence.sink, right)):
        local = (*access.instance.syms, *(h.sym for h in access.hidden))
        values = {s: v for s, v in witness.items() if not s.name.endswith(("◁", "▷"))}
        values.update({s: witness[tag(s)] for s in local if tag(s) in witness})
        ends.append(values)
    return ends[0], ends[1]


def element_at(access: Access, witness: Witness) -> str:
    """The element of an access at a witness, as `x[3]`; symbolic where data decides"""
    index = access.load.index
    values = [value_at(e, witness) for e in index]
    return element_text(access.buffer.name, [e if v is None else v for v, e in zip(values, index, strict=True)])


def value_at(value: Expr, witness: Witness) -> int | None:
    """The value of an expression; None if the witness leaves it open, or it divides by zero there."""
    try:
        return value.evaluate(witness) if value.syms() <= witness.keys() else None
    except ZeroDivisionError:
        return None
