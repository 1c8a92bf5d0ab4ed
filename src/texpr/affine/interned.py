"""Values made once."""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")


class Interned(type):
    """A class whose values are made once each, so that equality is identity, and a look-up in a dictionary runs no Python code.

    For frozen dataclasses without an `__eq__`, whose fields are hashable and given in order.
    """

    def __init__(cls, *args: object, **kwargs: object):
        super().__init__(*args, **kwargs)
        cls.made: dict[tuple[object, ...], object] = {}

    def __call__(cls: type[T], *fields: object) -> T:
        made = cast("Interned", cls).made
        found = made.get(fields)
        if found is None:
            found = made.setdefault(fields, type.__call__(cls, *fields))  # another thread may have been first
        return cast(T, found)
