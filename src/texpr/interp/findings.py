"""The errors that a traced run found."""

from __future__ import annotations

from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir.program import Par
from texpr.ir.value import Buffer
from texpr.support.diagnostic import Diagnostic, Note
from texpr.support.record import Record
from texpr.support.span import Span

Iteration: TypeAlias = tuple[tuple[Sym, int], ...]
"""The indices of the loops around a statement, outermost first."""


class Finding(Record):
    """An error, at the place where it was seen first.

    `code` is the error code (`texpr.support.codes.runtime`): E0710 to E0712 facts about the arguments, E0720 out of bounds,
    E0721 read before written, E0722 returned and never written, E0723 dependent iterations, E0724 to E0726 index arithmetic.
    `iteration` is where it happened, `element` the element of `buffer`; `other` is the earlier of two dependent iterations of
    `loop`.
    """

    code: str
    message: str
    span: Span | None = None
    buffer: Buffer | None = None
    element: tuple[int, ...] = ()
    iteration: Iteration = ()
    loop: Par | None = None
    other: Iteration = ()
    other_span: Span | None = None

    @property
    def diagnostic(self) -> Diagnostic:
        """The error as a diagnostic."""
        notes: list[Note] = []
        if self.iteration:
            notes.append(Note(f"at {in_words(self.iteration)}", self.span))
        if self.loop is not None:
            notes.append(Note(f"and before at {in_words(self.other)}", self.other_span))
        return Diagnostic(self.code, self.span, self.message, tuple(notes))


def in_words(iteration: Iteration) -> str:
    """`i = 3, k = 0`."""
    return ", ".join(f"{sym.base} = {index}" for sym, index in iteration)
