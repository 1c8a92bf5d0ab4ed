"""The schedule that the compiler found, as text for the file, and what its model says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from texpr.affine.expr import Sym
from texpr.driver import Compiled
from texpr.ir.text import print_schedule
from texpr.planner.cores import Panel
from texpr.planner.plan import Chosen
from texpr.planner.search import Candidate

Data = dict[str, Any]


def planned(compiled: Compiled) -> Data | None:
    """`text`: the schedule, None where there is none; `nests`: the tile of each and what it moves, or why it has none.

    None where the schedule was not to be found: it is written, or was not wanted.
    """
    found = compiled.planned
    if found is None:
        return None
    text = None if found.schedule is None else print_schedule(found.schedule, compiled.function)
    return {"text": text, "failed": found.failed or None, "nests": [_nest(each) for each in found.nests]}


def _nest(chosen: Chosen) -> Data:
    data: Data = {"line": chosen.line, "reason": chosen.reason or None, "refused": list(chosen.refused)}
    match chosen.candidate:
        case None:
            return {**data, "tile": None}
        case Candidate() as found:
            return {**data, **_tile(found)}
        case Panel() as found:
            return {**data, **_panel(found)}


def _tile(found: Candidate) -> Data:
    return {
        "tile": _named(found.tile),
        "own": _named(found.own),
        "staged": [
            {"buffer": s.form.buffer.name, "box": list(s.box), "bytes": s.bytes, "times": s.times} for s in found.staged
        ],
        "bytes_moved": found.moved + found.direct,
        "reuse": found.reuse,
        "shared_bytes": found.shared,
        "registers": found.registers,
    }


def _panel(found: Panel) -> Data:
    return {
        "tile": _named(found.tile),
        "own": _named({found.row: found.rows, found.lane: found.lanes}),
        "panels": [each.buffer.name for each in found.panels],
        "panel_bytes": found.bytes,
        "reads": found.reads,
    }


def _named(sizes: Mapping[Sym, int]) -> dict[str, int]:
    return {str(sym): size for sym, size in sizes.items()}
