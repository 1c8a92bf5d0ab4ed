"""Another automatic plan where the CUDA compiler cannot do what the model took for granted.

How many registers a kernel needs, and whether products of a warpgroup may overlap, ptxas decides. Where it spills registers of
an automatic plan to memory, or waits behind each product by itself, the planner's next candidates for that nest are asked, one
after the other: the first is taken with which it does neither, and whose bound is about the same. If there is none the plan
stays: a few bytes that are spilled cost less than a plan that is worse throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from texpr.backends.cuda.headers import headers
from texpr.driver import Compiled, Way
from texpr.ir.kernel import kernels
from texpr.model.gain import bound_us
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.toolchain import Resources, Toolchain

MOST = 6
"""The most candidates that are asked."""

WORSE = 1.1
"""Of the bound of what is spilled, how much that of another candidate may be at most: so much bounds may be off
(`model.gain`)."""

Lower = Callable[[Way], Compiled]
Report = Callable[[str], Sequence[Resources]]
"""ptxas' report of the kernels in a source."""

NO_COMPILER = ("E0601", "E0602", "E0603", "E0604", "E0607")
"""There is no CUDA compiler that works here, or it does not know the target."""


def report_of(tools: Toolchain, target: str) -> Report:
    """What ptxas says of kernels for a target; nothing where there is no compiler for it."""

    def report(text: str) -> Sequence[Resources]:
        try:
            return tools.device(text, headers(), target).kernels
        except TexprError as reason:
            if reason.diagnostics[0].code in NO_COMPILER:
                return ()
            raise

    return report


def kept_in_registers(compiled: Compiled, lower: Lower, report: Report) -> Compiled:
    """`compiled`, or what `lower` makes of the planner's next candidates, where ptxas spills or serialises the automatic plan,
    or its wide one. Raises what `report` raises."""
    way, reasons = Way(), list[tuple[bool, int, str]]()
    for is_wide in (False, True):
        for line, reason in _troubles(compiled, report(compiled.source), is_wide).items():
            found = _next(compiled, way, lower, report, line, is_wide)
            way, compiled = found or (way, compiled)
            reasons.append((is_wide, line, reason if found else f"{reason}, and of others, or they are worse: it stays"))
    for is_wide, line, reason in reasons:
        compiled = _told(compiled, line, reason, is_wide)
    return compiled


def _next(compiled: Compiled, way: Way, lower: Lower, report: Report, line: int, is_wide: bool) -> tuple[Way, Compiled] | None:
    """The first candidate for the nest at `line` that is as good by its bound, and with which ptxas does what it should."""
    before = _of(compiled, is_wide)
    assert before is not None, "as a kernel of it is in trouble"
    limit = WORSE * bound_us(before.plan, before.target)
    for at in range(1, MOST + 1):
        picks = {**(way.wide if is_wide else way.picks), f"nest.{line}": at}
        asked = replace(way, wide=picks) if is_wide else replace(way, picks=picks)
        try:
            made = lower(asked)
        except TexprError:
            continue
        part = _of(made, is_wide)
        if part is None or bound_us(part.plan, part.target) > limit:
            continue
        if line not in _troubles(made, report(made.source), is_wide):
            return asked, made
    return None


def _of(compiled: Compiled, is_wide: bool) -> Compiled | None:
    return compiled.wide if is_wide else compiled


def _troubles(compiled: Compiled, found: Sequence[Resources], is_wide: bool) -> Mapping[int, str]:
    """What ptxas could not do, by the line of the nest."""
    part = _of(compiled, is_wide)
    lines = {} if part is None else {kernel.name: kernel.span.line for kernel in kernels(part.plan.steps)}
    return {lines[each.kernel]: said for each in found if each.kernel in lines and (said := _trouble(each))}


def _trouble(kernel: Resources) -> str:
    if kernel.serialised:
        return "ptxas waits behind each product of it"
    spilled = kernel.spill_stores + kernel.spill_loads
    return f"ptxas spills {spilled} bytes of registers of it" if spilled else ""


def _told(compiled: Compiled, line: int, reason: str, is_wide: bool) -> Compiled:
    """The same, with the reason among what was refused for the nest."""
    part = _of(compiled, is_wide)
    if part is None or part.planned is None:
        return compiled
    nests = tuple(each.but((reason,)) if each.line == line else each for each in part.planned.nests)
    part = replace(part, planned=replace(part.planned, nests=nests))
    return replace(compiled, wide=part) if is_wide else part
