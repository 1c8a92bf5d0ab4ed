"""Which instance of an event does a given instance of its statement: the indices turned round.

Indices are sums of digits of the kernel's coordinates, so a coordinate is put together from digits of the indices. What says
nothing of a coordinate leaves it at its first value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import TypeAlias

from texpr.affine.expr import ONE, Atom, Expr, FloorDiv, Mod, Sym, combination, expr, term
from texpr.presburger.products import parted
from texpr.reading.events import Site

Ends: TypeAlias = Mapping[Sym, int]
"""How many values loops from 0 have, where that is known."""


def inverse(site: Site, indices: Mapping[Sym, Expr], own: Collection[Sym] = ()) -> tuple[Expr, ...]:
    """The coordinates of `site`, in order, over the indices of the program's loops. To be proved by who uses it.

    `own`: coordinates that are those of who asks, where the indices do not say them.
    """
    known: dict[Sym, Expr] = {}
    digits: dict[Sym, dict[int, tuple[int | None, Expr]]] = {}
    ends = {
        loop.sym: hi.constant
        for loop, (lo, hi) in site.bounds.items()
        if hi.is_constant and lo.is_constant and lo.constant == 0 < hi.constant
    }
    dims = {*site.dims}
    alone = {a.sym: 0 for a in site.launch.kernel.axes if a.extent is ONE} | {sym: 0 for sym, end in ends.items() if end == 1}
    indices = {sym: value.substitute(alone) for sym, value in indices.items()}
    for loop, value in sorted(indices.items(), key=lambda item: any(len(m) > 1 for m, _ in item[1].terms)):  # plain ones first
        _take(*_turned(value, expr(loop), dims), known, digits, ends)
    for loop in site.loops:
        lo, _ = site.bounds[loop]
        if loop.sym in known and loop.step.is_constant and loop.step.constant > 1:  # 0 ≤ lo < step where turns are dealt out
            _take(lo, known[loop.sym] % loop.step, known, digits, ends)
        elif loop.sym in known and not lo.is_constant:  # a stretch of as many turns as the starts are apart
            _take(lo, known[loop.sym], known, digits, ends)
    for sym, found in digits.items():
        known.setdefault(sym, _joined(found, expr(sym) if sym in own else None))
    for loop in site.loops:
        if loop.sym not in known:
            known[loop.sym] = site.bounds[loop][0].substitute({s: known.get(s, s if s in own else 0) for s in site.dims})
    return tuple(known.get(sym, expr(sym if sym in own else 0)) for sym in site.dims)


def _turned(value: Expr, given: Expr, dims: Collection[Sym]) -> tuple[Expr, Expr]:
    """`value` = `given` with what is no coordinate on the other side, and turned round where what goes up goes down there."""
    sizes = combination(0, [(m, c) for m, c in value.terms if not {s for s in term(m).syms() if s in dims}])
    value, given = value - sizes, given - sizes
    down = value.terms and all(c < 0 for _, c in value.terms)
    return (value.constant - value, value.constant - given) if down else (value, given)


def _take(
    value: Expr, given: Expr, known: dict[Sym, Expr], digits: dict[Sym, dict[int, tuple[int | None, Expr]]], ends: Ends
) -> None:
    """Reads atoms off `value` = `given`, where each term's coefficient is a multiple of the one before.

    A size is a radix like a number: n · p + q = x says p = ⌊x / n⌋ and q = x mod n.
    """
    products = [m for m, _ in value.terms if len(m) > 1]
    for radix in (a for a in products[0] if isinstance(a, Sym) and all(a in m for m in products)) if products else ():
        row, column = parted(value, (radix,))
        _take(row, given // radix, known, digits, ends)
        _take(column, given % radix, known, digits, ends)
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
        uneven = next((d for (b, _), (d, _) in pairwise(terms[at:]) if d % b), None)  # what is below the digit d, all of it
        part = (rest if uneven is None else rest % uneven) // c
        if at + 1 < len(terms) and terms[at + 1][0] != uneven:
            over = terms[at + 1][0] // c
            own = ends.get(atom) if isinstance(atom, Sym) else None
            part = part % (own if own is not None and over % own == 0 else over)
        digit = _digit(atom)
        if isinstance(atom, Sym):
            known.setdefault(atom, part)
        elif digit is not None:
            sym, stride, extent = digit
            digits.setdefault(sym, {}).setdefault(stride, (extent, part))


def _digit(atom: Atom) -> tuple[Sym, int, int | None] | None:
    """A symbol's digit: ⌊symbol / stride⌋ mod extent."""
    match atom:
        case FloorDiv(num, den) if den.is_constant:
            inner = num.as_atom
            if isinstance(inner, Sym):
                return inner, den.constant, None
            found = _digit(inner) if inner is not None else None
            if found is not None and found[1] == 1 and found[2] is not None and found[2] % den.constant == 0:
                return found[0], den.constant, found[2] // den.constant
        case Mod(num, den) if den.is_constant:
            inner = num.as_atom
            if isinstance(inner, Sym):
                return inner, 1, den.constant
            found = _digit(inner) if inner is not None else None
            if found is not None and found[2] is None:
                return found[0], found[1], den.constant
        case _:
            pass
    return None


def _joined(digits: Mapping[int, tuple[int | None, Expr]], own: Expr | None) -> Expr:
    """A number by its digits; those that nothing says are those of `own`."""
    total = expr(0)
    end: int | None = 1
    for stride, (extent, value) in sorted(digits.items()):
        if own is not None and end is not None and stride > end:
            total = total + own // end % (stride // end) * end
        total, end = total + value * stride, stride * extent if extent is not None else None
    return total if own is None or end is None else total + own // end * end
