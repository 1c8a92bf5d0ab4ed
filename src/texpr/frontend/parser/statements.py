"""Statements and blocks, with recovery after an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from texpr.frontend.parser.cursor import MAX_ERRORS, Cursor, Refused
from texpr.frontend.parser.directives import pragmas, string
from texpr.frontend.parser.expressions import expression
from texpr.frontend.parser.words import LOOP_CLAUSES, STATEMENTS, meant
from texpr.frontend.tree import (
    Anchor,
    Asm,
    Bind,
    Call,
    CallStatement,
    Directive,
    Exp,
    Ident,
    If,
    Instruct,
    Let,
    Loop,
    Name,
    New,
    Reg,
    Return,
    Statement,
    StaticFor,
    Subscript,
    Tuple,
    TypeExp,
)
from texpr.ir.program import BARRIER
from texpr.support.diagnostic import Edit, Proposal
from texpr.support.span import Span

T = TypeVar("T")

ITEM_WORDS = ("fn", "combine", "schedule")
"""Words that start an item and never a statement: at one of these, open blocks are unclosed."""
_NO_SEMICOLON = Proposal("statements need no `;` between them", Edit("\n"))
_UPDATES = ("+=", "-=", "*=")
_NO_UPDATES = {"/=": "write `x = x / …`", "%=": "write `x = x % …`"}


def block(cursor: Cursor, what: str, clauses: Sequence[str] = ()) -> tuple[Statement, ...]:
    """`{ statements }`, `what` names its construct in errors; `clauses` are the words that may precede it."""
    opened = cursor.expect("{", f"before the body of {what}", help=meant(cursor.text, clauses) if clauses else None)
    statements: list[Statement] = []
    with cursor.nested():
        while cursor.kind not in ("}", "end") and cursor.kind not in ITEM_WORDS:
            one = _recovering(cursor)
            if one is not None:
                statements.append(one)
    cursor.close("}", opened, f"the body of {what}")
    return tuple(statements)


def _recovering(cursor: Cursor) -> Statement | None:
    start, depth = cursor.at, cursor.depth
    try:
        return statement(cursor)
    except Refused:
        if len(cursor.diagnostics) >= MAX_ERRORS:
            raise
        cursor.depth = depth
        _skip(cursor, start)
        return None


def _skip(cursor: Cursor, start: int) -> None:
    """Recovers at what looks like the next statement. Blocks on the way are parsed, for their errors."""
    if cursor.at == start and cursor.kind != "{":
        cursor.advance()
    while cursor.kind not in ("}", "end"):
        if cursor.starts_line() and (cursor.kind in STATEMENTS or cursor.kind in ITEM_WORDS or cursor.kind == "name"):
            return
        if cursor.kind == "{":
            try:
                block(cursor, "the block")
            except Refused:
                if cursor.sees("end", *ITEM_WORDS) or len(cursor.diagnostics) >= MAX_ERRORS:
                    raise
            if not cursor.sees("else"):
                return
        cursor.advance()


def statement(cursor: Cursor) -> Statement:
    """One statement."""
    start = cursor.at
    match cursor.kind:
        case "par" | "seq" | "fully":
            return _loop(cursor)
        case "static":
            return _static_for(cursor)
        case "new":
            return _new(cursor)
        case "reg":
            return _reg(cursor)
        case "let":
            return _let(cursor)
        case "if":
            return _if(cursor)
        case "anchor":
            return _anchor(cursor)
        case "instr":
            return _instruct(cursor, start, anchored=False)
        case "return":
            return _return(cursor)
        case "name" if cursor.text == "asm" and cursor.peek() == "(":
            return _asm(cursor)
        case "name" | "(":
            return _bind_or_call(cursor)
        case ";":
            cursor.refuse("E0102", cursor.span, "expected a statement, found `;`", help=_NO_SEMICOLON)
        case "=":
            help = "the line above is not complete, and took the target of this bind"
            cursor.expected("a statement", help=None if cursor.starts_line() else help)
        case _:
            cursor.expected("a statement")


def _loop(cursor: Cursor) -> Loop:
    """A loop, or several in one: `par M, N |i, j| {…}` is `par M |i| { par N |j| {…} }`."""
    start = cursor.at
    fully = cursor.accept("fully")
    if fully and cursor.kind != "par":
        cursor.expected("`par` after `fully`")
    kind = cursor.tokens.texts[cursor.advance()]
    extents = _listed(cursor, expression)
    bar = cursor.accept("|")
    indices = _listed(cursor, lambda c: c.ident("the loop's index, as in `par N |i| {`"))
    if bar:
        cursor.expect("|", "after the loop's index")
    head = cursor.since(start)
    marks = cursor.at
    tail = _loop_tail(cursor)
    if not bar and indices[0].name == "in":
        cursor.refuse("E0102", indices[0].span, "expected the loop's index, found `in`", help=meant("for", ()))
    if len(extents) != len(indices):
        many = f"{_count(extents, 'extent')} and {_count(indices, 'index', 'indices')}"
        cursor.refuse("E0102", head, f"a loop has one index for each extent, found {many}")
    if len(extents) > 1:
        _check_several(cursor, fully, tail, cursor.tokens.span(marks))
    body = _inside(cursor, len(extents) - 1, kind)
    span = cursor.since(start)
    for extent, index in zip(extents[:0:-1], indices[:0:-1], strict=True):
        body = (Loop(kind, extent, index, body, reduce=tail.reduce, pragmas=tail.pragmas, span=span, scan=tail.scan),)
    return Loop(kind, extents[0], indices[0], body, fully, tail.label, tail.reduce, tail.pragmas, span, tail.scan)


def _inside(cursor: Cursor, levels: int, kind: str) -> tuple[Statement, ...]:
    """The body of a loop that stands for `levels` nested ones."""
    if levels == 0:
        return block(cursor, f"`{kind}`", LOOP_CLAUSES)
    with cursor.nested():
        return _inside(cursor, levels - 1, kind)


def _listed(cursor: Cursor, one: Callable[[Cursor], T]) -> list[T]:
    """`one, one, …`."""
    found = [one(cursor)]
    while cursor.accept(","):
        found.append(one(cursor))
    return found


def _count(items: Sequence[object], one: str, more: str | None = None) -> str:
    return f"{len(items)} {one if len(items) == 1 else more or one + 's'}"


def _check_several(cursor: Cursor, fully: bool, tail: _Tail, mark: Span) -> None:
    """Refuses clauses on several loops at once, except `reduce`, `#atomic` and `#ieee`, which apply to each."""
    help = "write the loops one inside the other, `par M |i| { par N |j| { … } }`"
    if tail.scan:
        cursor.refuse("E0102", mark, "a `scan` is of one loop", help=help)
    if fully:
        cursor.refuse("E0102", mark, "a `fully par` has one index", help=help)
    if tail.label is not None:
        cursor.refuse("E0102", mark, f"several loops cannot share the label `{tail.label}`", help=help)
    for pragma in tail.pragmas:
        if pragma.name.name not in ("atomic", "ieee"):
            cursor.refuse("E0102", pragma.span, f"several loops cannot share the pragma `#{pragma.name.name}`", help=help)


class _Tail(NamedTuple):
    label: str | None
    reduce: tuple[Ident, ...]
    scan: tuple[Ident, ...]
    pragmas: tuple[Directive, ...]


def _loop_tail(cursor: Cursor) -> _Tail:
    label: str | None = None
    clauses: dict[str, tuple[Ident, ...]] = {}
    found: tuple[Directive, ...] = ()
    while True:
        if cursor.kind == "label":
            if label is not None:
                cursor.refuse("E0112", cursor.span, "this loop has a label already")
            label = cursor.tokens.texts[cursor.advance()][1:]
        elif (word := next(filter(cursor.word, LOOP_CLAUSES), None)) is not None:
            clauses[word] = _clause(cursor, word, word in clauses)
        elif cursor.kind == "#":
            found += pragmas(cursor)
        else:
            return _Tail(label, clauses.get("reduce", ()), clauses.get("scan", ()), found)


def _clause(cursor: Cursor, word: str, again: bool) -> tuple[Ident, ...]:
    """The buffers of `reduce(a, b)`, or of `scan`."""
    if again:
        help = f"name all buffers in one `{word}(a, b)`"
        cursor.refuse("E0112", cursor.span, f"this loop has a `{word}` already", help=help)
    cursor.advance()
    opened = cursor.expect("(", f"after `{word}`")
    if cursor.kind == ")":
        cursor.expected("the name of a buffer")
    return cursor.separated(")", opened, f"`{word}`", lambda c: c.ident("the name of a buffer"))


def _static_for(cursor: Cursor) -> StaticFor:
    start = cursor.advance()
    cursor.expect_word("for", "after `static`")
    index = cursor.ident("the name of the index")
    cursor.expect_word("in", "after the index")
    lo = expression(cursor)
    cursor.expect("..", "between the bounds")
    hi = expression(cursor)
    body = block(cursor, "`static for`")
    return StaticFor(index, lo, hi, body, cursor.since(start))


def type_exp(cursor: Cursor, barriers: bool = False) -> TypeExp:
    """`f32` or `f32[shape]`; of `barriers` also `mbarrier(32)[shape]`, with the parenthesis on the line of its name."""
    start = cursor.at
    dtype = cursor.ident("a type")
    shape: tuple[Exp, ...] = ()
    arrivals: Exp | None = None
    if barriers and dtype.name == BARRIER and cursor.kind == "(" and not cursor.starts_line():
        opened = cursor.advance()
        arrivals = expression(cursor)
        cursor.close(")", opened, "the arrivals of a phase")
    if cursor.kind == "[":
        opened = cursor.advance()
        shape = cursor.separated("]", opened, "the shape", expression)
    return TypeExp(dtype, shape, span=cursor.since(start), arrivals=arrivals)


def strides(cursor: Cursor) -> tuple[Exp, ...]:
    """`stride(lda, 1)`."""
    cursor.advance()
    opened = cursor.expect("(", "after `stride`")
    return cursor.separated(")", opened, "`stride`", expression)


def _new(cursor: Cursor) -> New:
    start = cursor.advance()
    name = cursor.ident("the name of the buffer")
    cursor.expect(":", "and a type after the name", help="write `new v: f32[n]`")
    kind = type_exp(cursor, barriers=True)
    stride = strides(cursor) if cursor.word("stride") and cursor.peek() == "(" and not cursor.starts_line() else None
    value = expression(cursor) if cursor.accept("=") else None
    return New(name, kind, value, cursor.since(start), stride)


def _reg(cursor: Cursor) -> Reg:
    start = cursor.advance()
    name = cursor.ident("the name of the registers")
    kind = type_exp(cursor) if cursor.accept(":") else None
    if kind is None and not cursor.sees("="):
        cursor.expected("`:` and a type, or `=` and a value", help="write `reg a: f16[8]`")
    value = expression(cursor) if cursor.accept("=") else None
    return Reg(name, kind, value, cursor.since(start))


def _asm(cursor: Cursor) -> Asm:
    start = cursor.advance()
    opened = cursor.advance()
    template = string(cursor)
    operands: tuple[Exp, ...] = ()
    if cursor.accept(","):
        operands = cursor.separated(")", opened, "the operands", expression)
    else:
        cursor.close(")", opened, "the operands")
    return Asm(template, operands, cursor.since(start))


def _let(cursor: Cursor) -> Let:
    start = cursor.advance()
    if cursor.kind == "(":
        opened = cursor.advance()
        names = cursor.separated(")", opened, "the names", lambda c: c.ident("a name"))
        if len(names) < 2:
            cursor.refuse("E0102", cursor.since(opened), "a tuple has two names or more", help="leave the parentheses out")
    else:
        names = (cursor.ident("a name"),)
    if cursor.kind == ":":
        help = "a `let` takes the type of its value; for memory write `new x: T = e`"
        cursor.refuse("E0102", cursor.span, "expected `=` after the name, found `:`", help=help)
    cursor.expect("=", "after the name")
    value = expression(cursor)
    return Let(names, value, cursor.since(start))


def _if(cursor: Cursor) -> If:
    """An `if` with its `else if`s, parsed by a loop: a long chain does not recur."""
    first = cursor.at
    arms: list[tuple[int, Exp, tuple[Statement, ...]]] = []
    orelse: tuple[Statement, ...] = ()
    while True:
        start = cursor.advance()
        condition = expression(cursor)
        arms.append((start, condition, block(cursor, "`if`")))
        if not cursor.accept("else"):
            break
        if cursor.kind != "if":
            orelse = block(cursor, "`else`")
            break
        if cursor.depth + len(arms) > 40:
            cursor.too_deep()
    for start, condition, then in reversed(arms[1:]):
        orelse = (If(condition, then, orelse, cursor.since(start)),)
    return If(arms[0][1], arms[0][2], orelse, cursor.since(first))


def _anchor(cursor: Cursor) -> Anchor | Instruct:
    start = cursor.advance()
    if cursor.kind == "instr":
        return _instruct(cursor, start, anchored=True)
    value = expression(cursor)
    return Anchor(value, cursor.since(start))


def _instruct(cursor: Cursor, start: int, anchored: bool) -> Instruct:
    cursor.advance()
    name = cursor.ident("the name of the instruction")
    opened = cursor.expect("(", "after the name of the instruction")
    operands = cursor.separated(")", opened, "the operands", expression)
    body = block(cursor, "the instruction")
    return Instruct(name, operands, body, anchored, cursor.since(start))


def _return(cursor: Cursor) -> Return:
    start = cursor.advance()
    value = expression(cursor)
    values = value.items if isinstance(value, Tuple) else (value,)
    if cursor.accept(","):
        values = (value, *_listed(cursor, expression))
    node = Return(values, cursor.since(start))
    if cursor.kind not in ("}", "end"):
        cursor.refuse("E0113", cursor.span, "nothing may follow `return`", help="a function returns at its end only")
    return node


def _bind_or_call(cursor: Cursor) -> Bind | CallStatement:
    start = cursor.at
    ahead = [cursor.peek(n) for n in (1, 2, 3)]
    if cursor.text == "for" and ahead[:2] == ["(", "name"] and ahead[2] in ("name", "="):  # as in C
        cursor.expected("a statement", help=meant(cursor.text, ()))
    target = expression(cursor)
    if isinstance(target, Name) and cursor.kind in ("name", "number") and cursor.peek() != "=":  # that would be an update
        help = meant(target.name, STATEMENTS)
        if help is not None:
            cursor.refuse("E0102", target.span, f"expected a statement, found `{target.name}`", help=help)
    if isinstance(target, Call) and not cursor.sees("=", *_UPDATES):
        return CallStatement(target, cursor.since(start))
    targets = target.items if isinstance(target, Tuple) else (target,)
    op = _update(cursor, target)
    for one in targets:
        if not isinstance(one, Name | Subscript):
            help = "write to a name or an element, `v[i] = …`"
            cursor.refuse("E0109", one.span, "this cannot be written to", help=help)
    value = expression(cursor)
    values = value.items if isinstance(value, Tuple) else (value,)
    return Bind(targets, op, values, cursor.since(start))


def _update(cursor: Cursor, target: Exp) -> Ident | None:
    """`=`, `+=`, `max =`, …: the operator, None for a plain bind."""
    span, text = cursor.span, cursor.text
    if cursor.accept("="):
        return None
    if cursor.kind in _UPDATES:
        cursor.advance()
        return Ident(text[0], span)
    if cursor.kind in _NO_UPDATES:
        help = _NO_UPDATES[cursor.kind]
        cursor.refuse("E0114", span, f"there is no update `{text}`", help=help)
    if (cursor.kind == "name" or cursor.kind in ("and", "or")) and cursor.peek() == "=":
        cursor.advance()
        cursor.advance()
        return Ident(text, span)
    if isinstance(target, Name | Subscript | Tuple) and cursor.kind not in ("==", "bad"):
        cursor.expected("`=` or an update such as `+=`", help="an expression alone does nothing; `anchor e` evaluates it")
    cursor.expected("`=` or an update such as `+=`")
