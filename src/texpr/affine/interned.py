"""Values made once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, eq_default=False)
def interned(kind: type[Kind]) -> type[Kind]:
    """A frozen dataclass whose values are made once each, so that equality is identity, and a look-up in a dictionary runs no
    Python code. Its fields are hashable and given in order.

    No metaclass: with one, Python asks it whether a value is of the class each time that it is not, which takes three times as
    long.
    """
    made: dict[tuple[object, ...], Any] = {}
    whole: Any = dataclass(frozen=True, slots=True, eq=False)(kind)
    fill = whole.__init__
    del whole.__init__  # what is there has its fields

    def new(cls: type[Kind], *fields: object) -> Any:
        found = made.get(fields)
        if found is None:
            value = object.__new__(cls)
            fill(value, *fields)
            found = made.setdefault(fields, value)  # another thread may have been first
        return found

    whole.__new__ = new
    return whole
