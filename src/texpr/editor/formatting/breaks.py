"""Where lines end: where the writer ended them, as blocks of several lines ask for, and where a line is too long."""

from __future__ import annotations

from texpr.editor.formatting.gaps import Gap
from texpr.editor.formatting.layout import CLAUSES, WIDTH, Line, lay_out
from texpr.editor.formatting.marks import CLOSERS, OPENERS, Marks
from texpr.frontend.tokens import Tokens
from texpr.support.record import Mutable


def settle(tokens: Tokens, marks: Marks, between: list[Gap], width: list[int]) -> list[bool]:
    """Whether each token starts a line."""
    lines = [gap.ends_line for gap in between]
    while True:
        _blocks(tokens, marks, between, lines)
        long = [line for line in lay_out(tokens, marks, between, width, lines) if line.width > WIDTH]
        if not [line for line in long if _break(tokens, marks, lines, line)]:
            return lines


class _Open(Mutable):
    """An open bracket: its token, the line ends before it, and the statements directly in it."""

    at: int
    ended: int
    statements: int = 0


def _blocks(tokens: Tokens, marks: Marks, between: list[Gap], lines: list[bool]) -> None:
    """Ends lines, and joins some, such that a block stands on one line, or its statements and its end on their own.

    Blocks within an item that are one statement each may share their lines: `par n |i| { par m |j| {` and `} }`.
    """
    kinds = tokens.kinds
    stack: list[_Open] = []
    ended = 0
    clause = False
    for at, kind in enumerate(kinds):
        if at in marks.items:
            lines[at], clause = True, False
        elif at in marks.raw:
            ended += lines[at]
            continue
        elif kind in CLAUSES:
            clause = clause or lines[at]
        elif kind == "{":
            lines[at] = between[at].forced or clause
            clause = False
        ended += lines[at]
        if at in marks.starts and at not in marks.parts and stack:
            stack[-1].statements += 1
        if kind in OPENERS:
            stack.append(_Open(at, ended))
        elif kind in CLOSERS:
            was = lines[at]
            opened = stack.pop()
            first = opened.at + 1
            if first == at:
                lines[at] = between[at].forced
            elif kind == "}":
                alone = bool(stack) and opened.statements == 1 and kinds[at - 1] == "}" and not lines[first]
                if alone:
                    lines[at] = between[at].forced
                elif ended > opened.ended:
                    ended += not lines[first]
                    lines[first] = lines[at] = True
            elif lines[first]:
                lines[at] = True
            ended += lines[at] - was


def _break(tokens: Tokens, marks: Marks, lines: list[bool], line: Line) -> bool:
    """Ends lines within a line that is too long; whether there was a place for it."""
    return (
        _between_statements(tokens, marks, lines, line)
        or _in_blocks(tokens, marks, lines, line)
        or _after_commas(tokens, marks, lines, line)
        or _in_brackets(tokens, marks, lines, line)
    )


def _outermost(tokens: Tokens, marks: Marks, start: int, end: int, kinds: str) -> list[tuple[int, int]]:
    """The outermost brackets of `kinds` within `start:end` that open and close there, with something between."""
    found: list[tuple[int, int]] = []
    at = start
    while at < end:
        closed = marks.closing.get(at, end)
        if closed < end and tokens.kinds[at] in kinds:
            if closed > at + 1:
                found.append((at, closed))
            at = closed
        at += 1
    return found


def _between_statements(tokens: Tokens, marks: Marks, lines: list[bool], line: Line) -> bool:
    """Gives each of several statements a line."""
    blocks = _outermost(tokens, marks, line.start, line.end, "{")
    found = _direct(marks.starts, line.start + 1, line.end, blocks)
    found = [at for at in found if tokens.kinds[at - 1] != "{"]
    for at in found:
        lines[at] = True
    return bool(found)


def _direct(marked: set[int], start: int, end: int, inner: list[tuple[int, int]]) -> list[int]:
    """The marked tokens of `start:end` that are in none of the brackets `inner`."""
    within = {at for opened, closed in inner for at in range(opened, closed + 1)}
    return [at for at in range(start, end) if at in marked and at not in within]


def _in_blocks(tokens: Tokens, marks: Marks, lines: list[bool], line: Line) -> bool:
    """Gives what is in a block lines of its own; of blocks that are one statement each, in the innermost."""
    blocks = _outermost(tokens, marks, line.start, line.end, "{")
    for opened, closed in blocks:
        while True:
            inner = _outermost(tokens, marks, opened + 1, closed, "{")
            first = _direct(marks.starts, opened + 1, closed, inner)
            if len(inner) != 1 or len(first) != 1 or inner[0][1] != closed - 1:
                break
            opened, closed = inner[0]
        for at in (opened + 1, *first, closed):
            lines[at] = True
    return bool(blocks)


def _after_commas(tokens: Tokens, marks: Marks, lines: list[bool], line: Line) -> bool:
    """Gives each of the items of a list that the line is in, or each promise of a clause, a line."""
    kinds = tokens.kinds
    listed = line.inside or kinds[line.start] in CLAUSES or line.clause
    if not listed:
        return False
    inner = _outermost(tokens, marks, line.start, line.end, "([{")
    commas = {at for at in range(line.start, line.end - 1) if kinds[at] == ","}
    found = [at + 1 for at in _direct(commas, line.start, line.end, inner) if not lines[at + 1]]
    for at in found:
        lines[at] = True
    return bool(found)


def _in_brackets(tokens: Tokens, marks: Marks, lines: list[bool], line: Line) -> bool:
    """Gives what is in parentheses or an index lines of its own: of the parameters of an item, or the longest."""
    found = [pair for pair in _outermost(tokens, marks, line.start, line.end, "([") if not lines[pair[0] + 1]]
    if not found:
        return False
    chosen = (
        found[0] if line.start in marks.items else max(found, key=lambda pair: tokens.ends[pair[1]] - tokens.starts[pair[0]])
    )
    opened, closed = chosen
    lines[opened + 1] = lines[closed] = True
    return True
