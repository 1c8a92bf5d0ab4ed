"""Items of a file: `fn`, `combine`, `instr`, `schedule`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.frontend.parser.cursor import MAX_ERRORS, Cursor, Refused
from texpr.frontend.parser.directives import directive, pragmas, string
from texpr.frontend.parser.expressions import expression, number
from texpr.frontend.parser.statements import ITEM_WORDS, block, strides, type_exp
from texpr.frontend.parser.words import CLAUSES, ITEMS, meant
from texpr.frontend.tree import (
    Assume,
    AssumeInjective,
    AssumeMonotone,
    AssumeRange,
    Combine,
    ConstParam,
    Directive,
    Exp,
    Fn,
    Ident,
    Instr,
    Item,
    Number,
    Param,
    Schedule,
    Statement,
    TypeExp,
)
from texpr.support.span import Span

_PROPERTIES: Mapping[str, Callable[[Ident, Span], Assume]] = {"injective": AssumeInjective, "monotone": AssumeMonotone}
"""The properties that `assume` may state of a whole parameter."""
_CLAUSE_STARTS = ("name", "int", "float", "inf", "nan", "true", "false", "(", "not")


def parse_items(cursor: Cursor) -> tuple[Item, ...]:
    """Every item up to the end; after an erroneous one, recovers at the next."""
    items: list[Item] = []
    while cursor.kind != "end":
        start = cursor.at
        try:
            items.append(_item(cursor))
        except Refused:
            if len(cursor.diagnostics) >= MAX_ERRORS:
                break
            cursor.depth = 0
            if cursor.at == start:
                cursor.advance()
            while cursor.kind != "end" and not (cursor.kind in (*ITEM_WORDS, "instr") and cursor.starts_line()):
                cursor.advance()
    return tuple(items)


def _item(cursor: Cursor) -> Item:
    match cursor.kind:
        case "fn":
            return _fn(cursor)
        case "combine":
            return _combine(cursor)
        case "instr":
            return _instr(cursor)
        case "schedule":
            return _schedule(cursor)
        case "par" | "seq" | "new" | "let" | "fully" | "static" | "if":
            help = "write `fn name(parameters) { … }` around it"
            message = f"expected a function, found {cursor.found()}: statements stand inside a `fn`"
            cursor.refuse("E0102", cursor.span, message, help=help)
        case _:
            cursor.expected("`fn`, `combine`, `instr` or `schedule`", help=meant(cursor.text, ITEMS))


def _fn(cursor: Cursor) -> Fn:
    start = cursor.advance()
    name = cursor.ident("the name of the function")
    params = _params(cursor)
    results = _results(cursor) if cursor.accept(":") else ()
    where: list[Exp] = []
    assumes: list[Assume] = []
    found: tuple[Directive, ...] = ()
    while cursor.kind in ("where", "assume", "#"):
        if cursor.kind == "#":
            found += pragmas(cursor)
        elif cursor.accept("where"):
            _clauses(cursor, lambda: where.append(expression(cursor)))
        else:
            cursor.advance()
            _clauses(cursor, lambda: assumes.append(_assume(cursor)))
    body = block(cursor, "the function", CLAUSES)
    return Fn(name, params, results, body, tuple(where), tuple(assumes), found, cursor.since(start))


def _clauses(cursor: Cursor, one: Callable[[], None]) -> None:
    """`one`, then further ones, after a comma or on a line of their own."""
    one()
    while cursor.accept(",") or cursor.kind in _CLAUSE_STARTS:
        if cursor.kind in ("where", "assume", "#", "{"):
            return
        one()


def _assume(cursor: Cursor) -> Assume:
    start = cursor.at
    if cursor.kind == "name" and cursor.text in _PROPERTIES and cursor.peek() == "(":
        word = cursor.text
        cursor.advance()
        opened = cursor.advance()
        name = cursor.ident("the name of a parameter")
        cursor.close(")", opened, f"`{word}`")
        return _PROPERTIES[word](name, cursor.since(start))
    name = cursor.ident("the name of a parameter, as in `assume I in 0..n`")
    cursor.expect_word("in", "and a range after the name")
    lo = expression(cursor)
    cursor.expect("..", "between the bounds")
    hi = expression(cursor)
    return AssumeRange(name, lo, hi, cursor.since(start))


def _params(cursor: Cursor) -> tuple[Param | ConstParam, ...]:
    opened = cursor.expect("(", "before the parameters")
    return cursor.separated(")", opened, "the parameters", _param)


def _param(cursor: Cursor) -> Param | ConstParam:
    start = cursor.at
    if cursor.accept("const"):
        name = cursor.ident("the name of the constant")
        cursor.expect(":", "and a type after the name")
        dtype = cursor.ident("a type")
        default = expression(cursor) if cursor.accept("=") else None
        return ConstParam(name, dtype, default, cursor.since(start))
    inout = cursor.accept("inout")
    name = cursor.ident("the name of a parameter")
    cursor.expect(":", "and a type after the parameter")
    kind = type_exp(cursor)
    stride: tuple[Exp, ...] | None = None
    align: Number | None = None
    while cursor.sees("name"):
        at = cursor.at
        if stride is None and cursor.word("stride"):
            stride = strides(cursor)
        elif align is None and cursor.word("align"):
            align = _align(cursor)
        elif cursor.text in ("stride", "align"):
            cursor.refuse("E0112", cursor.tokens.span(at), f"this parameter has `{cursor.text}` already")
        else:
            cursor.expected("`,`, `)`, `stride(…)` or `align(…)` after the type")
    return Param(name, kind, inout, stride, align, cursor.since(start))


def _align(cursor: Cursor) -> Number:
    """`align(16)`."""
    cursor.advance()
    opened = cursor.expect("(", "after `align`")
    if not cursor.sees("int"):
        cursor.expected("a number of bytes")
    found = number(cursor)
    cursor.close(")", opened, "`align`")
    return found


def _result(cursor: Cursor) -> TypeExp:
    """`f32[n]` or `f32[n] align(16)`."""
    start = cursor.at
    plain = type_exp(cursor)
    if not (cursor.word("align") and cursor.peek() == "("):
        return plain
    align = _align(cursor)
    return TypeExp(plain.dtype, plain.shape, align, cursor.since(start))


def _results(cursor: Cursor) -> tuple[TypeExp, ...]:
    if cursor.kind != "(":
        return (_result(cursor),)
    opened = cursor.advance()
    if cursor.sees(")"):
        cursor.expected("a type", help="leave `: ()` out where there is no result")
    return cursor.separated(")", opened, "the results", _result)


def _combine(cursor: Cursor) -> Combine:
    start = cursor.advance()
    name = cursor.ident("the name of the combiner")
    params = _params(cursor)
    cursor.expect(":", "and the type of the result")
    result = type_exp(cursor)
    cursor.expect_word("identity", "and a value, which changes nothing when combined")
    identity = expression(cursor)
    body = block(cursor, "the combiner")
    return Combine(name, params, result, identity, body, cursor.since(start))


def _instr(cursor: Cursor) -> Instr:
    start = cursor.advance()
    name = cursor.ident("the name of the instruction")
    params = _params(cursor)
    opened = cursor.expect("{", "before the parts of the instruction")
    fragments: list[tuple[Ident, str]] = []
    asm: list[tuple[str, str]] = []
    effects: list[str] = []
    roundings: list[Ident] = []
    meaning: tuple[Statement, ...] | None = None
    while cursor.kind == "name":
        at, word = cursor.span, cursor.text
        match word:
            case "fragment":
                cursor.advance()
                operand = cursor.ident("the name of an operand")
                cursor.expect(":", "and a layout after the operand")
                fragments.append((operand, _raw(cursor, at)))
            case "asm":
                cursor.advance()
                target = string(cursor)
                cursor.expect(":", "after the target")
                asm.append((target, string(cursor)))
                cursor.expect(";", "after the template")
            case "effect":
                cursor.advance()
                effects.append(_raw(cursor, at))
            case "rounding":
                cursor.advance()
                said = _raw(cursor, at)
                roundings.append(Ident(said, at))
            case "meaning" if meaning is None:
                cursor.advance()
                meaning = block(cursor, "the meaning")
            case "meaning":
                cursor.refuse("E0112", at, "this instruction has a meaning already")
            case _:
                cursor.expected("`fragment`, `asm`, `rounding`, `effect` or `meaning`")
    cursor.close("}", opened, "the instruction")
    span = cursor.since(start)
    return Instr(name, params, meaning or (), tuple(fragments), tuple(asm), tuple(effects), tuple(roundings), span)


def _raw(cursor: Cursor, what: Span) -> str:
    """Text up to `;`, which is consumed; runs of white space become one space, comments are dropped."""
    words: list[str] = []
    last = -1
    while cursor.kind not in (";", "end", "{", "}"):
        at = cursor.advance()
        gap = last >= 0 and cursor.tokens.ends[last] < cursor.tokens.starts[at]
        words.append((" " if gap else "") + cursor.tokens.texts[at])
        last = at
    if not words:
        cursor.expected("text that ends in `;`")
    if not cursor.accept(";"):
        cursor.expected("`;` at its end", help=None)
    return "".join(words)


def _schedule(cursor: Cursor) -> Schedule:
    start = cursor.advance()
    function = cursor.ident("the name of the function it is for")
    name = string(cursor) if cursor.kind == "string" else None
    target: Ident | None = None
    if cursor.word("for"):
        cursor.advance()
        target = cursor.ident("the name of a target, such as `sm_90a`")
    opened = cursor.expect("{", "before the directives")
    directives: list[Directive] = []
    while cursor.sees("name"):
        try:
            directives.append(directive(cursor))
        except Refused:
            if len(cursor.diagnostics) >= MAX_ERRORS:
                raise
            cursor.depth = 0
            while not cursor.sees("}", "end") and not (cursor.sees("name", *ITEM_WORDS) and cursor.starts_line()):
                cursor.advance()
    cursor.close("}", opened, "the schedule")
    return Schedule(function, name, target, tuple(directives), cursor.since(start))
