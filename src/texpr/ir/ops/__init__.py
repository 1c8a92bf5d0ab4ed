"""The operations of kernels, one file for each family; each class defines its text, rules, C code and effects.

`OPERATIONS` contains the classes of all files in this package, ordered by name.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from texpr.ir.operation import Operation


def _gathered() -> tuple[type[Operation], ...]:
    found: list[type[Operation]] = []
    for module in sorted(iter_modules(__path__), key=lambda module: module.name):
        there: list[object] = list(vars(import_module(f"{__name__}.{module.name}")).values())
        kinds = [each for each in there if isinstance(each, type) and issubclass(each, Operation)]
        found += [kind for kind in kinds if kind.__module__ == f"{__name__}.{module.name}"]
    return tuple(found)


OPERATIONS = _gathered()
