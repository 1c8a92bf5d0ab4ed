"""Collects the records of a folder: each of its modules binds one name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar, cast, get_origin

_Record = TypeVar("_Record")


def gather(package: str, path: Iterable[str], name: str, kind: type[_Record]) -> Iterator[_Record]:
    """What each module of `package` (found on `path`) binds to `name`, in the order of the modules' names."""
    for module in sorted(found.name for found in iter_modules(path)):
        record = getattr(import_module(f"{package}.{module}"), name)
        if not isinstance(record, get_origin(kind) or kind):
            raise TypeError(f"{package}.{module}.{name} is not a {kind.__name__}")
        yield cast("_Record", record)
