"""The radices at which accesses split an index: its divisors in subscripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from texpr.affine.expr import Expr, FloorDiv, Mod, Sym, children


def divisors(value: Expr, sym: Sym) -> Iterator[Expr]:
    """The divisors of `sym` itself in `value`."""
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv | Mod) and atom.num.as_sym is sym and sym not in atom.den.syms():
                yield atom.den
            if not isinstance(atom, Sym):
                for part in children(atom):
                    yield from divisors(part, sym)


def chain(numbers: Iterable[int], below: int | None) -> tuple[int, ...]:
    """Those of `numbers` above 1 and below `below` that form a chain, each a divisor of the next."""
    found: list[int] = []
    for number in sorted(set(numbers)):
        if number > 1 and (not found or number % found[-1] == 0):
            found.append(number)
    return tuple(number for number in found if below is None or number < below)
