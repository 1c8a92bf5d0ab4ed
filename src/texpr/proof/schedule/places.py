"""Places in the memory of a program: the indices of its instance, and the subscripts."""

from __future__ import annotations

from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.value import Buffer, Load, Ref
from texpr.proof.read.actions import Program, Spot, indices

Home: TypeAlias = "Buffer | Sym"


def home_of(place: Load | Ref) -> Home:
    """The memory of a place."""
    return place.buffer if isinstance(place, Load) else place.sym


def place_of(place: Load | Ref, spot: Spot, program: Program) -> tuple[Expr, ...]:
    """A place of `program`: the indices of the loops around its declaration, and the subscripts."""
    around = map(expr, indices(spot)[: program.scopes[home_of(place)]])
    return (*around, *(place.index if isinstance(place, Load) else ()))
