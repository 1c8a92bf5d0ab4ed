"""Questions to the integer solver: is there a point at which all of this holds?

A term that is not affine becomes an unknown of its own, one for equal terms. That only adds points, so "there is none"
remains a proof. Of integers read from data it is known that equal arguments give equal values, and what is promised of the
table that they are read from: so a point that is found may be spurious.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import combinations

from texpr.affine.expr import Expr, Max, Number, Sym, children, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import (
    TRUE,
    And,
    Eq,
    Formula,
    Ge,
    Or,
    between,
    conj,
    differ,
    disj,
    leaves,
    mapped,
    negate,
    rename,
    syms,
)
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.solve.counted import has_digits, in_counts
from texpr.presburger.solve.digits import in_digits, in_numbers, in_rows, with_wholes
from texpr.presburger.solve.first import Unclear, bisected, sample
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.products import multiplied, without_divisions
from texpr.presburger.solve.ranges import ranges_of, within
from texpr.presburger.solve.relaxed import divisions, divisions_of, eliminated, flat, relaxed
from texpr.presburger.solve.swizzles import in_bits
from texpr.support.limits import LARGEST_INT

ALTERNATIVES = 12
"""The number of alternatives tried one by one where all at once are undecided."""

_SIZES = 1, 40
"""The values of sizes, at the least, in trials with numbers."""

Point = Mapping[Sym, int]


@lru_cache(maxsize=1 << 14)
def is_false(formula: Formula) -> bool:
    """Whether `formula` is syntactically false."""
    match formula:
        case Ge(e):
            return e.is_constant and e.constant < 0
        case Eq(e):
            return e.is_constant and e.constant != 0
        case And(parts):
            return any(map(is_false, parts))
        case Or(parts):
            return all(map(is_false, parts))


def witness(parts: Iterable[Formula], premises: Formula) -> Point | None:
    """A point at which all of `parts` hold, None where there is none. Raises Undecided."""
    facts = [*in_bits([*flat(parts)])]
    if is_quickly_refuted(facts, premises):
        return None
    numbers = sorted({s for fact in facts for s in syms(fact) if isinstance(s, Number)}, key=lambda s: s.name)
    told = [fact for x, y in combinations(numbers, 2) if x.label == y.label for fact in _alike(x, y)]
    told += _promises(numbers, facts, premises)
    try:
        found = _by_cases([*facts, *told], premises)
    except ZeroDivisionError:
        raise Undecided("it divides by a size that may be 0") from None
    if found is not None and numbers:
        raise Undecided(f"what data say decides: at {', '.join(f'{s} = {v}' for s, v in found.items())}")
    return found


def _alike(x: Number, y: Number) -> Iterator[Formula]:
    """What is known of two numbers of one function."""
    yield disj((differ(x.args, y.args), Eq(expr(x) - y)))
    if x.rules is not None and x.rules.injective:
        yield disj((differ([x], [y]), conj(Eq(a - b) for a, b in zip(x.args, y.args, strict=True))))
    if x.rules is not None and x.rules.monotone:
        (one,), (other,) = x.args, y.args
        yield disj((Ge(one - other - 1), Ge(expr(y) - x)))
        yield disj((Ge(other - one - 1), Ge(expr(x) - y)))


def _promises(numbers: Sequence[Number], facts: Sequence[Formula], premises: Formula) -> list[Formula]:
    """The ranges of numbers, if their tables have such elements; plainly, where it is quickly shown that they have, as products
    of ranges need it."""
    plain, left = list[Formula](), [promise for x in numbers for promise in _promised(x)]
    linear = [fact for fact in facts if not _has_product(fact)] if left else []
    while left:
        shown = [each for each in left if refuted((*linear, *plain, negate(each[0]), premises))]
        if not shown:
            break
        plain += flat(range for _, range in shown)
        left = [each for each in left if each not in shown]
    return [*plain, *(disj((negate(there), range)) for there, range in left)]


def _promised(x: Number) -> Iterator[tuple[Formula, Formula]]:
    """That a table has an element, and the range of the number then."""
    rules = x.rules
    if rules is not None and rules.lo is not None and rules.hi is not None:
        there = conj(between(0, e, size) for e, size in zip(x.args, rules.shape, strict=True))
        yield there, between(rules.lo, x, rules.hi)


def is_refuted_by_equations(facts: Iterable[Formula], premises: Formula) -> bool:
    """Whether equations show that `facts` are contradictory: decomposed into digits, symbols that they define put in, and what
    comes of that simplified by where its symbols lie."""
    left = _by_equations(facts)
    return any(map(is_false, left)) or refuted((*left, premises))


def _by_equations(facts: Iterable[Formula]) -> list[Formula]:
    left, _ = eliminated(in_numbers([*flat(facts)]), lambda sym: True)
    plain = within(left)
    return [mapped(fact, plain) for fact in left]


def is_refuted_by_counts(facts: Iterable[Formula], premises: Formula) -> bool:
    """The same where two of one sum of unknowns, such as a tile's number by block and turn, have equal digits: it is equal.

    Its digits say no more then, so it is first asked without them.
    """
    plain = [*flat(facts)]
    found = in_counts(plain, ranges_of(plain))
    if found is None:
        return False
    named, counted = found[0], frozenset([count.name for count in found[1]])
    left = _by_equations(with_wholes(in_numbers([*flat(named)]), premises))
    few = [fact for fact in left if not has_digits(fact, counted)]
    return any(map(is_false, left)) or refuted((*few, premises)) or refuted((*left, premises))


def is_quickly_refuted(facts: Sequence[Formula], premises: Formula) -> bool:
    """Whether a cheap proof shows that `facts` are contradictory: as they are, or with equal products identified."""
    if any(map(_has_product, facts)):
        sizes = syms(premises)
        facts, _ = eliminated([*facts], lambda sym: sym not in sizes)
    return any(map(is_false, facts)) or refuted((*facts, premises))


def _by_cases(facts: list[Formula], premises: Formula) -> Point | None:
    """A point with `facts`, by cases: where all at once is undecided, the alternatives one by one."""
    try:
        return _point(facts, premises)
    except Undecided:
        at, chosen = max(enumerate(facts), key=lambda each: len(each[1].parts) if isinstance(each[1], Or) else 0)
        if not isinstance(chosen, Or) or not 1 < len(chosen.parts) <= ALTERNATIVES:
            raise
        others = [*facts[:at], *facts[at + 1 :]]
        points = (_point([*others, *flat((part,))], premises) for part in chosen.parts)
        return next((point for point in points if point is not None), None)


def _point(facts: list[Formula], premises: Formula, told: frozenset[tuple[Sym, int]] = frozenset()) -> Point | None:
    """A point with `facts`, by cases: each maximum of a size and a number is one or the other.

    `told` has the maxima that are decided already: they are substituted even where nothing is simplified, as over a 0.
    """
    found = (each for fact in facts for value in leaves(fact) for each in _greater(value))
    chosen = next((each for each in found if each not in told), None)
    if chosen is None or chosen[0] not in syms(premises):
        return _single(facts, premises)
    size, number = chosen
    for low, high in ((number, LARGEST_INT), (0, number - 1)):
        plain = Simplifier(Known({size: (low, high)}))
        point = _point([between(low, size, high + 1), *(mapped(fact, plain) for fact in facts)], premises, told | {chosen})
        if point is not None:
            return point
    return None


@lru_cache(maxsize=1 << 14)
def _greater(value: Expr) -> tuple[tuple[Sym, int], ...]:
    """The symbols and numbers of which the expression contains the maximum."""
    found: list[tuple[Sym, int]] = []
    for atom in (atom for monomial, _ in value.terms for atom in monomial if not isinstance(atom, Sym)):
        match atom:
            case Max((one, other)) if other.is_constant != one.is_constant:
                size, number = (one, other) if other.is_constant else (other, one)
                found += [] if size.as_sym is None else [(size.as_sym, number.constant)]
            case _:
                found += [each for part in children(atom) for each in _greater(part)]
    return tuple(found)


def _single(facts: list[Formula], premises: Formula) -> Point | None:
    """A point with `facts`. Equations are substituted into dividends first: with e = d · p + q, e / d simplifies with p,
    where a quotient by an unknown would itself be an unknown."""
    if is_refuted_by_counts(facts, premises):
        return None
    sizes, solved = syms(premises), list[tuple[Sym, Expr]]()
    beyond = any(map(_has_product, facts)) or any(map(divisions_of, facts))
    fixed = {s: e for s, e in _fixed(facts).items() if s not in sizes} if beyond else {}
    left = [rename(fact, fixed) for fact in facts] if fixed else facts
    if any(map(divisions_of, left)):
        left = in_rows(left, premises)
        left, solved = eliminated(left, lambda sym: sym not in sizes, as_sums=True)
    found = _with_products(left, premises)
    return None if found is None else {**_completed(found, solved), **{sym: e.constant for sym, e in fixed.items()}}


def _fixed(facts: Iterable[Formula]) -> dict[Sym, Expr]:
    """The symbols with one value by their bounds, such as the coordinate of an axis with one point."""
    return {sym: expr(low) for sym, (low, high) in ranges_of(facts).items() if isinstance(low, int) and low == high}


def _with_products(facts: list[Formula], premises: Formula) -> Point | None:
    plain = with_wholes(without_divisions(facts, premises), premises)
    try:
        found = _witness([*multiplied(plain, premises), *divisions(plain)], premises)
    except Undecided:
        found = _tried(facts, premises)
        if found is None:
            raise
    if found is None or all(_is_met(fact, found) for fact in facts):
        return found
    sizes = {sym: expr(found.get(sym, 0)) for sym in syms(premises)}  # sizes in products or quotients that were unknowns
    found = _witness([rename(fact, sizes) for fact in (*facts, premises)], TRUE)
    point = {**(found or {}), **{sym: value.constant for sym, value in sizes.items()}}
    if found is None or not all(_is_met(fact, point) for fact in facts):
        raise Undecided("by what products of sizes are")
    return point


def _tried(facts: list[Formula], premises: Formula) -> Point | None:
    """A point at some constant sizes, for formulas that have no proof with symbolic sizes."""
    for least in _SIZES:
        with suppress(Undecided):
            sizes = _witness([Ge(expr(sym) - least) for sym in syms(premises)], premises)
            values = {sym: expr(value) for sym, value in (sizes or {}).items()}
            found = None if sizes is None else _witness([rename(fact, values) for fact in facts], TRUE)
            if sizes is not None and found is not None and all(_is_met(fact, {**found, **sizes}) for fact in facts):
                return {**found, **sizes}
    return None


def _is_met(fact: Formula, point: Point) -> bool:
    """Whether a fact holds at a point, products and quotients evaluated."""
    try:
        return not is_false(rename(fact, {sym: expr(value) for sym, value in point.items()}))
    except ZeroDivisionError:
        return False


def _witness(facts: list[Formula], premises: Formula) -> Point | None:
    if any(map(is_false, facts)) or (not any(map(_has_product, facts)) and refuted((*facts, premises))):
        return None
    known = syms(premises)
    if any(map(_has_product, facts)) and (rows := in_digits(facts, premises)) is not None:
        return _witness(list(flat(rows)), premises)
    facts, solved = eliminated(facts, lambda sym: sym not in known)
    if any(map(is_false, facts)) or (any(map(_has_product, facts)) and refuted((*facts, premises))):
        return None
    if solved and is_refuted_by_equations(facts, premises):
        return None
    parted = in_digits(facts, premises) if any(map(_has_product, facts)) else None
    found = _sample(relaxed(conj((*facts, premises)))) if parted is None else _witness(list(flat(parted)), premises)
    return None if found is None else _completed(found, solved)


def _completed(point: Point, solved: Sequence[tuple[Sym, Expr]]) -> Point:
    """A point with the values of the solved symbols, each defined over later ones."""
    found = dict(point)
    for sym, value in reversed(solved):
        found[sym] = value.evaluate({s: found.get(s, 0) for s in value.syms()})
    return found


def _sample(formula: Formula) -> Point | None:
    """A point, by small numbers first and then by the solver, which also says whether a search for smaller ones is in vain."""
    try:
        found = sample(formula)
    except Unclear:
        some = Set.of((), formula).sample()
        return some if some is None else bisected(formula) or some
    return found if found is not None else Set.of((), formula).sample()


@lru_cache(maxsize=1 << 14)
def _has_product(fact: Formula) -> bool:
    return any([len(monomial) > 1 for value in leaves(fact) for monomial, _ in value.terms])
