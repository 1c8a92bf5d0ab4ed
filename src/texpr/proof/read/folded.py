"""Axes of a grid that represent several loops: a kernel declares their indices first, as digits of the axis' index."""

from __future__ import annotations

from texpr.affine.expr import ONE, Expr, FloorDiv, Mod, Sym, expr
from texpr.affine.linear import divided
from texpr.ir import kernel as k

Block = tuple[k.Stmt, ...]


def folded(axis: k.Axis, body: Block) -> tuple[dict[Sym, Expr], int, dict[Sym, Expr]] | None:
    """The digits of an axis' index, in a mixed radix, that the first statements declare: the digits with their extents, the
    number of these statements, and the names of the digits.

    0 ≤ z < e₁ · … · eₙ and the points of 0..e₁ × … × 0..eₙ correspond one to one, by division with remainder.
    """
    rest, digits, env, total = expr(axis.sym), dict[Sym, Expr](), dict[Sym, Expr](), ONE
    last: Expr | None = None
    found: tuple[dict[Sym, Expr], int, dict[Sym, Expr]] | None = None
    for at, stmt in enumerate(body):
        if not k.declares(stmt) or len(named := k.indices(stmt)) != 1:
            break
        ((sym, value),) = named.items()
        match value.as_atom:
            case Mod(num, den) if num is rest and last is None:
                digits[sym], total, last = den, total * den, den
            case FloorDiv(num, den) if num is rest and den is last:
                rest, last = expr(sym), None
            case Sym() if value is rest and last is None:
                env[sym] = rest
            case None if value.is_constant and last is None:
                env[sym] = value
            case _:
                break
        top = rest.as_sym
        if digits and last is None and top is not None and top is not axis.sym:
            extent = divided(axis.extent, total)
            if extent is not None:
                found = {**digits, top: extent}, at + 1, dict(env)
    return found
