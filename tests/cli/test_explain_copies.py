"""What `texpr explain` says of asynchronous copies and of the waits for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.backends.tiles import TILED
from tests.backends.transfers import STAGES
from tests.lowering.test_holes import ROWS, figure_2
from tests.lowering.test_named_runs import COMBINE
from tests.lowering.test_named_runs import TILES as BY_RUNS
from tests.schedule.laid import laid

from texpr.cli import main
from texpr.explain.kernels import barriers, copies
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.isa.memories import COALESCING
from texpr.mapping.cost.access import accesses

RING = Path(__file__).parents[2] / "examples" / "tma" / "matmul_ring.te"


def test_copies_and_waits_are_named() -> None:
    kernel = next(k.kernels(parse_plan(STAGES).steps))
    first, other = copies(kernel)
    assert first == {
        "engine": "cp.async",
        "from": "x",
        "to": "stage",
        "bytes": 16,
        "when": "0 < c",
        "otherwise": "zeros",
        "line": 17,
    }
    assert (other["when"], other["line"]) == ("i + 1 < c", 24)
    found = list(barriers(kernel))
    assert [(each["kind"], each["pending"]) for each in found] == [
        ("copies", 1),
        ("block", None),
        ("block", None),
        ("copies", 0),
    ]
    assert found[2]["covers"] == [{"kind": "WAR", "buffer": "stage", "from_line": 33, "to_line": 33, "carried_by": "i"}]


def test_copies_of_tiles_name_their_maps() -> None:
    (copy,) = copies(TILED["transpose"].kernel)
    map = {"name": "xm", "rank": 2, "sizes": ["n", "m"], "strides": ["4 * n"], "box": [32, 32], "steps": [1, 1], "swizzle": 128}
    whole = {**map, "interleave": 0, "fill": "zero"}
    ends = {"engine": "tma", "from": "x", "to": "tile", "bytes": 4096, "when": None, "otherwise": None, "line": 30}
    assert copy == {**ends, "map": whole, "reduce": None, "blocks": None}
    assert [each["kind"] for each in barriers(TILED["transpose"].kernel)] == ["block", "phase"]
    (added,) = copies(TILED["reduce"].kernel)
    assert (added["from"], added["to"], added["reduce"], added["bytes"]) == ("tile", "z", "add", 256)
    assert [(each["kind"], each["pending"]) for each in barriers(TILED["store"].kernel)][1] == ("reads", 0)
    assert [each["engine"] for each in copies(TILED["bulk"].kernel)] == ["bulk", "bulk"]
    (sums,) = k.kernels(laid(COMBINE, BY_RUNS.format("Y")).plan.steps)
    (run,) = copies(sums)
    assert (run["bytes"], run["exactly"], run["reduce"]) == (192, "4 * min(D - 48 * jo, 48)", "add")


def test_copies_of_tiles_cost_threads_nothing() -> None:
    assert {access.buffer for access in accesses(TILED["ring"].kernel, COALESCING)} == {"stage", "z"}


@pytest.mark.parametrize(("word", "otherwise"), [("fill=zero", "zeros"), ("save_traffic=true", "nothing")])
def test_what_is_asked_before_a_tile_is_named(word: str, otherwise: str) -> None:
    """Once: the copy that only fills is no other one."""
    (kernel,) = k.kernels(laid(ROWS, figure_2(f", {word}", "stage(y, at=i7, in=shared, via=tma) -> ys")).plan.steps)
    into, out = copies(kernel)
    assert (into["when"], into["otherwise"]) == ("i7 < 2", otherwise)
    assert (out["when"], out["otherwise"]) == ("i7 < 2", "nothing")


def test_rings_say_how_far_ahead(capsys: pytest.CaptureFixture[str]) -> None:
    """In words, and in data."""
    assert main(["explain", str(RING), "--for", "sm_90a"]) == 0
    assert "part of A at ko, from (64 * bi, 32 * ko), by tma, 3 turns ahead in a ring of 4 slots" in capsys.readouterr().out
    assert main(["explain", str(RING), "--for", "sm_90a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["stages"] for each in found["layout"]["staged"]] == [1, 4, 4]
