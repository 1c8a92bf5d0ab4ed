"""Atoms, the building blocks of index expressions, and how they are printed.

atom = Sym name | Number label exprs | FloorDiv expr expr | Mod expr expr | Min exprs | Max exprs | Xor expr expr bits
monomial = atom · … · atom                        sorted; one atom where affine
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from texpr.affine.interned import interned

if TYPE_CHECKING:
    from texpr.affine.expr import Expr


@interned
class Sym:
    """A symbol: a size, a loop index, a named integer, a hardware coordinate. Equal by name.

    Names are unique in a function: where two sibling loops share a name, later ones are called `i'1`, `i'2`, ….
    """

    name: str

    @property
    def base(self) -> str:
        """The name as the user wrote it."""
        return self.name.split("'", 1)[0]

    def __str__(self) -> str:
        return self.name


@interned
class Rules:
    """What is promised of the elements of a table of extents `shape`: each is at least `lo` and below `hi`, where these are
    said; if `injective`, no two are equal, and if `monotone`, none is less than the one before."""

    shape: tuple[Expr, ...]
    lo: Expr | None
    hi: Expr | None
    injective: bool
    monotone: bool


@interned
class Number(Sym):
    """An integer read from data, as the function `label` of `args`: a symbol; equal arguments give the same symbol. `rules`:
    what is promised of that function, if anything."""

    label: str
    args: tuple[Expr, ...]
    rules: Rules | None


@interned
class FloorDiv:
    """⌊num / den⌋."""

    num: Expr
    den: Expr


@interned
class Mod:
    """num − den · ⌊num / den⌋."""

    num: Expr
    den: Expr


@interned
class Min:
    """The minimum of two or more expressions."""

    args: tuple[Expr, ...]


@interned
class Max:
    """The maximum of two or more expressions."""

    args: tuple[Expr, ...]


@interned
class Xor:
    """value − value mod 2^bits + (value mod 2^bits ⊕ mask mod 2^bits): a swizzle of the low `bits` bits."""

    value: Expr
    mask: Expr
    bits: int


Atom: TypeAlias = Sym | FloorDiv | Mod | Min | Max | Xor
Monomial: TypeAlias = tuple[Atom, ...]


def children(atom: Atom) -> tuple[Expr, ...]:
    """The operands of an atom."""
    match atom:
        case Number(args=args):
            return args
        case Sym():
            return ()
        case FloorDiv(first, second) | Mod(first, second) | Xor(first, second):
            return (first, second)
        case Min(args) | Max(args):
            return args


def sum_text(value: Expr) -> str:
    """An expression in the language's own syntax."""
    parts: list[str] = []
    for monomial, coefficient in value.terms:
        product = " * ".join(atom_text(a) for a in monomial)
        magnitude = abs(coefficient)
        text = product if magnitude == 1 else f"{magnitude} * {product}"
        sign = ("- " if coefficient < 0 else "+ ") if parts else ("-" if coefficient < 0 else "")
        parts.append(sign + text)
    if not parts:
        return str(value.constant)
    end = f" {'-' if value.constant < 0 else '+'} {abs(value.constant)}" if value.constant else ""
    return " ".join(parts) + end


def _operand(value: Expr) -> str:
    simple = value.as_atom is not None or (value.is_constant and value.constant >= 0)
    return str(value) if simple else f"({value})"


def atom_text(atom: Atom) -> str:
    """An atom in the language's own syntax."""
    match atom:
        case Sym(name):
            return name
        case FloorDiv(num, den):
            return f"({_operand(num)} / {_operand(den)})"
        case Mod(num, den):
            return f"({_operand(num)} % {_operand(den)})"
        case Min(args):
            return f"min({', '.join(map(str, args))})"
        case Max(args):
            return f"max({', '.join(map(str, args))})"
        case Xor(value, mask, bits):
            return f"xor({value}, {mask}, {bits})"
