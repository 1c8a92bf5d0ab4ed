"""Printing and parsing of operations by their forms; `ir.kernel.text` has the grammar of the rest."""

from __future__ import annotations

from texpr.ir.operation import Operation
from texpr.ir.operation.form import Found, Word
from texpr.ir.ops import OPERATIONS
from texpr.ir.value.parse import ValueParser
from texpr.ir.value.text import Types

_FUSED = "fused"


def operation_text(op: Operation, types: Types) -> str:
    """One operation on one line; the variables that it declares are added to `types`."""
    text = " ".join(shown for part in op.FORM if (shown := part.show(op, types)))
    types.update({new.sym: new.dtype for new in op.bound})
    return text


def read_operation(by: ValueParser) -> Operation:
    """Parses the next operation. Raises E0581 if there is none.

    A word followed by `=` or `[` is a name, even if it is a keyword.
    """
    scan, first, start = by.scan, by.scan.next.text, by.scan.next.start
    plain = scan.second.text in ("=", "[")
    kinds = _PLAIN if plain or first == _FUSED else _BY_WORD.get(first, ())
    if not kinds:
        scan.fail(f"`{first}` begins no statement")
    found: Found = {}
    kinds[0].FORM[0].read(by, found)
    kind = next((kind for kind in kinds if len(kinds) == 1 or kind.FORM[1].fits(scan)), None)
    if kind is None:
        scan.fail(f"`{first} {scan.next.text}` begins no statement")
    for part in kind.FORM[1:]:
        part.read(by, found)
    made = kind(**found, span=scan.span(start))
    by.types.update({new.sym: new.dtype for new in made.bound})
    return made


def _by_word() -> dict[str, tuple[type[Operation], ...]]:
    found: dict[str, tuple[type[Operation], ...]] = {}
    for kind in OPERATIONS:
        first = kind.FORM[0]
        if isinstance(first, Word):
            found[first.name] = (*found.get(first.name, ()), kind)
    return found


_BY_WORD = _by_word()
"""The operations by their first word."""

_PLAIN = tuple(kind for kind in OPERATIONS if not isinstance(kind.FORM[0], Word))
"""The operations that begin with the element or variable that they write."""
