"""The surface tree: a `.te` file as it is written, one node a construct, each with its span.

Grammar (the concrete syntax is `tests/frontend/grammar.lark`):

    file      = (fn | combine | instr | schedule)*
    exp       = Number | Constant | Name | Unary | Binary | Call | Subscript | Tuple
    statement = Loop | StaticFor | New | Reg | Let | Bind | If | Anchor | CallStatement | Asm | Instruct | Return

Two trees are equal if they were written the same way up to layout, comments and redundant parentheses: spans never count.
Names are not resolved here, and nothing is typed.
"""

from __future__ import annotations

from typing import TypeAlias

from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Ident(Record):
    """A name where it is written."""

    name: str
    span: Span = NOWHERE


# Expressions.


class Number(Record):
    """A number as written: `int` without a point or exponent, else `float`."""

    value: int | float
    span: Span = NOWHERE


class Constant(Record):
    """One of the words `inf`, `nan`, `true`, `false`."""

    name: str
    span: Span = NOWHERE


class Name(Record):
    """A name used."""

    name: str
    span: Span = NOWHERE


class Unary(Record):
    """`-arg` or `not arg`."""

    op: str
    arg: Exp
    span: Span = NOWHERE


class Binary(Record):
    """`left op right`; `op` one of or and == != < <= > >= + - * / % **."""

    op: str
    left: Exp
    right: Exp
    span: Span = NOWHERE


class Call(Record):
    """`name(args, key=value)`: a function, an operation, a conversion `f32(x)`, or a view `transpose(A)`."""

    name: Ident
    args: tuple[Exp, ...]
    keys: tuple[tuple[Ident, Exp], ...] = ()
    span: Span = NOWHERE


class Slice(Record):
    """`lo : hi` or `lo : +length` inside an index; each part may be missing, but `hi` and `length` exclude each other."""

    lo: Exp | None
    hi: Exp | None
    length: Exp | None
    span: Span = NOWHERE


class Subscript(Record):
    """`base[items]`: an element, or with slices a view."""

    base: Exp
    items: tuple[Exp | Slice, ...]
    span: Span = NOWHERE


class Tuple(Record):
    """`(a, b, …)`, two or more."""

    items: tuple[Exp, ...]
    span: Span = NOWHERE


Exp: TypeAlias = Number | Constant | Name | Unary | Binary | Call | Subscript | Tuple


def parts(e: Exp | Slice) -> tuple[Exp | Slice, ...]:
    """The operands of `e`, in textual order."""
    match e:
        case Number() | Constant() | Name():
            return ()
        case Unary():
            return (e.arg,)
        case Binary():
            return (e.left, e.right)
        case Call():
            return (*e.args, *(value for _, value in e.keys))
        case Slice():
            return tuple(part for part in (e.lo, e.hi, e.length) if part is not None)
        case Subscript():
            return (e.base, *e.items)
        case Tuple():
            return e.items


def names_in(e: Exp) -> tuple[Ident, ...]:
    """The names used in an expression (those of functions aside), each once, in textual order."""
    found: dict[str, Ident] = {}
    stack: list[Exp | Slice] = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            found.setdefault(node.name, Ident(node.name, node.span))
        stack.extend(reversed(parts(node)))
    return tuple(found.values())


# Directives, uninterpreted: their names and arguments are not checked here.


class Word(Record):
    """A bare value of a directive: `shared`, `grid.y`, `128B`, `1 warp`; words are joined by one space."""

    text: str
    span: Span = NOWHERE


class Text(Record):
    """A quoted string."""

    value: str
    span: Span = NOWHERE


class Group(Record):
    """`(args)` as a value of a directive."""

    args: tuple[Argument, ...]
    span: Span = NOWHERE


DirectiveValue: TypeAlias = Number | Word | Text | Group | Unary | Binary | Call
"""An expression here has an operator or a call at its root: a single name is a word."""


class Argument(Record):
    """`value` or `key=value` (in a group also `key: value`)."""

    key: str | None
    value: DirectiveValue
    span: Span = NOWHERE


class Directive(Record):
    """`name(args) -> results` of a schedule, or a pragma `#name(args)`, which has no results."""

    name: Ident
    args: tuple[Argument, ...] = ()
    results: tuple[Ident, ...] = ()
    span: Span = NOWHERE


# Statements.


class TypeExp(Record):
    """`f32` or `f32[shape]`; of a result also `f32[shape] align(16)`; of barriers `mbarrier(arrivals)[shape]`."""

    dtype: Ident
    shape: tuple[Exp, ...] = ()
    align: Number | None = None
    span: Span = NOWHERE
    arrivals: Exp | None = None


class Loop(Record):
    """`par extent |index| 'label reduce(…) scan(…) #pragma {body}`, `kind` one of "par", "seq"; `fully` only on par."""

    kind: str
    extent: Exp
    index: Ident
    body: tuple[Statement, ...]
    fully: bool = False
    label: str | None = None
    reduce: tuple[Ident, ...] = ()
    pragmas: tuple[Directive, ...] = ()
    span: Span = NOWHERE
    scan: tuple[Ident, ...] = ()


class StaticFor(Record):
    """`static for index in lo..hi {body}`: unrolled before all else."""

    index: Ident
    lo: Exp
    hi: Exp
    body: tuple[Statement, ...]
    span: Span = NOWHERE


class New(Record):
    """`new name: type = value`; `stride`: of `stride(8 * ((n + 7) / 8), 1)` behind the type."""

    name: Ident
    type: TypeExp
    value: Exp | None = None
    span: Span = NOWHERE
    stride: tuple[Exp, ...] | None = None


class Reg(Record):
    """`reg name: type = value`: what a lane of a `fully par` has in registers. Of type and value one may be missing."""

    name: Ident
    type: TypeExp | None = None
    value: Exp | None = None
    span: Span = NOWHERE


class Let(Record):
    """`let name = value` or `let (a, b) = call`."""

    names: tuple[Ident, ...]
    value: Exp
    span: Span = NOWHERE


class Bind(Record):
    """`targets op= values`; `op` is None for a plain bind, else + - * and or, or a name (max, min, a combiner)."""

    targets: tuple[Exp, ...]
    op: Ident | None
    values: tuple[Exp, ...]
    span: Span = NOWHERE


class If(Record):
    """`if condition {then} else {orelse}`; `else if` is an `If` alone in `orelse`."""

    condition: Exp
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    span: Span = NOWHERE


class Anchor(Record):
    """`anchor value`."""

    value: Exp
    span: Span = NOWHERE


class CallStatement(Record):
    """A call for its effect on `inout` arguments."""

    call: Call
    span: Span = NOWHERE


class Asm(Record):
    """`asm("template", operands)`: the instruction that has this template, on operands in the order of its own."""

    template: str
    operands: tuple[Exp, ...]
    span: Span = NOWHERE


class Instruct(Record):
    """`instr name(operands) {body}`: a use of an instruction with its meaning written out (how programs are printed)."""

    name: Ident
    operands: tuple[Exp, ...]
    body: tuple[Statement, ...]
    anchored: bool = False
    span: Span = NOWHERE


class Return(Record):
    """`return values`, the last statement of a body."""

    values: tuple[Exp, ...]
    span: Span = NOWHERE


Statement: TypeAlias = Loop | StaticFor | New | Reg | Let | Bind | If | Anchor | CallStatement | Asm | Instruct | Return


# Items.


class Param(Record):
    """`A: bf16[M, K] stride(lda, 1) align(16)`, with `inout` before it if it is also written."""

    name: Ident
    type: TypeExp
    inout: bool = False
    stride: tuple[Exp, ...] | None = None
    align: Number | None = None
    span: Span = NOWHERE


class ConstParam(Record):
    """`const name: type = default`: fixed at build."""

    name: Ident
    dtype: Ident
    default: Exp | None = None
    span: Span = NOWHERE


class AssumeRange(Record):
    """`assume name in lo..hi`."""

    name: Ident
    lo: Exp
    hi: Exp
    span: Span = NOWHERE


class AssumeInjective(Record):
    """`assume injective(name)`."""

    name: Ident
    span: Span = NOWHERE


class AssumeMonotone(Record):
    """`assume monotone(name)`."""

    name: Ident
    span: Span = NOWHERE


Assume: TypeAlias = AssumeRange | AssumeInjective | AssumeMonotone


class Fn(Record):
    """`fn name(params): results where … assume … #pragma {body}`."""

    name: Ident
    params: tuple[Param | ConstParam, ...]
    results: tuple[TypeExp, ...]
    body: tuple[Statement, ...]
    where: tuple[Exp, ...] = ()
    assumes: tuple[Assume, ...] = ()
    pragmas: tuple[Directive, ...] = ()
    span: Span = NOWHERE


class Combine(Record):
    """`combine name(a: T, b: T): T identity e {body}`."""

    name: Ident
    params: tuple[Param | ConstParam, ...]
    result: TypeExp
    identity: Exp
    body: tuple[Statement, ...]
    span: Span = NOWHERE


class Instr(Record):
    """`instr name(params) { fragment a: layout; asm "target": "template"; rounding text; effect text; meaning {body} }`.

    Layouts, roundings and effects are kept as text, runs of white space made one space: `isa` and `ir.instr` parse them.
    """

    name: Ident
    params: tuple[Param | ConstParam, ...]
    meaning: tuple[Statement, ...]
    fragments: tuple[tuple[Ident, str], ...] = ()
    asm: tuple[tuple[str, str], ...] = ()
    effects: tuple[str, ...] = ()
    roundings: tuple[Ident, ...] = ()
    span: Span = NOWHERE


class Schedule(Record):
    """`schedule function "name" for target {directives}`."""

    function: Ident
    name: str | None
    target: Ident | None
    directives: tuple[Directive, ...]
    span: Span = NOWHERE


Item: TypeAlias = Fn | Combine | Instr | Schedule


class Tree(Record):
    """A file: its items in the order written."""

    items: tuple[Item, ...]
