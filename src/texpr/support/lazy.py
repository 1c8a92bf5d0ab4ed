"""Imports that happen on first use, all in this one place.

A command should answer before NumPy has loaded, and `import texpr` should cost nothing. So the package's own names and the
verbs of the command line are kept as references, `package.module:name`, and looked up here when they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def resolve(reference: str) -> object:
    """The object that `package.module:name` (or a module, `package.module`) stands for, imported now."""
    module, _, name = reference.partition(":")
    found: object = import_module(module)
    return getattr(found, name) if name else found


def attributes(package: str, references: Mapping[str, str]) -> Callable[[str], object]:
    """A module `__getattr__` (PEP 562) for `package`, which finds each name of `references` on its first use."""

    def find(name: str) -> object:
        if name not in references:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve(references[name])

    return find


class Module:
    """A module that is imported when something of it is first wanted."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> object:
        found: object = getattr(import_module(self._name), name)
        setattr(self, name, found)  # the next look-up does not come here
        return found
