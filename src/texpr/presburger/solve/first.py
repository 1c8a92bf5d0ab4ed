"""The lexicographically first point of a system of comparisons, by search.

Where bounds leave each symbol few values this is much faster than a set solver. Each symbol has a direction, up or down; the
first point has the first value of the first symbol, then of the second, ….
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import TypeAlias

from texpr.affine.expr import Sym, expr
from texpr.presburger.formula import Eq, Formula, Ge, conj, holds, leaves, syms
from texpr.presburger.linear import is_affine
from texpr.presburger.solve.clauses import Clause, clause
from texpr.presburger.solve.omega import refuted
from texpr.support.record import Record

MOST_VALUES = 200
"""The number of values that one search tries."""

MOST_SAMPLED = 60
"""The same for a sample, of which the existence is uncertain."""

MOST_REFUTED = 1 << 12
"""The most values of a symbol that are refuted at once."""

MOST_STEPS = 2000
"""The number of propagation steps for one value: bounds that converge more slowly are left to a solver."""

FARTHEST = 1 << 256
"""The greatest useful bound: bounds of products of unknowns may diverge."""

Row: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]
"""constant + Σ coefficient · symbol ≥ 0, symbols by their numbers."""

Ends: TypeAlias = list[int | float]
"""The least, or the greatest, value of each symbol, by its number."""


class Unclear(Exception):
    """A symbol is unbounded, or the search exceeds its limit: a solver has to decide."""


class Rows(Record, eq=False):
    """A conjunction of comparisons and of choices, one alternative of each of which must hold. `near`: the positions of the
    comparisons that mention a symbol, by its number."""

    rows: tuple[Row, ...]
    choices: tuple[tuple[Rows, ...], ...]
    near: Mapping[int, Sequence[int]]

    @staticmethod
    def of(rows: Sequence[Row], choices: Sequence[tuple[Rows, ...]]) -> Rows:
        """With the index `near` built."""
        near: dict[int, list[int]] = {}
        for place, (_, terms) in enumerate(rows):
            for number, _ in terms:
                near.setdefault(number, []).append(place)
        return Rows(tuple(rows), tuple(choices), near)

    def about(self, numbers: Iterable[int]) -> list[int]:
        """The positions of the comparisons that mention any of these symbols."""
        return [*dict.fromkeys([place for number in numbers for place in self.near.get(number, ())])]


class Space(Record, eq=False):
    """The points of a formula. `numbers`: numbers of its symbols, the ordered ones first; `upward`: whether the values of an
    ordered symbol are tried in increasing order; `least`, `most`: their bounds; `empty`: there is no point."""

    numbers: Mapping[Sym, int]
    upward: tuple[bool, ...]
    told: Rows
    least: Ends
    most: Ends
    empty: bool

    @staticmethod
    def of(upward: Mapping[Sym, bool], facts: Iterable[Formula], also: Iterable[Sym] = ()) -> Space | None:
        """The points of `facts` over the symbols of `upward`, in their order, and over `also`, which are fixed before a
        search. None for a formula that is not affine, has other symbols, or whose bounds diverge."""
        numbers = {sym: at for at, sym in enumerate((*upward, *also))}
        formula = conj(facts)
        if not all(value.syms() <= numbers.keys() and is_affine(value) for value in leaves(formula)):
            return None
        told = _settled(_rows(clause(formula, True), numbers))
        least, most = [-inf] * len(numbers), [inf] * len(numbers)
        try:
            empty = not _narrow(told, least, most, range(len(told.rows)))
        except Unclear:
            return None
        several = Rows.of([row for row in told.rows if len(row[1]) > 1], told.choices)  # a row of one symbol is a bound already
        return Space(numbers, tuple(upward.values()), several, least, most, empty)

    def at(self, fixed: Sequence[tuple[int, int]]) -> tuple[Ends, Ends] | None:
        """The bounds with symbols fixed to values, by their numbers; None where there is no point. Raises Unclear."""
        least, most = self.least.copy(), self.most.copy()
        for number, value in fixed:
            if not least[number] <= value <= most[number]:
                return None
            least[number] = most[number] = value
        changed = self.told.about([number for number, _ in fixed])
        return (least, most) if not self.empty and _narrow(self.told, least, most, changed) else None

    def first(self, least: Ends, most: Ends, values: int = MOST_VALUES) -> tuple[int, ...] | None:
        """The values of the ordered symbols at the first point within these bounds; None if there is none. Raises Unclear,
        after `values` tried values at the latest."""
        if self.empty or any(low > high for low, high in zip(least, most, strict=True)):
            return None
        return _Search(self.upward, values).first(self.told, least.copy(), most.copy(), range(len(self.told.rows)))


def sample(formula: Formula) -> dict[Sym, int] | None:
    """The first point of a formula, every symbol free; None where no non-negative one exists, or it is none of comparisons
    alone. Raises Unclear, where none is soon found."""
    dims = sorted(syms(formula), key=lambda sym: sym.name)
    space = Space.of(dict.fromkeys(dims, True), (formula,))
    if space is None or space.empty:
        return None
    least = [max(0, end) for end in space.least[: len(dims)]] + space.least[len(dims) :]
    found = space.first(least, space.most, MOST_SAMPLED)
    return None if found is None else dict(zip(dims, found, strict=True))


def bisected(formula: Formula) -> dict[Sym, int] | None:
    """The same of a formula that has points, by bisection: all values below a number are refuted at once. None where that finds
    none."""
    dims = sorted(syms(formula), key=lambda sym: sym.name)
    facts: list[Formula] = [formula, *(Ge(expr(dim)) for dim in dims)]
    found: dict[Sym, int] = {}
    for dim in dims:
        low, step = -1, 1  # all values up to `low` are refuted
        while refuted((*facts, Ge(low + step - expr(dim)))):
            low, step = low + step, 2 * step
            if step > MOST_REFUTED:
                return None
        while step > 1:
            step //= 2
            if refuted((*facts, Ge(low + step - expr(dim)))):
                low += step
        found[dim] = low + 1
        facts.append(Eq(expr(dim) - found[dim]))
    return found if holds(formula, found) else None


class _Search:
    """Search over the values of ordered symbols in order; the other symbols are determined by these."""

    __slots__ = ("left", "upward")

    def __init__(self, upward: Sequence[bool], values: int):
        self.upward, self.left = upward, values

    def first(self, told: Rows, least: Ends, most: Ends, changed: Sequence[int]) -> tuple[int, ...] | None:
        """The first point; `least` and `most` are changed in place. They are consistent with all comparisons but those at
        `changed`. Raises Unclear."""
        while True:
            if not _narrow(told, least, most, changed) or not all(_may(choice, least, most) for choice in told.choices):
                return None
            at = next((at for at in range(len(self.upward)) if least[at] != most[at]), None)
            if at is None:
                return self._last(told, least, most)
            value = least[at] if self.upward[at] else most[at]
            self.left -= 1
            if self.left < 0 or isinstance(value, float):
                raise Unclear
            inner, outer, changed = least.copy(), most.copy(), told.near.get(at, ())
            inner[at] = outer[at] = value
            found = self.first(told, inner, outer, changed)
            if found is not None:
                return found
            if self.upward[at]:
                least[at] = value + 1
            else:
                most[at] = value - 1

    def _last(self, told: Rows, least: Ends, most: Ends) -> tuple[int, ...] | None:
        """The point, if all comparisons hold there: every ordered symbol has a value."""
        if not told.choices:
            if any(least[at] != most[at] for at in told.near):  # others are of alternatives that were not taken
                raise Unclear
            return tuple([int(value) for value in least[: len(self.upward)]])
        for part in told.choices[0]:
            inner = Rows.of((*told.rows, *part.rows), (*told.choices[1:], *part.choices))
            found = self.first(inner, least.copy(), most.copy(), range(len(told.rows), len(inner.rows)))
            if found is not None:
                return found
        return None


def _rows(told: Clause, numbers: dict[Sym, int]) -> Rows:
    """A clause over symbol numbers; new symbols get the next numbers."""
    found: list[Row] = []
    for row, signs in (*((row, (1, -1)) for row in told.equal), *((row, (1,)) for row in told.least)):
        for sign in signs:
            terms = [(numbers.setdefault(sym, len(numbers)), sign * factor) for sym, factor in row.terms.items()]
            found.append((sign * row.constant, tuple(terms)))
    return Rows.of(found, [tuple([_rows(part, numbers) for part in choice]) for choice in told.choices])


def _settled(told: Rows) -> Rows:
    """The same without alternatives that contradict a comparison with the same terms; the only alternative left of a choice
    is asserted."""
    while True:
        known = {frozenset(terms): constant for constant, terms in sorted(told.rows, reverse=True)}
        choices: list[tuple[Rows, ...]] = []
        taken: list[Rows] = []
        for choice in told.choices:
            left = tuple([part for part in choice if not any(_is_against(row, known) for row in part.rows)])
            if len(left) == 1:
                taken += left
            else:
                choices.append(left)
        if not taken:
            return told if choices == [*told.choices] else Rows.of(told.rows, choices)
        rows = (*told.rows, *(row for part in taken for row in part.rows))
        told = Rows.of(rows, (*choices, *(choice for part in taken for choice in part.choices)))


def _is_against(row: Row, known: Mapping[frozenset[tuple[int, int]], int]) -> bool:
    """Whether a comparison contradicts one of `known`, which are keyed by terms."""
    constant = known.get(frozenset([(at, -factor) for at, factor in row[1]]))
    return constant is not None and constant + row[0] < 0


def _narrow(told: Rows, least: Ends, most: Ends, changed: Sequence[int]) -> bool:
    """Bound propagation: tightens the bounds by single comparisons, those at `changed` first, then those that mention a
    changed symbol; False where one never holds. Raises Unclear."""
    rows, near, todo, waiting = told.rows, told.near, [*changed], {*changed}
    left = MOST_STEPS
    for place in todo:  # in turn, so that two comparisons alone cannot go on tightening each other; the list grows meanwhile
        waiting.discard(place)
        left -= 1
        if left < 0:
            raise Unclear
        constant, terms = rows[place]
        top: int | float = constant
        for at, factor in terms:
            top += factor * (most[at] if factor > 0 else least[at])
        if top < 0:
            return False
        for at, factor in terms if isinstance(top, int) else _endless(terms, least, most):
            rest = top if isinstance(top, int) else _rest(constant, terms, at, least, most)
            if factor > 0:
                end = (most[at] if rest is top else 0) - rest // factor
                if end <= least[at]:
                    continue
                least[at] = end
            else:
                end = (least[at] if rest is top else 0) + rest // -factor
                if end >= most[at]:
                    continue
                most[at] = end
            if least[at] > most[at]:
                return False
            if not -FARTHEST <= end <= FARTHEST:
                raise Unclear
            for other in near.get(at, ()):
                if other != place and other not in waiting:
                    waiting.add(other)
                    todo.append(other)
    return True


def _endless(terms: Sequence[tuple[int, int]], least: Ends, most: Ends) -> Sequence[tuple[int, int]]:
    """The only unbounded symbol of a comparison, which alone it can bound; its left side then has no maximum."""
    endless = [(at, factor) for at, factor in terms if isinstance(most[at] if factor > 0 else least[at], float)]
    return endless if len(endless) == 1 else ()


def _rest(constant: int, terms: Sequence[tuple[int, int]], at: int, least: Ends, most: Ends) -> int:
    """The maximum of a comparison's left side without one symbol's term."""
    return constant + sum([int(factor * (most[n] if factor > 0 else least[n])) for n, factor in terms if n != at])


def _may(choice: Sequence[Rows], least: Ends, most: Ends) -> bool:
    """Whether some alternative of a choice is possible within the bounds."""
    return any(
        all([_top(row, least, most) >= 0 for row in part.rows]) and all([_may(each, least, most) for each in part.choices])
        for part in choice
    )


def _top(row: Row, least: Ends, most: Ends) -> int | float:
    """The maximum of a comparison's left side."""
    return row[0] + sum([factor * (most[at] if factor > 0 else least[at]) for at, factor in row[1]])
