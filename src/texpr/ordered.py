"""Whether barriers of a text order what lanes of a `fully par` do, proved of the kernel that it becomes.

The obligations are those of channels that the compiler makes (docs/theory/channels.md), for all sizes. They are asked of the
kernel without a schedule for the first target that has such barriers: on each later one it has the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from texpr.checks import check as check_alone
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import InOrder
from texpr.ir.proof import Obligation, Verdict
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.proof.plan import question
from texpr.proof.search import certified
from texpr.support.diagnostic import Diagnostic, Note, TexprError
from texpr.support.record import Record
from texpr.support.span import Span

TARGET = "sm_90"
MOST = 3
"""At most so many pairs of accesses without an order are told."""

RING = (
    "give both sides loops of as many turns, or one: some lanes `wait(empty[k % 4], k / 4 - 1)`, fill a slot, and "
    "`arrive(full[k % 4])`; others `wait(full[k % 4], k / 4)`, use it, and `arrive(empty[k % 4])`"
)


class Broken(Record):
    """What is said of an obligation that does not hold: what is wrong, and what would help."""

    wrong: str
    help: str


BROKEN = {
    "channel, warps": Broken(
        "a side of {0} is no whole warps, or one warp is on both: its lanes would wait for each other",
        "let each side be a multiple of 32 lanes, from a multiple of 32 on",
    ),
    "channel, counts": Broken(
        "phases of {0} do not get as many arrivals as they take: in each turn one of each lane of a side",
        "make each with the number of lanes that arrive there, and let each of them arrive once in a turn, and wait once",
    ),
    "channel, phase": Broken(
        "a wait or an arrival at {0} is for another slot or phase than that of its turn",
        "of S slots, turn k has slot k % S; lanes wait for phase k / S of what is full, and k / S - 1 of what is empty",
    ),
    "channel, trip counts": Broken(
        "one side of {0} goes through turns that the other one does not have, or waits after it has arrived",
        "let the loops of both sides have the same turns, and leave none out",
    ),
    "channel, no deadlock": Broken(
        "a wait for a phase of {0} is for an arrival that does not come before it in the text: lanes may wait for ever",
        "in each turn let what fills a slot stand before what uses it, and let a slot be released in the turn that uses it",
    ),
    "channel, life": Broken(
        "lanes may come to {0} before they are made",
        "declare barriers in the `par` over blocks, outside of other loops",
    ),
}


def check(function: ir.Function) -> tuple[Diagnostic, ...]:
    """The errors and undecided properties of a function, of its barriers last."""
    return tuple(check_alone(function)) or ordered(function)


def ordered(function: ir.Function) -> tuple[Diagnostic, ...]:
    """What is wrong with the barriers of a legal function, or cannot be decided."""
    made = {stmt.buffer.name: stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.New) and stmt.arrivals}
    uses = [stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Instruction) and stmt.signal is not None]
    if not made:
        return ()
    return tuple(_one_sided(made, uses)) or tuple(_unproved(function, made))


def _one_sided(made: dict[str, ir.New], uses: list[ir.Instruction]) -> Iterator[Diagnostic]:
    """Barriers at which nobody arrives, or waits."""
    for name, new in made.items():
        mine = [use for use in uses if use.operands[0].buffer is new.buffer]
        for missing, other, told, help in (
            (ir.ARRIVE, ir.WAIT, "no lane arrives there", "let lanes arrive behind what others wait for"),
            (ir.WAIT, ir.ARRIVE, "no lane waits there", "let lanes wait before they use what others did"),
        ):
            found = [use for use in mine if use.name == other]
            if found and not any(use.name == missing for use in mine):
                note = Note("it is declared here", new.span)
                yield Diagnostic("E0424", found[0].span, f"lanes {other} at `{name}`, and {told}", (note,), help)


def _unproved(function: ir.Function, made: dict[str, ir.New]) -> Iterator[Diagnostic]:
    """What the verifier refuses of barriers, or leaves undecided."""
    try:
        plan, _ = lower(function, resolve(TARGET))
    except TexprError as raised:
        yield from raised.diagnostics
        return
    asked = question(function, plan)
    rings = [channel for launch in asked.reading.launches for channel in launch.channels]
    linked = {own.barrier.buffer.name for ring in rings for own in (ring.acquire, ring.fill)}
    for name in (name for name in made if name not in linked):
        reason = f"`{name}` belongs to no ring of slots that is understood, so its phases are not known to follow each other"
        yield Diagnostic("E0510", made[name].span, reason, (), RING)
    if not made.keys() <= linked:
        return
    obligations = certified(asked, plan).proof.obligations
    missed = [each for each in obligations if each.verdict in (Verdict.REFUSED, Verdict.UNDECIDED)]
    lane = _lane(function)
    found = list(_broken((each for each in missed if each.what in BROKEN), made, lane))
    yield from found or list(_unordered((each for each in missed if each.what == "in order"), function, lane))[:MOST]


def _broken(missed: Iterable[Obligation], made: dict[str, ir.New], lane: str) -> Iterator[Diagnostic]:
    """Rings whose premises do not hold."""
    for each in missed:
        told, names = BROKEN[each.what], each.about.split(" and ")
        notes = tuple(Note(f"`{name}` is declared here", made[name].span) for name in names if name in made)
        listed = " and ".join(f"`{name}`" for name in names)
        if each.verdict is Verdict.REFUSED:
            yield Diagnostic("E0424", each.span, f"{told.wrong.format(listed)}{_where(each.how, lane)}", notes, told.help)
        else:
            reason = f"it is not decided whether {listed} keep to their turns ({each.what}: {each.how})"
            yield Diagnostic("E0510", each.span, reason, notes, told.help)


def _unordered(missed: Iterable[Obligation], function: ir.Function, lane: str) -> Iterator[Diagnostic]:
    """Accesses of two lanes that no barrier of the text orders."""
    for each in missed:
        (first, one), (second, other) = re.findall(r"(\S.*?) of line (\d+)(?: and )?", each.about)[:2]
        here, there = _span(function, int(one)) or each.span, _span(function, int(other))
        before, behind = (_plain(text, lane) for text in (first, second))
        notes = () if there is None else (Note(f"`{behind}` is here", there),)
        told = f"no barrier orders `{before}` here and `{behind}` of line {other}, which another lane does later"
        help = "let a lane arrive behind the first, at a barrier for which the other one waits before the second"
        code = "E0425" if each.verdict is Verdict.REFUSED else "E0510"
        yield Diagnostic(code, here, told + _where(each.how, lane), notes, help)


def _span(function: ir.Function, line: int) -> Span | None:
    """The statement of a line that touches memory."""
    binds = (stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Bind | ir.Let | ir.If))
    return next((stmt.span for stmt in binds if stmt.span.line == line), None)


def _plain(text: str, lane: str) -> str:
    """An element as a program has it: `slots[(k % 4), thread]` as `slots[k % 4, t]`."""
    return _called(re.sub(r"([\[ ])\(([^()]*)\)([,\]])", r"\1\2\3", text), lane)


def _lane(function: ir.Function) -> str:
    """How the text calls lanes that signal each other, if it has one name for all."""
    loops = (s for s in ir.walk(function.body) if isinstance(s, ir.Par) and mark(s, InOrder))
    names = {loop.sym.base for loop in loops}
    return names.pop() if len(names) == 1 else "thread"


def _where(how: str, lane: str) -> str:
    """Where an obligation does not hold: the coordinates of one instance, or of two. `lane`: how lanes are called."""
    if not how.startswith("not at "):
        return ""
    pairs = [each.split(" = ") for each in how.removeprefix("not at ").split(", ")]
    sides = [[f"{_called(n, lane)} = {v}" for n, v in pairs if n.endswith(mark)] for mark in "◁▷"]
    plain = [f"{n} = {v}" for n, v in pairs if not n.endswith(("◁", "▷", "○")) and n != "thread"]
    if sides[1]:
        return f": first at {', '.join((*plain, *sides[0]))}; then at {', '.join((*plain, *sides[1]))}"
    asked = {name: value for name, value in pairs if name in ("turn○", "thread○")}
    here = (*plain, *(f"{_called(name, lane)} = {asked[name]}" for name in ("turn○", "thread○") if name in asked))
    return f", at {', '.join(here)}" if here else ""


def _called(name: str, lane: str) -> str:
    return re.sub(r"\bthread\b", lane, name.rstrip("◁▷○"))
