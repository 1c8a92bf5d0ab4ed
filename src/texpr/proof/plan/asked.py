"""An obligation before it is decided: what must hold, of what, and how to look for a point at which it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer
from texpr.presburger.questions import Point
from texpr.proof.plan.match import home_of, subscripts
from texpr.proof.read.events import Event
from texpr.support.span import Span


class Claim(NamedTuple):
    """How an obligation is told: `what` must hold, about what, `how` it does if it does, where in the text."""

    kernel: str
    what: str
    about: str
    how: str
    span: Span

    @classmethod
    def of(cls, event: Event, what: str, how: str, about: str | None = None) -> Claim:
        """About an event."""
        place = element(home_of(event.target), subscripts(event.target)) if about is None else about
        return cls(event.site.launch.kernel.name, what, place, how, event.span)


Asked: TypeAlias = tuple[Claim, Callable[..., "Point | None"], tuple[object, ...]]
"""An obligation, what finds a point at which it does not hold, and what that is asked of."""


def element(home: Buffer | Sym, index: Sequence[Expr]) -> str:
    """A place in a word: an element of an array, or a register."""
    return f"{home.name}[{', '.join(map(str, index))}]" if isinstance(home, Buffer) else home.name.split("#")[0]
