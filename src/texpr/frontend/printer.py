"""A surface tree as text that parses back to an equal tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from texpr.frontend.tree import (
    Anchor,
    Argument,
    Asm,
    Assume,
    AssumeInjective,
    AssumeMonotone,
    AssumeRange,
    Binary,
    Bind,
    Call,
    CallStatement,
    Combine,
    Constant,
    ConstParam,
    Directive,
    DirectiveValue,
    Exp,
    Fn,
    Group,
    Ident,
    If,
    Instr,
    Instruct,
    Item,
    Let,
    Loop,
    Name,
    New,
    Number,
    Param,
    Reg,
    Return,
    Schedule,
    Slice,
    Statement,
    StaticFor,
    Subscript,
    Text,
    Tree,
    Tuple,
    TypeExp,
    Unary,
    Word,
)

INDENT = "    "
_ATOM = 9
_POWER = 8
_MINUS = 7
_NOT = 3
# The precedence of an operator, and the least precedence of its left and right operand without parentheses.
_STRENGTH = {
    "or": (1, 1, 2),
    "and": (2, 2, 3),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), (4, 5, 5)),
    "+": (5, 5, 6),
    "-": (5, 5, 6),
    "*": (6, 6, 7),
    "/": (6, 6, 7),
    "%": (6, 6, 7),
    "**": (_POWER, _ATOM, _MINUS),
}


def print_tree(tree: Tree) -> str:
    """The whole file."""
    return "\n\n".join("\n".join(_item(item)) for item in tree.items) + ("\n" if tree.items else "")


def print_expression(e: Exp | Slice) -> str:
    """An expression with minimal parentheses."""
    return _exp(e)[0]


def _exp(e: Exp | Slice) -> tuple[str, int]:
    """The text and its precedence."""
    match e:
        case Number(value):
            return number_text(value), _ATOM
        case Constant(name) | Name(name):
            return name, _ATOM
        case Unary("not", arg):
            return f"not {_least(arg, _NOT)}", _NOT
        case Unary(op, arg):
            return f"{op}{_after_minus(_least(arg, _MINUS))}", _MINUS
        case Binary(op, left, right):
            own, on_left, on_right = _STRENGTH[op]
            return f"{_least(left, on_left)} {op} {_least(right, on_right)}", own
        case Call(name, args, keys):
            parts = [*map(print_expression, args), *(f"{k.name}={print_expression(v)}" for k, v in keys)]
            return f"{name.name}({', '.join(parts)})", _ATOM
        case Subscript(base, items):
            return f"{_least(base, _ATOM)}[{_commas(items)}]", _ATOM
        case Tuple(items):
            return f"({_commas(items)})", _ATOM
        case Slice(lo, hi, length):
            before = "" if lo is None else f"{print_expression(lo)} "
            if length is not None:
                return f"{before}: +{print_expression(length)}", 0
            return f"{before}: {print_expression(hi)}" if hi is not None else f"{before}:", 0
        case _:
            assert_never(e)


def _least(e: Exp, strength: int) -> str:
    text, own = _exp(e)
    return text if own >= strength else f"({text})"


def _after_minus(text: str) -> str:
    """Separates two minus signs in a row, which would start a comment."""
    return f" {text}" if text.startswith("-") else text


def _commas(items: Iterable[Exp | Slice]) -> str:
    return ", ".join(map(print_expression, items))


def number_text(value: int | float) -> str:
    """A number in a form that parses to itself; a float has a point or an exponent."""
    return str(value) if isinstance(value, int) else repr(value)


def _string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _type(e: TypeExp) -> str:
    arrivals = f"({print_expression(e.arrivals)})" if e.arrivals is not None else ""
    return e.dtype.name + arrivals + (f"[{_commas(e.shape)}]" if e.shape else "") + _align(e.align)


def _align(align: Number | None) -> str:
    return "" if align is None else f" align({align.value})"


def _directive(directive: Directive) -> str:
    text = directive.name.name
    text += f"({_arguments(directive.args, '=')})"
    if len(directive.results) == 1:
        text += f" -> {directive.results[0].name}"
    elif directive.results:
        text += f" -> ({_names(directive.results)})"
    return text


def _pragma(pragma: Directive) -> str:
    return f"#{pragma.name.name}" + (f"({_arguments(pragma.args, '=')})" if pragma.args else "")


def _arguments(args: Iterable[Argument], separator: str) -> str:
    return ", ".join((f"{a.key}{separator}" if a.key is not None else "") + _argument(a.value) for a in args)


def _argument(value: DirectiveValue) -> str:
    match value:
        case Number():
            return number_text(value.value)
        case Word():
            return value.text
        case Text():
            return _string(value.value)
        case Group():
            return f"({_arguments(value.args, ': ')})"
        case Unary() | Binary() | Call():
            return print_expression(value)
        case _:
            assert_never(value)


def _names(names: Iterable[Ident]) -> str:
    return ", ".join(n.name for n in names)


def _block(head: str, body: Sequence[Statement]) -> Iterator[str]:
    yield f"{head} {{".lstrip()
    for statement in body:
        yield from (INDENT + line for line in _statement(statement))
    yield "}"


def _statement(s: Statement) -> Iterator[str]:
    match s:
        case Loop():
            yield from _block(_loop_head(s), s.body)
        case StaticFor():
            head = f"static for {s.index.name} in {print_expression(s.lo)} .. {print_expression(s.hi)}"
            yield from _block(head, s.body)
        case New():
            value = f" = {print_expression(s.value)}" if s.value is not None else ""
            stride = f" stride({_commas(s.stride)})" if s.stride is not None else ""
            yield f"new {s.name.name}: {_type(s.type)}{stride}{value}"
        case Reg():
            kind = f": {_type(s.type)}" if s.type is not None else ""
            value = f" = {print_expression(s.value)}" if s.value is not None else ""
            yield f"reg {s.name.name}{kind}{value}"
        case Let():
            names = s.names[0].name if len(s.names) == 1 else f"({_names(s.names)})"
            yield f"let {names} = {print_expression(s.value)}"
        case Bind():
            yield f"{_several(s.targets)} {'' if s.op is None else s.op.name}= {_several(s.values)}"
        case If():
            yield from _if(s)
        case Anchor():
            yield f"anchor {print_expression(s.value)}"
        case CallStatement():
            yield print_expression(s.call)
        case Asm():
            yield f"asm({', '.join((_string(s.template), *map(print_expression, s.operands)))})"
        case Instruct():
            anchor = "anchor " if s.anchored else ""
            yield from _block(f"{anchor}instr {s.name.name}({_commas(s.operands)})", s.body)
        case Return():
            yield f"return {_several(s.values)}"
        case _:
            assert_never(s)


def _several(items: Sequence[Exp]) -> str:
    return print_expression(items[0]) if len(items) == 1 else f"({_commas(items)})"


def _loop_head(s: Loop) -> str:
    parts = ["fully " * s.fully + s.kind, print_expression(s.extent), f"|{s.index.name}|"]
    if s.label is not None:
        parts.append(f"'{s.label}")
    if s.reduce:
        parts.append(f"reduce({_names(s.reduce)})")
    if s.scan:
        parts.append(f"scan({_names(s.scan)})")
    return " ".join((*parts, *map(_pragma, s.pragmas)))


def _if(s: If) -> Iterator[str]:
    """An `if` with its `else if`s, without nesting."""
    lines = list(_block(f"if {print_expression(s.condition)}", s.then))
    while len(s.orelse) == 1 and isinstance(s.orelse[0], If):
        s = s.orelse[0]
        lines[-1:] = _block(f"}} else if {print_expression(s.condition)}", s.then)
    if s.orelse:
        lines[-1:] = _block("} else", s.orelse)
    yield from lines


def _item(item: Item) -> Iterator[str]:
    match item:
        case Fn():
            yield from _fn(item)
        case Combine():
            head = f"combine {item.name.name}({_params(item.params)}): {_type(item.result)}"
            yield from _block(f"{head} identity {print_expression(item.identity)}", item.body)
        case Instr():
            yield from _instr(item)
        case Schedule():
            name = f" {_string(item.name)}" if item.name is not None else ""
            target = f" for {item.target.name}" if item.target is not None else ""
            yield f"schedule {item.function.name}{name}{target} {{"
            yield from (INDENT + _directive(d) for d in item.directives)
            yield "}"
        case _:
            assert_never(item)


def _fn(item: Fn) -> Iterator[str]:
    head = f"fn {item.name.name}({_params(item.params)})"
    if item.results:
        types = ", ".join(map(_type, item.results))
        head += f": {types}" if len(item.results) == 1 else f": ({types})"
    clauses = [*(f"where {print_expression(e)}" for e in item.where), *map(_assume, item.assumes), *map(_pragma, item.pragmas)]
    if not clauses:
        yield from _block(head, item.body)
        return
    yield head
    yield from (INDENT + clause for clause in clauses)
    yield from _block("", item.body)


def _assume(clause: Assume) -> str:
    match clause:
        case AssumeRange(name, lo, hi):
            return f"assume {name.name} in {print_expression(lo)} .. {print_expression(hi)}"
        case AssumeInjective(name):
            return f"assume injective({name.name})"
        case AssumeMonotone(name):
            return f"assume monotone({name.name})"


def _params(params: Iterable[Param | ConstParam]) -> str:
    return ", ".join(map(_param, params))


def _param(param: Param | ConstParam) -> str:
    match param:
        case ConstParam(name, dtype, default):
            return f"const {name.name}: {dtype.name}" + (f" = {print_expression(default)}" if default is not None else "")
        case Param():
            text = "inout " * param.inout + f"{param.name.name}: {_type(param.type)}"
            if param.stride is not None:
                text += f" stride({_commas(param.stride)})"
            return text + _align(param.align)


def _instr(item: Instr) -> Iterator[str]:
    yield f"instr {item.name.name}({_params(item.params)}) {{"
    for operand, layout in item.fragments:
        yield f"{INDENT}fragment {operand.name}: {layout};"
    for target, template in item.asm:
        yield f"{INDENT}asm {_string(target)}: {_string(template)};"
    for rounding in item.roundings:
        yield f"{INDENT}rounding {rounding.name};"
    for effect in item.effects:
        yield f"{INDENT}effect {effect};"
    if item.meaning:
        yield from (INDENT + line for line in _block("meaning", item.meaning))
    yield "}"
