"""Quasi-affine expressions, canonical and interned.

Grammar:

    expr = constant + Σ coefficient · monomial        a sum; coefficients are non-zero integers
    monomial = atom · … · atom                        sorted; one atom where affine
    atom = Sym name | Number label exprs | FloorDiv expr expr | Mod expr expr | Min exprs | Max exprs | Xor expr expr bits

Two equal expressions that the rules below make canonical are the same object, so `is` and `==` agree. `/` and `%` floor, as
in the language (`//` and `%` in Python). A product of symbols is kept as a monomial, so that `i * N + j` can be delinearised.
Rewriting that needs a range or a fact is done in `texpr.affine.simplify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from math import gcd
from typing import TypeAlias

from texpr.affine.atoms import Atom, FloorDiv, Max, Min, Mod, Monomial, Number, Rules, Sym, Xor, atom_text, children, sum_text

IntoExpr: TypeAlias = "Expr | Sym | int"


class Expr:
    """A canonical sum. Build with `expr`, `sym` and the operators, never with the class itself."""

    __slots__ = ("_linear", "_names", "_negative", "_others", "_syms", "_text", "constant", "terms")
    constant: int
    terms: tuple[tuple[Monomial, int], ...]
    _others: dict[int, Expr]
    _negative: Expr | None
    _linear: bool | None
    _names: tuple[Sym, ...] | None
    _syms: frozenset[Sym] | None
    _text: str | None

    def __init__(self, constant: int, terms: tuple[tuple[Monomial, int], ...], others: dict[int, Expr]):
        """`others`: the interned sums with the same terms, by their constants."""
        self.constant, self.terms, self._others = constant, terms, others
        self._linear = self._names = self._negative = self._syms = self._text = None

    def __add__(self, other: IntoExpr) -> Expr:
        return self._plus(other if isinstance(other, Expr) else expr(other), 1)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        if self._negative is None:
            self._negative = _canonical(-self.constant, tuple([(m, -c) for m, c in self.terms]))
            self._negative._negative = self
        return self._negative

    def __sub__(self, other: IntoExpr) -> Expr:
        return self._plus(other if isinstance(other, Expr) else expr(other), -1)

    def __rsub__(self, other: IntoExpr) -> Expr:
        return expr(other)._plus(self, -1)

    def _plus(self, other: Expr, sign: int) -> Expr:
        if self.terms and other.terms:
            return _added(self, other, sign)
        constant = self.constant + sign * other.constant
        return (self if not other.terms else other if sign == 1 else -other)._with(constant)

    def _with(self, constant: int) -> Expr:
        """The same terms with another constant."""
        found = self._others.get(constant)
        return found if found is not None else _canonical(constant, self.terms)

    def __mul__(self, other: IntoExpr) -> Expr:
        other = expr(other)
        if not other.terms:
            return self._scaled(other.constant)
        if not self.terms:
            return other._scaled(self.constant)
        terms: dict[Monomial, int] = {}
        for left, a in ((), self.constant), *self.terms:
            for right, b in ((), other.constant), *other.terms:
                monomial = tuple(sorted((*left, *right), key=_atom_key)) if left and right else left or right
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _make(terms.pop((), 0), terms.items())

    __rmul__ = __mul__

    def _scaled(self, factor: int) -> Expr:
        if factor == 0:
            return ZERO
        return _canonical(self.constant * factor, tuple([(m, c * factor) for m, c in self.terms]))

    def __floordiv__(self, other: IntoExpr) -> Expr:
        """⌊self / other⌋; multiples of a constant divisor are moved out of the floor. A zero divisor raises
        ZeroDivisionError."""
        other = expr(other)
        if other.is_constant:
            return self._divided(other.constant)
        return ZERO if self is ZERO else _atom(FloorDiv(self, other))

    def _divided(self, den: int) -> Expr:
        """⌊self / den⌋ = whole + ⌊rest / den⌋ = whole + ⌊(rest / g) / (den / g)⌋ where g divides den and the terms of rest."""
        if den == 0:
            raise ZeroDivisionError("division by zero in an index")
        if den < 0:
            return (-self)._divided(-den)
        whole = _canonical(self.constant // den, tuple([(m, q) for m, c in self.terms if (q := _quotient(c, den))]))
        rest, den, _, _ = self._reduced(den)
        return whole + _atom(FloorDiv(rest, expr(den))) if rest.terms else whole

    def __mod__(self, other: IntoExpr) -> Expr:
        """self − other · ⌊self / other⌋; multiples of a constant divisor are dropped."""
        other = expr(other)
        if not other.is_constant:
            return ZERO if self is ZERO else _atom(Mod(self, other))
        den = other.constant
        if den == 0:
            raise ZeroDivisionError("remainder by zero in an index")
        if den < 0:
            return -((-self) % -den)
        rest, den, factor, low = self._reduced(den)
        return _atom(Mod(rest, expr(den))) * factor + low if rest.terms else expr(self.constant % den)

    def _reduced(self, den: int) -> tuple[Expr, int, int, int]:
        """`(rest, den / g, g, low)`: g · rest + low is congruent to self mod den, with 0 ≤ low < g and the largest such g."""
        left = self.residue(den)
        factor = gcd(den, *(c for _, c in left.terms)) if left.terms else 1
        if factor == 1:
            return left, den, 1, 0
        rest = _canonical(left.constant // factor, tuple([(m, c // factor) for m, c in left.terms]))
        return rest, den // factor, factor, left.constant % factor

    def residue(self, den: int) -> Expr:
        """The sum with its constant and coefficients reduced modulo `den` > 0."""
        return _canonical(self.constant % den, tuple([(m, r) for m, c in self.terms if (r := c - den * _quotient(c, den))]))

    @property
    def is_constant(self) -> bool:
        """Whether no symbol occurs."""
        return not self.terms

    @property
    def is_linear(self) -> bool:
        """Whether it is a sum of symbols with integer coefficients, and a constant."""
        if self._linear is None:
            self._linear = all([len(monomial) == 1 and isinstance(monomial[0], Sym) for monomial, _ in self.terms])
        return self._linear

    @property
    def as_atom(self) -> Atom | None:
        """The atom that this expression consists of; None where it is not a single atom."""
        if self.constant == 0 and len(self.terms) == 1:
            (monomial, coefficient) = self.terms[0]
            if coefficient == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    @property
    def as_sym(self) -> Sym | None:
        """The symbol that this expression consists of; None where it is not a single symbol."""
        atom = self.as_atom
        return atom if isinstance(atom, Sym) else None

    def syms(self) -> frozenset[Sym]:
        """Every symbol that occurs, operands of floors included."""
        if self._syms is None:
            self._syms = frozenset(self.names())
        return self._syms

    def names(self) -> tuple[Sym, ...]:
        """Every symbol that occurs, in textual order."""
        if self._names is None:
            self._names = tuple(dict.fromkeys(self._walk_names()))
        return self._names

    def _walk_names(self) -> Iterator[Sym]:
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Sym):
                    yield atom
                for child in children(atom):
                    yield from child.names()

    def substitute(self, values: Mapping[Sym, IntoExpr]) -> Expr:
        """This expression with symbols replaced simultaneously, canonical."""
        names = self._names or self.names()
        return self if values.keys().isdisjoint(names) else _substituted(self, tuple(map(values.get, names)))

    def evaluate(self, values: Mapping[Sym, int]) -> int:
        """The value at a point. Raises KeyError for a symbol that `values` lacks."""
        total = self.constant
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= values[atom] if type(atom) is Sym else _evaluate_atom(atom, values)
            total += coefficient
        return total

    def __str__(self) -> str:
        """The expression in the language's own syntax; it parses back to the same expression."""
        if self._text is None:
            self._text = sum_text(self)
        return self._text

    def __repr__(self) -> str:
        return f"⟨{self}⟩"

    def __bool__(self) -> bool:
        raise TypeError("an index expression has no truth value")


_interned: dict[tuple[tuple[Monomial, int], ...], dict[int, Expr]] = {}
"""Interned expressions: by terms (sorted, or in the order in which some sum produced them), then by constant."""


def _make(constant: int, terms: Iterable[tuple[Monomial, int]]) -> Expr:
    """The interned expression with these terms; zero terms are dropped, no monomial may occur twice."""
    kept = tuple([term for term in terms if term[1] != 0])
    others = _interned.get(kept)
    found = others.get(constant) if others is not None else None
    if found is None:
        terms = tuple(sorted(kept, key=_term_key))
        found = _canonical(constant, terms)
        _interned.setdefault(kept, _interned[terms])
    return found


def _canonical(constant: int, terms: tuple[tuple[Monomial, int], ...]) -> Expr:
    """The interned expression with these terms, which are sorted and not zero."""
    others = _interned.get(terms)
    if others is None:
        others = _interned.setdefault(terms, {})  # another thread may have been first
    found = others.get(constant)
    if found is None:
        found = others.setdefault(constant, Expr(constant, terms, others))
    return found


def _quotient(coefficient: int, den: int) -> int:
    """The quotient rounded toward zero, so that a coefficient smaller than the divisor, `-i` as well as `i`, stays as
    written."""
    return coefficient // den if coefficient >= 0 else -(-coefficient // den)


@lru_cache(maxsize=1 << 15)
def _added(one: Expr, other: Expr, sign: int) -> Expr:
    """one + sign · other, memoised: most sums are asked for again."""
    terms = dict(one.terms)
    for monomial, coefficient in other.terms:
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    constant = one.constant + sign * other.constant
    if len(terms) > len(one.terms):
        return _make(constant, terms.items())
    return _canonical(constant, tuple([term for term in terms.items() if term[1]]))  # in the order of the first


@lru_cache(maxsize=1 << 15)
def _substituted(value: Expr, given: tuple[IntoExpr | None, ...]) -> Expr:
    """`value` with its symbols replaced by those in `given`, which follow the order of its symbols; None leaves a symbol as
    it is."""
    values = {symbol: new for symbol, new in zip(value.names(), given, strict=True) if new is not None}
    constant, terms = value.constant, dict[Monomial, int]()
    for monomial, coefficient in value.terms:
        product: Expr | None = None
        for atom in monomial:
            new = values.get(atom) if type(atom) is Sym else _replaced(atom, values)
            if new is None and len(monomial) == 1:
                terms[monomial] = terms.get(monomial, 0) + coefficient
                break
            factor = new if isinstance(new, Expr) else _atom(atom) if new is None else expr(new)
            product = factor if product is None else product * factor
        if product is not None:
            constant += coefficient * product.constant
            for part, share in product.terms:
                terms[part] = terms.get(part, 0) + coefficient * share
    return _make(constant, terms.items())


def _replaced(atom: Atom, values: Mapping[Sym, IntoExpr]) -> Expr | None:
    """An atom with its symbols replaced; None where none is."""
    if _atom(atom).syms().isdisjoint(values):
        return None
    if isinstance(atom, Sym) and atom in values:
        return expr(values[atom])
    return rebuilt(atom, tuple([part.substitute(values) for part in children(atom)]))


@cache
def _atom(atom: Atom) -> Expr:
    return _canonical(0, (((atom,), 1),))


@cache
def _atom_key(atom: Atom) -> tuple[int, str]:
    """A total order on atoms that does not depend on the order of creation (output must be reproducible)."""
    return (0, atom.name) if isinstance(atom, Sym) else (1, atom_text(atom))


@cache
def _term_key(term: tuple[Monomial, int]) -> tuple[tuple[int, str], ...]:
    return tuple([_atom_key(atom) for atom in term[0]])


def expr(value: IntoExpr) -> Expr:
    """An integer, symbol or expression as an expression."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Sym):
        return _atom(value)
    return _number(int(value))


@cache
def _number(value: int) -> Expr:
    return _canonical(value, ())


ZERO = expr(0)
ONE = expr(1)


def sym(name: str) -> Expr:
    """The expression that is the symbol `name`."""
    return _atom(Sym(name))


def number_of(label: str, args: Iterable[IntoExpr], rules: Rules | None = None) -> Number:
    """The symbol for an integer read from data: `label` of `args`."""
    found = tuple(map(expr, args))
    return Number(f"{label}⟨{', '.join(map(str, found))}⟩", label, found, rules)


def term(monomial: Monomial, coefficient: int = 1) -> Expr:
    """coefficient · atom · … · atom. The atoms must come sorted, as those of an expression's terms do."""
    if not monomial or coefficient == 0:
        return _canonical(coefficient, ())
    return _canonical(0, ((monomial, coefficient),))


def combination(constant: int, terms: Iterable[tuple[Monomial, int]]) -> Expr:
    """constant + Σ coefficient · monomial; the monomials differ, and the atoms of each come sorted."""
    return _make(constant, terms)


def without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    """`monomial` divided by `factor`, if it has all of its atoms."""
    if not factor:
        return monomial
    left = list(monomial)
    for atom in factor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def minimum(*args: IntoExpr) -> Expr:
    """The minimum of `args`, of which there must be one; of arguments that differ by a constant only the least is kept."""
    return _extremum(Min, args)


def maximum(*args: IntoExpr) -> Expr:
    """The maximum of `args`, of which there must be one; of arguments that differ by a constant only the greatest is kept."""
    return _extremum(Max, args)


def _extremum(kind: type[Min] | type[Max], args: tuple[IntoExpr, ...]) -> Expr:
    if not args:
        raise ValueError("the extremum of nothing")
    best: dict[tuple[tuple[Monomial, int], ...], int] = {}
    choose = min if kind is Min else max
    for arg in map(expr, args):
        atom = arg.as_atom
        for each in atom.args if isinstance(atom, kind) else (arg,):
            best[each.terms] = choose(best.get(each.terms, each.constant), each.constant)
    rest = sorted((_make(constant, terms) for terms, constant in best.items()), key=_extremum_key)
    return rest[0] if len(rest) == 1 else _atom(kind(tuple(rest)))


def _extremum_key(arg: Expr) -> tuple[bool, str]:
    """Constants come last, as people write them."""
    return arg.is_constant, str(arg)


def xor(value: IntoExpr, mask: IntoExpr, bits: int) -> Expr:
    """`value` with its low `bits` bits XORed by those of `mask`: `value ^ (mask mod 2^bits)` in two's complement.

    Multiples of 2^bits are moved out of `value`; a constant mask reduces `bits` to its length; nested swizzles are sorted,
    and a swizzle and its inverse cancel. Raises ValueError where `bits` is negative.
    """
    if bits < 0:
        raise ValueError("a swizzle of less than no bits")
    value, mask = expr(value), _low_bits(expr(mask), 1 << bits)
    if mask.is_constant:
        bits = mask.constant.bit_length()
    size = 1 << bits
    low = value.residue(size)
    return value - low + _xor_of_low(low, mask, bits)


def _xor_of_low(low: Expr, mask: Expr, bits: int) -> Expr:
    """`xor` where no coefficient of `low` and `mask` is 2^bits or more in magnitude."""
    if bits == 0:
        return low
    if low.is_constant and mask.is_constant:
        return expr(low.constant ^ mask.constant)
    if low is ZERO:
        return mask % (1 << bits)
    if low is mask % (1 << bits):
        return ZERO
    inner = low.as_atom
    if isinstance(inner, Xor):
        if inner.bits == bits and inner.mask is mask:
            return inner.value
        if inner.mask.is_constant and mask.is_constant:
            return xor(inner.value, inner.mask.constant ^ mask.constant, max(inner.bits, bits))
        if _swizzle_key(mask, bits) < _swizzle_key(inner.mask, inner.bits):
            return xor(xor(inner.value, mask, bits), inner.mask, inner.bits)
    return _atom(Xor(low, mask, bits))


def _low_bits(mask: Expr, size: int) -> Expr:
    """A simple expression congruent to `mask` mod `size`: remainders by multiples of `size` are dropped."""
    for monomial, coefficient in mask.terms:
        for atom in monomial:
            if isinstance(atom, Mod) and atom.den.is_constant and coefficient * atom.den.constant % size == 0:
                outer = term(without(monomial, (atom,)) or (), coefficient)
                return _low_bits(mask + outer * (atom.num - _atom(atom)), size)
    return mask.residue(size)


def _swizzle_key(mask: Expr, bits: int) -> tuple[bool, int, str]:
    """Sort key of nested swizzles: those of few bits innermost, as more bits can be moved out of them; constants outermost,
    where they fold."""
    return mask.is_constant, bits, str(mask)


@lru_cache(maxsize=1 << 15)
def rebuilt(atom: Atom, parts: tuple[Expr, ...]) -> Expr:
    """The atom with other parts (in the order of `children`), made canonical again."""
    match atom:
        case Number():
            return expr(number_of(atom.label, parts, atom.rules))
        case Sym():
            return expr(atom)
        case FloorDiv():
            return parts[0] // parts[1]
        case Mod():
            return parts[0] % parts[1]
        case Min():
            return minimum(*parts)
        case Max():
            return maximum(*parts)
        case Xor():
            return xor(parts[0], parts[1], atom.bits)


def _evaluate_atom(atom: Atom, values: Mapping[Sym, int]) -> int:
    match atom:
        case Sym():
            return values[atom]
        case FloorDiv(num, den):
            return num.evaluate(values) // den.evaluate(values)
        case Mod(num, den):
            return num.evaluate(values) % den.evaluate(values)
        case Min(args):
            return min(a.evaluate(values) for a in args)
        case Max(args):
            return max(a.evaluate(values) for a in args)
        case Xor(value, mask, bits):
            return value.evaluate(values) ^ mask.evaluate(values) % (1 << bits)
