"""Targets by name."""

from __future__ import annotations

from difflib import get_close_matches

from texpr.isa.gather import gather
from texpr.isa.target import Target
from texpr.isa.targets import __name__ as _package
from texpr.isa.targets import __path__ as _path
from texpr.support.diagnostic import limitation
from texpr.support.span import Span

TARGETS: dict[str, Target] = {target.name: target for target in gather(_package, _path, "TARGET", Target)}
"""Every target by name."""


def resolve(name: str, span: Span | None = None) -> Target:
    """The target called `name`. E0580 for an unknown one, with the nearest that is known."""
    found = TARGETS.get(name)
    if found is not None:
        return found
    near = get_close_matches(name, TARGETS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"the targets are {', '.join(TARGETS)}"
    raise limitation("E0580", span, f"there is no target `{name}`", help=hint)
