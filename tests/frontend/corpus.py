"""Every program at hand: those of the test files, the gallery and the language page."""

from __future__ import annotations

import re
from pathlib import Path

from tests.frontend.cases import read

ROOT = Path(__file__).parents[2]


def right() -> dict[str, str]:
    """Programs without errors of syntax, names and types, by a name to show."""
    found = {f"core: {case.name}": case.source for case in read("core.test")}
    found |= {f"printed: {case.name}": case.expected for case in read("core.test")}
    found |= {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.te"))}
    page = ROOT / "docs" / "language.md"
    blocks = re.findall(r"```te[^\n]*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL) if page.exists() else []
    return found | {f"language {k}": block for k, block in enumerate(blocks)}


def wrong() -> dict[str, str]:
    """Programs with errors."""
    return {f"wrong: {case.name}": case.source for case in read("wrong.test")}


SCHEDULES = """
schedule matmul "hopper" for sm_90a {
    split(i, 128) -> (bi, ti)
    reorder(bi, bj, ko, ti, tj, ki)
    bind(bi, grid.y)  bind(bj, grid.x) bind(_, auto)
    stage(A, at=ko, in=shared, via=tma, box=(128, 64), swizzle=128B, multicast=bj) -> As
    stage(B, at=ko, in=shared, via=tma, box=(64, -64), fill=-0.5) -> Bs      -- four boxes a stage
    pipeline(ko, stages=4, specialize=(producer: 1 warp, consumer: 2 warpgroups))
    name("a" "b\\n", (), seq, for=if.then) -> ()
    split(i, (n + 3) / 4 - -2, -n, - -3, at=min(n, 2 * (k)) % 8, box=(n, (2), n + 1,), fill=-inf)
}
schedule f { }
"""
"""Schedule blocks, which are parsed and kept as they are."""
