"""Claims about the events of a plan, and the texts of places."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer
from texpr.proof.common.asked import Claim
from texpr.proof.plan.match import home_of, subscripts
from texpr.proof.read.events import Event


def claim(event: Event, what: str, how: str, about: str | None = None) -> Claim:
    """A claim about an event."""
    place = element(home_of(event.target), subscripts(event.target)) if about is None else about
    return Claim(what, place, how, event.span, event.site.launch.kernel.name)


def element(home: Buffer | Sym, index: Sequence[Expr]) -> str:
    """The text of a place: an element of an array, or a register."""
    return f"{home.name}[{', '.join(map(str, index))}]" if isinstance(home, Buffer) else home.name.split("#")[0]
