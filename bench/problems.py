"""How good the automatic plans of real problems are, by the model of the machine: no GPU and no CUDA compiler is needed.

`bench/problems/list.txt` has the problems. `ratio` is the bound of a plan over what any program for the function needs on an
H100: up to 1.3 is good, up to 2 mediocre, more is bad; "none" where no plan is found within the time. `by`: the unit that
decides the kernel that takes longest; `why`: what else is known of a plan that is not good: multiprocessors with nothing to do,
several kernels, and what the planner says of nests that it did not tile. `seconds` are of the processor, to make the plan.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from common.apart import apart
from common.measure import Row, keep, show
from common.problems import LIST, VERDICTS, Problem, counted, problems, verdict
from texpr import __version__
from texpr.cli.program import read_program
from texpr.driver import lower
from texpr.explain.planned import planned
from texpr.explain.speed import speed
from texpr.ir.program.selection import AUTO
from texpr.support.diagnostic import TexprError

RESULTS = Path(__file__).parent / "results" / "problems.json"
TARGET = "sm_90a"
LONGEST = 300
"""Seconds for one problem."""
LOSS = 1.1


def judge(problem: Problem) -> Mapping[str, Any]:
    """What the model says of the plan of a problem."""
    program, sizes = read_program(problem.file, dict(problem.sizes))
    start = process_time()
    compiled = lower(program[problem.function], TARGET, sizes, schedule=AUTO)
    took = process_time() - start
    compiled = compiled.wide or compiled  # arrays begin where allocators let them, at multiples of 256 bytes
    found = speed(compiled, None, {})
    assert found is not None
    kernels = list(found["kernels"].values())
    longest = max(kernels, key=lambda each: each["bound_us"] * each["launches"])
    said = planned(compiled)
    reasons = [] if said is None else [said["failed"], *(nest["reason"] for nest in said["nests"] if nest["tile"] is None)]
    return {
        "bound_us": found["bound_us"],
        "least_us": found["least_us"],
        "ratio": found["ratio"],
        "by": longest["deciding"],
        "loss": longest["loss"],
        "launches": sum(each["launches"] for each in kernels),
        "reasons": list(dict.fromkeys(reason for reason in reasons if reason)),
        "seconds": took,
    }


def why(found: Mapping[str, Any]) -> str:
    """What is known of a plan that is not good."""
    if "failed" in found:
        return str(found["failed"])
    return "; ".join(_reasons(found)) if verdict(found["ratio"]) != "good" else ""


def _reasons(found: Mapping[str, Any]) -> Iterator[str]:
    if found["loss"] > LOSS:
        yield f"the fullest multiprocessor has {found['loss']:.3g} times its share"
    if found["launches"] > 1:
        yield f"{found['launches']} launches"
    yield from found["reasons"]


def row(problem: Problem, found: Mapping[str, Any]) -> Row:
    """A line of the table."""
    return {
        "class": problem.kind,
        "problem": problem.name,
        "verdict": verdict(found["ratio"]),
        "ratio": found["ratio"] if found["ratio"] is not None else "",
        "bound µs": found.get("bound_us", ""),
        "least µs": found.get("least_us", ""),
        "by": found.get("by", ""),
        "seconds": found.get("seconds", ""),
        "why": why(found)[:90],
    }


def totals(rows: Sequence[Row]) -> list[Row]:
    """How many there are of each verdict, by class and of all."""
    kinds = list(dict.fromkeys(str(each["class"]) for each in rows))
    told = {kind: counted(str(each["verdict"]) for each in rows if each["class"] == kind) for kind in kinds}
    told["all"] = counted(str(each["verdict"]) for each in rows)
    return [{"class": kind, **{each: found[each] for each in VERDICTS}} for kind, found in told.items()]


def main() -> int:
    """Print the tables; with `--json` keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="problems or classes; all, unless some are named")
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="keep the numbers here, of other problems, too")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    known = problems(LIST.read_text(encoding="utf-8"))
    if asked.of is not None:
        try:
            sys.stdout.write(json.dumps(judge(next(each for each in known if each.name == asked.of))) + "\n")
        except TexprError as reason:
            sys.stderr.write(f"{reason}\n")
            return 1
        return 0
    chosen = [each for each in known if not asked.names or each.name in asked.names or each.kind in asked.names]
    found: dict[str, Mapping[str, Any]] = {}
    for each in chosen:
        made = {"ratio": None, **apart(__file__, each.name, LONGEST)}
        found[each.name] = {"class": each.kind, "sizes": dict(each.sizes), "verdict": verdict(made["ratio"]), **made}
        sys.stderr.write(f"{each.name}: {verdict(made['ratio'])}\n")
        if asked.json is not None:
            keep(asked.json, {"texpr": __version__, "device": "H100 SXM5"}, found)
    rows = [row(each, found[each.name]) for each in chosen]
    show(f"automatic plans, bounds on an H100 SXM5, texpr {__version__}", rows, None)
    show("of these", totals(rows), None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
