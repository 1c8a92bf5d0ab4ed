"""Dependences: pairs of instances that access one element, at least one of them writing it, in program order.

    loop `c` carries a pair  ⇔  the loops outside `c` agree and source's index of `c` < sink's
    no loop carries it       ⇔  all common loops agree and source comes first in the text

Iterations of a `par` are ordered like those of a `for` loop. Dependences are memory-based: a pair is kept even if another
write lies between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.program import Bind, Loop, Update
from texpr.ir.value import Buffer, Load
from texpr.presburger.formula import And, Eq, Formula, Ge, conj, disj, equal
from texpr.presburger.isl.build import build_map
from texpr.presburger.isl.maps import Map, left, right
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import is_affine
from texpr.relation.data import Hidden, alike
from texpr.relation.model import Access, Branch, Model
from texpr.support.record import Record

_SAME_ORDER_FREE = ({"add", "sub"}, {"mul"}, {"max"}, {"min"}, {"and"}, {"or"})
"""Sets of updates that commute with one another."""


class Dependence(Record, eq=False, dict=True):
    """`sink` must run after `source`.

    `kind` is "flow" where the source writes and the sink reads, else "output" where both write, else "anti"; a pair of
    updates is a flow. `carrier` is the loop that carries it, None if it is loop-independent. `relaxed`: both are commuting
    updates, and the `reduce` of the carrier makes them unordered. `exact` is False if the pairs are a superset.
    """

    source: Access
    sink: Access
    carrier: Loop | None
    scope: frozenset[Sym]

    @property
    def kind(self) -> str:
        """ "flow", "anti" or "output"."""
        if self.source.writes and self.sink.reads:
            return "flow"
        return "output" if self.source.writes else "anti"

    @property
    def buffer(self) -> Buffer:
        """The buffer both touch."""
        return self.source.buffer

    @property
    def exact(self) -> bool:
        """Whether `relation` holds only pairs that happen."""
        return self.source.exact and self.sink.exact and comparable(self.source, self.sink)

    @property
    def relaxed(self) -> bool:
        """Whether the two may run in either order."""
        return self.carrier is not None and self.buffer in self.carrier.reduce and commute(self.source, self.sink)

    @cached_property
    def formula(self) -> Formula:
        """The pairs, over `left` of the source's and `right` of the sink's symbols."""
        return pair_formula(self.source, self.sink, self.carrier, self.scope)

    @cached_property
    def relation(self) -> Map:
        """Source instance → sink instance."""
        return self._map(self.source.instance.syms, self.sink.instance.syms)

    @cached_property
    def extended(self) -> Map:
        """`relation` with the hidden symbols of both as further dimensions."""
        return self._map(extended_syms(self.source), extended_syms(self.sink))

    def _map(self, ins: tuple[Sym, ...], outs: tuple[Sym, ...]) -> Map:
        exists = (
            *(left(h.sym) for h in self.source.hidden if h.sym not in ins),
            *(right(h.sym) for h in self.sink.hidden if h.sym not in outs),
        )
        params = self.source.instance.params
        return Map(ins, outs, build_map([*map(left, ins)], [*map(right, outs)], self.formula, exists, params))

    def __repr__(self) -> str:
        carrier = "" if self.carrier is None else f" over {self.carrier.sym}"
        return f"{self.kind} {self.source.instance} → {self.sink.instance} on {self.buffer.name}{carrier}"


def dependences(
    model: Model,
    *,
    buffers: Collection[Buffer] | None = None,
    keep: Callable[[Buffer], Collection[Sym]] | None = None,
) -> tuple[Dependence, ...]:
    """Every dependence that has a pair, by buffer, source, sink, then carrier from the outermost loop inwards.

    `keep` gives, for a local buffer, the loops around its `new` of which each iteration has memory of its own; by default
    all, as in the language. With fewer, the storage is reused across the others.
    """
    found: list[Dependence] = []
    for buffer, accesses in model.by_buffer.items():
        if buffers is not None and buffer not in buffers:
            continue
        scope = frozenset(model.scope_syms(buffer) if keep is None else keep(buffer))
        for source in accesses:
            for sink in accesses:
                if source.writes or sink.writes:
                    found.extend(d for d in candidates(source, sink, scope) if not d.relation.is_empty())
    return tuple(found)


def candidates(source: Access, sink: Access, scope: frozenset[Sym]) -> Iterator[Dependence]:
    """The dependences between two accesses, one a carrier, that a cheap test on subscripts does not exclude."""
    for carrier in (*common_loops(source, sink), None):
        if not obviously_empty(source, sink, carrier, scope):
            yield Dependence(source, sink, carrier, scope)


def comparable(a: Access, b: Access) -> bool:
    """Whether both have the same primary view of the buffer, so that equal subscripts mean one element."""
    return a.shape == b.shape


def commute(a: Access, b: Access) -> bool:
    """Whether two updates commute: of one kind, and of the same tuple of buffers."""
    first, second = a.instance.stmt, b.instance.stmt
    if not isinstance(first, Bind) or not isinstance(second, Bind) or first.update is None or second.update is None:
        return False
    if [t.buffer for t in first.targets] != [t.buffer for t in second.targets]:
        return False
    return a.kind == b.kind == "update" and same_update(first.update, second.update)


def same_update(a: Update, b: Update) -> bool:
    """Whether two kinds of update commute; `+=` and `-=` do."""
    if isinstance(a, str) and isinstance(b, str):
        return any(a in group and b in group for group in _SAME_ORDER_FREE)
    return a is b


def common_loops(source: Access, sink: Access) -> tuple[Loop, ...]:
    """The loops around both, outermost first."""
    found: list[Loop] = []
    for a, b in zip(source.instance.loops, sink.instance.loops, strict=False):
        if a is not b:
            break
        found.append(a)
    return tuple(found)


def obviously_empty(source: Access, sink: Access, carrier: Loop | None, scope: frozenset[Sym]) -> bool:
    """Whether a cheap test of order, memory and subscripts shows that no pair exists."""
    loops = common_loops(source, sink)
    if carrier is None:
        if source.instance.number >= sink.instance.number or _exclusive(source, sink):
            return True
    elif carrier.sym in scope:
        return True
    else:
        loops = loops[: loops.index(carrier)]
    agreed = frozenset((*(loop.sym for loop in loops), *source.instance.params))
    moved = None if carrier is None else carrier.sym
    pairs = list(zip(source.load.index, sink.load.index, strict=True))
    if comparable(source, sink) and len(source.shape) != source.buffer.rank:
        pairs += zip(source.index, sink.index, strict=True)
    return any(_apart(a, b, agreed, moved) for a, b in pairs)


def _exclusive(source: Access, sink: Access) -> bool:
    """Whether the two lie in different branches of one `if`, in one iteration of all common loops."""
    sides = {a.stmt: a.taken for a in source.instance.path if isinstance(a, Branch)}
    return any(isinstance(a, Branch) and sides.get(a.stmt, a.taken) != a.taken for a in sink.instance.path)


def _apart(source: Expr, sink: Expr, agreed: frozenset[Sym], moved: Sym | None) -> bool:
    """Whether two subscripts differ wherever the symbols in `agreed` are equal at both ends and `moved` is less at the
    source."""
    difference = sink - source
    if moved is None or moved not in source.syms():
        return difference.is_constant and difference.constant != 0 and _only(source, agreed)
    slope = sum(c for monomial, c in source.terms if monomial == (moved,))
    rest = source - expr(moved) * slope
    if slope == 0 or not difference.is_constant or not _only(rest, agreed):
        return False
    # sink − source = slope · distance + difference, and distance ≥ 1
    distance, left_over = divmod(-difference.constant, slope)
    return left_over != 0 or distance < 1


def _only(value: Expr, agreed: frozenset[Sym]) -> bool:
    """Whether a subscript has the same value at both ends: it uses only agreed loops and parameters."""
    return all(s in agreed for s in value.syms())


def pair_formula(source: Access, sink: Access, carrier: Loop | None, scope: frozenset[Sym]) -> Formula:
    """Both accesses happen, at one element of one piece of memory, the source first."""
    hidden = hidden_formulas(source, sink, carrier)
    return conj((meeting_formula(source, sink, scope), order(source, sink, carrier), *hidden))


def meeting_formula(source: Access, sink: Access, scope: frozenset[Sym]) -> Formula:
    """Both accesses happen, at one element of one piece of memory, in either order."""
    (from_formula, from_indices), (to_formula, to_indices) = source.as_source, sink.as_sink
    parts = [from_formula, to_formula]
    for view, one in zip(source.views, from_indices, strict=True):
        parts += [equal(one, two) for other, two in zip(sink.views, to_indices, strict=True) if view.shape == other.shape]
    parts.extend(_agree(s) for s in source.instance.syms if s in scope and s in sink.instance.syms)
    return conj(parts)


def order(source: Access, sink: Access, carrier: Loop | None) -> Formula:
    """The order of a dependence: equal indices of the common loops outside the carrier, and a smaller index of the carrier at
    the source."""
    loops = common_loops(source, sink)
    if carrier is None:
        return conj(_agree(loop.sym) for loop in loops)
    outside = loops[: loops.index(carrier)]
    return conj([*(_agree(loop.sym) for loop in outside), Ge(expr(right(carrier.sym)) - left(carrier.sym) - 1)])


def _agree(sym: Sym) -> Formula:
    return Eq(expr(left(sym)) - right(sym))


def hidden_formulas(source: Access, sink: Access, carrier: Loop | None) -> Iterator[Formula]:
    """Relations between the data symbols of the two ends.

    A `let` has one value within an iteration of the loops around it. Equal indices of an input give equal elements.
    """
    loops = common_loops(source, sink)
    still = len(loops) if carrier is None else loops.index(carrier)
    for a in source.hidden:
        for b in sink.hidden:
            if a.let is not None and a.let is b.let and a.depth <= still:
                yield _same(a, b)
            elif a.source is not None and b.source is not None and a.source.buffer is b.source.buffer:
                yield from _as_function(a, b, source, sink)


def _as_function(a: Hidden, b: Hidden, source: Access, sink: Access) -> Iterator[Formula]:
    assert a.source is not None and b.source is not None
    lefts, rights = _over(a.source, source, left), _over(b.source, sink, right)
    if not all(map(is_affine, (*lefts, *rights))):
        return
    yield alike(a, lefts, expr(left(a.sym)), rights, expr(right(b.sym)))


def certain_map(dependence: Dependence) -> Map | None:
    """The pairs of `extended` in which the source certainly writes the sink's element; None if data leaves that open.

    The source must run for certain, and each of its data symbols must be determined by one of the sink's.
    """
    source, sink = dependence.source, dependence.sink
    if not source.certain:
        return None
    unknown = [each for each in source.hidden if not each.defined]
    if not unknown:
        return dependence.extended
    loops = common_loops(source, sink)
    still = len(loops) if dependence.carrier is None else loops.index(dependence.carrier)
    tied: list[Formula] = []
    for a in unknown:
        options = [_tied(a, b, source, sink) for b in sink.hidden if _ties(a, b, still)]
        if not options:
            return None
        tied.append(disj(options))
    return dependence.extended.where(conj(tied))


def _ties(a: Hidden, b: Hidden, still: int) -> bool:
    if a.let is not None and a.let is b.let and a.depth <= still:
        return True
    return a.source is not None and b.source is not None and a.source.buffer is b.source.buffer


def _tied(a: Hidden, b: Hidden, source: Access, sink: Access) -> Formula:
    """Whether the two have the same value: a `let` executed once, or one element of an input."""
    same = _same(a, b)
    if a.source is None or b.source is None or (a.let is not None and a.let is b.let):
        return same
    return And((same, equal(_over(a.source, source, left), _over(b.source, sink, right))))


def _same(a: Hidden, b: Hidden) -> Formula:
    return Eq(expr(left(a.sym)) - right(b.sym))


def _over(load: Load, access: Access, tag: Callable[[Sym], Sym]) -> list[Expr]:
    """The subscripts of a load in the symbols of an access, on one side of a pair."""
    return [e.substitute({s: tag(s) for s in extended_syms(access)}) for e in load.index]


def extended_syms(access: Access) -> tuple[Sym, ...]:
    """The loop indices, then the hidden symbols."""
    return (*access.instance.syms, *(h.sym for h in access.hidden))


def extended_domain(access: Access) -> Set:
    """Where an access happens, over `extended_syms`."""
    return Set.of(extended_syms(access), access.formula, params=access.instance.params)
