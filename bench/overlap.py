"""Attention in one sweep over blocks of keys, with and without `roles` and `overlap`: the automatic schedule; the same without
warps that copy; without turns that overlap, too; and that in blocks of two warpgroups. All numbers are by the model, none is a
time.

`plan µs`, `code µs`: the bound by each reading. `plan turn`, `code turn`: clocks of a steady turn, by the warpgroup that a
multiprocessor holds. `late`: instructions between a wait that leaves a product and the wait for that.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from common.attention import CASES, online
from common.measure import Row, show
from texpr import __version__
from texpr.backends.cuda.headers import headers
from texpr.driver import Compiled, lower, parse
from texpr.explain import explain
from texpr.ir import program as ir
from texpr.ir.kernel import kernels
from texpr.model.plan.turn import computing
from texpr.support.record import replace
from texpr.toolchain.cuda import compile_cuda, disassemble, find_nvcc
from texpr.toolchain.machine import this_machine

RESULTS = Path(__file__).parent / "results" / "overlap.json"
TARGET, SIZES = "sm_90a", {"H": 64, "L": 4096}
GROUP = 128
"""Threads of a warpgroup."""


def text(d: int, keys: int, causal: bool) -> str:
    """The program, of rows of `d`, so many keys at a time; a causal one in blocks of 128 rows."""
    return online(d=d, keys=keys, causal=causal, align=" align(16)", block=128)


def forms(function: ir.Function) -> Iterator[tuple[str, Compiled]]:
    """The automatic schedule, and those that do without."""
    made = lower(function, TARGET, SIZES, schedule="auto")
    yield "automatic", made
    assert made.schedule is not None
    for name, rows, left in (
        ("the same, no roles", None, {"roles"}),
        ("the same, in order", None, {"roles", "overlap"}),
        ("in order, 128 rows", 128, {"roles", "overlap"}),
    ):
        kept = tuple(_rows(each, rows) for each in made.schedule.directives if each.name not in left)
        yield name, lower(function, TARGET, SIZES, schedule=replace(made.schedule, directives=kept))


def _rows(directive: ir.Directive, rows: int | None) -> ir.Directive:
    """A directive for blocks of so many rows in place of those that it has."""
    if rows is None:
        return directive
    if directive.name == "split" and str(directive.args[0].value) == "i":
        return replace(directive, args=(directive.args[0], replace(directive.args[1], value=rows)))
    if directive.name == "stage" and str(directive.args[0].value) == "Q":
        boxes = tuple(replace(a, value=_box(a.value, rows)) if a.key == "box" else a for a in directive.args)
        return replace(directive, args=boxes)
    return directive


def _box(value: ir.ArgumentValue, rows: int) -> ir.ArgumentValue:
    if not isinstance(value, ir.Group):
        return value
    one, _, *rest = value.args
    return ir.Group((one, replace(value.args[1], value=rows), *rest))


def row(name: str, form: str, made: Compiled) -> Row:
    """What both readings say."""
    machine = this_machine()
    nvcc = find_nvcc(machine)
    built = compile_cuda(machine, nvcc, made.source, headers(), TARGET)
    (used,) = built.kernels
    ((_, kernel),) = explain(made, machine)["speed"]["kernels"].items()
    code, turn = kernel["code"], kernel["turn"]
    groups = code["resident_blocks"] * computing(next(iter(kernels(made.plan.steps)))) // GROUP
    return {
        "program": name,
        "schedule": form,
        "plan µs": kernel["bound_us"],
        "code µs": code["bound_us"],
        "by": code["deciding"],
        "registers": used.registers,
        "spilled": used.spill_stores + used.spill_loads,
        "groups": groups,
        "plan turn": turn["clocks"] / (kernel["resident_blocks"] * groups / code["resident_blocks"]),
        "code turn": code["steady"]["clocks"] / groups,
        "instructions": code["steady"]["instructions"],
        "late": _late(disassemble(machine, nvcc, built)),
    }


def _late(code: str) -> int:
    """Instructions between a wait that leaves a product and the next wait, in the order of addresses; 0 where none does."""
    lines = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+([^;]*);", code, re.MULTILINE)
    waits = [(at, int(line.split("0x")[-1], 16)) for at, line in enumerate(lines) if "WARPGROUP.DEPBAR" in line]
    return next((after - at for (at, left), (after, _) in pairwise(waits) if left), 0)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="also write the numbers here")
    options = parser.parse_args()
    rows: list[Row] = []
    for d, keys, causal in CASES:
        function = parse(text(d, keys, causal)).functions[0]
        name = f"rows of {d}, {keys} keys{', causal' if causal else ''}"
        for form, made in forms(function):
            rows.append(row(name, form, made))
    show(f"attention, 64 heads of 4096 rows, on an H100 SXM5, texpr {__version__}", rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
