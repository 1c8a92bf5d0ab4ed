"""Operations of kernels as text, and read back, by their forms; the grammar of what is around them is in `ir.kernel.text`."""

from __future__ import annotations

from texpr.ir.operation import Operation
from texpr.ir.operation.form import Found, Word
from texpr.ir.ops import OPERATIONS
from texpr.ir.value.parse import ValueParser
from texpr.ir.value.text import Types

_FUSED = "fused"


def operation_text(op: Operation, types: Types) -> str:
    """One operation, on one line. What it declares is known from then on."""
    text = " ".join(shown for part in op.FORM if (shown := part.show(op, types)))
    types.update({new.sym: new.dtype for new in op.bound})
    return text


def read_operation(by: ValueParser) -> Operation:
    """The operation that comes next. Raises E0581 where none does.

    A word followed by `=` or `[` is a name, whatever the word.
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
"""The operations that begin with a word."""

_PLAIN = tuple(kind for kind in OPERATIONS if not isinstance(kind.FORM[0], Word))
"""Those that begin with what they write."""
