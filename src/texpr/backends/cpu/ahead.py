"""Software prefetching, where a core's hardware prefetchers are not sufficient.

A reduction in lanes reads one stream and does little with it. The hardware prefetcher has too few reads in flight for the
memory's bandwidth, and their number depends on the alignment of the data. So each group of lanes prefetches data for later
groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.backends.c.scope import Scope
from texpr.backends.c.value import place_text
from texpr.ir.kernel import For
from texpr.ir.kernel.vector.streams import streams
from texpr.ir.value import Buffer


def fetch_ahead(groups: For, near: frozenset[Buffer], scope: Scope) -> Iterator[str]:
    """Lines for the start of the body of `groups`, if lanes read consecutive rows in it. `near`: buffers that need no
    prefetch."""
    for lanes, first, inside in streams(groups):
        if first.buffer not in near:
            place = place_text(first, scope, inside=inside)
            yield f"tx_fetch_ahead<{lanes.hi.constant}>(&{scope.named[first.buffer]}[{place}]);"
