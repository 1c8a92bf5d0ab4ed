"""Statements of a kernel as C text. A `Dialect` has what differs between machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from texpr.affine.expr import Sym
from texpr.backends.c.index import index_text
from texpr.backends.c.printing import Here
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Text, cast, line_of
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import addend, element_text, fused_text, value_text
from texpr.ir.kernel import (
    Assign,
    Declare,
    For,
    If,
    Kernel,
    Role,
    Stmt,
    Store,
    walk,
)
from texpr.ir.kernel.knowledge import branch_facts, loop_knowledge, source_of
from texpr.ir.operation import Operation
from texpr.ir.value import Index, Load
from texpr.ir.value.types import I32
from texpr.support.limits import Width
from texpr.support.record import Record

INDENT = "    "
WIDTH = 120


class Rows(Record):
    """A vectorised loop over lanes: the line before it, the lanes of a vector as C text, and the statements of its body."""

    before: str
    step: str
    lines: tuple[str, ...]


class Dialect(Protocol):
    """The C dialect of a machine."""

    @property
    def tracked(self) -> bool:
        """Whether a position is a run-time value, so that every path to a statement has to set it."""
        ...

    def place(self, line: int) -> str:
        """The line of text that gives the line of the `.te` for the statements after it."""
        ...

    def before_loop(self, loop: For, scope: Scope) -> list[str]:
        """The lines, pragmas, before a loop."""
        ...

    def takes_role(self, role: Role, scope: Scope) -> str | None:
        """The test that a thread is in a role; None where its condition is printed as it is."""
        ...

    def in_role(self, role: Role) -> list[str]:
        """The lines with which what warps of a role do begins."""
        ...

    def rows(self, loop: For, scope: Scope) -> Rows | None:
        """The loop by whole vectors; None if it is executed lane by lane."""
        ...

    def in_loop(self, loop: For, scope: Scope) -> list[str]:
        """The lines at the start of a loop's body."""
        ...

    def hides(self, stmt: Operation) -> bool:
        """Whether the compiler of the text must not see that what is stored is a constant."""
        ...

    def operation(self, stmt: Operation, here: Here) -> Iterable[str]:
        """The lines of an operation."""
        ...

    @property
    def machine(self) -> str:
        """The name of the machine, for messages."""
        ...

    @property
    def parted(self) -> int | None:
        """The number of the named barrier for the kernel's threads, if a block has more threads than the kernel; else None."""
        ...


class Place(Record):
    """A line of the `.te`: the last one `told` on every path to a statement, and the last one `shown` in the text."""

    told: int | None
    shown: int | None


NOWHERE = Place(None, None)


class Body(Record):
    """Prints statement lists of one kernel. `assigned`: register variables that are reassigned."""

    kernel: Kernel
    dialect: Dialect
    assigned: frozenset[Sym]

    @staticmethod
    def of(kernel: Kernel, dialect: Dialect) -> Body:
        """The printer of `kernel`'s statements."""
        return Body(kernel, dialect, frozenset(s.sym for s in walk(kernel.body) if isinstance(s, Assign)))

    def lines(self, stmts: tuple[Stmt, ...], scope: Scope, depth: int, place: Place = NOWHERE) -> list[str]:
        """The statements, each on one or more lines, indented by `depth` levels."""
        found: list[str] = []
        for stmt in stmts:
            line = line_of(stmt.span)
            # The head of a loop accesses no memory, so its position is for readers of the text only.
            known = place.told if self.dialect.tracked and not isinstance(stmt, For) else place.shown
            if line is not None and line != known:
                found.append(INDENT * depth + self.dialect.place(line))
                place = Place(line, line)
            scope, lines = self._statement(stmt, scope, depth, place)
            found += lines
            if not _all_from(stmt, place.told):
                place = NOWHERE
        return found

    def _statement(self, stmt: Stmt, scope: Scope, depth: int, place: Place) -> tuple[Scope, list[str]]:
        """The scope after the statement, and its lines."""
        indent = INDENT * depth
        match stmt:
            case For():
                return scope, self._loop(stmt, scope, depth, place)
            case If():
                return scope, self._if(stmt, scope, depth, place)
            case Declare():
                return self._declare(stmt, scope, indent)
            case Assign():
                return scope, [indent + _assignment(scope.named[stmt.sym], stmt, stmt.sym, scope)]
            case Store():
                target = str(element_text(stmt.target, scope))
                if self.dialect.hides(stmt):
                    return scope, [f"{indent}{target} = tx_unseen({value_text(stmt.value, scope)});"]
                return scope, [indent + _assignment(target, stmt, stmt.target, scope)]
            case _:
                here = Here(self.dialect.machine, self.kernel, scope, self.assigned, self.dialect.parted)
                lines = [indent + line for line in self.dialect.operation(stmt, here)]
                return here.scope, lines

    def _declare(self, stmt: Declare, scope: Scope, indent: str) -> tuple[Scope, list[str]]:
        if stmt.dtype.is_integer and stmt.sym not in self.assigned:
            scope, declared = _integer(stmt, scope)
            return scope, [indent + declared]
        value = value_text(stmt.value, scope)
        scope, name = scope.name(stmt.sym)
        constant = "" if stmt.sym in self.assigned else " const"
        return scope, [f"{indent}{C_NAMES[stmt.dtype]}{constant} {name} = {value};"]

    def _loop(self, loop: For, scope: Scope, depth: int, place: Place) -> list[str]:
        indent = INDENT * depth
        lo, hi, step = (index_text(e, scope) for e in (loop.lo, loop.hi, loop.step))
        inner, variable = scope.inner().known_as(loop.sym, loop_knowledge(loop, scope.here))
        name = variable.text
        advance = f"++{name}" if loop.step.is_constant and loop.step.constant == 1 else f"{name} += {step}"
        head = f"{indent}for ({variable.ctype} {name} = {lo}; {name} < {hi}; {advance}) {{"
        vectors = self.dialect.rows(loop, inner)
        if vectors is not None:
            head = f"{indent}for ({variable.ctype} {name} = {lo}; {name} < {hi}; {name} += {vectors.step}) {{"
            told = [] if line_of(loop.body[0].span) in (None, place.shown) else [self._place(loop.body[0], depth + 1)]
            return [indent + vectors.before, head, *told, *(indent + INDENT + line for line in vectors.lines), f"{indent}}}"]
        pragmas = [indent + line for line in self.dialect.before_loop(loop, scope)]
        place = place if _all_from(loop, place.told) else Place(None, place.shown)
        first = [indent + INDENT + line for line in self.dialect.in_loop(loop, inner)]
        body = self.lines(loop.body, inner, depth + 1, place)
        return [*pragmas, head, *first, *body, f"{indent}}}"]

    def _place(self, stmt: Stmt, depth: int) -> str:
        line = line_of(stmt.span)
        assert line is not None, "the caller looked"
        return INDENT * depth + self.dialect.place(line)

    def _if(self, stmt: If, scope: Scope, depth: int, place: Place) -> list[str]:
        indent = INDENT * depth
        taken = self.dialect.takes_role(stmt.role, scope) if stmt.role else None
        found = [f"{indent}if ({taken or value_text(stmt.condition, scope)}) {{"]
        found += [indent + INDENT + line for line in self.dialect.in_role(stmt.role)] if stmt.role else []
        found += self.lines(stmt.then, scope.inner().given(branch_facts(stmt.condition)), depth + 1, place)
        if stmt.orelse:
            found += [f"{indent}}} else {{", *self.lines(stmt.orelse, scope.inner(), depth + 1, place)]
        return [*found, f"{indent}}}"]


def _integer(stmt: Declare, scope: Scope) -> tuple[Scope, str]:
    """An integer that is never reassigned may occur in index expressions, so its type has the width that they need."""
    if isinstance(stmt.value, Index):
        value = index_text(stmt.value.expr, scope)
        here = scope.here.integer(stmt.sym, scope.bounds(stmt.value.expr), top=stmt.value.expr)
        scope, variable = scope.known_as(stmt.sym, here)
        alike = stmt.dtype == I32 and variable.width is Width.INT
        text = variable.text if alike else cast(C_NAMES[stmt.dtype], variable.text)
        return scope.also_named(stmt.sym, str(text)), f"{variable.ctype} const {variable.text} = {value};"
    value = value_text(stmt.value, scope)
    scope, name = scope.name(stmt.sym)
    scope = scope.data(stmt.sym, Text(name), stmt.dtype, source_of(stmt.value))
    return scope, f"{C_NAMES[stmt.dtype]} const {name} = {value};"


def _all_from(stmt: Stmt, line: int | None) -> bool:
    """Whether `stmt` and all its nested statements are from that line, so that it holds on every path through it."""
    return all(line_of(inner.span) in (None, line) for inner in walk((stmt,)))


def _assignment(target: str, stmt: Assign | Store, place: Sym | Load, scope: Scope) -> str:
    """`target = value;`, or `target += …;` if that is equivalent."""
    if stmt.fused:
        return f"{target} = {fused_text(stmt.value, scope)};"
    added = addend(place, stmt.value)
    return f"{target} = {value_text(stmt.value, scope)};" if added is None else f"{target} += {value_text(added, scope)};"


def signature(head: str, parameters: Sequence[str]) -> list[str]:
    """The head of a function, `head(parameters) {`, with a line for each parameter if there are many."""
    line = f"{head}({', '.join(parameters)}) {{"
    if len(line) <= WIDTH:
        return [line]
    return [f"{head}(", *(f"{INDENT}{p}," for p in parameters[:-1]), f"{INDENT}{parameters[-1]})", "{"]
