"""Parses the text of index expressions and values (the grammar is in `texpr.ir.kernel.text`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from texpr.affine.expr import ZERO, Expr, Sym, expr, maximum, minimum, number_of, sym, xor
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.scanner import Scanner
from texpr.ir.value.text import INFIX, Types
from texpr.ir.value.types import DTYPES, DType

_OPERATION = {text: name for name, text in INFIX.items()}

_Item = TypeVar("_Item")

_WORD = 64
"""The greatest number of bits that an `xor` permutes."""


def separated(scan: Scanner, item: Callable[[Scanner], _Item]) -> list[_Item]:
    """Parses one or more items, separated by commas."""
    found = [item(scan)]
    while scan.accept(","):
        found.append(item(scan))
    return found


def named(scan: Scanner) -> Sym:
    """Parses a name, as a symbol."""
    return Sym(scan.name())


def option(scan: Scanner, word: str) -> bool:
    """Consumes a word that may end a statement, but not one that begins the next; whether it was there."""
    return scan.second.text not in ("=", "[") and scan.accept(word)


def index_list(scan: Scanner) -> tuple[Expr, ...]:
    """Parses `[index, …]`, perhaps empty."""
    return _listed(scan, index)


def integer_list(scan: Scanner) -> tuple[int, ...]:
    """Parses `[INT, …]`, perhaps empty."""
    return _listed(scan, Scanner.integer)


def _listed(scan: Scanner, item: Callable[[Scanner], _Item]) -> tuple[_Item, ...]:
    scan.expect("[")
    found = () if scan.sees("]") else tuple(separated(scan, item))
    scan.expect("]")
    return found


def index(scan: Scanner) -> Expr:
    """Parses an index expression."""
    total = -_product(scan) if scan.accept("-") else _product(scan)
    while scan.sees("+", "-"):
        total = total + _product(scan) if scan.take().text == "+" else total - _product(scan)
    return total


def _product(scan: Scanner) -> Expr:
    total = _atom(scan)
    while scan.sees("*", "/", "%"):
        match scan.take().text:
            case "*":
                total = total * _atom(scan)
            case "/":
                total = total // _divisor(scan)
            case _:
                total = total % _divisor(scan)
    return total


def _divisor(scan: Scanner) -> Expr:
    found = _atom(scan)
    return scan.reject("expected what is not 0") if found is ZERO else found


def _atom(scan: Scanner) -> Expr:
    if scan.next.kind == "number":
        return expr(scan.integer())
    if scan.accept("("):
        inner = index(scan)
        scan.expect(")")
        return inner
    if scan.accept("-"):
        return -_atom(scan)
    name = scan.name("an index expression")
    if name in ("min", "max") and scan.accept("("):
        args = separated(scan, index)
        scan.expect(")")
        return minimum(*args) if name == "min" else maximum(*args)
    if name == "xor" and scan.accept("("):
        return _xor(scan)
    if scan.accept("⟨"):  # a data-dependent integer, where those are allowed
        args = [] if scan.sees("⟩") else separated(scan, index)
        scan.expect("⟩")
        return expr(number_of(name, args))
    return sym(name)


def _xor(scan: Scanner) -> Expr:
    """Parses `value, mask, bits)`, the text after `xor(`."""
    value = index(scan)
    scan.expect(",")
    mask = index(scan)
    scan.expect(",")
    bits = scan.integer()
    if not 0 <= bits <= _WORD:
        scan.reject("expected how many bits are swizzled")
    scan.expect(")")
    return xor(value, mask, bits)


def dtype(scan: Scanner) -> DType:
    """Parses the name of a scalar type."""
    found = DTYPES.get(scan.next.text)
    if found is None:
        scan.fail(f"expected a scalar type, found `{scan.next.text}`")
    scan.take()
    return found


class ValueParser:
    """Parses values; buffers and the types of variables are looked up by name."""

    def __init__(self, scan: Scanner, buffers: dict[str, Buffer], types: Types):
        self.scan = scan
        self.buffers = buffers
        self.types = types

    def value(self) -> Value:
        """Parses any value."""
        scan = self.scan
        if scan.next.kind == "number" or scan.sees("+", "-"):
            return self._literal()
        if scan.accept("("):
            return self._infix()
        if scan.second.text == "[":
            return self.element()
        if scan.second.text == "(" and scan.next.text in DTYPES:
            of = dtype(scan)
            scan.expect("(")
            found = Index(index(scan), of)
            scan.expect(")")
            return found
        if scan.next.text in OPS and (scan.second.text == "(" or self._typed_operation()):
            return self._operation()
        return self.ref()

    def _typed_operation(self) -> bool:
        """Whether `add:i32(…)` follows; without the parenthesis it is a variable named `add`."""
        return self.scan.second.text == ":" and self.scan.text_after(3) == "("

    def _literal(self) -> Literal:
        scan = self.scan
        sign = -1 if scan.sees("-") else 1
        if scan.sees("+", "-"):
            scan.take()
        text = scan.take().text
        scan.expect(":")
        whole = text.isdecimal()
        return Literal(sign * (int(text) if whole else float(text)), dtype(scan))

    def _infix(self) -> Value:
        """The value in parentheses after the opening one."""
        scan = self.scan
        left = self.value()
        if scan.accept("as"):
            found: Value = Cast(left, dtype(scan))
        else:
            name = _OPERATION.get(scan.next.text)
            if name is None:
                scan.fail(f"expected an operator or `as`, found `{scan.next.text}`")
            scan.take()
            right = self.value()
            found = Op(name, (left, right), OPS[name].result((left.dtype, right.dtype)))
        scan.expect(")")
        return found

    def _operation(self) -> Op:
        scan = self.scan
        name = scan.name()
        given = dtype(scan) if scan.accept(":") else None
        scan.expect("(")
        args = tuple(separated(scan, lambda _: self.value()))
        scan.expect(")")
        return Op(name, args, given or OPS[name].result([arg.dtype for arg in args]))

    def ref(self) -> Ref:
        """Parses a variable."""
        scan = self.scan
        at = Sym(scan.next.text)
        if scan.next.kind == "name" and scan.second.text != ":" and at not in self.types:
            scan.fail(f"no variable `{at}` was declared")
        scan.name("a value")
        return Ref(at, dtype(scan) if scan.accept(":") else self.types[at])

    def element(self) -> Load:
        """Parses an element of a buffer."""
        scan = self.scan
        buffer = self.buffer()
        scan.expect("[")
        at = () if scan.sees("]", ";") else tuple(separated(scan, index))
        data: list[tuple[Sym, Value]] = []
        while scan.accept(";"):
            symbol = Sym(scan.name())
            scan.expect("=")
            data.append((symbol, self.value()))
        scan.expect("]")
        return Load(buffer, at, tuple(data))

    def buffer(self) -> Buffer:
        """Parses the name of a declared buffer."""
        found = self.buffers.get(self.scan.next.text)
        if found is None:
            self.scan.fail(f"no buffer `{self.scan.next.text}` was declared")
        self.scan.take()
        return found
