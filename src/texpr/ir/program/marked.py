"""Adding, removing, finding and parsing the marks of a program's loops, by type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeVar

from texpr.ir import program as ir
from texpr.ir.program.marks import MARKS, Bind, Mark
from texpr.ir.program.rewrite import with_blocks
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span

_Loop = TypeVar("_Loop", bound=ir.Loop)
_Kind = TypeVar("_Kind", bound=Mark)


def marked(loop: _Loop, new: Mark) -> _Loop:
    """`loop` with a mark, which replaces one of its type."""
    return replace(loop, directives=(*unmarked(loop, type(new)).directives, new))


def unmarked(loop: _Loop, kind: type[Mark]) -> _Loop:
    """`loop` without the mark of this type."""
    return replace(loop, directives=tuple(d for d in loop.directives if not isinstance(d, kind)))


def mark(loop: ir.Loop | ir.Function, kind: type[_Kind]) -> _Kind | None:
    """The mark of this type on a loop or function, if any."""
    return next((d for d in loop.directives if isinstance(d, kind)), None)


def pragma(loop: ir.Loop, name: str) -> ir.Directive | None:
    """The pragma of this name that the program has on a loop, if any."""
    return next((d for d in loop.directives if isinstance(d, ir.Directive) and d.name == name), None)


ATOMIC = "atomic"
"""The pragma for a `reduce` whose updates may be executed in any order: mapping uses atomics."""


class Atomicity(Record):
    """How updates are atomic: whose they are one step for, and what their order says of other memory."""

    scope: str = "grid"
    order: str = "relaxed"

    WORDS: ClassVar[Mapping[str, str]] = {"block": "scope", "grid": "scope", "relaxed": "order", "release": "order"}
    """What may be said of a loop, and of which of the two it is."""


def atomicity(loop: ir.Loop) -> Atomicity:
    """How updates of the loop's reduce buffers are atomic."""
    found = pragma(loop, ATOMIC)
    said = {} if found is None else {Atomicity.WORDS[str(a.value)]: str(a.value) for a in found.args}
    return Atomicity(**said)


def is_atomic(loop: ir.Loop) -> bool:
    """Whether updates of the loop's reduce buffers may be atomics."""
    return pragma(loop, ATOMIC) is not None


def atomic(loop: _Loop) -> _Loop:
    """`loop` with its updates as atomics, as the text has them if it does."""
    return loop if is_atomic(loop) else replace(loop, directives=(*loop.directives, ir.Directive(ATOMIC)))


def atomic_binds(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> Mapping[ir.Bind, Atomicity]:
    """The updates that are atomic: those of the reduce buffers of a loop marked `#atomic`."""
    found: dict[ir.Bind, Atomicity] = {}
    marked = [(loop, body) for loop in loops] + [(s, s.body) for s in ir.walk(body) if isinstance(s, ir.Par)]
    for loop, inside in marked:
        if is_atomic(loop):
            how = atomicity(loop)
            for s in ir.walk(inside):
                if isinstance(s, ir.Bind) and s.update is not None and s.targets[0].buffer in loop.reduce:
                    found[s] = how
    return found


def asked_at(loop: ir.Loop, kind: type[Mark]) -> Span:
    """The span of the directive that made the mark, or of the loop, if that is in no text."""
    found = mark(loop, kind)
    return loop.span if found is None or found.span is NOWHERE else found.span


def level_of(loop: ir.Loop) -> str | None:
    """The level that `loop` is bound to: `grid.x`, `block.y`, `lane`, …"""
    found = mark(loop, Bind)
    return None if found is None else found.level


def read(function: ir.Function) -> ir.Function:
    """A scheduled program parsed from text, with its marks, which are plain pragmas there, as records."""
    body = _all_read(function.body)
    return replace(function, directives=tuple(map(_read, function.directives)), body=body)


def _all_read(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_all_read(block) for block in ir.blocks(stmt)))
        if isinstance(made, ir.Par | ir.Seq) and made.directives:
            made = replace(made, directives=tuple(map(_read, made.directives)))
        found.append(made)
    return tuple(found)


def _read(found: ir.Pragma) -> ir.Pragma:
    kind = MARKS.get(found.name)
    if isinstance(found, Mark) or kind is None:
        return found
    words = [a.value for a in found.args if isinstance(a.value, str | int)]
    made = kind.read(words) if len(words) == len(found.args) else None
    return found if made is None else replace(made, span=found.span)
