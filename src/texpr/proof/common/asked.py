"""Obligations before they are decided: a claim, and a search for a point that refutes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from texpr.ir.proof import Obligation, Verdict
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.questions import Point
from texpr.support.span import Span


class Claim(NamedTuple):
    """The texts of an obligation: `what` must hold, `about` what, `how` it is proved, where in the text, in which kernel."""

    what: str
    about: str
    how: str
    span: Span
    kernel: str = ""

    def told(self, verdict: Verdict, how: str) -> Obligation:
        """The obligation with its verdict."""
        return Obligation(self.kernel, self.what, self.about, verdict, how, self.span)

    def decided(
        self, question: Callable[..., Point | None], args: tuple[object, ...], unsure: tuple[type[Exception], ...] = ()
    ) -> Obligation:
        """The obligation, decided by a search for a point that refutes it. `unsure`: exceptions of invalid tags, which leave it
        undecided."""
        try:
            point = question(*args)
        except (Undecided, NotAffine, *unsure) as why:
            return self.told(Verdict.UNDECIDED, str(why))
        if point is None:
            return self.told(Verdict.PROVED, self.how)
        values = ", ".join(f"{sym.name} = {value}" for sym, value in point.items() if not sym.name.startswith("⟪"))
        return self.told(Verdict.REFUSED, f"not at {values}")


Asked: TypeAlias = tuple[Claim, Callable[..., "Point | None"], tuple[object, ...]]
"""An obligation, the search for a point that refutes it, and its arguments."""
