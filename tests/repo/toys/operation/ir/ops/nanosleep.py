"""A thread that sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.ir.operation import Operation
from texpr.ir.operation.form import Number, Word

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.printing import Printing

MOST = 10**6
"""Nanoseconds (PTX ISA, "nanosleep")."""


def sleep_is_short(stmt: Stmt, at: Place) -> Iterator[str]:
    """A machine sleeps no longer than so."""
    if isinstance(stmt, Nanosleep) and not 0 <= stmt.ns <= MOST:
        yield f"{stmt.ns} ns are not from 0 to {MOST}"


class Nanosleep(Operation, eq=False):
    """Sleeps for about `ns` nanoseconds, up to twice as long."""

    FORM = (Word("nanosleep"), Number("ns"))
    RULES = (sleep_is_short,)

    ns: int

    def cuda(self, to: Printing) -> Iterator[str]:
        """An intrinsic."""
        yield f"__nanosleep({self.ns});"
