"""The text of a disassembler read into instructions: `nvdisasm -c`, with `-hex` and `-g` where these were asked for.

    .L_x_4:
            //## File "softmax.te", line 7
            /*0520*/  @!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10] ;    /* 0x0000100402048981 */
                                                                    /* 0x000ea2000c1e1d00 */

Nothing is taken from names: code of any compiler is read alike. Each instruction has 128 bits, of which 21 tell the scheduler
how long to wait (Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, "Control information").
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from texpr.support.record import Mutable, Record, field

_SECTION = re.compile(r'^\s*\.section\s+\.text\.([^,\s"]+)')
_LABEL = re.compile(r"^([\w.$]+):\s*$")
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+\{?\s*(.*?)\s*\}?\s*;?\s*\}?\s*(?:/\* 0x([0-9a-f]{16}) \*/)?\s*$")
_MORE = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_GUARD = re.compile(r"^@(!?)(U?P[T\d]+)\s+")
_TARGET = re.compile(r"`\(([^)]+)\)")

_CONTROL = 41
"""The first of the 21 bits, in the second half of an instruction's 128."""


class Control(Record):
    """`stall`: clocks until the warp's next instruction. `sets`: the scoreboard that is released when the result is there;
    `frees`: the one that is, when the operands are read. `waits`: a bit for each scoreboard to be waited for."""

    stall: int
    sets: int | None
    frees: int | None
    waits: int


class Instruction(Record):
    """One instruction. `guard`: the predicate under which it runs, with `!` where that must be false; empty where it always
    does. `target`: the address that it may jump to, or None. `line`: where in which source it comes from."""

    address: int
    opcode: str
    operands: tuple[str, ...]
    guard: str = ""
    target: int | None = None
    line: tuple[str, int] | None = None
    control: Control | None = None

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The modifiers of the opcode, in order."""
        return tuple(self.opcode.split(".")[1:])


class Code(Record):
    """The machine code of one kernel, in order of addresses, the functions that it calls among it."""

    kernel: str
    instructions: tuple[Instruction, ...]

    def index(self) -> dict[int, int]:
        """The place of each instruction by its address."""
        return {each.address: at for at, each in enumerate(self.instructions)}


class _Draft(Mutable):
    """A section that is being read: what is known of each instruction, and where labels stand."""

    kernel: str
    found: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    high: dict[int, str] = field(default_factory=dict[int, str])
    """The second half of the encoding, by the number of the instruction."""
    lines: list[tuple[str, int] | None] = field(default_factory=list["tuple[str, int] | None"])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    waiting: list[str] = field(default_factory=list[str])
    line: tuple[str, int] | None = None

    def add(self, address: str, text: str) -> None:
        """One instruction, before which the labels since the last one stand."""
        for label in self.waiting:
            self.labels[label] = int(address, 16)
        self.waiting.clear()
        self.found.append((address, text))
        self.lines.append(self.line)

    def finish(self) -> Code:
        """All of it, with addresses in place of labels."""
        rows = enumerate(zip(self.found, self.lines, strict=True))
        made = (_instruction(address, text, self.high.get(at, ""), line, self.labels) for at, ((address, text), line) in rows)
        return Code(self.kernel, tuple(made))


def read_code(text: str) -> tuple[Code, ...]:
    """Each kernel of a disassembled text, in its order."""
    return tuple(draft.finish() for draft in _drafts(text) if draft.found)


def _drafts(text: str) -> Iterator[_Draft]:
    draft: _Draft | None = None
    for line in text.splitlines():
        if found := _SECTION.match(line):
            if draft is not None:
                yield draft
            draft = _Draft(found[1])
        elif draft is None:
            continue
        elif found := _LINE.match(line):
            draft.line = found[1], int(found[2])
        elif found := _MORE.match(line):
            if draft.found:
                draft.high[len(draft.found) - 1] = found[1]
        elif (found := _CODE.match(line)) and found[2]:
            draft.add(found[1], found[2])
        elif found := _LABEL.match(line):
            draft.waiting.append(found[1])
    if draft is not None:
        yield draft


def _instruction(address: str, text: str, high: str, line: tuple[str, int] | None, labels: dict[str, int]) -> Instruction:
    guard = ""
    if found := _GUARD.match(text):
        guard, text = found[1] + found[2], text[found.end() :]
    opcode, _, rest = text.partition(" ")
    aimed = _TARGET.search(rest)
    target = None if aimed is None else labels.get(aimed[1])
    return Instruction(int(address, 16), opcode, tuple(_operands(rest)), guard, target, line, _control(high))


def _operands(text: str) -> Iterator[str]:
    """The operands between commas; those within brackets are no ends."""
    depth, word = 0, ""
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            yield word.strip()
            word = ""
        else:
            word += letter
    if word.strip():
        yield word.strip()


def _control(high: str) -> Control | None:
    """What the scheduler is told, from the second half of the encoding; None where that is not printed."""
    if not high:
        return None
    bits = int(high, 16) >> _CONTROL
    sets, frees = bits >> 5 & 7, bits >> 8 & 7
    return Control(bits & 15, None if sets == 7 else sets, None if frees == 7 else frees, bits >> 11 & 63)
