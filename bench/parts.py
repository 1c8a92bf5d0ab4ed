"""How long parts of the compiler take, of which tests count the steps: warm, in processor time.

Promised: sixty lines parsed within 20 ms, the picture of a graph of 40 transforms drawn within 50 ms, a typical index
simplified within 50 µs, the threads of a nest mapped within 1 s, the certificate with them. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import process_time

from common.graphs import mixed
from common.growing import nests
from common.measure import Row, seconds, show
from texpr.affine.expr import Sym, sym
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.draw.domain import draw_domain
from texpr.driver import lower
from texpr.frontend import parse
from texpr.mapping.cost import least
from texpr.mapping.sigma import forget

ROOT = Path(__file__).parents[1]
AT_ONCE = 40
"""How often a simplification is done within one measurement."""


def simplified() -> None:
    """Indices as lowering has them, each by a simplifier that remembers nothing."""
    b, t = sym("b"), sym("t")
    typical = [(b * 256 + t) // 16, (b * 256 + t) // 16 % 8, (b * 128 + t) % 128, b * 8 + t // 32, t // 32 * 32 + t % 32]
    known = Known({Sym("b"): (0, 99), Sym("t"): (0, 255)})
    for _ in range(AT_ONCE):
        for value in typical:
            Simplifier(known)(value)


def mapped(text: str) -> None:
    """Lowered, and nothing remembered of how its threads were mapped."""
    function = parse(text).functions[0]
    forget()
    least.together.cache_clear()
    lower(function, "sm_90a", schedule=function.schedules[0] if function.schedules else None)


def programs() -> Mapping[str, str]:
    """Those of the table in docs/theory/mapping.md, which its tests keep."""
    sys.path.append(str(ROOT))
    found = importlib.import_module("tests.mapping.programs")
    return {**found.PROGRAMS, **found.SCHEDULED}


def parts() -> list[tuple[str, Callable[[], object], int, float]]:
    """What is measured: a name, a call, how many things that does, and the seconds promised of one."""
    sizes = [1000, 777, 640]
    return [
        ("sixty lines parsed", partial(parse, nests(30)), 1, 0.02),
        ("40 transforms drawn", partial(draw_domain, mixed(sizes)), 1, 0.05),
        ("an index simplified", simplified, 5 * AT_ONCE, 50e-6),
        *((f"mapped: {name}", partial(mapped, text), 1, 1.0) for name, text in programs().items()),
    ]


def main() -> int:
    """Print the table; exit 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    rows: list[Row] = [
        {"part": name, "ms": 1e3 * seconds(call, process_time, times=3) / many, "promised ms": 1e3 * most}
        for name, call, many, most in parts()
    ]
    show("parts of the compiler", rows, options.json)
    return 1 if any(float(row["ms"]) > float(row["promised ms"]) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
