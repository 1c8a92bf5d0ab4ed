"""The text of an operation as a list of parts: words, and fields by their kind. What it reads, writes and holds follows.

    FORM = (Word("copy"), writes("target", "count"), Word("="), reads("source", "count"), Maybe("when", …), …)

A part prints its field, reads it back, and says what of values and index expressions it is. The words of the text are separated
by blanks; a part that prints nothing leaves none.
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
"""Fields that were read, by name."""


def consecutive(first: Load, count: int) -> tuple[Load, ...]:
    """`count` elements of one row, from `first` on; of what has no rows, which no rule lets pass, that element."""
    if not first.index:
        return (first,) * count
    *outer, last = first.index
    return tuple(replace(first, index=(*outer, last + at)) for at in range(count))


class Access(Enum):
    """What is done with an element that an operation names."""

    READ = "load"
    WRITE = "store"
    UPDATE = "atomic"
    BARRIER = "barrier"


class Operand(Record):
    """An element that is touched; with `count`, a run of so many from it on, by one access; of a tile it is the first."""

    first: Load
    access: Access
    count: int | None = None

    @property
    def elements(self) -> tuple[Load, ...]:
        """All of them, as far as one access goes."""
        return (self.first,) if self.count is None else consecutive(self.first, self.count)


class Part(Record):
    """What stands for the field `name`; by default it is no operand."""

    name: str

    def show(self, op: Operation, types: Types) -> str:
        """Its text."""
        return str(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Reads it back, into `found`."""
        raise NotImplementedError

    def fits(self, scan: Scanner) -> bool:
        """Whether the text may go on with this part: asked where several operations begin with one word."""
        return True

    def of(self, op: Operation) -> Any:
        """The field."""
        return getattr(op, self.name)

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The values in it, elements that are written among them."""
        return ()

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """The index expressions in it, outside of values."""
        return ()

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """The elements of memory that it names to be touched."""
        return ()

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Its field over other values and index expressions."""
        yield from ()


class Word(Part):
    """A word or mark, which is no field."""

    def show(self, op: Operation, types: Types) -> str:
        """Itself."""
        return self.name

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        by.scan.expect(self.name)

    def fits(self, scan: Scanner) -> bool:
        """Where it stands next."""
        return scan.sees(self.name)


class Name(Part):
    """A name, of a map or of what is combined how."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = by.scan.name()


class Number(Part):
    """An integer."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = by.scan.integer()


class Numbers(Part):
    """Integers in brackets."""

    def show(self, op: Operation, types: Types) -> str:
        """A list."""
        return list_text(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them."""
        found[self.name] = integer_list(by.scan)


class Joined(Part):
    """The name of what is combined how, and `=` right behind it."""

    def show(self, op: Operation, types: Types) -> str:
        """`add=`."""
        return f"{self.of(op)}="

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes both."""
        found[self.name] = by.scan.name("an operation")
        by.scan.expect("=")


class Typed(Part):
    """The name of a new variable, and its type, which is the field `type`."""

    type: str

    def show(self, op: Operation, types: Types) -> str:
        """`x: f32`."""
        return f"{self.of(op)}: {getattr(op, self.type)}"

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes both."""
        found[self.name] = named(by.scan)
        by.scan.expect(":")
        found[self.type] = dtype(by.scan)


class At(Part):
    """A level of the machine."""

    def show(self, op: Operation, types: Types) -> str:
        """Its word."""
        return str(self.of(op).value)

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        try:
            found[self.name] = Level(by.scan.next.text)
        except ValueError:
            by.scan.fail(f"`{by.scan.next.text}` is no level")
        by.scan.take()


class Symbol(Part):
    """The name of a variable."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = named(by.scan)

    def fits(self, scan: Scanner) -> bool:
        """Where no element stands next."""
        return scan.second.text != "["


class Symbols(Symbol):
    """Names of variables."""

    def fits(self, scan: Scanner) -> bool:
        """Where a name stands next, and another or a value after it."""
        return scan.second.text in (",", "=")

    def show(self, op: Operation, types: Types) -> str:
        """With commas."""
        return ", ".join(map(str, self.of(op)))

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them."""
        found[self.name] = tuple(separated(by.scan, named))


class Calculated(Part):
    """A value, or none."""

    def show(self, op: Operation, types: Types) -> str:
        """Its text."""
        return value_text(self.of(op), types)

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = by.value()

    def values(self, op: Operation) -> tuple[Value, ...]:
        """It, where there is one."""
        found = self.of(op)
        return () if found is None else (found,)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Another one."""
        if self.of(op) is not None:
            yield self.name, value(self.of(op))


class Variable(Calculated):
    """A variable that is read."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = by.ref()

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Another variable, where the value is one."""
        found = value(self.of(op))
        yield self.name, found if isinstance(found, Ref) else self.of(op)


class Several(Part):
    """Values with commas between them."""

    def show(self, op: Operation, types: Types) -> str:
        """Their texts."""
        return ", ".join(value_text(each, types) for each in self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them."""
        found[self.name] = tuple(separated(by.scan, lambda _: by.value()))

    def values(self, op: Operation) -> tuple[Value, ...]:
        """All of them."""
        return self.of(op)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Others."""
        yield self.name, tuple(map(value, self.of(op)))


class Element(Calculated):
    """An element of memory, or none, and how it is touched. `run`: the field that says how many side by side, a number or a
    tuple; one where there is none."""

    access: Access
    run: str | None = None

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = by.element()

    def fits(self, scan: Scanner) -> bool:
        """Where one stands next."""
        return scan.second.text == "["

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """It, and how many."""
        found = self.of(op)
        if found is None:
            return ()
        said = None if self.run is None else getattr(op, self.run)
        return (Operand(found, self.access, said if said is None or isinstance(said, int) else len(said)),)


def reads(name: str, run: str | None = None) -> Element:
    """An element, or a run of them, that is read."""
    return Element(name, Access.READ, run)


def writes(name: str, run: str | None = None) -> Element:
    """An element, or a run of them, that is written."""
    return Element(name, Access.WRITE, run)


def updates(name: str) -> Element:
    """An element that is read and written at once."""
    return Element(name, Access.UPDATE)


def barrier(name: str) -> Element:
    """A barrier in shared memory."""
    return Element(name, Access.BARRIER)


class Indexed(Part):
    """An index expression, or none."""

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it."""
        found[self.name] = index(by.scan)

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """It, where there is one."""
        found = self.of(op)
        return () if found is None else (found,)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Another one."""
        if self.of(op) is not None:
            yield self.name, index(self.of(op))


class Coordinates(Part):
    """Index expressions in brackets; behind the name of a map, where `of_map` is its field."""

    of_map: str | None = None

    def show(self, op: Operation, types: Types) -> str:
        """`map[c0, c1]`."""
        return f"{'' if self.of_map is None else getattr(op, self.of_map)}{list_text(self.of(op))}"

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them."""
        if self.of_map is not None:
            found[self.of_map] = by.scan.name()
        found[self.name] = index_list(by.scan)

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """All of them."""
        return self.of(op)

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Others."""
        yield self.name, tuple(map(index, self.of(op)))


class Flag(Part):
    """A word that is there or not; that which the field is called, by default."""

    def show(self, op: Operation, types: Types) -> str:
        """The word, or nothing."""
        return self.name if self.of(op) else ""

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it, if it is there."""
        found[self.name] = option(by.scan, self.name)


class Verb(Part):
    """`none` where the field is None, or `some` and the field."""

    none: str = ""
    some: str = ""

    def show(self, op: Operation, types: Types) -> str:
        """Either."""
        found = self.of(op)
        return self.none if found is None else f"{self.some} {found}"

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes either."""
        if option(by.scan, self.some):
            found[self.name] = by.scan.name("an operation")
        elif self.none:
            by.scan.expect(self.none)

    def fits(self, scan: Scanner) -> bool:
        """Where either stands next."""
        return not self.none or scan.sees(self.none, self.some)


class Covers(Part):
    """Why a wait is there."""

    def show(self, op: Operation, types: Types) -> str:
        """The dependences, or nothing."""
        return covers_text(self.of(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them, if there are any."""
        found[self.name] = covers(by.scan)


class Maybe(Part):
    """`parts` after a word, where the field `name` is not `usual`; nothing where it is."""

    usual: object
    word: str
    parts: tuple[Part, ...]

    def show(self, op: Operation, types: Types) -> str:
        """All of it, or nothing."""
        if self.of(op) == self.usual:
            return ""
        return " ".join((self.word, *(part.show(op, types) for part in self.parts)))

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes it, if its word is there."""
        listed = isinstance(self.parts[0], Numbers | Coordinates)
        if by.scan.accept(self.word) if listed else option(by.scan, self.word):
            for part in self.parts:
                part.read(by, found)

    def values(self, op: Operation) -> tuple[Value, ...]:
        """Those of its parts."""
        return tuple([value for part in self.parts for value in part.values(op)])

    def exprs(self, op: Operation) -> tuple[Expr, ...]:
        """Those of its parts."""
        return tuple([each for part in self.parts for each in part.exprs(op)])

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """Those of its parts."""
        return tuple([each for part in self.parts for each in part.operands(op)])

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Those of its parts."""
        for part in self.parts:
            yield from part.changed(op, value, index)
