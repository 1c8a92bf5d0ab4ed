"""The program form as text: core language that elaborates to an equal program.

Every value is written so that elaboration restores its type: a number beside a typed operand is bare, another is converted
(`i32(3)`). An operation that the frontend would fold or take as index arithmetic is written as a call (`add(a, b)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, children, expr
from texpr.ir.instr import COLUMNS, DESCRIBED, SHARED, Instr, Operand, Step, Turn, gives
from texpr.ir.program import (
    BARRIER,
    Anchor,
    Argument,
    ArgumentValue,
    Assume,
    Bind,
    Combiner,
    Directive,
    Function,
    Group,
    If,
    Injective,
    InRange,
    Instruction,
    Let,
    Monotone,
    New,
    Par,
    Pragma,
    Program,
    Schedule,
    Seq,
    Stmt,
    walk,
)
from texpr.ir.program.marks import IEEE
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BOOL, I64
from texpr.isa.instructions.tcgen05 import PAIR

Names = Mapping[Sym, str]
Order = Mapping[Sym, int]

_INDENT = "    "
_NO_NAMES: Names = {}
_NAME = r"[A-Za-z_]\w*('\d+)*"
_PIECE = rf"{_NAME}(\.{_NAME})*"
# Words of arguments: `grid.y`, `1 warp`, `128B` (but not `1e5`, `0x10`, which are numbers).
_WORDS = re.compile(rf"({_PIECE}|\d+ {_PIECE}|\d+[A-DF-WYZa-df-wyz_]\w*)( ({_PIECE}|\d+))*", re.ASCII)
_ATOM, _MINUS, _PRODUCT, _SUM, _NOT = 9, 7, 6, 5, 3
# Each operator with its precedence, and the least precedence of each operand without parentheses.
_INFIX = {
    "or": ("or", 1, 1, 2),
    "and": ("and", 2, 2, 3),
    **{name: (op, 4, 5, 5) for name, op in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
    "add": ("+", 5, 5, 6),
    "sub": ("-", 5, 5, 6),
    "mul": ("*", 6, 6, 7),
    "div": ("/", 6, 6, 7),
    "mod": ("%", 6, 6, 7),
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_INDEX_OPS = ("add", "sub", "mul", "div", "mod", "neg", "min", "max", "abs")
_UPDATES = {"add": "+=", "sub": "-=", "mul": "*="}


def print_program(program: Program) -> str:
    """The text of a file: combiners and instructions, then functions in order, each with its schedules."""
    combiners = {id(c): c for f in program.functions for c in _combiners(f)}
    instrs = {i.name: i for i in (*program.instrs, *(i for f in program.functions for i in _instrs(f)))}
    items = [*map(_combiner, combiners.values()), *map(print_instr, instrs.values())]
    for function in program.functions:
        items += (print_function(function), *(print_schedule(schedule, function) for schedule in function.schedules))
    return "\n".join(items)


def print_function(function: Function) -> str:
    """The text of one function, without the combiners that it uses and without its schedules."""
    order = {sym: place for place, sym in enumerate(function.sizes)}
    params = [f"const {s}: i64" + (f" = {d}" if d is not None else "") for s, d in function.consts]
    params += (_param(buffer, order) for buffer in function.params)
    head = f"fn {function.name}({', '.join(params)})"
    if function.results:
        types = ", ".join(map(_result, function.results))
        head += f": {types}" if len(function.results) == 1 else f": ({types})"
    clauses = [
        *(f"where {_exact(w.left)} {w.op} {_exact(w.right)}" for w in function.where),
        *map(_assume, function.assumes),
        *map(_directive, function.directives),
    ]
    lines = [head, *(_INDENT + c for c in clauses), "{"] if clauses else [f"{head} {{"]
    lets = {s.sym: s.sym.name for s in walk(function.body) if isinstance(s, Let)}
    lines += (_INDENT + line for line in _block(function.body, lets))
    if function.results:
        lines.append(f"{_INDENT}return {_several([b.name for b in function.results])}")
    return "\n".join((*lines, "}", ""))


def print_instr(instr: Instr) -> str:
    """An instruction that lanes do together."""
    params = (f"{'inout ' if o.is_written else ''}{o.name}: {_type(o.memory)}" for o in instr.operands)
    parts = [f"fragment {o.name}: {_where(o)}{o.fragment.layout};" for o in instr.operands]
    parts += [f"asm {_quoted(target)}: {_quoted(template)};" for target, template in instr.asm]
    parts += [f"rounding {instr.rounding.text};"] if instr.rounding is not None else []
    parts += [f"effect {instr.effect};"] if instr.effect else []
    meaning = (_INDENT + line for line in _block(map(_meant, instr.meaning), _NO_NAMES))
    lines = (_INDENT + line for line in (*parts, "meaning {", *meaning, "}"))
    return "\n".join((f"instr {instr.name}({', '.join(params)}) {{", *lines, "}", ""))


def _where(operand: Operand) -> str:
    """How a fragment begins that is of shared memory."""
    if operand.columns:
        return f"{COLUMNS} "
    if operand.is_described:
        return f"{DESCRIBED} " if operand.halved is None else f"{DESCRIBED} {PAIR}@{operand.halved} "
    return f"{SHARED} " if operand.is_address else ""


def _meant(step: Step) -> Stmt:
    """The statement of one step of an instruction's meaning, over its operands."""
    if isinstance(step, Turn):
        free = {load.buffer.name: load.buffer for give in gives(step.body) for load in (give.target,)}
        reduce = tuple(free[name] for name in step.free)
        return Seq(step.sym, expr(step.extent), tuple(map(_meant, step.body)), reduce, ieee=step.ieee)
    return Bind((step.target,), (step.value,), step.update)


def print_value(value: Value) -> str:
    """The text of a value that has its type in every context."""
    return _value(value, False, _NO_NAMES)[0]


def print_stmt(stmt: Stmt) -> str:
    """The text of one statement with its nested ones."""
    return "\n".join(_stmt(stmt, _NO_NAMES))


def _combiners(function: Function) -> Iterator[Combiner]:
    for stmt in walk(function.body):
        if isinstance(stmt, Bind) and isinstance(stmt.update, Combiner):
            yield stmt.update


def _instrs(function: Function) -> Iterator[Instr]:
    for stmt in walk(function.body):
        if isinstance(stmt, Instruction) and stmt.instr is not None:
            yield stmt.instr


def _combiner(combiner: Combiner) -> str:
    t = combiner.dtype
    head = f"combine {combiner.name}({combiner.a}: {t}, {combiner.b}: {t}): {t} identity {_met(combiner.identity)}"
    return f"{head} {{\n{_INDENT}return {_met(combiner.value)}\n}}\n"


def _type(buffer: Buffer, order: Order | None = None) -> str:
    return str(buffer.dtype) + (f"[{_exacts(buffer.shape, order)}]" if buffer.shape else "")


def _barriers(new: New) -> str:
    return f"{BARRIER}({new.arrivals})[{_exacts(new.buffer.shape)}]"


def _result(buffer: Buffer) -> str:
    """A result that is also a parameter has its alignment there."""
    return _type(buffer) + (_align(buffer) if buffer.role == "result" else "")


def _align(buffer: Buffer) -> str:
    return "" if buffer.align is None else f" align({buffer.align})"


def _param(buffer: Buffer, order: Order) -> str:
    text = f"{'inout ' if buffer.role == 'inout' else ''}{buffer.name}: {_type(buffer, order)}"
    if buffer.strides is not None:
        text += f" stride({_exacts(buffer.strides, order)})"
    return text + _align(buffer)


def _assume(assume: Assume) -> str:
    match assume:
        case InRange(buffer, lo, hi):
            return f"assume {buffer.name} in {_exact(lo)} .. {_exact(hi)}"
        case Injective(buffer):
            return f"assume injective({buffer.name})"
        case Monotone(buffer):
            return f"assume monotone({buffer.name})"


def print_schedule(schedule: Schedule, function: Function) -> str:
    """The text of one schedule of `function`. A word that is also the name of a size is quoted; bare, it would be the size."""
    sizes = frozenset(sym.name for sym in (*function.sizes, *(const for const, _ in function.consts)))
    name = f" {_quoted(schedule.name)}" if schedule.name is not None else ""
    target = f" for {schedule.target}" if schedule.target is not None else ""
    lines = [f"schedule {schedule.function}{name}{target} {{"]
    lines += (f"{_INDENT}{print_directive(directive, sizes)}" for directive in schedule.directives)
    return "\n".join((*lines, "}", ""))


def print_directive(directive: Directive, sizes: frozenset[str] = frozenset()) -> str:
    """The text of one directive; words in `sizes` are quoted."""
    results = ", ".join(directive.results)
    arrow = f" -> {results if len(directive.results) == 1 else f'({results})'}" if results else ""
    return f"{directive.name}({_arguments(directive.args, '=', sizes)}){arrow}"


def _directive(pragma: Pragma) -> str:
    args = pragma.args if isinstance(pragma, Directive) else tuple(map(Argument, pragma.words))
    return f"#{pragma.name}" + (f"({_arguments(args, '=', frozenset())})" if args else "")


def _arguments(args: Iterable[Argument], separator: str, sizes: Set[str]) -> str:
    return ", ".join((f"{a.key}{separator}" if a.key is not None else "") + _argument(a.value, sizes) for a in args)


def _argument(value: ArgumentValue, sizes: Set[str]) -> str:
    match value:
        case str():
            return value if _WORDS.fullmatch(value) and value not in (*sizes, "inf", "nan") else _quoted(value)
        case int():
            return str(value)
        case float():
            return repr(value)
        case Expr():
            return _exact(value)
        case Group(args):
            return f"({_arguments(args, ': ', sizes)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


# Statements.


def _block(body: Iterable[Stmt], names: Names) -> Iterator[str]:
    for stmt in body:
        yield from _stmt(stmt, names)


def _braced(head: str, body: Iterable[Stmt], names: Names) -> Iterator[str]:
    yield f"{head} {{"
    yield from (_INDENT + line for line in _block(body, names))
    yield "}"


def _stmt(stmt: Stmt, names: Names) -> Iterator[str]:
    match stmt:
        case Par() | Seq():
            yield from _braced(_loop_head(stmt), stmt.body, names)
        case New(buffer):
            strides = "" if buffer.strides is None else f" stride({_exacts(buffer.strides)})"  # only a schedule has such
            yield f"new {buffer.name}: {_type(buffer) if not stmt.arrivals else _barriers(stmt)}{strides}"
        case Let(sym, value):
            yield f"let {sym} = {_value(value, False, names)[0]}"
        case Bind():
            yield _bind(stmt, names)
        case If():
            *lines, last = _braced(f"if {_value(stmt.condition, False, names)[0]}", stmt.then, names)
            yield from lines
            if stmt.orelse:
                yield from _braced(f"{last} else", stmt.orelse, names)
            else:
                yield last
        case Anchor(value):
            yield f"anchor {_value(value, False, names)[0]}"
        case Instruction() if stmt.signal is not None:
            phase = () if stmt.signal.phase is None else (_exact(stmt.signal.phase),)
            yield f"{stmt.name}({', '.join((*(_load(o, names) for o in stmt.operands), *phase))})"
        case Instruction():
            operands = ", ".join(_load(o, names) for o in stmt.operands)
            yield from _braced(f"{'anchor ' if stmt.anchored else ''}instr {stmt.name}({operands})", stmt.body, names)
        case _:
            assert_never(stmt)


def _loop_head(loop: Par | Seq) -> str:
    kind = "seq" if isinstance(loop, Seq) else "fully par" if loop.fully else "par"
    parts = [kind, _exact(loop.extent), f"|{loop.sym}|"]
    if loop.label is not None:
        parts.append(f"'{loop.label}")
    if loop.reduce:
        parts.append(f"reduce({', '.join(b.name for b in loop.reduce)})" + f" #{IEEE}" * loop.ieee)
    if isinstance(loop, Seq) and loop.scan:
        parts.append(f"scan({', '.join(b.name for b in loop.scan)})")
    return " ".join((*parts, *map(_directive, loop.directives)))


def _bind(stmt: Bind, names: Names) -> str:
    update = stmt.update
    op = "=" if update is None else f"{update.name}=" if isinstance(update, Combiner) else _UPDATES.get(update, f"{update}=")
    targets = [_load(t, names) for t in stmt.targets]
    return f"{_several(targets)} {op} {_several([_met(v, names) for v in stmt.values])}"


def _several(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


# Values. `meets`: the context gives the value its type. `names`: the text for symbols of data and of `let`s.


def _met(value: Value, names: Names = _NO_NAMES) -> str:
    return _value(value, True, names)[0]


def _value(value: Value, meets: bool, names: Names) -> tuple[str, int]:
    """The text and its precedence."""
    match value:
        case Literal(number, dtype):
            if dtype == BOOL:
                return ("true" if number else "false"), _ATOM
            text = repr(number) if isinstance(number, float) else str(number)
            return (text, _MINUS if text.startswith("-") else _ATOM) if meets else (f"{dtype}({text})", _ATOM)
        case Index(exact, dtype):
            text = _index(exact, names)
            if not exact.syms().isdisjoint(names):
                # a `let` is a typed value, which `index` converts to an index expression
                text = f"index({text[0]})", _ATOM
            return text if meets and not exact.is_constant else (f"{dtype}({text[0]})", _ATOM)
        case Load():
            return _load(value, names), _ATOM
        case Ref(sym):
            return names.get(sym, sym.name), _ATOM
        case Cast(arg, dtype):
            bare = isinstance(arg, Index) and arg.dtype == I64 and not dtype.is_integer and not arg.expr.is_constant
            return f"{dtype}({_value(arg, bare, names)[0]})", _ATOM
        case Op():
            return _op(value, meets, names)
        case _:
            assert_never(value)


def _op(op: Op, meets: bool, names: Names) -> tuple[str, int]:
    name, args = op.name, op.args
    if name in _COMPARISONS and all(isinstance(a, Index) and a.dtype == I64 for a in args):
        left, right = (_least(_index(a.expr, names), _SUM) for a in args if isinstance(a, Index))
        return f"{left} {_INFIX[name][0]} {right}", _INFIX[name][1]
    bare = _bare(op, meets)
    texts = [_value(a, b, names) for a, b in zip(args, bare, strict=True)]
    if name == "neg":
        text = _least(texts[0], _MINUS)
        return f"-{' ' if text.startswith('-') else ''}{text}", _MINUS
    if name == "not":
        return f"not {_least(texts[0], _NOT)}", _NOT
    if name in _INFIX and not (name in _COMPARISONS and all(map(_is_exact, args))):
        symbol, own, left, right = _INFIX[name]
        return f"{_least(texts[0], left)} {symbol} {_least(texts[1], right)}", own
    return f"{name}({', '.join(t for t, _ in texts)})", _ATOM


def _bare(op: Op, meets: bool) -> list[bool]:
    """Which operands may be written without a type: all but one that has it, or all if the context gives the type."""
    args = op.args
    first = 1 if op.name == "select" else 0
    typed = next((k for k in range(first, len(args)) if _is_typed(args[k])), None)
    if typed is None:
        free = meets and _is_decimal(op)
        typed = len(args) if free else first
    return [k >= first and k != typed for k in range(len(args))]


def _is_typed(value: Value) -> bool:
    """Whether a value's text has its type in every context."""
    match value:
        case Literal():
            return value.dtype == BOOL
        case Index():
            return value.expr.is_constant
        case Load() | Ref() | Cast():
            return True
        case Op(name, args):
            return OPS[name].gives == "bool" or any(map(_is_typed, args[1:] if name == "select" else args))


def _is_decimal(value: Value) -> bool:
    """Whether a value consists of decimal numbers and operations on them, which have no type before a typed operand."""
    match value:
        case Literal():
            return value.dtype.is_float
        case Op(name, args):
            return OPS[name].gives == "same" and name != "neg" and all(map(_is_decimal, args[1:] if name == "select" else args))
        case _:
            return False


def _is_exact(value: Value) -> bool:
    """Whether the frontend would elaborate a value to an index expression."""
    match value:
        case Literal() | Index() | Ref():
            return value.dtype.is_integer
        case Op(name, args):
            return name in _INDEX_OPS and all(map(_is_exact, args))
        case Load() | Cast():
            return False


def _least(text: tuple[str, int], strength: int) -> str:
    return text[0] if text[1] >= strength else f"({text[0]})"


def _load(load: Load, names: Names) -> str:
    if not load.index:
        return load.buffer.name
    if load.data:
        known = dict(names)
        for sym, meaning in load.data:
            known[sym] = _read(meaning, known)
        names = known
    return f"{load.buffer.name}[{', '.join(_index(e, names)[0] for e in load.index)}]"


def _read(meaning: Value, names: Names) -> str:
    """The data in an index. Arithmetic on it would be index arithmetic, so it is converted to its type."""
    text = _value(meaning, False, names)[0]
    wrapped = isinstance(meaning, Op) and (meaning.name in _INFIX or meaning.name in _INDEX_OPS)
    return f"{meaning.dtype}({text})" if wrapped else text


# Index expressions. `order`: the order of sizes in the text, so that elaboration finds them in the same order.


def _exact(e: Expr, order: Order | None = None) -> str:
    return _index(e, _NO_NAMES, order)[0]


def _exacts(exprs: Iterable[Expr], order: Order | None = None) -> str:
    return ", ".join(_exact(e, order) for e in exprs)


def _index(e: Expr, names: Names, order: Order | None = None) -> tuple[str, int]:
    if not e.terms:
        return str(e.constant), _MINUS if e.constant < 0 else _ATOM
    terms = _ordered(e.terms, order) if order is not None else e.terms
    total, strength = "", _SUM
    for monomial, coefficient in terms:
        negative = coefficient < 0
        text, strength = _product(monomial, abs(coefficient), negative and not total, names, order)
        if total:
            total += f" {'-' if negative else '+'} {text}"
        else:
            total = f"-{text}" if negative else text
    if e.constant:
        total += f" {'-' if e.constant < 0 else '+'} {abs(e.constant)}"
    single = len(terms) == 1 and not e.constant
    return total, strength if single else _SUM


def _ordered(terms: Iterable[tuple[Monomial, int]], order: Order) -> list[tuple[Monomial, int]]:
    sorted_products = [(tuple(sorted(m, key=lambda a: _place((a,), order))), c) for m, c in terms]
    return sorted(sorted_products, key=lambda term: _place(term[0], order))


def _place(monomial: Monomial, order: Order) -> list[int]:
    return sorted(order.get(s, len(order)) for a in monomial for s in _atom_syms(a)) or [len(order)]


def _atom_syms(atom: Atom) -> Iterable[Sym]:
    return (atom,) if isinstance(atom, Sym) else (s for c in children(atom) for s in c.syms())


def _product(monomial: Monomial, factor: int, negated: bool, names: Names, order: Order | None) -> tuple[str, int]:
    """A product; a minus sign in front of it applies to its first factor only."""
    texts = [_atom(a, names, order) for a in monomial]
    if factor != 1:
        texts.insert(0, (str(factor), _ATOM))
    if len(texts) == 1 and not negated:
        return texts[0]
    first = _least(texts[0], _MINUS if negated else _PRODUCT)
    return " * ".join((first, *(_least(t, _MINUS) for t in texts[1:]))), _PRODUCT if len(texts) > 1 else _MINUS


def _atom(atom: Atom, names: Names, order: Order | None) -> tuple[str, int]:
    match atom:
        case Sym(name):
            return names.get(atom, name), _ATOM
        case FloorDiv(num, den) | Mod(num, den):
            op = "/" if isinstance(atom, FloorDiv) else "%"
            left, right = _index(num, names, order), _index(den, names, order)
            return f"{_least(left, _PRODUCT)} {op} {_least(right, _MINUS)}", _PRODUCT
        case Min(args) | Max(args):
            name = "min" if isinstance(atom, Min) else "max"
            return f"{name}({', '.join(_index(a, names, order)[0] for a in args)})", _ATOM
        case Xor(value, mask, bits):
            return f"xor({_index(value, names, order)[0]}, {_index(mask, names, order)[0]}, {bits})", _ATOM
