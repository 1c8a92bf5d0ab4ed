"""A name changed at every place, if that changes nothing else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from texpr.editor.answers.problems import Change, Examine, problems
from texpr.editor.document import Document, Place
from texpr.editor.names import Symbol, names_of
from texpr.frontend import parse_text
from texpr.frontend.tokens import is_name
from texpr.frontend.tree import Tree
from texpr.support.diagnostic import TexprError


class CannotRename(Exception):
    """Why a name cannot be changed so."""


def renamable(document: Document, offset: int) -> tuple[Symbol, Place]:
    """The symbol at an offset, and its place. Raises CannotRename."""
    if not document.is_current:
        raise CannotRename("the text has errors of syntax")
    found = document.symbol(offset)
    if found is None:
        raise CannotRename("there is no name of this file here")
    symbol = found[0]
    if symbol.doubt is not None:
        line = document.positions.position(symbol.doubt[0])[0] + 1
        word = document.text[slice(*symbol.doubt)]
        if symbol.kind == "parameter" and word != symbol.name and not word.startswith('"'):
            raise CannotRename(f"templates of assembler of `{word}` name `{symbol.name}`")
        raise CannotRename(f"`{word}` in line {line} may mean `{symbol.name}`, or is made of it")
    return found


def rename(document: Document, offset: int, new: str, examine: Examine) -> Sequence[Change]:
    """The changes that give the symbol at an offset another name.

    The changed text is read again: every name has to mean what it meant before, and no more may be wrong than was. Raises
    CannotRename where that is not so.
    """
    symbol, _ = renamable(document, offset)
    if not is_name(new) or "'" in new:
        raise CannotRename(f"`{new}` is not a name")
    if new == symbol.name:
        return ()
    places = sorted(symbol.places)
    changes = [Change(start, end, new) for start, end in places]
    made = "".join(_pieces(document.text, changes))
    try:
        tree = parse_text(made, document.uri)
    except TexprError as raised:
        raise CannotRename(f"`{new}` cannot stand there: {raised.diagnostics[0].message}") from None
    assert document.parsed is not None
    shift = len(new) - len(symbol.name)
    wanted = _meanings(document.parsed.tree, [start for start, _ in places], shift)
    if _meanings(tree, [], 0) != wanted:
        raise CannotRename(f"`{new}` means something else where `{symbol.name}` stands")
    before = _found(document.text, document.uri, examine)
    for code, message in _found(made, document.uri, examine):
        if code not in {code for code, _ in before}:
            raise CannotRename(f"with `{new}` the program is wrong: {message}")
    return changes


def _pieces(text: str, changes: Sequence[Change]) -> list[str]:
    pieces: list[str] = []
    last = 0
    for change in changes:
        pieces += text[last : change.start], change.text
        last = change.end
    return [*pieces, text[last:]]


def _meanings(tree: Tree, moved: Sequence[int], shift: int) -> set[tuple[int, ...]]:
    """For each symbol where it stands, after each of the places `moved` has become longer by `shift`."""

    def now(offset: int) -> int:
        return offset + shift * bisect_left(moved, offset)

    return {tuple(now(start) for start, _ in symbol.places) for symbol in names_of(tree).symbols}


def _found(text: str, name: str, examine: Examine) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in problems(text, name, examine) or ()]
