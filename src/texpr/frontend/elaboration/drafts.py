"""What an expression is before its type is known.

draft = Affine expr            an integer expression of indices, sizes and numbers; takes the type it meets
      | Real number            a decimal number; takes the floating type it meets
      | Open op drafts         an operation on untyped operands; takes the type it meets, and gives it to them
      | Typed value            has a type
"""

from __future__ import annotations

from typing import TypeAlias

from texpr.affine.expr import Expr
from texpr.ir.value import Index, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import F64, I64, DType
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Affine(Record):
    """An index expression. `floored`: numbers were divided with a remainder, which a float would be surprised by."""

    expr: Expr
    floored: bool = False


class Real(Record):
    """A decimal number, inf or nan."""

    value: float


class Open(Record):
    """An operation whose operands have no type yet (the condition of a `select` has one).

    `height` counts operators one inside the other, `size` all, each as often as it is written.
    """

    op: str
    args: tuple[Draft, ...]
    height: int
    size: int
    span: Span = NOWHERE


class Typed(Record):
    """A value. `affine` is the same number as an exact index expression, where it is one; no `let` of a let needs it."""

    value: Value
    affine: Expr | None = None
    height: int = 0

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        return self.value.dtype


Draft: TypeAlias = Affine | Real | Open | Typed


def height(draft: Draft) -> int:
    """How deep the value will be."""
    return draft.height if isinstance(draft, Open | Typed) else 0


def size(draft: Draft) -> int:
    """How many operators without a type the value will have."""
    return draft.size if isinstance(draft, Open) else 0


def affine_of(draft: Draft) -> Expr | None:
    """The exact index expression that `draft` is, if it is one."""
    return draft.expr if isinstance(draft, Affine) else draft.affine if isinstance(draft, Typed) else None


def natural(draft: Draft) -> DType:
    """The type of a draft that meets none: its own, i64 for integers, f64 for decimal numbers."""
    match draft:
        case Typed():
            return draft.dtype
        case Affine():
            return I64
        case Real():
            return F64
        case Open(op, args):
            if op == "select":
                args = args[1:]
            return F64 if OPS[op].takes == "float" or any(natural(a) is F64 for a in args) else I64


def index_value(expr: Expr) -> Index:
    """An index expression as a value of its natural type."""
    return Index(expr, I64)
