"""Printing and parsing of a program's statements for the steps form: values have types, as in a kernel.

stmt    = ("par" | "seq") index "|" NAME "|" ["reduce" "(" NAME, … ")"] {pragma} block
        | "new" NAME | "let" NAME ":" TYPE "=" value | "anchor" value | "if" value block ["else" block]
        | "arrive" element | "wait" element "phase" index
        | element [UPDATE] "=" value | "bind" "(" element, … ")" [UPDATE] "=" "(" value, … ")"
pragma  = "#" NAME ["(" (INT | NAME | STRING), … ")"]
block   = "{" {stmt} "}"
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from texpr.ir import program as ir
from texpr.ir.kernel.text import line_text
from texpr.ir.program.marked import Atomicity
from texpr.ir.program.marks import MARKS, Mark, Word
from texpr.ir.value import Load, Value
from texpr.ir.value.parse import ValueParser, dtype, index, named, separated
from texpr.ir.value.scanner import Scanner, is_name
from texpr.ir.value.text import Types, value_text

_PAD = "    "


def statement_lines(body: Sequence[ir.Stmt], types: Types, pad: str) -> Iterator[str]:
    """The lines of statements with their nested ones. `types`: the types of lets so far."""
    for stmt in body:
        yield from _lines(stmt, types, pad)


def loop_text(loop: ir.Par | ir.Seq) -> str:
    """The text of the head of a loop."""
    reduce = [f"reduce({', '.join(b.name for b in loop.reduce)})"] if loop.reduce else []
    kind = "par" if isinstance(loop, ir.Par) else "seq"
    return " ".join((kind, str(loop.extent), f"|{loop.sym}|", *reduce, *map(_pragma, loop.directives)))


def _lines(stmt: ir.Stmt, types: Types, pad: str) -> Iterator[str]:
    line = line_text(stmt.span)
    match stmt:
        case ir.Par() | ir.Seq():
            yield f"{pad}{loop_text(stmt)} {{{line}"
            yield from statement_lines(stmt.body, types, pad + _PAD)
            yield f"{pad}}}"
        case ir.If():
            yield f"{pad}if {value_text(stmt.condition, types)} {{{line}"
            yield from statement_lines(stmt.then, types, pad + _PAD)
            if stmt.orelse:
                yield f"{pad}}} else {{"
                yield from statement_lines(stmt.orelse, types, pad + _PAD)
            yield f"{pad}}}"
        case ir.New():
            yield f"{pad}new {stmt.buffer.name}{line}"
        case ir.Let():
            yield f"{pad}let {stmt.sym}: {stmt.value.dtype} = {value_text(stmt.value, types)}{line}"
            types[stmt.sym] = stmt.value.dtype
        case ir.Bind():
            update = "" if stmt.update is None else update_text(stmt.update)
            head = "bind " if len(stmt.targets) > 1 else ""
            yield f"{pad}{head}{_several(stmt.targets, types)} {update}= {_several(stmt.values, types)}{line}"
        case ir.Anchor():
            yield f"{pad}anchor {value_text(stmt.value, types)}{line}"
        case ir.Instruction() if stmt.signal is not None:
            phase = "" if stmt.signal.phase is None else f" phase {stmt.signal.phase}"
            yield f"{pad}{stmt.name} {value_text(stmt.operands[0], types)}{phase}{line}"
        case ir.Instruction():
            raise AssertionError("no other instruction is a step")
        case _:
            assert_never(stmt)


def update_text(update: ir.Update) -> str:
    """The name of an update."""
    return update if isinstance(update, str) else update.name


def _several(values: Sequence[Value], types: Types) -> str:
    texts = [value_text(value, types) for value in values]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _pragma(pragma: ir.Pragma) -> str:
    if isinstance(pragma, Mark):
        words = pragma.words
    else:
        words = tuple(each.value for each in pragma.args if isinstance(each.value, int | str))
    listed = ", ".join(str(w) if isinstance(w, int) or is_name(w) else json.dumps(w) for w in words)
    return f"#{pragma.name}" + (f"({listed})" if words else "")


class StatementParser:
    """Parses statements. `values`: of the program, with its locals; `combiners`: the user's updates, by name."""

    def __init__(self, values: ValueParser, combiners: Mapping[str, ir.Combiner]):
        self.values = values
        self.scan = values.scan
        self.combiners = combiners

    def block(self) -> tuple[ir.Stmt, ...]:
        """Parses statements in braces."""
        self.scan.expect("{")
        found: list[ir.Stmt] = []
        while not self.scan.accept("}"):
            found.append(self.stmt())
        return tuple(found)

    def stmt(self) -> ir.Stmt:
        """Parses one statement. A word followed by `[` is the name of a buffer, even if it is a keyword."""
        scan, start = self.scan, self.scan.next.start
        if scan.second.text == "[" or (scan.second.text == "(" and scan.accept("bind")):
            return self._bind(start)
        match scan.next.text:
            case "par" | "seq":
                return self._loop()
            case "new":
                scan.take()
                return ir.New(self.values.buffer(), None, scan.span(start))
            case "let":
                return self.let()
            case "anchor":
                scan.take()
                return ir.Anchor(self.values.value(), scan.span(start))
            case ir.ARRIVE | ir.WAIT as name:
                scan.take()
                barrier = self.values.element()
                phase = index(scan) if scan.accept("phase") else None
                return ir.Instruction(name, (), (barrier,), span=scan.span(start), signal=ir.Signal(phase))
            case "if":
                scan.take()
                condition = self.values.value()
                then = self.block()
                return ir.If(condition, then, self.block() if scan.accept("else") else (), scan.span(start))
            case other:
                scan.fail(f"`{other}` begins no statement")

    def _loop(self) -> ir.Par | ir.Seq:
        start, loop = self.scan.next.start, self.loop()
        span = self.scan.span(start)
        if isinstance(loop, ir.Par):
            return ir.Par(loop.sym, loop.extent, self.block(), loop.reduce, None, loop.directives, span=span)
        return ir.Seq(loop.sym, loop.extent, self.block(), loop.reduce, None, loop.directives, span=span)

    def loop(self) -> ir.Par | ir.Seq:
        """Parses the head of a loop."""
        scan, start = self.scan, self.scan.next.start
        kind = ir.Par if scan.sees("par") else ir.Seq
        if not scan.sees("par", "seq"):
            scan.fail(f"expected a loop, found `{scan.next.text}`")
        scan.take()
        extent = index(scan)
        scan.expect("|")
        symbol = named(scan)
        scan.expect("|")
        reduce = ()
        if scan.accept("reduce"):
            scan.expect("(")
            reduce = tuple(separated(scan, lambda _: self.values.buffer()))
            scan.expect(")")
        pragmas: list[ir.Pragma] = []
        while scan.accept("#"):
            pragmas.append(self._pragma())
        return kind(symbol, extent, (), reduce, None, tuple(pragmas), span=scan.span(start))

    def _pragma(self) -> ir.Pragma:
        scan = self.scan
        name, words = scan.name("a pragma"), list[Word]()
        if scan.accept("("):
            words = separated(scan, _word)
            scan.expect(")")
        kind = MARKS.get(name)
        plain = ir.Directive(name, tuple(map(ir.Argument, words))) if Atomicity.WORDS.keys() >= {*words} else None
        found = plain if kind is None else kind.read(words)
        return found if found is not None else scan.reject(f"these are no words of `#{name}`")

    def let(self) -> ir.Let:
        """Parses a variable and its value."""
        scan, start = self.scan, self.scan.take().start
        symbol = named(scan)
        scan.expect(":")
        of = dtype(scan)
        scan.expect("=")
        value = self.values.value()
        if value.dtype != of:
            scan.reject(f"expected a value of type {of}")
        self.values.types[symbol] = of
        return ir.Let(symbol, value, scan.span(start))

    def _bind(self, start: int) -> ir.Bind:
        scan = self.scan
        targets = self._elements()
        update = None if scan.sees("=") else self.update()
        scan.expect("=")
        if len(targets) == 1:
            values = (self.values.value(),)
        else:
            scan.expect("(")
            values = tuple(separated(scan, lambda _: self.values.value()))
            scan.expect(")")
        if len(values) != len(targets):
            scan.reject(f"expected {len(targets)} values")
        return ir.Bind(targets, values, update, scan.span(start))

    def update(self) -> ir.Update:
        """Parses the name of an update."""
        name = self.scan.name("an update")
        return self.combiners.get(name, name)

    def _elements(self) -> tuple[Load, ...]:
        if not self.scan.accept("("):
            return (self.values.element(),)
        found = tuple(separated(self.scan, lambda _: self.values.element()))
        self.scan.expect(")")
        return found


def _word(scan: Scanner) -> Word:
    if scan.next.kind == "number" or scan.sees("-"):
        return scan.integer()
    return str(json.loads(scan.take().text)) if scan.next.kind == "string" else scan.name("a word")
