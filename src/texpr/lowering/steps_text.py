"""The steps of a kernel as text, for who wants to see a kernel between its mapping and its statements (`explain --dump steps`).

    steps NAME
        threads INT
        place BUFFER: register NAME | place BUFFER: SPACE NAME "[" extents "]"
    {
        THREADS WORK { statements of the program }  who does what (`texpr.ir.steps`)
        engine { … }                                what the first thread starts, and an engine does
        sync { operations of the kernel form }      by all threads, or `sync first` by the first alone
        all { decide CONDITION }                    what the branch behind it takes
        repeat NAME < EXTENT { steps } | choose NAME { steps } else { steps }
    }

Statements are those of the program as it is laid out, operations those of the kernel form (`texpr.ir.kernel.text`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from texpr.ir import program as ir
from texpr.ir.kernel.text import stmt_text
from texpr.ir.operation import Agent
from texpr.ir.program.text import print_stmt, print_value
from texpr.ir.steps import Step
from texpr.ir.steps.place import Place
from texpr.ir.steps.work import Decide, End
from texpr.ir.value import Buffer
from texpr.lowering.steps import Choice, OrderedNode, Repeat, Steps, Sync

_PAD = "    "


def steps_text(name: str, threads: int, places: Mapping[Buffer, Place], steps: Steps) -> str:
    """The steps of the kernel `name`, whose blocks have so many `threads`."""
    return "\n".join(_lines(name, threads, places, steps)) + "\n"


def _lines(name: str, threads: int, places: Mapping[Buffer, Place], steps: Steps) -> Iterator[str]:
    yield f"steps {name}"
    yield f"{_PAD}threads {threads}"
    for buffer, place in places.items():
        if place.register is not None:
            yield f"{_PAD}place {buffer.name}: register {place.register}"
        else:
            extents = ", ".join(map(str, place.buffer.shape))
            yield f"{_PAD}place {buffer.name}: {place.space.value} {place.buffer.name}[{extents}]"
    yield "{"
    yield from _steps((*steps.begin, *steps.body, *steps.end), _PAD)
    yield "}"


def _steps(steps: tuple[OrderedNode, ...], pad: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Step(work=End()):
                yield f"{pad}end"
            case Step(work=Decide(), stmts=(ir.If(condition),)):
                yield f"{pad}all {{ decide {print_value(condition)} }}"
            case Step():
                by = "engine" if step.agent is Agent.ENGINE else f"{step.threads} {step.work.NAME}"
                yield from _block(by, print_stmt(step.stmt).splitlines(), pad)
            case Sync(does, leads):
                yield from _block(
                    "sync first" if leads else "sync", [line for each in does for line in stmt_text(each).splitlines()], pad
                )
            case Repeat(stmt, body):
                yield f"{pad}repeat {stmt.sym} < {stmt.extent} {{"
                yield from _steps(body, pad + _PAD)
                yield f"{pad}}}"
            case Choice(_, decided, then, orelse):
                yield f"{pad}choose {decided} {{"
                yield from _steps(then, pad + _PAD)
                if orelse:
                    yield f"{pad}}} else {{"
                    yield from _steps(orelse, pad + _PAD)
                yield f"{pad}}}"
            case _:
                assert_never(step)


def _block(head: str, lines: list[str], pad: str) -> Iterator[str]:
    yield f"{pad}{head} {{"
    yield from (f"{pad}{_PAD}{line}" for line in lines)
    yield f"{pad}}}"
