"""The names of a file: where each is declared, where it is used, and where it is visible."""

from __future__ import annotations

from texpr.editor.names.body import Items
from texpr.editor.names.schedules import resolve_schedules
from texpr.editor.names.symbols import Names, Symbol
from texpr.frontend.tree import Tree

__all__ = ["Names", "Symbol", "names_of"]


def names_of(tree: Tree) -> Names:
    """The names of a tree, whether or not it means anything; what is unknown is left out."""
    items = Items()
    items.read(tree)
    resolve_schedules(tree, items)
    return items.names
