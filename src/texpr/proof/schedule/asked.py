"""An obligation before it is decided: what must hold, of what, and how to look for a point at which it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from texpr.presburger.questions import Point
from texpr.support.span import Span

IS_STATEMENT, IS_THERE = "is a statement", "what is read is there"
"""Kinds of obligations."""


class Claim(NamedTuple):
    """How an obligation is told: `what` must hold, about what, `how` it does if it does, where in the text."""

    what: str
    about: str
    how: str
    span: Span


Asked: TypeAlias = tuple[Claim, Callable[..., "Point | None"], tuple[object, ...]]
"""An obligation, what finds a point at which it does not hold, and what that is asked of."""
