"""Texts that are the same program, laid out in another way."""

from __future__ import annotations

from random import Random

from texpr.editor.formatting.marks import mark
from texpr.frontend import parse_text
from texpr.frontend.tokens import tokenize
from texpr.frontend.tree import Tree
from texpr.support.diagnostic import TexprError
from texpr.support.span import Source

BETWEEN = ("", " ", "  ", "\t", "\n", "\n  ", "\n\n\n", "\r\n", " -- one\n", "\n\n-- two -- é\n", "\f\n--\n\n--\t three  \n")


def scrambled(text: str, random: Random) -> str:
    """`text` with other white space, and comments, between its tokens, where that does not change the program."""
    tree = parse_text(text)
    tokens = tokenize(Source("<text>", text))
    raw = mark(tokens, tree).raw
    pieces: list[str] = []
    last = 0
    for at, (kind, start, end) in enumerate(zip(tokens.kinds, tokens.starts, tokens.ends, strict=True)):
        was = text[last:start]
        counts = at in raw or (kind == "(" and tokens.kinds[at - 1] == "name")
        chosen = was if counts or random.random() < 0.6 else random.choice(BETWEEN[1:] if was else BETWEEN)
        pieces += chosen, text[start:end]
        last = end
    made = "".join((*pieces, random.choice(BETWEEN)))
    assert _is(tree, made)
    return made


def _is(tree: Tree, text: str) -> bool:
    try:
        return parse_text(text) == tree
    except TexprError:
        return False


def with_comments(text: str) -> list[str]:
    """`text` with a comment, at each token boundary where that does not change the program, and with one at most of them."""
    tree = parse_text(text)
    tokens = tokenize(Source("<text>", text))
    raw = mark(tokens, tree).raw
    made = [f"{text[:at]} -- here {number}\n{text[at:]}" for number, at in enumerate([*tokens.starts, *tokens.ends])]
    pieces: list[str] = []
    last = 0
    for at, (kind, start) in enumerate(zip(tokens.kinds, tokens.starts, strict=True)):
        fits = at not in raw and (kind != "(" or tokens.kinds[at - 1] != "name")
        pieces += text[last:start], f"-- {at}\n" * fits
        last = start
    return [each for each in made if _is(tree, each)] + ["".join((*pieces, text[last:]))]
