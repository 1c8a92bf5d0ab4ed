"""Legality of a program. Each rule is a function from a `Subject` to diagnostics; `check` runs them all."""

from texpr.checks.rules import check, faults

__all__ = ["check", "faults"]
