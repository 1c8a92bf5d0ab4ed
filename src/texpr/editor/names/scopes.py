"""Scopes of a surface tree: names in blocks."""

from __future__ import annotations

from texpr.editor.names.symbols import Names, Symbol
from texpr.frontend.tree import Ident, Name
from texpr.support.span import Span


class Scope:
    """The names that are visible in a block, which ends at `end`; blocks around it are `parent`s."""

    def __init__(self, names: Names, owner: str, end: int, parent: Scope | None = None):
        self.all, self.owner, self.end, self.parent = names, owner, end, parent
        self.names: dict[str, Symbol] = {}

    def inner(self, end: int) -> Scope:
        """A block in this one."""
        return Scope(self.all, self.owner, end, self)

    def find(self, name: str) -> Symbol | None:
        """The symbol that `name` means here."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def declare(self, name: Ident, kind: str, head: Span, start: int | None = None) -> Symbol:
        """A new symbol, visible from `start`, by default from the end of its declaration, to the end of the block."""
        made = declared(name, kind, head, (head.end if start is None else start, self.end), self.owner)
        self.all.symbols.append(made)
        self.names[name.name] = made
        return made

    def use(self, name: Ident | Name) -> bool:
        """Notes a use of a name; whether it is known."""
        found = self.find(name.name)
        if found is not None:
            found.places.append((name.span.start, name.span.end))
        return found is not None


def declared(name: Ident, kind: str, head: Span, visible: tuple[int, int], owner: str = "") -> Symbol:
    """The symbol that is declared by `name`."""
    return Symbol(name.name, kind, [(name.span.start, name.span.end)], (head.start, head.end), visible, owner)
