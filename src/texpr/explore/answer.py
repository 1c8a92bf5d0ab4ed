"""An answer as plain data, for a page: what is wrong, what may be chosen, and one pane."""

from __future__ import annotations

from typing import Any

from texpr.explore.asked import Asked
from texpr.explore.look import Look
from texpr.explore.page.html import Content, written
from texpr.explore.page.views import diagnostics, element, fault
from texpr.explore.panes import PANES, contents
from texpr.isa.registry import TARGETS
from texpr.support.render import as_data


def answer(seen: Look, pane: str) -> dict[str, Any]:
    """`problems` and `html`: what to show; `marks`: where problems are, to underline them; `ok`: whether there is anything to
    show in a pane."""
    return {
        "ok": seen.compiled is not None,
        "functions": list(seen.functions),
        "function": "" if seen.function is None else seen.function.name,
        "schedules": list(seen.schedules),
        "problems": written(problems(seen)),
        "marks": [as_data(each) for each in seen.problems],
        "pane": pane,
        "html": written(contents(seen, pane)),
    }


def problems(seen: Look) -> tuple[Content, ...]:
    """All that is wrong, or that nothing is."""
    found: tuple[Content, ...] = diagnostics(seen.problems)
    if seen.fault is not None:
        found = (*found, fault(*seen.fault))
    if not found:
        if seen.program is not None and not seen.functions:
            return (element("p", "write a function, or take an example", kind="note"),)
        return (element("p", f"legal, and proved for {seen.asked.target}", kind="fine"),)
    return found


def choices(asked: Asked) -> dict[str, Any]:
    """What a page shows before its first answer: the question, and what may be asked."""
    panes = [{"name": name, "title": pane.title, "pictured": pane.pictured} for name, pane in PANES.items()]
    return {
        "asked": {
            "text": asked.text,
            "name": asked.name,
            "function": asked.function,
            "target": asked.target,
            "schedule": asked.schedule,
            "sizes": ", ".join(f"{name}={size}" for name, size in asked.sizes),
        },
        "targets": list(TARGETS),
        "panes": panes,
    }
