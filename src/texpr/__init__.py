"""An ahead-of-time compiler for GPU tensor programs that proves what it does.

    module = texpr.load("matmul.te")
    kernel = texpr.compile(module["matmul"], target="cpu", sizes={"K": 4096})
    C = kernel(A, B)

Nothing is imported until one of these names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from texpr.support.lazy import attributes

if TYPE_CHECKING:
    from texpr.delivery import build as build
    from texpr.delivery import compile as compile
    from texpr.driver import load as load
    from texpr.driver import parse as parse
    from texpr.schedule.builder import Schedule as Schedule
    from texpr.support.diagnostic import CompilerBug as CompilerBug
    from texpr.support.diagnostic import Diagnostic as Diagnostic
    from texpr.support.diagnostic import Limitation as Limitation
    from texpr.support.diagnostic import TexprError as TexprError

__version__ = "0.1.0"

_PUBLIC = {
    "build": "texpr.delivery:build",
    "compile": "texpr.delivery:compile",
    "load": "texpr.driver:load",
    "parse": "texpr.driver:parse",
    "Schedule": "texpr.schedule.builder:Schedule",
    "CompilerBug": "texpr.support.diagnostic:CompilerBug",
    "Diagnostic": "texpr.support.diagnostic:Diagnostic",
    "Limitation": "texpr.support.diagnostic:Limitation",
    "TexprError": "texpr.support.diagnostic:TexprError",
}

__getattr__ = attributes(__name__, _PUBLIC)


def __dir__() -> list[str]:
    return ["__version__", *_PUBLIC]
