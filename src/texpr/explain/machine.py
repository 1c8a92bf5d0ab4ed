"""Machine code line by line: where each instruction comes from, how often it is run, and what each line asks.

The time of a line is the bound of its instructions alone, as if a launch ran nothing else: units of a multiprocessor are
counted, traffic of memory is not, as it belongs to no single line. So lines do not add up to the bound of the kernel; they say
where to look first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from texpr.driver import Compiled
from texpr.explain.data import Data
from texpr.explain.speed import FEW, launch_of
from texpr.ir.kernel.point import assumed, usual
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Device
from texpr.model.bound import bound
from texpr.model.code.classes import unit
from texpr.model.code.program import program
from texpr.model.code.text import Code, Instruction, read_code
from texpr.model.code.walk import MOST, Counts, count
from texpr.model.code.work import read_work
from texpr.model.plan.work import Launched, launches
from texpr.support.record import replace
from texpr.toolchain.resources import Resources


def machine_code(compiled: Compiled, text: str, resources: Mapping[str, Resources]) -> list[Data]:
    """Each kernel of disassembled `text` that `compiled`, or its wide plan, launches.

    `lines`: by line of the program (0: of no line of it), microseconds of a launch that its busiest `unit` needs, and how many
    instructions it has; `us` is None where nothing is known of the device, or of the launch. `code`: each instruction, its
    line, and how many warps of the launch run it (`times`, None where that cannot be counted). `whole`: whether all was
    counted.
    """
    codes = {code.kernel: code for code in read_code(text)}
    versions = (compiled, *(() if compiled.wide is None else (compiled.wide,)))
    return [told for each in versions for told in _kernels(each, codes, resources)]


def _kernels(compiled: Compiled, codes: Mapping[str, Code], resources: Mapping[str, Resources]) -> Iterator[Data]:
    device, fixed = DEVICES.get(compiled.target.name), dict(compiled.plan.fixed)
    sizes = usual(compiled.plan)
    source = PurePath(compiled.function.span.source.name).name
    for each in launches(compiled.plan, sizes, compiled.target):
        code = codes.get(each.kernel.name)
        if code is None:
            continue
        launch = launch_of(each.kernel, sizes, compiled)
        counts = None if launch is None else count(program(code), launch, MOST if sizes.keys() == fixed.keys() else FEW)
        lines = [_line(one, source) for one in code.instructions]
        yield {
            "kernel": each.kernel.name,
            "sizes": {sym.name: value for sym, value in sizes.items()},
            "assumed": [sym.name for sym in assumed(compiled.plan)],
            "whole": counts is not None and not counts.cut,
            "lines": dict(_asked(each, code, counts, lines, resources.get(each.kernel.name), compiled, device)),
            "code": [
                {"address": one.address, "text": _text(one), "line": line, "unit": unit(one), "times": times}
                for one, line, times in zip(code.instructions, lines, _times(code, counts), strict=True)
            ],
        }


def _line(one: Instruction, source: str) -> int:
    """The line of the program, or 0: of the prologue, or of a function that no line calls."""
    return one.line[1] if one.line is not None and PurePath(one.line[0]).name == source else 0


def _times(code: Code, counts: Counts | None) -> tuple[float | None, ...]:
    return (None,) * len(code.instructions) if counts is None else counts.executed


def _text(one: Instruction) -> str:
    guard = f"@{one.guard} " if one.guard else ""
    return f"{guard}{one.opcode} {', '.join(one.operands)}".rstrip()


def _asked(
    each: Launched,
    code: Code,
    counts: Counts | None,
    lines: list[int],
    found: Resources | None,
    compiled: Compiled,
    device: Device | None,
) -> Iterator[tuple[int, Data]]:
    """What each line asks, in their order."""
    shape = each.shape if found is None else replace(each.shape, registers=found.registers)
    for line in sorted(set(lines)):
        own = [at for at, number in enumerate(lines) if number == line]
        told: Data = {"us": None, "unit": "", "instructions": len(own)}
        if counts is not None and device is not None:
            part = Code(code.kernel, tuple(code.instructions[at] for at in own))
            issued, executed = (tuple(of[at] for at in own) for of in (counts.issued, counts.executed))
            alone = replace(counts, issued=issued, executed=executed)
            made = bound(read_work(part, alone, compiled.target).work, shape, compiled.target, device)
            told |= {"us": made.us, "unit": made.deciding}
        yield line, told
