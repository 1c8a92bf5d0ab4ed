"""Rules that need no solver: roles of buffers, `reduce` clauses, `fully par`, assumptions."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.checks.subject import Subject, place, statement, written
from texpr.ir.program import Bind, Directive, Function, Injective, InRange, Loop, Monotone, New, Par, Seq, Stmt, blocks, walk
from texpr.ir.program.running import Fault, running
from texpr.ir.value import Buffer
from texpr.relation.dependence import commute
from texpr.relation.model import Access
from texpr.support.diagnostic import Diagnostic, Note
from texpr.support.span import Span


def roles(subject: Subject) -> Iterator[Diagnostic]:
    """Inputs are not written."""
    for access in subject.model.accesses:
        if access.writes and access.buffer.role == "input":
            name = access.buffer.name
            yield Diagnostic(
                "E0405",
                place(access),
                f"`{name}` is an input and cannot be written",
                (Note(f"`{name}` is a parameter", written(access.buffer.span)),),
                f"declare it `inout {name}`, or write to a `new` buffer",
            )


def reductions(subject: Subject) -> Iterator[Diagnostic]:
    """A buffer in a `reduce` clause is updated in the loop, by one operator, and accessed in no other way."""
    for stmt in walk(subject.function.body):
        if isinstance(stmt, Par | Seq):
            for buffer in stmt.reduce:
                found = reduction_fault(subject, stmt, buffer)
                if found is not None:
                    yield found


def reduction_fault(subject: Subject, loop: Loop, buffer: Buffer) -> Diagnostic | None:
    """The fault of the buffer of a `reduce` clause, if there is one."""
    name, span = buffer.name, written(loop.span)
    if any(isinstance(s, New) and s.buffer is buffer for s in walk(loop.body)):
        return Diagnostic("E0415", span, f"`{name}` is new in each iteration, so iterations cannot meet in it")
    inside = [a for a in subject.model.by_buffer.get(buffer, ()) if loop in a.instance.loops]
    updates = [a for a in inside if a.kind == "update"]
    if not updates:
        return Diagnostic(
            "E0412", span, f"`reduce({name})`: this loop does not update `{name}`", help=f"drop `{name}` from the clause"
        )
    for access in inside:
        if access.kind != "update":
            verb = "read" if access.kind == "read" else "written"
            return Diagnostic(
                "E0413",
                place(access),
                f"`{name}` is {verb} inside a loop that says `reduce({name})`",
                (Note(f"iterations meet in `{name}` here, in any order", span),),
                "inside such a loop a buffer may only be updated: sum into a `new`, and store that behind the loop",
            )
    first = updates[0]
    for access in updates[1:]:
        if not commute(first, access):
            return Diagnostic(
                "E0414",
                place(access),
                f"`{name}` is updated in two ways inside a loop that says `reduce({name})`",
                (Note("it is updated in another way here", place(first)),),
                "all updates of the buffer must use one operator, on the same targets",
            )
    return next((d for access in updates for d in _tuple(access)), None)


def running_values(subject: Subject) -> Iterator[Diagnostic]:
    """A buffer in a `scan` clause is one element that each iteration updates by a term of its own."""
    for loop in (stmt for stmt in walk(subject.function.body) if isinstance(stmt, Seq)):
        for buffer in loop.scan:
            found = running(loop, buffer)
            if isinstance(found, Fault):
                span, clause = written(loop.span), f"`scan({buffer.name})` is of what iterations add up one after the other"
                notes = () if found.stmt is loop else (Note(clause, span),)
                yield Diagnostic("E0423", written(found.stmt.span), found.reason, notes, found.help)


def _tuple(access: Access) -> Iterator[Diagnostic]:
    """The targets of a tuple reduction have the same subscripts."""
    bind = access.instance.stmt
    if isinstance(bind, Bind) and len({t.index for t in bind.targets}) > 1:
        yield Diagnostic(
            "E0414",
            statement(access.instance),
            "the targets of a tuple update under `reduce` must have the same subscripts",
            help="otherwise two iterations may meet in one target and not in the other: update `new`s alike, and store these "
            "behind the loop",
        )


def fully(subject: Subject) -> Iterator[Diagnostic]:
    """A `fully par` has a constant extent that its alignment divides, and contains no other."""
    yield from _fully(subject.function.body, None)


def _fully(body: tuple[Stmt, ...], outer: Par | None) -> Iterator[Diagnostic]:
    for stmt in body:
        inner = outer
        if isinstance(stmt, Par) and stmt.fully:
            inner = stmt
            yield from _fully_par(stmt, outer)
        for block in blocks(stmt):
            yield from _fully(block, inner)


def _fully_par(loop: Par, outer: Par | None) -> Iterator[Diagnostic]:
    span = written(loop.span)
    if outer is not None:
        note = Note("the outer `fully par` is here", written(outer.span))
        yield Diagnostic("E0409", span, "a `fully par` cannot stand inside another", (note,))
    if not loop.extent.is_constant or loop.extent.constant < 1:
        yield Diagnostic(
            "E0410",
            span,
            f"the extent of a `fully par` must be a positive constant, not `{loop.extent}`",
            help="its iterations are lanes that really run together, and their number is part of the code",
        )
        return
    for directive in loop.directives:
        if not isinstance(directive, Directive) or directive.name != "align":
            continue
        align = directive.args[0].value if len(directive.args) == 1 else None
        if not isinstance(align, int) or align < 1:
            yield Diagnostic("E0411", _or(directive.span, span), "`#align` takes one positive integer")
        elif loop.extent.constant % align:
            extent = loop.extent.constant
            yield Diagnostic("E0411", _or(directive.span, span), f"`#align({align})` does not divide the extent {extent}")


def _or(span: Span, other: Span | None) -> Span | None:
    found = written(span)
    return other if found is None else found


def assumptions(subject: Subject) -> Iterator[Diagnostic]:
    """An `assume` about data concerns an integer input, which is never written."""
    for assume in subject.function.assumes:
        match assume:
            case InRange() | Injective() | Monotone():
                found = _assumption(subject.function, assume.buffer, written(assume.span))
        if found is not None:
            yield found


def _assumption(function: Function, buffer: Buffer, span: Span | None) -> Diagnostic | None:
    name = buffer.name
    if not buffer.dtype.is_integer:
        return Diagnostic("E0419", span, f"`assume` speaks of integers, and the elements of `{name}` are {buffer.dtype}")
    if buffer.role != "input" or buffer not in function.params:
        return Diagnostic(
            "E0419",
            span,
            f"`assume` speaks of inputs, and `{name}` is written here",
            help="what the program itself computes must be guarded with `if`, or clamped",
        )
    return None
