"""Interning (hash-consing) of frozen dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, eq_default=False)
def interned(kind: type[Kind]) -> type[Kind]:
    """Class decorator: interns the values of a frozen dataclass, so that equality is identity and a look-up in a dictionary
    runs no Python code. Its fields must be hashable and are passed in order.

    No metaclass: with one, a failing `isinstance` calls into Python, which takes three times as long.
    """
    made: dict[tuple[object, ...], Any] = {}
    whole: Any = dataclass(frozen=True, slots=True, eq=False)(kind)
    fill = whole.__init__
    del whole.__init__  # an interned value has its fields already

    def new(cls: type[Kind], *fields: object) -> Any:
        found = made.get(fields)
        if found is None:
            value = object.__new__(cls)
            fill(value, *fields)
            found = made.setdefault(fields, value)  # another thread may have been first
        return found

    whole.__new__ = new
    return whole
