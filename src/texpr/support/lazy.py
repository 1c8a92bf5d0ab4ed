"""Lazy imports, all in this one place.

A command should answer before NumPy has loaded, and `import texpr` should be cheap. So the package's own names and the verbs
of the command line are kept as references, `package.module:name`, and resolved on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module


def resolve(reference: str) -> object:
    """The object of `package.module:name` (or a module, `package.module`), imported now."""
    module, _, name = reference.partition(":")
    found: object = import_module(module)
    return getattr(found, name) if name else found


@contextmanager
def missing(refusal: Callable[[str], Exception]) -> Generator[None]:
    """Where a package of an extra is not installed, what is resolved inside raises what `refusal` makes of its name."""
    try:
        yield
    except ModuleNotFoundError as found:
        if found.name is None or found.name.startswith("texpr"):
            raise
        raise refusal(found.name) from None


def attributes(package: str, references: Mapping[str, str]) -> Callable[[str], object]:
    """A module `__getattr__` (PEP 562) for `package`, which resolves each name of `references` on first use."""

    def find(name: str) -> object:
        if name not in references:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return resolve(references[name])

    return find


class Module:
    """A module that is imported on first access."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> object:
        found: object = getattr(import_module(self._name), name)
        setattr(self, name, found)  # later look-ups do not come here
        return found
