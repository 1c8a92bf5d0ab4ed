"""What is known at a place of emitted code: what each symbol is called, which C type it has, which values it may take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Fact, Known
from texpr.affine.ranges import LARGEST_SIZE, Range
from texpr.backends.c.names import Taken
from texpr.backends.c.text import Text
from texpr.ir.program import Compare
from texpr.ir.transfer import TensorMap
from texpr.ir.value import Buffer
from texpr.support.record import Record, field, replace


class IntType(Enum):
    """The C types of index arithmetic, narrowest first: name, bits without the sign, suffix of a literal.

    The last is for the host alone, see texpr_checks.h.
    """

    INT = ("int", 31, "")
    LONG = ("long long", 63, "LL")
    WIDE = ("texpr_wide", 127, "LL")

    @property
    def ctype(self) -> str:
        """The type in C."""
        return self.value[0]

    @property
    def suffix(self) -> str:
        """What a literal of the type ends with."""
        return self.value[2]

    def holds(self, ends: Range) -> bool:
        """Whether every integer between the ends fits."""
        lo, hi = ends
        return lo is not None and hi is not None and -(1 << self.value[1]) <= lo and hi < 1 << self.value[1]


class Variable(Record):
    """An integer in C text."""

    text: Text
    type: IntType


class Told(Record, dict=True):
    """Ranges and facts, and what they let one prove, worked out when it is asked: most scopes are on the way to another."""

    ranges: Mapping[Sym, Range] = field(default_factory=dict[Sym, Range])
    facts: tuple[Fact, ...] = ()

    @cached_property
    def known(self) -> Known:
        """Both together."""
        return Known(self.ranges, self.facts)


class Scope(Record):
    """What may be mentioned at a place. `widest` is the type that index arithmetic may grow to.

    `named` holds buffers (arrays, pointers, scalars), maps and register variables; `scalars` the buffers that are plain values;
    `parts` those of which each block of a cluster has a part, with the coordinate that says which of them a block is.
    """

    taken: Taken
    variables: Mapping[Sym, Variable]
    named: Mapping[Sym | Buffer | TensorMap, str]
    scalars: frozenset[Buffer]
    told: Told
    widest: IntType
    parts: Mapping[Buffer, Sym] = field(default_factory=dict[Buffer, Sym])

    @staticmethod
    def empty(widest: IntType = IntType.LONG) -> Scope:
        """A scope in which nothing has a name yet."""
        return Scope(Taken(), {}, {}, frozenset(), Told(), widest)

    @property
    def known(self) -> Known:
        """What is proved of the variables here."""
        return self.told.known

    def inner(self) -> Scope:
        """The scope of a block inside this one."""
        return self._with(taken=self.taken.inner())

    def name(self, key: Sym | Buffer | TensorMap, wanted: str | None = None) -> tuple[Scope, str]:
        """The scope in which `key`, a register variable, a buffer or a map, has a name, and that name."""
        text = self.taken.take(wanted or key.name)
        return self._with(named={**self.named, key: text}), text

    def also_named(self, key: Sym, text: str) -> Scope:
        """The scope in which an integer variable is a register variable too, whose value is `text`, a name or a cast of one."""
        return self._with(named={**self.named, key: text})

    def scalar(self, buffer: Buffer) -> tuple[Scope, str]:
        """The scope in which `buffer` is a plain value."""
        scope, text = self.name(buffer)
        return scope._with(scalars=self.scalars | {buffer}), text

    def part(self, buffer: Buffer, rank: Sym) -> tuple[Scope, str]:
        """The scope in which `buffer` is this block's part of it, and its name."""
        scope, text = self.name(buffer)
        return scope._with(parts={**self.parts, buffer: rank}), text

    def integer(self, sym: Sym, ends: Range, facts: Iterable[Fact] = (), past: Range | None = None) -> tuple[Scope, Variable]:
        """The scope in which `sym` is an integer variable in the range `ends`, and that variable.

        Its type holds `past` too, the values that the variable takes where nothing reads it (a loop's last step).
        """
        fits = IntType.INT.holds(ends) and (past is None or IntType.INT.holds(past))
        variable = Variable(Text(self.taken.take(sym.name)), IntType.INT if fits else IntType.LONG)
        return self.knows(sym, variable, ends, facts), variable

    def knows(self, sym: Sym, variable: Variable, ends: Range, facts: Iterable[Fact] = ()) -> Scope:
        """The scope in which `sym` stands for `variable`."""
        told = Told({**self.told.ranges, sym: ends}, (*self.told.facts, *facts))
        return self._with(variables={**self.variables, sym: variable}, told=told)

    def within(self, ranges: Mapping[Sym, Range]) -> Scope:
        """The scope in which these symbols, named or not, lie in these ranges."""
        return self._with(told=Told({**self.told.ranges, **ranges}, self.told.facts))

    def given(self, facts: Iterable[Fact]) -> Scope:
        """The scope in which `facts` hold too."""
        return self._with(told=Told(self.told.ranges, (*self.told.facts, *facts)))

    def bounds(self, value: Expr) -> Range:
        """The range of an index expression here."""
        return self.known.bounds(value)

    def _with(self, **changes: object) -> Scope:
        return replace(self, **changes)


def size_ranges(sizes: Iterable[Sym], requires: Iterable[Compare]) -> dict[Sym, Range]:
    """0 ≤ size < 2³¹ for each, narrowed by the requirements that compare one size with a number."""
    ranges: dict[Sym, Range] = {size: (0, LARGEST_SIZE) for size in sizes}
    for fact in requires:
        difference = fact.left - fact.right
        if len(difference.terms) != 1:
            continue
        ((monomial, coefficient),) = difference.terms
        if len(monomial) != 1 or not isinstance(monomial[0], Sym) or abs(coefficient) != 1 or monomial[0] not in ranges:
            continue
        size, limit = monomial[0], -difference.constant * coefficient
        ranges[size] = _narrowed(ranges[size], fact.op if coefficient > 0 else _MIRRORED[fact.op], limit)
    return ranges


def size_facts(requires: Iterable[Compare]) -> tuple[Fact, ...]:
    """The requirements, as facts."""
    return tuple(fact for compare in requires for fact in _facts(compare))


def factors(extent: Expr) -> Iterator[Sym]:
    """The symbols of an extent that is a product: where it is not empty and no symbol is negative, each is at least 1."""
    if len(extent.terms) == 1 and extent.constant == 0:
        yield from (atom for atom in extent.terms[0][0] if isinstance(atom, Sym))


def _facts(compare: Compare) -> Iterator[Fact]:
    left, right = compare.left, compare.right
    match compare.op:
        case "<":
            yield Fact(None, left, right)
        case "<=":
            yield Fact(None, left, right + 1)
        case ">":
            yield Fact(None, right, left)
        case ">=":
            yield Fact(None, right, left + 1)
        case "==":
            yield Fact(right, left, right + 1)
        case _:
            pass


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _narrowed(ends: Range, op: str, limit: int) -> Range:
    lo, hi = ends[0] or 0, LARGEST_SIZE if ends[1] is None else ends[1]
    match op:
        case "<" | "<=":
            hi = min(hi, limit - (op == "<"))
        case ">" | ">=":
            lo = max(lo, limit + (op == ">"))
        case "==":
            lo, hi = max(lo, limit), min(hi, limit)
        case _:
            pass
    return (lo, hi) if lo <= hi else ends
