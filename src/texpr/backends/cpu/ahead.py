"""Fetching memory before it is read, where a core's own guesses fall short.

A reduction in lanes reads one stream and does little with it. What a core guesses of such a stream keeps too few reads under
way to use all that memory gives, and how many depends on how the data happen to lie. So each group of lanes asks for what later
groups will read.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.backends.c.scope import Scope
from texpr.backends.c.value import place_text
from texpr.ir.kernel import For
from texpr.ir.kernel.vector.streams import streams
from texpr.ir.value import Buffer


def fetch_ahead(groups: For, near: frozenset[Buffer], scope: Scope) -> Iterator[str]:
    """Lines for the start of the body of `groups`, where lanes read a row group after group. `near`: buffers that need none."""
    for lanes, first, inside in streams(groups):
        if first.buffer not in near:
            place = place_text(first, scope, inside=inside)
            yield f"tx_fetch_ahead<{lanes.hi.constant}>(&{scope.named[first.buffer]}[{place}]);"
