"""From text to the program form: tokens, the surface tree, names and types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from texpr.frontend.elaboration import elaborate
from texpr.frontend.parser import parse_text
from texpr.frontend.proposals import tried
from texpr.frontend.tree import Tree
from texpr.ir.program import Program
from texpr.isa.registry import INSTRUCTIONS
from texpr.support.diagnostic import TexprError

__all__ = ["elaborate", "parse", "parse_text", "read"]

Consts = Mapping[str, int] | Callable[[Tree], Mapping[str, int]]


def parse(text: str, name: str = "<text>", consts: Mapping[str, int] | None = None) -> Program:
    """The program of a `.te` text. Raises `TexprError` with every diagnostic."""
    return read(text, name, consts or {})[1]


def read(text: str, name: str, consts: Consts) -> tuple[Tree, Program]:
    """The surface tree of a text, and its program; `consts` may depend on the tree. Raises as `parse` does."""

    def once(text: str) -> tuple[Tree, Program]:
        tree = parse_text(text, name)
        return tree, elaborate(tree, consts(tree) if callable(consts) else consts, _shipped(text))

    try:
        return once(text)
    except TexprError as raised:
        raise tried(raised, once) from None


_CALLED = re.compile(r"\b[a-z]\w*(?=\()", re.ASCII)


def _shipped(text: str) -> Tree | None:
    """The definitions of the compiler's own instructions that a text may use, which a definition of the text comes before."""
    named = dict.fromkeys(name for name in _CALLED.findall(text) if name in INSTRUCTIONS)
    return parse_text("\n\n".join(INSTRUCTIONS[name].text for name in named), "<shipped>") if named else None
