"""The rules of operations by engines that copy, and of barriers in shared memory, which have texts of their own."""

from __future__ import annotations

from texpr.ir.ops import OPERATIONS

ENGINE = ("tiles", "bulk", "phases", "fences")
"""The families."""

ENGINE_RULES = tuple(
    dict.fromkeys(rule for kind in OPERATIONS if kind.__module__.rpartition(".")[2] in ENGINE for rule in kind.RULES)
)
