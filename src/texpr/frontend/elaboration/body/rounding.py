"""`#ieee`: sums whose order is free, and that are rounded as IEEE 754 says.

It is a mark on a `reduce`, in the program a field of the loop, and holds for what is summed up inside: by loops further in that
free the same sum, those of functions that are called among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from texpr.frontend.elaboration.body.directives import pragmas
from texpr.frontend.tree import Loop
from texpr.ir.program import Directive, Instruction, Par, Seq, Stmt, blocks, summed_by
from texpr.ir.program.marked import ATOMIC, Atomicity
from texpr.ir.program.marks import IEEE
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.value import Buffer
from texpr.ir.value.types import F32
from texpr.support.diagnostic import Diagnostic, Note, error
from texpr.support.record import replace

NONE: Mapping[Buffer, Par | Seq] = MappingProxyType({})


def rounded(loop: Loop) -> tuple[tuple[Directive, ...], bool]:
    """The pragmas of a loop without `#ieee`, and whether it has that one. Raises E0332 where it marks nothing."""
    found = pragmas(loop.pragmas)
    for each in found:
        if each.name == ATOMIC:
            _require_atomicity(each)
    marks = [each for each in found if each.name == IEEE]
    if not marks:
        return found, False
    mark = marks[0]
    if mark.args:
        raise error("E0327", mark.span, f"`#{IEEE}` has no arguments")
    if len(marks) > 1:
        raise error("E0327", marks[1].span, f"this loop has `#{IEEE}` already")
    if not loop.reduce:
        help = "without it a sum keeps its order, and each operation is rounded for itself"
        raise error("E0332", mark.span, f"`#{IEEE}` is of the sums in a `reduce`, and this loop has none", help=help)
    return tuple(each for each in found if each is not mark), True


def _require_atomicity(mark: Directive) -> None:
    """That the scope and the order of atomic updates are said once. Raises E0335."""
    known = ", ".join(f"`{word}`" for word in Atomicity.WORDS)
    said: set[str] = set()
    for argument in mark.args:
        what = Atomicity.WORDS.get(str(argument.value)) if argument.key is None else None
        if what is None:
            raise error("E0335", argument.span, f"no atomic update is `{argument.value}`", help=f"those are {known}")
        if what in said:
            raise error("E0335", argument.span, f"the {what} of these updates is said already", help="leave one of them out")
        said.add(what)


def everywhere(body: tuple[Stmt, ...], kept: frozenset[Buffer] = frozenset()) -> tuple[Stmt, ...]:
    """The statements with the mark on every loop in a marked one that frees the same sum. `kept`: sums of loops around."""
    found: list[Stmt] = []
    for stmt in body:
        inside, made = kept, stmt
        if isinstance(stmt, Par | Seq):
            made = stmt if stmt.ieee or kept.isdisjoint(stmt.reduce) else replace(stmt, ieee=True)
            inside = kept | {*made.reduce} if made.ieee else kept
        if isinstance(stmt, Instruction):  # it means what its definition means
            found.append(stmt)
            continue
        found.append(with_blocks(made, tuple(everywhere(block, inside) for block in blocks(made))))
    return tuple(found)


def misfits(body: tuple[Stmt, ...], marked: Mapping[Buffer, Par | Seq] = NONE) -> Iterator[Diagnostic]:
    """What sums up in a marked loop, and rounds otherwise. `marked`: of a sum, the innermost marked loop around."""
    for stmt in body:
        if isinstance(stmt, Instruction):
            around = next((marked[buffer] for buffer in summed_by(stmt) if buffer in marked), None)
            if around is not None:
                yield _instruction(stmt, around)
            continue
        inside = marked
        if isinstance(stmt, Par | Seq) and stmt.ieee:
            inside = {**marked, **dict.fromkeys(stmt.reduce, stmt)}
            yield from _atomic(stmt)
        for block in blocks(stmt):
            yield from misfits(block, inside)


def _instruction(stmt: Instruction, around: Par | Seq) -> Diagnostic:
    told = f"`{stmt.name}` sums up in an arithmetic of its own, and this sum is to be rounded as IEEE 754 says"
    note = Note(f"`#{IEEE}` is here", around.span)
    help = f"leave `#{IEEE}` out; or, if it is so, say `reduce(…) #{IEEE}` in what the instruction means"
    return Diagnostic("E0422", stmt.span, told, (note,), help=help)


def _atomic(loop: Par | Seq) -> Iterator[Diagnostic]:
    asked = next((d for d in loop.directives if d.name == ATOMIC), None)
    if asked is not None and any(buffer.dtype == F32 for buffer in loop.reduce):
        told = f"`#{ATOMIC}` sums of f32 take subnormal numbers for zero, which `#{IEEE}` does not allow"
        yield Diagnostic("E0422", asked.span, told, help=f"leave out `#{ATOMIC}` or `#{IEEE}`")
