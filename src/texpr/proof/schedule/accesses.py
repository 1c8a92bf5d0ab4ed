"""The accesses of a scheduled program: place, time, and the element of the written program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

from texpr.affine.expr import ONE, Expr, FloorDiv, Mod, Number, Sym, Xor, expr
from texpr.ir.value import Buffer, Load, Ref
from texpr.presburger.existential import ExistsWitness
from texpr.presburger.formula import Eq, Formula, Ge, disj, rename
from texpr.presburger.solve.relaxed import flat
from texpr.presburger.solve.turned import solved
from texpr.proof.read.actions import Action, Program, Spot, indices
from texpr.proof.read.order import Names
from texpr.proof.read.program_order import When, when
from texpr.support.record import Record

Home: TypeAlias = "Buffer | Sym"


def home_of(place: Load | Ref) -> Home:
    """The memory of a place."""
    return place.buffer if isinstance(place, Load) else place.sym


def place_of(place: Load | Ref, spot: Spot, program: Program) -> tuple[Expr, ...]:
    """A place of `program`: the indices of the loops around its declaration, and the subscripts."""
    around = map(expr, indices(spot)[: program.scopes[home_of(place)]])
    return (*around, *(place.index if isinstance(place, Load) else ()))


POINT, WIDE, POINTS = 7919, 10007, 8
"""A prime number, of which multiples are points, modulo an extent or another one; and how many points a guess is tried at."""

Quotient = TypeVar("Quotient", FloorDiv, Mod)


class Access(Record, eq=False):
    """An access to a place in memory. `place`: the indices of the loops around its declaration, and the subscripts. `dims`: the
    loop indices and data-dependent integers that all of this is over; `where`: facts about them.

    `stored`, `element`: the memory of the written program, and the element in it, with its instance; None for the fill of a
    hole. `meant`: the time of the access in the written program; empty for a copy. `does`: the written statement that it is
    part of. `is_update`: whether it is a step of a sum, whose order a `reduce` may relax; `is_own`: whether it is the read of
    an updated element. `legal`: the time at which the written program writes the element, by some instance, if `is_one` holds.
    `hole`: for the fill of a hole, the element that a larger source would have there; an untrusted hint, perhaps empty.
    """

    action: Action
    dims: tuple[Sym, ...]
    where: tuple[Formula, ...]
    home: Home
    place: tuple[Expr, ...]
    write: bool
    time: When
    stored: Home | None = None
    element: tuple[Expr, ...] = ()
    meant: When = ()
    does: Action | None = None
    is_update: bool = False
    is_own: bool = False
    legal: When = ()
    is_one: tuple[Formula, ...] = ()
    hole: tuple[Expr, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether neither its execution nor its place depends on data."""
        return not self.action.spot.tests and {*self.dims} <= {*indices(self.action.spot)}

    def is_data(self, sym: Sym) -> bool:
        """Whether data say a number."""
        return isinstance(sym, Number) or (sym in self.dims and sym not in indices(self.action.spot))

    def __str__(self) -> str:
        at = ", ".join(map(str, self.place))
        return f"{self.home.name}[{at}] of line {self.action.span.line}"


class Named(Record, eq=False):
    """An access with its coordinates renamed or substituted."""

    access: Access
    names: Names
    place: tuple[Expr, ...]
    element: tuple[Expr, ...]
    where: tuple[Formula, ...]
    time: When
    meant: When
    legal: When
    is_one: tuple[Formula, ...]
    hole: tuple[Expr, ...]

    def only(self, sym: Sym) -> Sym:
        """The symbol that a coordinate is renamed to."""
        found = self.names(sym).as_sym
        assert found is not None
        return found


@lru_cache(maxsize=1 << 10)
def named(access: Access, mark: str) -> Named:
    """`access` with its coordinates renamed, by a mark."""
    return placed(access, {s: expr(Sym(f"{s.name}{mark}")) for s in access.dims})


def placed(access: Access, at: Mapping[Sym, Expr]) -> Named:
    """`access` with its coordinates substituted."""
    names = Names(at)
    place, element, hole = (tuple(map(names, each)) for each in (access.place, access.element, access.hole))
    where = tuple(rename(f, names) for f in access.where)
    time, meant, legal = (names.times(each) for each in (access.time, access.meant, access.legal))
    is_one = tuple(rename(f, names) for f in access.is_one)
    return Named(access, names, place, element, where, time, meant, legal, is_one, hole)


def touched(place: Load | Ref, spot: Spot, action: Action, program: Program, write: bool) -> Access:
    """An access of a statement to a place, without a meaning yet."""
    at = place_of(place, spot, program)
    dims = coordinates(indices(action.spot), at, program.function.sizes)
    where = dict.fromkeys(flat((*action.spot.domain, *spot.domain)))
    time = when(spot, {sym: sym for sym in indices(spot)}, int(write))
    return Access(action, dims, (*where,), home_of(place), at, write, time)


def coordinates(loops: Iterable[Sym], exprs: Iterable[Expr], sizes: Collection[Sym]) -> tuple[Sym, ...]:
    """The indices of loops, and the other symbols in expressions, except sizes and functions of these."""
    own = dict.fromkeys(loops)
    said = {s for e in exprs for s in e.syms() if not isinstance(s, Number)}
    return (*own, *sorted(said - own.keys() - {*sizes}, key=lambda s: s.name))


def same(one: Sequence[Expr], other: Sequence[Expr]) -> Iterator[Formula]:
    """The condition that two places are equal."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not b]
    yield from (Eq(a - b) for a, b in (_unturned(*pair, pairs) for pair in pairs))
    for x, y, by in [(a.num, b.num, a.den) for a, b in _atoms(pairs, Mod) if a.den is b.den]:
        if any(x is a.num and y is b.num and by is a.den is b.den for a, b in _atoms(pairs, FloorDiv)):
            yield Eq(x - y)
        else:
            yield disj((Eq(x - y), Ge(x - y - by), Ge(y - x - by)))


def _atoms(pairs: Sequence[tuple[Expr, Expr]], kind: type[Quotient]) -> list[tuple[Quotient, Quotient]]:
    """The pairs of atoms of this kind."""
    atoms = ((a.as_atom, b.as_atom) for a, b in pairs)
    return [(a, b) for a, b in atoms if isinstance(a, kind) and isinstance(b, kind)]


def _unturned(a: Expr, b: Expr, known: Sequence[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    """Two equal numbers, without the xor if both are permuted by the same one."""
    match a.as_atom, b.as_atom:
        case Xor(x, y, width), Xor(u, v, wide) if width == wide and (y is v or (y, v) in known):
            return x, u
        case _:
            return a, b


def there(
    each: Named,
    near: Named | None,
    pairs: Sequence[tuple[Expr, Expr]],
    more: Sequence[Formula] = (),
    turns: Mapping[Sym, Expr] | None = None,
) -> ExistsWitness:
    """An access for which the first of each pair equals the second; `near`: an access in the same loops, as a hint; `turns`:
    iterations of some of its loops, which another hint says."""
    around = {} if near is None else {s: near.names(s) for s in near.access.dims}
    known, own = found(each, pairs), {s: each.only(s) for s in each.access.dims}
    if near is not None:
        extents = {near.only(x.sym): x.extent.constant for x in near.access.action.spot.loops if x.extent.is_constant}
        known |= {own[s]: _shifted(known[own[s]], here, extents) for s, here in around.items() if own.get(s) in known}
    known |= turns or {}
    facts = (*each.where, *(Eq(a - b) for a, b in pairs if a is not b), *more)
    return ExistsWitness(own, facts, (tuple(known.get(mine, around.get(s, expr(0))) for s, mine in own.items()),))


def _shifted(claim: Expr, near: Expr, extents: Mapping[Sym, int]) -> Expr:
    """A claim as so many iterations from the one `near`, if it is as many at some points: it is proved or not, as any claim."""
    syms = sorted(claim.syms() | near.syms(), key=str)
    if claim.is_linear or not near.syms() & claim.syms():
        return claim
    points = ({s: POINT * (at + 1) * (n + 3) % extents.get(s, WIDE) for n, s in enumerate(syms)} for at in range(POINTS))
    apart = {claim.evaluate(point) - near.evaluate(point) for point in points}
    return near + apart.pop() if len(apart) == 1 else claim


def found(each: Named, pairs: Sequence[tuple[Expr, Expr]]) -> dict[Sym, Expr]:
    """Coordinates for which the first of each pair equals the second, by name, as far as that determines them."""
    extents = {each.only(x.sym): each.names(x.extent) for x in each.access.action.spot.loops}
    return solved(pairs, {mine: extents.get(mine) for mine in map(each.only, each.access.dims)})


def nearest(theirs: Sequence[Expr], mine: Sequence[Expr], names: Mapping[Sym, Sym]) -> Mapping[Sym, Expr]:
    """The nearest earlier turn in which a slot of a ring was accessed, by the symbol of its loop: a guess, which is proved."""
    found: dict[Sym, Expr] = {}
    for one, other in zip(theirs, mine, strict=True):
        slot, now = (e.terms[0][0][0] if len(e.terms) == 1 and len(e.terms[0][0]) == 1 else None for e in (one, other))
        if not isinstance(slot, Mod) or not isinstance(now, Mod) or slot.den is not now.den or not slot.den.is_constant:
            continue
        for sym in slot.num.syms() & names.keys():
            ahead = now.num - slot.num.substitute({sym: expr(names[sym])})
            if ahead.is_constant and slot.num.substitute({sym: expr(sym) + 1}) - slot.num is ONE:
                found[sym] = expr(names[sym]) - -ahead.constant % slot.den.constant
    return found
