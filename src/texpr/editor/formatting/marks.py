"""What a token is for, where its kind alone does not say: taken from the tree, and from the brackets around it."""

from __future__ import annotations

from typing import Any

from texpr.frontend import tree as t
from texpr.frontend.tokens import Tokens
from texpr.support.record import Mutable, field, names
from texpr.support.span import Span

OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(OPENERS.values())

_STATEMENTS = (
    t.Loop, t.StaticFor, t.New, t.Reg, t.Let, t.Bind, t.If, t.Anchor, t.CallStatement, t.Asm, t.Instruct, t.Return
)  # fmt: skip
_RAW = {"fragment": 3, "effect": 1, "rounding": 1}
"""The tokens of a part of an `instr` before its text, in which white space counts."""


def _numbers() -> Any:
    return field(default_factory=lambda: set[int]())


class Marks(Mutable):
    """Numbers of tokens, by what they are."""

    items: set[int] = _numbers()
    """The first of an item."""
    starts: set[int] = _numbers()
    """The first of an item, a statement, a directive, or a part of an `instr`."""
    parts: set[int] = _numbers()
    """The first of a part of an `instr`."""
    signs: set[int] = _numbers()
    """A minus sign of one operand."""
    names: set[int] = _numbers()
    """A word that is a name, as opposed to one that means something in its place, as `in`."""
    updates: set[int] = _numbers()
    """The word of an update, `max=`."""
    raw: set[int] = _numbers()
    """In a layout, an effect or a rounding: text whose white space counts."""
    keys: set[int] = _numbers()
    """The `=` of an argument with a key."""
    lengths: set[int] = _numbers()
    """The `+` of a slice `lo : +length`."""
    slices: set[int] = _numbers()
    """The `:` of a slice."""
    bars: set[int] = _numbers()
    """The `|` before the index of a loop."""
    closing: dict[int, int] = field(default_factory=lambda: dict[int, int]())
    """The bracket that closes each opening one, those in raw text aside."""


def mark(tokens: Tokens, tree: t.Tree) -> Marks:
    """The marks of the tokens of a text that parses to `tree`."""
    marks = Marks()
    index = {start: at for at, start in enumerate(tokens.starts)}
    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(node)  # pyright: ignore[reportUnknownArgumentType]
        elif hasattr(node, "span"):
            _note(tokens, marks, node, index.get(node.span.start, -1))
            stack.extend(getattr(node, name) for name in names(node) if name != "span")
        elif isinstance(node, t.Tree):
            stack.extend(node.items)
    marks.starts |= marks.parts
    _brackets(tokens, marks)
    return marks


def _note(tokens: Tokens, marks: Marks, node: Any, at: int) -> None:
    match node:
        case t.Ident() | t.Name() | t.Word():
            marks.names.add(at)
        case t.Number() | t.Unary():
            if tokens.kinds[at] == "-":
                marks.signs.add(at)
        case t.Fn() | t.Combine() | t.Instr() | t.Schedule():
            marks.items.add(at)
            marks.starts.add(at)
            if isinstance(node, t.Instr):
                _parts(tokens, marks, at)
        case t.Directive():
            if tokens.kinds[at] != "#":
                marks.starts.add(at)
        case _ if isinstance(node, _STATEMENTS):
            if tokens.kinds[at - 1] != "else":
                marks.starts.add(at)
            if isinstance(node, t.Bind) and node.op is not None and node.op.name not in ("+", "-", "*"):
                marks.updates.add(_at(tokens, node.op.span))
        case _:
            pass


def _at(tokens: Tokens, span: Span) -> int:
    """The token that starts where `span` does."""
    low, high = 0, len(tokens.starts)
    while low < high:
        middle = (low + high) // 2
        if tokens.starts[middle] < span.start:
            low = middle + 1
        else:
            high = middle
    return low


def _parts(tokens: Tokens, marks: Marks, at: int) -> None:
    """The parts of the `instr` whose first token is `at`."""
    kinds, texts = tokens.kinds, tokens.texts
    at = kinds.index("{", at) + 1
    while kinds[at] != "}":
        marks.parts.add(at)
        if texts[at] == "meaning":
            depth = 0
            while True:
                at += 1
                depth += (kinds[at] == "{") - (kinds[at] == "}")
                if depth == 0:
                    break
        else:
            end = kinds.index(";", at)
            if texts[at] in _RAW:
                marks.raw.update(range(at + _RAW[texts[at]], end))
            at = end
        at += 1


def _brackets(tokens: Tokens, marks: Marks) -> None:
    """What follows from the innermost bracket around a token."""
    kinds = tokens.kinds
    stack: list[int] = []
    heads: set[int] = set()
    inside = False
    for at, kind in enumerate(kinds):
        if at in marks.raw:
            continue
        if kind in OPENERS:
            stack.append(at)
            if kind == "(" and at >= 2 and at - 2 in marks.items and kinds[at - 2] != "schedule":
                heads.add(at)
        elif kind in CLOSERS:
            marks.closing[stack.pop()] = at
        elif kind == "|":
            inside = not inside
            if inside:
                marks.bars.add(at)
        elif stack and kind == ":" and kinds[stack[-1]] == "[":
            marks.slices.add(at)
            if kinds[at + 1] == "+":
                marks.lengths.add(at + 1)
        elif stack and kind == "=" and kinds[stack[-1]] == "(" and stack[-1] not in heads:
            marks.keys.add(at)
