"""Values made once."""

from __future__ import annotations

from typing import Self, cast


class Interned:
    """Made once for each value, so that equality is identity, and a look-up in a dictionary runs no Python code.

    For frozen dataclasses without an `__eq__`, whose fields are hashable and given in order.
    """

    __slots__ = ()

    def __new__(cls, *fields: object) -> Self:
        key = cls, fields
        found = _made.get(key)
        if found is None:
            found = _made.setdefault(key, object.__new__(cls))  # another thread may have been first
        return cast(Self, found)


_made: dict[tuple[type, tuple[object, ...]], Interned] = {}
