"""Equations solved for unknowns: a sum of digits with known extents determines each digit.

The results are candidates, which the caller has to prove.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from texpr.affine.expr import Atom, Expr, FloorDiv, Mod, Sym, combination, expr, term
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.presburger.solve.counted import counts
from texpr.presburger.solve.products import parted

Ends: TypeAlias = Mapping[Sym, int]
"""The extents of symbols that start at 0, where known."""


def solved(pairs: Sequence[tuple[Expr, Expr]], extents: Mapping[Sym, Expr | None]) -> dict[Sym, Expr]:
    """Definitions of unknowns by which the first of each pair equals the second; unknowns without one are left out.

    `extents`: of each unknown, which starts at 0, its extent if known.
    """
    ends = _ends(extents)
    for count in counts(pairs, {sym: ends.get(sym) for sym in extents}):
        found = solved([(count.named(value), given) for value, given in pairs], {**extents, count.name: None})
        if (total := found.pop(count.name, None)) is not None:
            return found | count.parted(total)
    plain = Simplifier(Known({sym: (0, end - 1) for sym, end in ends.items()}))
    pairs = [(plain(value), given) for value, given in pairs]
    by = _offsets([value for value, _ in pairs], extents.keys())
    shifted = [(value.substitute({sym: expr(sym) - more for sym, more in by.items()}), given) for value, given in pairs]
    found = _of_digits(shifted, {sym: end if end is None else end + by.get(sym, 0) for sym, end in extents.items()})
    return {sym: value - by.get(sym, 0) for sym, value in found.items()}


def _of_digits(pairs: Sequence[tuple[Expr, Expr]], extents: Mapping[Sym, Expr | None]) -> dict[Sym, Expr]:
    """The same where quotients are of the unknowns themselves, and of no sum of several."""
    ends = _ends(extents)
    known = {sym: expr(0) for sym, end in ends.items() if end == 1}
    digits, left = dict[Sym, dict[int, tuple[int | None, Expr]]](), _together([*pairs])
    while left:
        left = [(value.substitute(known), given) for value, given in left]
        left.sort(key=lambda pair: _unclear(pair[0], extents.keys(), ends), reverse=True)  # equations of one unknown first
        value, given = left.pop()
        low, stride = _lowest(value, extents.keys())
        if stride:  # several unknowns are one digit together; the remainder is above it
            left.append((low, (given - value.constant) % stride))
            value, given = value - low - value.constant, (given - value.constant) // stride * stride
        if not _take_turn(value, given, known, extents):
            take(*turned(value, given, extents.keys()), known, digits, ends, extents.keys())
    whole = {sym: _whole(found, ends.get(sym)) for sym, found in digits.items() if sym not in known}
    open_ = {sym for sym, value in whole.items() if value is None}
    rests = [pair for pair in pairs if isinstance(atom := pair[0].as_atom, Mod) and atom.num.as_sym in open_]
    if rests:  # the slot of a ring is no digit of a turn that has others
        least = max(rests, key=lambda pair: pair[0].as_atom.den.constant if isinstance(pair[0].as_atom, Mod) else 0)
        return solved([pair for pair in pairs if pair is not least], extents)
    return known | {sym: value for sym, value in whole.items() if value is not None}


def _ends(extents: Mapping[Sym, Expr | None]) -> Ends:
    return {sym: end.constant for sym, end in extents.items() if end is not None and end.is_constant and end.constant > 0}


def _offsets(values: Sequence[Expr], unknown: Collection[Sym]) -> dict[Sym, int]:
    """The number by which an unknown is less than what the quotients are of, as those of turns that begin later: that of the
    greatest divisor, since all lower digits are of its remainder."""
    found = dict[Sym, tuple[int, int]]()
    for divisor, sym, by in (each for value in values for each in _divided(value)):
        if sym in unknown:
            found[sym] = max(found.get(sym, (0, 0)), (divisor, by))
    return {sym: by for sym, (_, by) in found.items() if by}


def _divided(value: Expr) -> Iterator[tuple[int, Sym, int]]:
    """Divisors of quotients, and the symbols and numbers the sum of which they divide."""
    for atom in (atom for monomial, _ in value.terms for atom in monomial):
        if isinstance(atom, FloorDiv | Mod):
            sym = (atom.num - atom.num.constant).as_sym
            if sym is not None and isinstance(atom, FloorDiv) and atom.den.is_constant:
                yield atom.den.constant, sym, atom.num.constant
            yield from _divided(atom.num)


def _unclear(value: Expr, unknown: Collection[Sym], ends: Ends) -> tuple[bool, int]:
    """How little an equation determines its unknowns: two digits that overlap, as in p + r, or of two signs, as in p − r, are
    anything together."""
    digits = [(c, _end(m[0], ends)) for m, c in value.terms if len(m) == 1 and not term(m).syms().isdisjoint(unknown)]
    pairs = pairwise(sorted((digit for digit in digits if digit[0] > 0), key=lambda digit: digit[0]))
    overlap = any(low == high or (end is not None and low * end > high) for (low, end), (high, _) in pairs)
    return overlap or len({c > 0 for c, _ in digits}) > 1, len(value.syms() & {*unknown})


def _end(atom: Atom, ends: Ends) -> int | None:
    """What a symbol, or a digit of one, is less than, where that is known."""
    if isinstance(atom, Sym):
        return ends.get(atom)
    digit = _digit(atom)
    if digit is None:
        return None
    sym, stride, extent = digit
    return extent if extent is not None or sym not in ends else -(-ends[sym] // stride)


def _whole(digits: Mapping[int, tuple[int | None, Expr]], end: int | None) -> Expr | None:
    """A number below `end` assembled from its digits; None where some are missing."""
    total, stride = expr(0), 1
    while (digit := _digit_at(stride, digits)) is not None and (end is None or stride < end):
        extent, value = digit
        total = total + value * stride
        if extent is None:
            return total
        stride *= extent
    return total if end is not None and end <= stride else None


def _digit_at(stride: int, digits: Mapping[int, tuple[int | None, Expr]]) -> tuple[int | None, Expr] | None:
    """The digit of that stride; a part of one that begins lower, as x / 4 is of x / 2 where x % 4 is known, too."""
    for below in sorted((each for each in digits if each <= stride and stride % each == 0), reverse=True):
        extent, value = digits[below]
        step = stride // below
        if extent is None or (extent > step and extent % step == 0):
            return (None if extent is None else extent // step), (value if step == 1 else value // step)
    return None


def _lowest(value: Expr, unknown: Collection[Sym]) -> tuple[Expr, int]:
    """The terms below the least stride of `value`, and that stride, where unknowns occur in a non-affine term."""
    steps = [c for m, c in value.terms if len(m) == 1 and m[0] in unknown and c > 1]
    stride = min(steps, default=0)
    terms = [(m, c) for m, c in value.terms if stride and c % stride and not term(m).syms().isdisjoint(unknown)]
    bent = any(not isinstance(m[0], Sym) for m, _ in terms)
    high = any(m[0] in unknown for m, c in value.terms if len(m) == 1 and stride and c % stride == 0)
    return (combination(0, terms), stride) if bent and high and len(terms) > 1 else (expr(0), 0)


def _together(pairs: list[tuple[Expr, Expr]]) -> list[tuple[Expr, Expr]]:
    """`pairs`, and the combined pair where both a quotient and its remainder are given."""
    bare = [((value - value.constant).as_atom, given - value.constant) for value, given in pairs]
    rests = {(a.num, a.den): given for a, given in bare if isinstance(a, Mod)}
    whole = [(a.num, a.den, given) for a, given in bare if isinstance(a, FloorDiv)]
    return [*((num, den * row + rests[num, den]) for num, den, row in whole if (num, den) in rests), *pairs]


def _take_turn(value: Expr, given: Expr, known: dict[Sym, Expr], extents: Mapping[Sym, Expr | None]) -> bool:
    """Solves (a + unknown) mod extent = `given` for the unknown, if `value` has that form."""
    atom = value.as_atom
    unknown = value.syms() & extents.keys()
    if not isinstance(atom, Mod) or len(unknown) != 1 or atom.num.as_sym is not None:
        return False
    (sym,) = unknown
    for sign in (1, -1):
        rest = atom.num - expr(sym) * sign
        if sym not in rest.syms() and extents[sym] is atom.den:
            known.setdefault(sym, ((given - rest) * sign) % atom.den)
            return True
    return False


def turned(value: Expr, given: Expr, dims: Collection[Sym]) -> tuple[Expr, Expr]:
    """`value` = `given` with terms without coordinates moved to the right; negated if all others are negative."""
    sizes = combination(0, [(m, c) for m, c in value.terms if not {s for s in term(m).syms() if s in dims}])
    value, given = value - sizes, given - sizes
    down = value.terms and all(c < 0 for _, c in value.terms)
    return (value.constant - value, value.constant - given) if down else (value, given)


def take(
    value: Expr,
    given: Expr,
    known: dict[Sym, Expr],
    digits: dict[Sym, dict[int, tuple[int | None, Expr]]],
    ends: Ends,
    unknown: Collection[Sym],
) -> None:
    """Solves `value` = `given` for atoms, where each term's coefficient is a multiple of the one before.

    A size or a product of sizes is a radix like a number: n · p + q = x gives p = ⌊x / n⌋ and q = x mod n.
    """
    products = [m for m, _ in value.terms if len(m) > 1]
    common = (a for a in products[0] if all(a in m for m in products)) if products else ()
    sizes = (a for a in common if isinstance(a, Sym | FloorDiv) and term((a,)).syms().isdisjoint(unknown))
    if radix := tuple(dict.fromkeys(sizes)):
        row, column = parted(value, radix)
        take(row, given // term(radix), known, digits, ends, unknown)
        take(column, given % term(radix), known, digits, ends, unknown)
        return
    terms = sorted(((c, m[0]) for m, c in value.terms if len(m) == 1), key=lambda t: t[0])
    if len(terms) != len(value.terms) or any(c <= 0 for c, _ in terms):
        return
    gaps = [c * ends[a] for c, a in terms[:-1] if isinstance(a, Sym) and a in ends]
    steps = [*(c for c, _ in terms[1:]), None]
    within = [
        n for c, n in zip(steps, gaps, strict=False) if c is not None and value.constant < c and n and value.constant % n == 0
    ]
    low = value.constant < min((c for c, _ in terms), default=0)
    rest = given if (within or low) and value.constant >= 0 else given - value.constant  # a constant in a gap is skipped
    for at, (c, atom) in enumerate(terms):
        uneven = next((d for (b, _), (d, _) in pairwise(terms[at:]) if d % b), None)  # everything below the digit d
        part = (rest if uneven is None else rest % uneven) // c
        if at + 1 < len(terms) and terms[at + 1][0] != uneven:
            over = terms[at + 1][0] // c
            own = ends.get(atom) if isinstance(atom, Sym) else None
            part = part % (own if own is not None and over % own == 0 else over)
        digit = _digit(atom)
        if isinstance(atom, Sym):
            known.setdefault(atom, part)
        elif digit is not None and digit[2] != 1:
            sym, stride, extent = digit
            there = digits.setdefault(sym, {}).setdefault(stride, (extent, part))
            if (
                there[0] is not None and extent is not None and extent > there[0] and extent % there[0] == 0
            ):  # which it is a part of
                digits[sym][stride] = extent, part


def _digit(atom: Atom) -> tuple[Sym, int, int | None] | None:
    """A symbol's digit: ⌊symbol / stride⌋ mod extent, or all of it above the stride; the digit of a digit is a digit of the
    symbol."""
    if not isinstance(atom, FloorDiv | Mod) or not atom.den.is_constant:
        return None
    inner, by = atom.num.as_atom, atom.den.constant
    found = (inner, 1, None) if isinstance(inner, Sym) else _digit(inner) if inner is not None else None
    if found is None or (found[2] is not None and found[2] % by):
        return None
    sym, stride, extent = found
    return (sym, stride, by) if isinstance(atom, Mod) else (sym, stride * by, None if extent is None else extent // by)


def joined(digits: Mapping[int, tuple[int | None, Expr]], own: Expr | None) -> Expr:
    """A number assembled from its digits; unknown digits are those of `own`."""
    total = expr(0)
    end: int | None = 1
    for stride, (extent, value) in sorted(digits.items()):
        if end is None or (extent is not None and stride * extent <= end):
            continue  # covered by a lower digit
        if own is not None and stride > end:
            total = total + own // end % (stride // end) * end
        total, end = total + value * stride, stride * extent if extent is not None else None
    return total if own is None or end is None else total + own // end * end
