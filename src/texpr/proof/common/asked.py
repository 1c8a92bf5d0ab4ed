"""An obligation before it is decided: what must hold, of what, and how to look for a point at which it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from texpr.ir.proof import Obligation, Verdict
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.questions import Point
from texpr.support.span import Span


class Claim(NamedTuple):
    """How an obligation is told: `what` must hold, about what, `how` it does if it does, where in the text, of which kernel."""

    what: str
    about: str
    how: str
    span: Span
    kernel: str = ""

    def told(self, verdict: Verdict, how: str) -> Obligation:
        """What became of it."""
        return Obligation(self.kernel, self.what, self.about, verdict, how, self.span)

    def decided(
        self, question: Callable[..., Point | None], args: tuple[object, ...], unsure: tuple[type[Exception], ...] = ()
    ) -> Obligation:
        """By looking for a point at which it does not hold. `unsure`: what hints may raise that name what is not there."""
        try:
            point = question(*args)
        except (Undecided, NotAffine, *unsure) as why:
            return self.told(Verdict.UNDECIDED, str(why))
        if point is None:
            return self.told(Verdict.PROVED, self.how)
        values = ", ".join(f"{sym.name} = {value}" for sym, value in point.items() if not sym.name.startswith("⟪"))
        return self.told(Verdict.REFUSED, f"not at {values}")


Asked: TypeAlias = tuple[Claim, Callable[..., "Point | None"], tuple[object, ...]]
"""An obligation, what finds a point at which it does not hold, and what that is asked of."""
