"""What an expression is before its type is known.

draft = Affine expr            an integer expression of indices, sizes and numbers; takes the type of its context
      | Real number            a decimal number; takes the floating type of its context
      | Open op drafts         an operation on untyped operands; takes the type of its context, and passes it on
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
    """An index expression. `floored`: a division of numbers floored, which would surprise as a float."""

    expr: Expr
    floored: bool = False


class Real(Record):
    """A decimal number, inf or nan."""

    value: float


class Open(Record):
    """An operation whose operands have no type yet (the condition of a `select` has one).

    `height` is the nesting depth of operators, `size` their number, each counted as often as it is written.
    """

    op: str
    args: tuple[Draft, ...]
    height: int
    size: int
    span: Span = NOWHERE


class Typed(Record):
    """A value. `affine` is the same number as an exact index expression, where it is one, so that it needs no `let` of a
    `let`."""

    value: Value
    affine: Expr | None = None
    height: int = 0

    @property
    def dtype(self) -> DType:
        """The type of the value."""
        return self.value.dtype


Draft: TypeAlias = Affine | Real | Open | Typed


def height(draft: Draft) -> int:
    """The height of the value to be made."""
    return draft.height if isinstance(draft, Open | Typed) else 0


def size(draft: Draft) -> int:
    """The number of operators without a type in the value to be made."""
    return draft.size if isinstance(draft, Open) else 0


def affine_of(draft: Draft) -> Expr | None:
    """`draft` as an exact index expression, if it is one."""
    return draft.expr if isinstance(draft, Affine) else draft.affine if isinstance(draft, Typed) else None


def natural(draft: Draft) -> DType:
    """The type of a draft without context: its own, i64 for integers, f64 for decimal numbers."""
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
