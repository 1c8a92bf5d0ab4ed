"""Does a formula hold anywhere? Symbols are eliminated one by one, which answers most of what a compiler asks at once.

What elimination (`texpr.presburger.solve.store`) leaves open is silence, and isl is to be asked.

Alternatives are tried one by one. Each comparison knows which of them it rests on: a contradiction that rests on none of a
choice's is one for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from texpr.affine.expr import Sym
from texpr.presburger.formula import TRUE, Formula
from texpr.presburger.solve.clauses import Clause, clause
from texpr.presburger.solve.store import Choice, Never, Store, TooLong

MOST_CASES = 96
"""Alternatives that are looked at, of all choices; four times as many where only a contradiction is an answer."""

_SOME, _OPEN = -1, -2
"""There is a point; it is not found out whether there is one."""


@lru_cache(maxsize=1 << 9)
def system(formula: Formula) -> System:
    """The system of a formula, with what was found out about it: functions of a file are often alike. Raises NotAffine."""
    return System(formula)


class System:
    """A formula, every symbol of it free: its equalities solved, alternatives left open."""

    __slots__ = ("_answers", "_choices", "_contradictory", "_store", "_views")

    def __init__(self, formula: Formula):
        """Raises NotAffine."""
        self._store, self._choices = Store(), list[Choice]()
        self._views: dict[frozenset[Sym], System] = {}
        self._answers: dict[Formula, bool | None] = {}
        self._contradictory = False
        self._take(clause(formula, True))

    def is_empty(self, also: Formula = TRUE) -> bool | None:
        """Whether there is no point at which `also` holds; None where that is not found out. Raises NotAffine."""
        if also not in self._answers:
            more = clause(also, True)
            self._answers[also] = (self if also is TRUE else self._seen_by(more)._and(more))._is_empty()
        return self._answers[also]

    def _is_empty(self) -> bool | None:
        if self._contradictory:
            return True
        found = _Search(certain=True).none(self._store.copy(), self._choices, 0)
        return None if found == _OPEN else found != _SOME

    def _take(self, more: Clause) -> None:
        try:
            self._choices += self._store.take((more,), 0)
        except Never:
            self._contradictory = True

    def _and(self, more: Clause) -> System:
        made = object.__new__(System)
        made._store, made._choices = self._store.copy(), list(self._choices)
        made._contradictory, made._views, made._answers = self._contradictory, {}, {}
        made._take(more)
        return made

    def _seen_by(self, more: Clause) -> System:
        """A system of fewer symbols that has a point with given values of those that `more` names wherever this one has."""
        named = {sym for each in (more, *(part for parts, _ in self._choices for part in parts)) for sym in _named(each)}
        kept = frozenset([s for sym in named for s in self._store.meant(sym)])
        if kept not in self._views:
            self._views[kept] = self._projected(kept)
        return self._views[kept]

    def _projected(self, kept: frozenset[Sym]) -> System:
        """What this says of `kept` alone, as far as that loses nothing and takes no more comparisons."""
        made = self._and(Clause())
        try:
            made._store.project(kept)
        except Never:
            made._contradictory = True
        except TooLong:
            return self
        return made


def refuted(facts: Iterable[Formula]) -> bool:
    """Whether it is shown that `facts` never hold together. What is not affine is taken for an unknown of its own."""
    return _refuted(tuple(dict.fromkeys(facts)))


@lru_cache(maxsize=1 << 12)
def _refuted(facts: tuple[Formula, ...]) -> bool:
    store = Store()
    try:
        return _Search(certain=False).none(store, store.take([clause(fact, False) for fact in facts], 0), 0) >= 0
    except Never:
        return True


def _named(each: Clause) -> Iterator[Sym]:
    for row in (*each.equal, *each.least):
        yield from row.terms
    for choice in each.choices:
        for part in choice:
            yield from _named(part)


class _Search:
    """Alternatives, one by one. `certain`: it matters whether there is a point for certain.

    An alternative that failed fails again, until one that it failed by is given up.
    """

    __slots__ = ("certain", "failed", "left", "most")

    def __init__(self, certain: bool):
        self.certain, self.left = certain, MOST_CASES if certain else 4 * MOST_CASES
        self.most = self.left
        self.failed: dict[Clause, int] = {}

    def none(self, store: Store, choices: Sequence[Choice], depth: int) -> int:
        """The alternatives by which there is no point; or `_SOME`, `_OPEN`. Their bits are those from 0 to `depth`."""
        try:
            choices = store.settled(choices, self.failed)
            if not choices:
                return self._leaf(store, store.shadow(dark=False), depth)
            if len(choices) > 1 or len(choices[0][0]) > 2:  # else both alternatives are looked at as soon
                store = _projected(store, choices)
                if self.left < self.most - 8:
                    store.shadow(dark=False)
        except Never as never:
            return never.why
        choice = min(choices, key=_count)
        rest = [other for other in choices if other is not choice]
        parts, found = choice
        open_, bit = False, 1 << depth
        for part in parts:
            self.left -= 1
            if self.left < 0:
                return _OPEN
            inner = store.copy()
            try:
                why = self.none(inner, [*rest, *inner.take((part,), bit)], depth + 1)
            except Never as never:
                why = never.why
            if why == _SOME or (why == _OPEN and not self.certain):
                return why
            self.failed = {each: by for each, by in self.failed.items() if not by & bit}
            if why == _OPEN:
                open_ = True
            elif not why & bit:
                return why
            else:
                self.failed[part] = why & ~bit
                found |= why & ~bit
        return _OPEN if open_ else found

    def _leaf(self, store: Store, exact: bool | None, depth: int) -> int:
        """The same where no choice is left. `exact`: whether eliminating showed that there is a point. Raises Never."""
        if exact:
            return _SOME
        if self.certain:
            try:
                if store.shadow(dark=True) is not None:
                    return _SOME
            except Never:
                pass
        return self.none(store, (), depth) if store.narrowed() else _OPEN


def _projected(store: Store, choices: Sequence[Choice]) -> Store:
    named = {sym for parts, _ in choices for part in parts for sym in _named(part)}
    made = store.copy()
    try:
        made.project(frozenset([s for sym in named for s in store.meant(sym)]))
    except TooLong:
        return store
    return made


def _count(choice: Choice) -> int:
    return len(choice[0])
