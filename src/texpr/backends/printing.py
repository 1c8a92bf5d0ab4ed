"""The source of a plan, by the backend that its target names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.backends.cpu import print_cpu
from texpr.backends.cuda import print_kernels
from texpr.ir.kernel import Plan
from texpr.isa.target import Target

PRINTERS: Mapping[str, Callable[[Plan, Target], str]] = {"cpu": lambda plan, _: print_cpu(plan), "cuda": print_kernels}
"""What prints a plan, by `Target.backend`."""


def print_source(plan: Plan, target: Target) -> str:
    """The text for a compiler of `target`."""
    return PRINTERS[target.backend](plan, target)
