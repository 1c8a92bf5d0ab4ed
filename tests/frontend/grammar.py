"""The grammar as a recogniser, with the few rules that it leaves out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, LarkError, Tree


@cache
def _lark() -> Lark:
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", keep_all_tokens=True)


def accepts(text: str) -> bool:
    """Whether the grammar has `text`."""
    try:
        tree = _lark().parse(text)
    except LarkError:
        return False
    operands = (part for node in tree.find_data("arithmetic") for part in node.children)
    loops = all(map(_has_an_index_each, tree.find_data("loop")))
    return loops and all(map(_is_target, tree.find_data("place"))) and all(map(_is_term, operands))


def _has_an_index_each(loop: Tree) -> bool:
    """Whether a loop has as many indices as extents, and says of several nothing that only one can have."""
    extents, indices = (len(next(iter(loop.find_data(name))).children) for name in ("extents", "indices"))
    if extents != indices or extents == 1:
        return extents == indices
    tails = [part for part in loop.children if isinstance(part, Tree) and part.data == "tail"]
    said = [part for tail in tails for part in tail.children if isinstance(part, Tree) and part.data == "pragma"]
    words = [next(iter(pragma.children[1].scan_values(lambda _: True))) for pragma in said]
    labels = [part for tail in tails for part in tail.children if getattr(part, "type", None) == "LABEL"]
    return loop.children[0] != "fully" and not labels and all(word in ("atomic", "ieee") for word in words)


def _is_term(operand: object) -> bool:
    """Whether an operand is one: the grammar takes a group of any arguments for parentheses."""
    if not isinstance(operand, Tree) or operand.data != "group":
        return True
    match operand.children:
        case [_, Tree(data="argument", children=[Tree(data="argument_value", children=[value])]), _]:
            if isinstance(value, Tree):
                return value.data in ("ident", "arithmetic") or (value.data == "group" and _is_term(value))
            return value.type == "INT"
        case _:
            return False


def _is_target(place: Tree) -> bool:
    """Whether what a bind writes to is places: the grammar lets any expression stand in parentheses."""
    first = next(place.scan_values(lambda _: True))
    if first.type in ("INT", "FLOAT", "INF", "NAN", "TRUE", "FALSE"):
        # A statement does not start with a number.
        return False
    inner = place.children[0]
    assert isinstance(inner, Tree)
    while inner.data == "parenthesised":
        inner = _strip(inner.children[1])
    if inner.data == "tuple":
        return all(_is_place(_strip(part)) for part in inner.children[1:-1:2] if isinstance(part, Tree))
    return _is_place(inner)


def _is_place(node: Tree) -> bool:
    while node.data == "parenthesised":
        node = _strip(node.children[1])
    return node.data in ("ident", "subscript")


def _strip(node: object) -> Tree:
    assert isinstance(node, Tree)
    while node.data == "atom":
        node = node.children[0]
        if not isinstance(node, Tree):
            return Tree("token", [])
    return node
