"""From text to the program form: tokens, the surface tree, names and types."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.frontend.elaboration import elaborate
from texpr.frontend.parser import parse_text
from texpr.ir.program import Program

__all__ = ["elaborate", "parse", "parse_text"]


def parse(text: str, name: str = "<text>", consts: Mapping[str, int] | None = None) -> Program:
    """The program that a `.te` text means. Raises `TexprError` with every diagnostic found."""
    return elaborate(parse_text(text, name), consts)
