"""Satisfiability of a formula by elimination of symbols one by one, which decides most questions of a compiler quickly.

Where elimination (`texpr.presburger.solve.store`) gives no answer, isl is to be asked.

Alternatives are tried one by one. Each comparison records which alternatives it depends on: a contradiction that depends on
no alternative of a choice holds for all of them (backjumping).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from texpr.affine.expr import Sym
from texpr.presburger.formula import TRUE, Formula, conj
from texpr.presburger.solve.clauses import Clause, clause
from texpr.presburger.solve.hints import in_use
from texpr.presburger.solve.store import Choice, Never, Store, TooLong
from texpr.presburger.solve.swizzles import in_bits, origins

MOST_CASES = 96
"""The number of alternatives tried over all choices; four times as many where only a contradiction is an answer."""

_SOME, _OPEN = -1, -2
"""Satisfiable; undecided."""


@lru_cache(maxsize=1 << 9)
def system(formula: Formula) -> System:
    """The system of a formula, memoised with its results: functions of a file are often alike. Raises NotAffine."""
    return System(formula)


class System:
    """A formula, every symbol free: its equations solved, its alternatives open."""

    __slots__ = ("_answers", "_choices", "_contradictory", "_store", "_views")

    def __init__(self, formula: Formula):
        """Raises NotAffine."""
        self._store, self._choices = Store(), list[Choice]()
        self._views: dict[frozenset[Sym], System] = {}
        self._answers: dict[Formula, bool | None] = {}
        self._contradictory = False
        self._take(clause(conj(in_bits((formula,))), True))

    def is_empty(self, also: Formula = TRUE) -> bool | None:
        """Whether no point fulfils `also` as well; None where that is undecided. Raises NotAffine."""
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
            self._choices += self._store.take((more,), (0,))
        except Never:
            self._contradictory = True

    def _and(self, more: Clause) -> System:
        made = object.__new__(System)
        made._store, made._choices = self._store.copy(), list(self._choices)
        made._contradictory, made._views, made._answers = self._contradictory, {}, {}
        made._take(more)
        return made

    def _seen_by(self, more: Clause) -> System:
        """A system over fewer symbols, satisfiable with given values of the symbols in `more` exactly where this one is."""
        named = {sym for each in (more, *(part for parts, _ in self._choices for part in parts)) for sym in _named(each)}
        kept = frozenset([s for sym in named for s in self._store.meant(sym)])
        if kept not in self._views:
            self._views[kept] = self._projected(kept)
        return self._views[kept]

    def _projected(self, kept: frozenset[Sym]) -> System:
        """The projection onto `kept`, as far as elimination is exact and adds no comparisons."""
        made = self._and(Clause())
        try:
            made._store.project(kept)
        except Never:
            made._contradictory = True
        except TooLong:
            return self
        return made


def refuted(facts: Iterable[Formula]) -> bool:
    """Whether `facts` are shown to be contradictory. Terms that are not affine become unknowns."""
    asked = tuple(dict.fromkeys(facts))
    hints = in_use()
    if hints is None:
        return _core(asked) is not None
    core, hint = None, hints.next(len(asked))
    if hint is None:
        core = _core(asked)
    elif hint[1] is not None:
        core = hint[1] if _core(tuple([asked[at] for at in hint[1]])) is not None else _core(asked)
    hints.made.append((len(asked), core))
    return core is not None


@lru_cache(maxsize=1 << 12)
def _core(facts: tuple[Formula, ...]) -> tuple[int, ...] | None:
    """The positions of facts that are contradictory by themselves; None where no contradiction is shown."""
    store, plain = Store(), in_bits(facts)
    try:
        choices = store.take([clause(fact, False) for fact in plain], [1 << at for at in range(len(plain))])
        why = _Search(certain=False).none(store, choices, len(plain))
    except Never as never:
        why = never.why
    if why < 0:
        return None
    return origins(facts, [at for at in range(len(plain)) if why >> at & 1])


def _named(each: Clause) -> Iterator[Sym]:
    for row in (*each.equal, *each.least):
        yield from row.terms
    for choice in each.choices:
        for part in choice:
            yield from _named(part)


class _Search:
    """Search over alternatives. `certain`: a positive answer must be exact.

    An alternative that failed is not tried again until a decision that its failure depends on is undone.
    """

    __slots__ = ("certain", "failed", "left", "most")

    def __init__(self, certain: bool):
        self.certain, self.left = certain, MOST_CASES if certain else 4 * MOST_CASES
        self.most = self.left
        self.failed: dict[Clause, int] = {}

    def none(self, store: Store, choices: Sequence[Choice], depth: int) -> int:
        """The bits of the alternatives that a contradiction depends on; or `_SOME`, `_OPEN`. Bits 0 to `depth` are in use."""
        try:
            choices = store.settled(choices, self.failed)
            if not choices:
                return self._leaf(store, store.shadow(dark=False), depth)
            if len(choices) > 1 or len(choices[0][0]) > 2:  # otherwise trying both alternatives is as fast
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
                why = self.none(inner, [*rest, *inner.take((part,), (bit,))], depth + 1)
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
        """The same without open choices. `exact`: elimination has shown that there is a point. Raises Never."""
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
