"""An obligation before it is decided: what must hold, of what, and how to look for a point at which it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from texpr.ir.value import Load
from texpr.presburger.questions import Point
from texpr.reading.events import Event
from texpr.support.span import Span


class Told(NamedTuple):
    """How an obligation is told: `what` must hold, about what, `how` it does if it does, where in the text."""

    kernel: str
    what: str
    about: str
    how: str
    span: Span

    @classmethod
    def of(cls, event: Event, what: str, how: str, about: str | None = None) -> Told:
        """About an event."""
        return cls(event.site.launch.kernel.name, what, described(event) if about is None else about, how, event.span)


Asked: TypeAlias = tuple[Told, Callable[..., "Point | None"], tuple[object, ...]]
"""An obligation, what finds a point at which it does not hold, and what that is asked of."""


def described(event: Event) -> str:
    """An event in a word."""
    if isinstance(event.target, Load):
        return f"{event.target.buffer.name}[{', '.join(map(str, event.target.index))}]"
    return event.target.sym.name.split("#")[0]
