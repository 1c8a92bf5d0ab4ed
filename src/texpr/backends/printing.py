"""Prints a plan with the backend of its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.backends.cpu import print_cpu
from texpr.backends.cuda import print_kernels
from texpr.ir.kernel import Plan
from texpr.isa.target import Target

PRINTERS: Mapping[str, Callable[[Plan, Target], str]] = {"cpu": print_cpu, "cuda": print_kernels}
"""The printer of each backend, by `Target.backend`."""


def print_source(plan: Plan, target: Target) -> str:
    """The source text of `plan` for `target`."""
    return PRINTERS[target.backend](plan, target)
