"""The tokenizer: one pass of one regular expression.

The kind of an operator or keyword is its own text; the others are `name`, `int`, `float`, `measure` (a number that runs into
letters, `128B`), `string`, `label`, `bad` (a character that no token starts with, kept so that raw text may hold it) and `end`.
"""

from __future__ import annotations

import re

from texpr.support.record import Mutable, field
from texpr.support.span import Source, Span

KEYWORDS = frozenset(
    [
        "fn",
        "par",
        "seq",
        "new",
        "reg",
        "let",
        "if",
        "else",
        "return",
        "anchor",
        "inout",
        "const",
        "and",
        "or",
        "not",
        "true",
        "false",
        "inf",
        "nan",
        "where",
        "assume",
        "combine",
        "instr",
        "schedule",
        "static",
        "fully",
    ]
)
"""Words that cannot be names. Others (`for`, `in`, `reduce`, `stride`, …) are contextual."""

FOREIGN = {
    "&&": "write `and`",
    "||": "write `or`",
    "!": "write `not`",
    "&": "write `bitand(a, b)`",
    "^": "write `bitxor(a, b)`, or `a ** b` for a power",
    "~": "write `bitxor(a, -1)`",
    "<<": "write `shl(a, b)`",
    ">>": "write `shr(a, b)`",
    "?": "write `select(condition, a, b)`",
    "++": "write `x += 1`",
}
"""Operators of C that this language spells otherwise, with the help."""

_TOKEN = re.compile(
    r"""
      (?P<space>   (?: [ \t\r\n\f]+ | --[^\n]* )+ )
    | (?P<name>    [A-Za-z_][A-Za-z0-9_]* (?:'[0-9]+)* )
    | (?P<float>   [0-9]+ (?: \.[0-9]+ (?:[eE][+-]?[0-9]+)? | [eE][+-]?[0-9]+ ) (?![A-Za-z0-9_]) )
    | (?P<int>     0[xX][0-9a-fA-F]+ (?![A-Za-z0-9_]) )
    | (?P<measure> [0-9]+ (?: \.[0-9]+ )? [A-Za-z_][A-Za-z0-9_]* )
    | (?P<whole>   [0-9]+ )
    | (?P<string>  "(?: [^"\\\n] | \\[^\n] )*"? )
    | (?P<label>   '[A-Za-z_][A-Za-z0-9_]* )
    | (?P<foreign> //[^\n]* | /\*(?:[^*]|\*(?!/))*(?:\*/)? | && | \|\| | << | >> | \+\+ )
    | (?P<op>      -> | \.\. | \*\* | == | != | <= | >= | [-+*/%]= | [][(){}<>=+*/%|,:;.#-] )
    | (?P<bad>     . )
    """,
    re.VERBOSE | re.DOTALL,
)


def is_name(text: str) -> bool:
    """Whether `text` is a valid name."""
    found = _TOKEN.fullmatch(text)
    return found is not None and found.lastgroup == "name" and text not in KEYWORDS


class Tokens(Mutable):
    """The tokens of a source as parallel lists, ending in one of kind `end`."""

    source: Source
    kinds: list[str] = field(default_factory=lambda: [])
    texts: list[str] = field(default_factory=lambda: [])
    starts: list[int] = field(default_factory=lambda: [])
    ends: list[int] = field(default_factory=lambda: [])

    def span(self, at: int) -> Span:
        """The span of token `at`."""
        return Span(self.source, self.starts[at], self.ends[at])

    def starts_line(self, at: int) -> bool:
        """Whether a line end lies between token `at` and the one before it."""
        return at == 0 or "\n" in self.source.text[self.ends[at - 1] : self.starts[at]]


def tokenize(source: Source) -> Tokens:
    """Every token of `source`. Never fails: an invalid character becomes a token of kind `bad`."""
    tokens = Tokens(source)
    kinds, texts, starts, ends = tokens.kinds, tokens.texts, tokens.starts, tokens.ends
    text = source.text
    for match in _TOKEN.finditer(text, 1 if text.startswith("\ufeff") else 0):
        kind = match.lastgroup or "bad"
        if kind == "space":
            continue
        word = match.group()
        if kind == "whole":
            kind = "int"
        elif kind == "op" or (kind == "name" and word in KEYWORDS):
            kind = word
        elif kind == "foreign":
            kind = "bad"
        kinds.append(kind)
        texts.append(word)
        starts.append(match.start())
        ends.append(match.end())
    kinds.append("end")
    texts.append("")
    # The end is right after the last token, where something is missing, not on the empty line below.
    starts.append(ends[-1] if ends else len(text))
    ends.append(starts[-1])
    return tokens
