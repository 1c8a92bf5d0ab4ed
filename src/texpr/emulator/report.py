"""The faults that the emulator found in a kernel, as records and as diagnostics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import TypedDict

from texpr.emulator.signature import parameter_names
from texpr.support.diagnostic import Diagnostic, Note
from texpr.support.record import Record
from texpr.support.span import Source, Span


class Fault(Enum):
    """The kind of fault of a report."""

    RACE = "race"
    OUT_OF_BOUNDS = "out_of_bounds"
    UNINITIALISED = "uninitialised"
    DIVERGENT_BARRIER = "divergent_barrier"
    DEADLOCK = "deadlock"
    WRONG_MASK = "wrong_mask"
    INACTIVE_LANE = "inactive_lane"
    STACK_OVERFLOW = "stack_overflow"
    ILLEGAL_ADDRESS = "illegal_address"
    MISALIGNED = "misaligned"
    UNFINISHED_COPY = "unfinished_copy"
    ABANDONED_COPY = "abandoned_copy"
    MISSING_FENCE = "missing_fence"
    BAD_BARRIER = "bad_barrier"
    BAD_TENSOR = "bad_tensor"
    EARLY_EXIT = "early_exit"


CODES: Mapping[Fault, str] = {fault: f"E{750 + at:04}" for at, fault in enumerate(Fault)}
"""The error code of each kind of fault: E0750 for a race, and so on in order."""

_STATED: Mapping[Fault, str] = {
    Fault.RACE: "data race on {element} in {kernel}",
    Fault.OUT_OF_BOUNDS: "{element} in {kernel} is out of bounds: it has {count} elements",
    Fault.UNINITIALISED: "{element} in {kernel} is read before anything is written there",
    Fault.DIVERGENT_BARRIER: "not all threads of a block of {kernel} reach the same barrier",
    Fault.DEADLOCK: "threads of {kernel} wait for each other for ever",
    Fault.WRONG_MASK: "lanes of a warp of {kernel} meet with masks that do not fit together",
    Fault.INACTIVE_LANE: "a shuffle in {kernel} reads a lane that takes no part in it",
    Fault.STACK_OVERFLOW: "a thread of {kernel} needs more stack than the emulator gives",
    Fault.ILLEGAL_ADDRESS: "a thread of {kernel} touches memory that is not there",
    Fault.MISALIGNED: "{element} in {kernel} does not lie at a multiple of the bytes that are accessed at once",
    Fault.UNFINISHED_COPY: "{element} in {kernel} is touched before an asynchronous copy is waited for",
    Fault.ABANDONED_COPY: "a copy of {element} in {kernel} is never waited for",
    Fault.MISSING_FENCE: "{element} in {kernel} meets an engine without a fence",
    Fault.BAD_BARRIER: "{element} in {kernel} is not used as a barrier must be",
    Fault.BAD_TENSOR: "a copy of a tile in {kernel} is none that the hardware makes",
    Fault.EARLY_EXIT: "a block of {kernel} ends while others of its cluster may still reach its shared memory: {element}",
}


class Party(Record):
    """A thread, its line in the `.te` (0: unknown), and its action there."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    line: int
    action: str

    def __str__(self) -> str:
        return f"thread {_shown(self.thread)} of block {_shown(self.block)}, line {self.line}: {self.action}"


class Report(Record):
    """One fault; repetitions at the same lines are counted in `times`.

    `first` is the earlier action. `buffer`, `space` ("global", "shared", "local"), the flat `index` and `count` (elements of
    the buffer) are empty where no element is involved.
    """

    fault: Fault
    kernel: str
    source: str
    buffer: str
    space: str
    index: int
    count: int
    first: Party
    second: Party | None
    times: int

    @property
    def lines(self) -> tuple[int, ...]:
        """The `.te` lines of both threads, or of the only one."""
        return (self.first.line,) if self.second is None else (self.first.line, self.second.line)

    @property
    def message(self) -> str:
        """The fault in one line, without the threads."""
        element = f"{self.space} {self.buffer}[{self.index}]"
        return _STATED[self.fault].format(element=element, kernel=self.kernel, count=self.count)

    def __str__(self) -> str:
        parties = (self.first,) if self.second is None else (self.first, self.second)
        return "; ".join([self.message, *map(str, parties)]) + (f" ({self.times} times)" if self.times > 1 else "")

    def diagnostic(self, source: Source | None = None) -> Diagnostic:
        """The report as a diagnostic on the `.te` text, if that is available."""
        parties = (self.first,) if self.second is None else (self.first, self.second)
        notes = tuple(Note(str(party), _line_span(source, party.line)) for party in parties)
        return Diagnostic(CODES[self.fault], _line_span(source, parties[-1].line), self.message, notes)


_NAMELESS = re.compile(r"argument (\d+)")


class _Party(TypedDict):
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    line: int
    action: str


class _Report(TypedDict):
    fault: str
    kernel: str
    source: str
    buffer: str
    space: str
    index: int
    count: int
    first: _Party
    second: _Party | None
    times: int


def parse_reports(text: str, kernels: str = "") -> list[Report]:
    """The records in the core's JSON. `kernels`: their `.cu`, for the names of parameters that a launcher does not know."""
    raw: list[_Report] = json.loads(text)
    return [_report(each, kernels) for each in raw]


def _report(raw: _Report, kernels: str) -> Report:
    second = None if raw["second"] is None else _party(raw["second"])
    buffer = raw["buffer"]
    if kernels and (number := _NAMELESS.fullmatch(buffer)):
        names = parameter_names(kernels, raw["kernel"])
        buffer = names[int(number[1])] if int(number[1]) < len(names) else buffer
    place = (buffer, raw["space"], raw["index"], raw["count"])
    return Report(Fault(raw["fault"]), raw["kernel"], raw["source"], *place, _party(raw["first"]), second, raw["times"])


def _party(raw: _Party) -> Party:
    (bx, by, bz), (tx, ty, tz) = raw["block"], raw["thread"]
    return Party((bx, by, bz), (tx, ty, tz), raw["line"], raw["action"])


def _shown(dims: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, dims))})"


def _line_span(source: Source | None, line: int) -> Span | None:
    if source is None or line < 1:
        return None
    before = source.text.split("\n", line - 1)
    if len(before) < line:
        return None
    start = len(source.text) - len(before[-1])
    text = source.line(line)
    indent = len(text) - len(text.lstrip())
    return Span(source, start + indent, start + len(text))
