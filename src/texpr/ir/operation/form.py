"""The text of an operation as a list of parts: words and fields. Its operands, values and index expressions follow from it.

    FORM = (Word("copy"), writes("target", "count"), Word("="), reads("source", "count"), Maybe("when", …), …)

A part prints and parses its field, and lists the values, index expressions and operands in it. The texts of parts are separated
by blanks; a part with an empty text adds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from texpr.affine.expr import Expr
from texpr.ir.operation.covered import covers, covers_text
from texpr.ir.value import Load, Ref, Value
from texpr.ir.value.parse import ValueParser, dtype, index, index_list, integer_list, named, option, separated
from texpr.ir.value.scanner import Scanner
from texpr.ir.value.text import Types, list_text, value_text
from texpr.isa.levels import Level
from texpr.support.record import Record, replace

if TYPE_CHECKING:
    from texpr.ir.operation import Operation

Found: TypeAlias = dict[str, Any]
"""The parsed fields, by name."""


def consecutive(first: Load, count: int) -> tuple[Load, ...]:
    """The `count` elements of one row from `first` on; `first` itself repeated if it has no index, which the rules exclude."""
    if not first.index:
        return (first,) * count
    *outer, last = first.index
    return tuple(replace(first, index=(*outer, last + at)) for at in range(count))


class Access(Enum):
    """How an operation accesses an operand."""

    READ = "load"
    WRITE = "store"
    UPDATE = "atomic"
    BARRIER = "barrier"


class Operand(Record):
    """An accessed element: with `count`, the first of so many consecutive ones of one access; for a tile, its first element."""

    first: Load
    access: Access
    count: int | None = None

    @property
    def elements(self) -> tuple[Load, ...]:
        """The elements that one access moves."""
        return (self.first,) if self.count is None else consecutive(self.first, self.count)


class Part(Record):
    """The part of the text for the field `name`; by default it contains no operands."""

    name: str

    def show(self, op: Operation, types: Types) -> str:
        """The text."""
        return str(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the text, and stores the field in `found`. Raises E0581."""
        raise NotImplementedError

    def fits(self, scan: Scanner) -> bool:
        """Whether the text may continue with this part; distinguishes operations that begin with the same word."""
        return True

    def of(self, op: Operation) -> Any:
        """The value of the field."""
        return getattr(op, self.name)

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The values in the field, written elements included."""
        return ()

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """The index expressions in the field, outside of values."""
        return ()

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """The elements of memory in the field that the operation accesses."""
        return ()

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The fields whose contents change, with their values and index expressions replaced."""
        yield from ()


class Word(Part):
    """A word or mark, without a field."""

    def show(self, op: Operation, types: Types) -> str:
        """The word."""
        return self.name

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the word."""
        by.scan.expect(self.name)

    def fits(self, scan: Scanner) -> bool:
        """Whether the word is the next token."""
        return scan.sees(self.name)


class Name(Part):
    """A name: of a map, a kind or an operation."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the name."""
        found[self.name] = by.scan.name()


class Names(Part):
    """Names separated by commas."""

    def show(self, op: Operation, types: Types) -> str:
        """The names, separated by commas."""
        return ", ".join(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the names."""
        found[self.name] = tuple(separated(by.scan, lambda scan: scan.name()))


class Number(Part):
    """An integer."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the integer."""
        found[self.name] = by.scan.integer()


class Numbers(Part):
    """Integers in brackets."""

    def show(self, op: Operation, types: Types) -> str:
        """The integers in brackets."""
        return list_text(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the integers."""
        found[self.name] = integer_list(by.scan)


class Joined(Part):
    """The name of a combining operation, followed by `=` without a blank."""

    def show(self, op: Operation, types: Types) -> str:
        """`add=`."""
        return f"{self.of(op)}="

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the name and the mark."""
        found[self.name] = by.scan.name("an operation")
        by.scan.expect("=")


class Typed(Part):
    """The name of a new variable, and its type, which is the field `type`."""

    type: str

    def show(self, op: Operation, types: Types) -> str:
        """`x: f32`."""
        return f"{self.of(op)}: {getattr(op, self.type)}"

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the name and the type."""
        found[self.name] = named(by.scan)
        by.scan.expect(":")
        found[self.type] = dtype(by.scan)


class At(Part):
    """A level of the machine."""

    def show(self, op: Operation, types: Types) -> str:
        """The name of the level."""
        return str(self.of(op).value)

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the level. Raises E0581 for an unknown one."""
        try:
            found[self.name] = Level(by.scan.next.text)
        except ValueError:
            by.scan.fail(f"`{by.scan.next.text}` is no level")
        by.scan.take()


class Symbol(Part):
    """The name of a variable."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the name."""
        found[self.name] = named(by.scan)

    def fits(self, scan: Scanner) -> bool:
        """Whether the next tokens are no element of a buffer."""
        return scan.second.text != "["


class Symbols(Symbol):
    """Names of variables."""

    def fits(self, scan: Scanner) -> bool:
        """Whether the next tokens are a name, and another name or a value."""
        return scan.second.text in (",", "=")

    def show(self, op: Operation, types: Types) -> str:
        """The names, separated by commas."""
        return ", ".join(map(str, self.of(op)))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the names."""
        found[self.name] = tuple(separated(by.scan, named))


class Calculated(Part):
    """A value, or None."""

    def show(self, op: Operation, types: Types) -> str:
        """The text of the value."""
        return value_text(self.of(op), types)

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the value."""
        found[self.name] = by.value()

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The value, if there is one."""
        found = self.of(op)
        return () if found is None else (found,)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The field with its value replaced."""
        if self.of(op) is not None:
            yield self.name, value(self.of(op))


class Variable(Calculated):
    """A variable that is read."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the variable."""
        found[self.name] = by.ref()

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The field with another variable, if the replacement is one."""
        found = value(self.of(op))
        yield self.name, found if isinstance(found, Ref) else self.of(op)


class Several(Part):
    """Values separated by commas."""

    def show(self, op: Operation, types: Types) -> str:
        """The texts of the values, separated by commas."""
        return ", ".join(value_text(each, types) for each in self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the values."""
        found[self.name] = tuple(separated(by.scan, lambda _: by.value()))

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The values."""
        return self.of(op)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The field with its values replaced."""
        yield self.name, tuple(map(value, self.of(op)))


class Element(Calculated):
    """An element of memory, or None, with its kind of access. `run`: the field with the number of consecutive elements, an
    integer or a tuple of so many items; None for a single element."""

    access: Access
    run: str | None = None

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the element."""
        found[self.name] = by.element()

    def fits(self, scan: Scanner) -> bool:
        """Whether the next tokens are an element of a buffer."""
        return scan.second.text == "["

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """The element with its access and count."""
        found = self.of(op)
        if found is None:
            return ()
        said = None if self.run is None else getattr(op, self.run)
        return (Operand(found, self.access, said if said is None or isinstance(said, int) else len(said)),)


def reads(name: str, run: str | None = None) -> Element:
    """An element, or consecutive ones, that the operation reads."""
    return Element(name, Access.READ, run)


def writes(name: str, run: str | None = None) -> Element:
    """An element, or consecutive ones, that the operation writes."""
    return Element(name, Access.WRITE, run)


def updates(name: str, run: str | None = None) -> Element:
    """An element, or consecutive ones, that the operation updates."""
    return Element(name, Access.UPDATE, run)


def barrier(name: str) -> Element:
    """A barrier in shared memory."""
    return Element(name, Access.BARRIER)


class Indexed(Part):
    """An index expression, or None."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the index expression."""
        found[self.name] = index(by.scan)

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """The index expression, if there is one."""
        found = self.of(op)
        return () if found is None else (found,)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The field with its index expression replaced."""
        if self.of(op) is not None:
            yield self.name, index(self.of(op))


class Coordinates(Part):
    """Index expressions in brackets; after the name of a map if `of_map` is given, the field with that name."""

    of_map: str | None = None

    def show(self, op: Operation, types: Types) -> str:
        """`map[c0, c1]`."""
        return f"{'' if self.of_map is None else getattr(op, self.of_map)}{list_text(self.of(op))}"

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the index expressions, and the name of the map if there is one."""
        if self.of_map is not None:
            found[self.of_map] = by.scan.name()
        found[self.name] = index_list(by.scan)

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """The index expressions."""
        return self.of(op)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The field with its index expressions replaced."""
        yield self.name, tuple(map(index, self.of(op)))


class Flag(Part):
    """A word that is present or not: the name of the field."""

    def show(self, op: Operation, types: Types) -> str:
        """The word, or the empty text."""
        return self.name if self.of(op) else ""

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the word, if it is present."""
        found[self.name] = option(by.scan, self.name)


class Verb(Part):
    """The word `none` if the field is None; else the word `some` and the field."""

    none: str = ""
    some: str = ""

    def show(self, op: Operation, types: Types) -> str:
        """The word `none`, or `some` and the field."""
        found = self.of(op)
        return self.none if found is None else f"{self.some} {found}"

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses either."""
        if option(by.scan, self.some):
            found[self.name] = by.scan.name("an operation")
        elif self.none:
            by.scan.expect(self.none)

    def fits(self, scan: Scanner) -> bool:
        """Whether one of the words is the next token."""
        return not self.none or scan.sees(self.none, self.some)


class Covers(Part):
    """The dependences that a wait covers."""

    def show(self, op: Operation, types: Types) -> str:
        """The dependences, or the empty text."""
        return covers_text(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the dependences, if there are any."""
        found[self.name] = covers(by.scan)


class Maybe(Part):
    """A word and `parts`, unless the field `name` has the value `usual`; then nothing."""

    usual: object
    word: str
    parts: tuple[Part, ...]

    def show(self, op: Operation, types: Types) -> str:
        """The word and the parts, or the empty text."""
        if self.of(op) == self.usual:
            return ""
        return " ".join((self.word, *(part.show(op, types) for part in self.parts)))

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the parts, if the word is present."""
        listed = isinstance(self.parts[0], Numbers | Coordinates)
        if by.scan.accept(self.word) if listed else option(by.scan, self.word):
            for part in self.parts:
                part.read(by, found)

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The values of its parts."""
        return tuple([value for part in self.parts for value in part.values(op)])

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """The index expressions of its parts."""
        return tuple([each for part in self.parts for each in part.exprs(op)])

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """The operands of its parts."""
        return tuple([each for part in self.parts for each in part.operands(op)])

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The changed fields of its parts."""
        for part in self.parts:
            yield from part.changed(op, value, index)
