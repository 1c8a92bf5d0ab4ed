"""Values made once."""

from __future__ import annotations

from typing import Any


class Interned(type):
    """A class whose values are made once each, so that equality is identity, and a look-up in a dictionary runs no Python code.

    For frozen dataclasses without an `__eq__`, whose fields are hashable and given in order.
    """

    def __init__(cls, *args: object, **kwargs: object):
        super().__init__(*args, **kwargs)
        cls._made: dict[tuple[object, ...], Any] = {}

    def __call__(cls, *fields: object) -> Any:
        found = cls._made.get(fields)
        if found is None:
            found = cls._made.setdefault(fields, super().__call__(*fields))  # another thread may have been first
        return found
