"""Texts with some of their tokens changed, and what `texpr check` does with one: a program or diagnostics, never a traceback.

Run as `python -m tests.properties.mutants FIRST COUNT` it names each mutant of a slice that does something else.
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from typing import NoReturn

from texpr.checks import check
from texpr.cli.following import refusals
from texpr.frontend import parse
from texpr.support.codes import TITLES
from texpr.support.diagnostic import TexprError

ROOT = Path(__file__).parents[2]
TOKEN = re.compile(r"--[^\n]*|\"[^\"\n]*\"|[A-Za-z_0-9']+|\s+|[-=!<>+*/.]+|[^\s\w]")
WORDS = re.findall(
    r"\S+",
    """fn par seq new let if else return anchor instr inout const and or not true false inf nan where assume combine
    schedule static fully
    for in reduce injective monotone stride align identity f32 i32 i64 bf16 bool 0 1 -1 2 7 64 4096 2147483647 1.5
    9223372036854775807 ( ) [ ] { } , : = += -= *= max= min= + - * / % ** | .. -> == != < <= > >= # ; 'label i j k n m x y
    min max abs select reshape transpose pad split merge reorder bind stage vectorize unroll pipeline tile #block #atomic é""",
)
SECONDS = 10
"""Of processor time that one mutant may take."""
BYTES = 1 << 30
"""Of memory that a process which looks at mutants may take, beside what it has at its start."""


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Every program in a file of its own, of the examples and the tests, by its path."""
    files = sorted([*ROOT.glob("examples/**/*.te"), *ROOT.glob("tests/**/*.te")])
    return tuple((str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")) for file in files)


def mutant(number: int) -> tuple[str, str]:
    """The text of that number, and of which file: one to three tokens deleted, doubled, swapped, or others in their place."""
    random = Random(number)
    name, text = random.choice(texts())
    tokens = TOKEN.findall(text)
    for _ in range(random.randint(1, 3)):
        at, other = random.randrange(len(tokens)), random.randrange(len(tokens))
        match random.randrange(5):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] += " " + tokens[at]
            case 2:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = tokens[other]
            case _:
                tokens[at] = f" {random.choice(WORDS)} "
    return name, "".join(tokens)


def look(text: str) -> bool:
    """Does with a text what `texpr check` does, and looks at what is said; whether it is legal."""
    try:
        program = parse(text)
        found = [each for function in program.functions for each in check(function)]
        if not found:
            found = [each for function in program.functions for each in refusals(function, {})]
    except TexprError as raised:
        found = [*raised.diagnostics]
        assert found
    for each in found:
        assert each.code in TITLES and each.message
        assert each.span is None or 0 <= each.span.start <= each.span.end <= len(each.span.source.text)
    return not found


def failures(first: int, count: int) -> Iterator[str]:
    """What is wrong with each mutant of a slice that is neither legal nor refused, with its text."""
    for number in range(first, first + count):
        name, text = mutant(number)
        try:
            look(text)
        except Exception:
            yield f"mutant {number}, of {name}:\n{traceback.format_exc()}\n{text}"


def limited(first: int, count: int) -> Iterator[str]:
    """The same, where also one that takes too much time or memory fails: for a process of its own."""

    def too_long(_: int, __: FrameType | None) -> NoReturn:
        raise TimeoutError(f"more than {SECONDS} s")

    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    signal.signal(signal.SIGPROF, too_long)
    for number in range(first, first + count):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        yield from failures(number, 1)
        signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    found = 0
    for failure in limited(int(sys.argv[1]), int(sys.argv[2])):
        found += 1
        sys.stdout.write(f"{failure}\n")
        sys.stdout.flush()
    sys.exit(found > 0)
