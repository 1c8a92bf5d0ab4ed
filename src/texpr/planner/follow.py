"""Directives applied one at a time: a refusal is known at once, with its reason.

The refusal of a required step ends the attempt (`Refused`); that of an optional one is recorded, and the step left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from texpr.affine.expr import Expr
from texpr.ir import program as ir
from texpr.ir.program.text import print_directive
from texpr.ir.value import Buffer
from texpr.schedule.apply import follow
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, loops, path_to
from texpr.support.diagnostic import TexprError
from texpr.support.record import Mutable, field
from texpr.support.span import Span

Value: TypeAlias = str | int | Expr | ir.Group
"""Of an argument with a key."""


class Refused(Exception):
    """A required directive of the candidate was refused; `buffer` if it was to be staged."""

    def __init__(self, directive: ir.Directive, reason: TexprError, buffer: Buffer | None):
        self.directive, self.buffer = directive, buffer
        super().__init__(told(directive, reason))


def told(directive: ir.Directive, reason: TexprError) -> str:
    """The refused directive and the reason, in one line."""
    return f"{print_directive(directive)}: {reason.diagnostics[0].code}: {reason.diagnostics[0].message}"


class Follower(Mutable):
    """`state` after `directives`, which get the span `span`. `dropped`: optional directives that were refused."""

    state: State
    span: Span
    directives: list[ir.Directive] = field(default_factory=list[ir.Directive])
    dropped: list[str] = field(default_factory=list[str])

    def loop(self, name: str) -> ir.Loop:
        """The current loop of that name."""
        return next(s for s in loops(self.state.function.body) if s.sym.name == name)

    def above(self, loop: ir.Loop) -> list[ir.Loop]:
        """The loops around the one of that name, the innermost first."""
        path = path_to(self.state.function.body, self.loop(loop.sym.name)) or ()
        return [s for s in reversed(path[:-1]) if isinstance(s, ir.Par | ir.Seq)]

    def is_copy(self, loop: ir.Loop, name: str) -> bool:
        """Whether a loop is that of a name, or one that fission has made of it."""
        return loop in self.state.copies(self.loop(name))

    def fresh(self, base: str, *suffixes: str) -> tuple[str, ...]:
        """Free names, `base` with each of `suffixes`."""
        name = base.replace("'", "_")
        return self.state.all_fresh(f"{name}_{suffix}" for suffix in suffixes)

    def must(
        self, name: str, *plain: str | int, results: tuple[str, ...] = (), of: Buffer | None = None, **keys: Value
    ) -> None:
        """Applies the directive `name`. Raises Refused, with the buffer `of`."""
        directive = self._directive(name, plain, results, keys)
        try:
            self._follow(directive)
        except TexprError as reason:
            raise Refused(directive, reason, of) from None

    def may(self, name: str, *plain: str | int, results: tuple[str, ...] = (), **keys: int) -> bool:
        """Applies the directive `name`, or records its refusal; whether it was applied."""
        directive = self._directive(name, plain, results, keys)
        try:
            self._follow(directive)
        except TexprError as reason:
            self.dropped.append(told(directive, reason))
            return False
        return True

    def _directive(
        self, name: str, plain: tuple[str | int, ...], results: tuple[str, ...], keys: Mapping[str, Value]
    ) -> ir.Directive:
        """A directive whose words name exactly these loops, where others have the same base name."""
        body = self.state.function.body
        exact = tuple(exactly(each, body) if isinstance(each, str) else each for each in plain)
        keyed = {key: exactly(each, body) if isinstance(each, str) else each for key, each in keys.items()}
        return _directive(name, exact, results, keyed, self.span)

    def _follow(self, directive: ir.Directive) -> None:
        self.state = follow(self.state, directive)
        self.directives.append(directive)


def _directive(
    name: str, plain: tuple[str | int, ...], results: tuple[str, ...], keys: Mapping[str, Value], span: Span
) -> ir.Directive:
    given = [ir.Argument(value) for value in plain]
    keyed = [ir.Argument(value, "in" if key == "space" else key) for key, value in keys.items()]
    return ir.Directive(name, (*given, *keyed), results, span)
