"""How long it takes to build an IterDomain graph of 40 transforms and to find the comparisons that it needs.

Promised: 20 ms where it is tiled as schedules tile. Processor time, warm. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from time import process_time

from common.graphs import mixed, tiled
from common.measure import Row, seconds, show
from texpr.affine.expr import Expr, Sym, sym
from texpr.affine.facts import Known
from texpr.domain.predicates.needed import predicates

LONGEST = 0.02
FIXED = [1000, 777, 640]
NAMES = ("M", "N", "K")
SYMBOLIC: list[Expr] = [sym(name) for name in NAMES]


def measure() -> list[Row]:
    """One row a graph: milliseconds, and how many comparisons are kept."""
    known = Known({Sym(name): (0, None) for name in NAMES})
    rows: list[Row] = []
    for title, build in (("tiled", tiled), ("mixed", mixed)):
        for kind, sizes in (("fixed", FIXED), ("symbolic", SYMBOLIC)):
            graph = build(sizes)
            found = predicates(graph, known)
            building = seconds(partial(build, sizes), process_time)
            rows.append(
                {
                    "graph": f"{title}, {kind}",
                    "transforms": len(graph.transforms),
                    "kept": len(found.kept),
                    "of": len(found.kept) + len(found.removed),
                    "build ms": 1e3 * building,
                    "both ms": 1e3 * (building + seconds(partial(predicates, graph, known), process_time)),
                }
            )
    return rows


def main() -> int:
    """Print the table; exit 1 where the promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    rows = measure()
    show("graph and comparisons", rows, options.json)
    return 1 if any(float(row["both ms"]) > 1e3 * LONGEST for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
