"""The automatic schedule, as text for the file, and the model's figures for it."""

from __future__ import annotations

from texpr.driver import Compiled
from texpr.explain.data import Data
from texpr.ir.program.text import print_schedule
from texpr.planner.plan import Chosen
from texpr.planner.untaken import untaken


def planned(compiled: Compiled) -> Data | None:
    """`text`: the schedule, None where there is none; `nests`: the tile of each and its traffic, or why it has none.

    None where no automatic schedule was requested.
    """
    found = compiled.planned
    if found is None:
        return None
    text = None if found.schedule is None else print_schedule(found.schedule, compiled.function)
    return {"text": text, "failed": found.failed or None, "nests": [_nest(each) for each in found.nests]}


def left(compiled: Compiled) -> list[Data]:
    """Sums of products that an automatic schedule gives to no instruction of lanes, by their lines, and why."""
    found, written = compiled.planned, compiled.written or compiled.function
    if found is None:
        return []
    every = untaken(written, compiled.function, found.nests, compiled.target)
    return [{"line": line, "reason": reason} for line, reason in every]


def tile_at(compiled: Compiled, line: int, instruction: str) -> dict[str, int] | None:
    """The tile of the nest of a line that is given to an instruction; None where no automatic schedule chose one."""
    for chosen in compiled.planned.nests if compiled.planned is not None else ():
        tile = {} if chosen.candidate is None else chosen.candidate.data()
        if chosen.line == line and instruction in tile.get("instruction", "").split(", "):
            return tile["tile"]
    return None


def _nest(chosen: Chosen) -> Data:
    tile = {"tile": None} if chosen.candidate is None else chosen.candidate.data()
    return {"line": chosen.line, "reason": chosen.reason or None, "refused": list(chosen.refused), **tile}
