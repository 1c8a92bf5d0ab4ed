"""`texpr draw`: which graphs it finds, where it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.draw.graphs import classed, texts

from texpr.draw.kinds import graphs
from texpr.driver import parse
from texpr.isa.registry import resolve

PLAIN = """
fn f(x: f32[n, m]): f32[n] {
    new y: f32[n]
    par n |i| {
        new s: f32 = 0.0
        seq m |j| reduce(s) { s += x[i, j] }
        par 4 |k| reduce(s) { s += 1.0 }
        y[i] = s
    }
    return y
}
"""
SPLIT = 'schedule f { split(i, 128) -> (bi, ti) }\nschedule f "other" { split(j, 4) -> (jo, ji) }\n'


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "f.te"
    path.write_text(PLAIN + SPLIT, encoding="utf-8")
    return path


def test_every_nest_has_its_graph() -> None:
    function = parse(PLAIN + SPLIT)["f"]
    plain = graphs(function, None, resolve("sm_90a"))
    assert [nest.caption for nest in plain] == ["par i, seq j (line 6)", "par i, par k (line 7)"]
    assert [[str(leaf) for leaf in nest.graph.leaves] for nest in plain] == [["i{n}", "j{m}"], ["i{n}", "k{4}"]]
    assert all(not nest.graph.transforms and not nest.predicates.kept for nest in plain)
    scheduled = graphs(function, function.schedules[0], resolve("sm_90a"))
    assert [[leaf.sym.name for leaf in nest.graph.leaves] for nest in scheduled] == [["bi", "ti", "j"], ["bi", "ti", "k"]]
    assert [[str(kept.bound) for kept in nest.predicates.kept] for nest in scheduled] == [["i < n"], ["i < n"]]


def test_a_picture_is_written(program: Path, tmp_path: Path, texpr: Call) -> None:
    out = tmp_path / "f.svg"
    assert texpr("draw", program, "--what", "domain", "-o", out) == (0, f"{out}: domain of f\n", "")
    svg = out.read_text(encoding="utf-8")
    assert {"i{n}", "Split(128)", "bi{⌈n/128⌉}", "ti{128}", "i < n"} <= set(texts(svg))
    assert len(classed(svg, "transform")) == 2
    texpr("draw", program, "--what", "domain", "-o", out)
    assert out.read_text(encoding="utf-8") == svg


@pytest.mark.parametrize(("schedule", "transforms"), [("none", set()), ("other", {"Split(4)"})])
def test_the_schedule_is_chosen(schedule: str, transforms: set[str], program: Path, tmp_path: Path, texpr: Call) -> None:
    out = tmp_path / "f.svg"
    code, _, err = texpr("draw", program, "--what", "domain", "-o", out, "--schedule", schedule)
    assert (code, err) == (0, "")
    assert {text for text in texts(out.read_text(encoding="utf-8")) if text.startswith("Split")} == transforms


def test_sizes_may_be_fixed(program: Path, tmp_path: Path, texpr: Call) -> None:
    out = tmp_path / "f.svg"
    code, said, err = texpr("draw", program, "--what", "domain", "-o", out, "--size", "n=300", "--json")
    assert (code, err) == (0, "")
    assert json.loads(said) == {"ok": True, "function": "f", "what": "domain", "file": str(out)}
    assert {"i{300}", "bi{3}", "i < 300"} <= set(texts(out.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["--what", "domain", "-o", "a.png"], 2, "-o takes a name that ends in .svg, not `a.png`; `rsvg-convert` makes PNG"),
        (["--what", "time", "-o", "a.svg"], 2, "Invalid value for '--what': 'time' is not one of 'domain', 'layout'"),
        (["--what", "tma", "-o", "a.svg"], 2, "`f` copies nothing by TMA; say so with `stage(…, via=tma)`"),
        (["--what", "layout", "-o", "a.svg"], 2, "no directive changes how a buffer of `f` lies in memory"),
        (["--what", "mapping", "-o", "a.svg"], 2, "sizes that are open: give --size n=… --size m=…"),
        (
            ["--what", "mapping", "-o", "a.svg", "--for", "cpu", "--size", "n=9", "--size", "m=9"],
            2,
            "has no threads",
        ),
        (["--what", "fragment", "-o", "a.svg"], 2, "`f` gives nothing to an instruction of lanes: `texpr explain` says why"),
        (["--what", "fragment", "--instr", "mma_m1", "-o", "a.svg"], 2, "there is no instruction `mma_m1` whose operands have"),
        (["--what", "domain", "--instr", "mma_m1", "-o", "a.svg"], 2, "--instr is for --what fragment, not for --what domain"),
        (["-o", "a.svg"], 2, "Missing option '--what'"),
        (["--what", "domain"], 2, "Missing option '-o'"),
        (["--what", "domain", "-o", "no/such/a.svg"], 2, "error[E0855]: `no/such/a.svg` cannot be written"),
        (["--what", "domain", "-o", "a.svg", "--schedule", "mine"], 2, "error[E0860]: `f` has no schedule `mine`"),
        (["--what", "domain", "-o", "a.svg", "--for", "moon"], 2, "there is no target `moon`"),
    ],
)
def test_a_wrong_call_is_refused(
    arguments: list[str],
    code: int,
    word: str,
    program: Path,
    tmp_path: Path,
    texpr: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    got, out, err = texpr("draw", program, *arguments)
    assert (got, out) == (code, "")
    assert word in err
    assert [path.name for path in tmp_path.iterdir()] == [program.name]


def test_what_is_wrong_in_the_program_is_said(tmp_path: Path, texpr: Call) -> None:
    path = tmp_path / "g.te"
    path.write_text(PLAIN + "schedule f { split(q, 4) -> (a, b) }\n", encoding="utf-8")
    code, _, err = texpr("draw", path, "--what", "domain", "-o", tmp_path / "g.svg")
    assert code == 1 and "error[E" in err
    path.write_text("fn g(x: f32): f32 {\n    new y: f32 = x\n    return y\n}\n", encoding="utf-8")
    code, _, err = texpr("draw", path, "--what", "domain", "-o", tmp_path / "g.svg")
    assert code == 2 and "`g` has no loops to draw" in err
    assert not (tmp_path / "g.svg").exists()


TILES = Path(__file__).parents[2] / "examples" / "tma"


@pytest.mark.parametrize(
    ("name", "what", "sizes", "expected"),
    [
        (
            "transpose",
            "tma",
            ["M=100", "N=100"],
            {"partitioned IterDomain", "copied by the box", "filled with zero", "i{100}"},
        ),
        ("transpose", "tma", [], {"sizes are open: give them (--size) to see a box on the tensor"}),
        ("strided_copy", "tma", ["H=9", "W=10", "C=8"], {"in the box, stepped over"}),
        ("transpose", "layout", [], {"As"}),
        ("transpose", "mapping", ["M=64", "N=64"], {"0.0", "5.31", "bank"}),
        ("transpose", "timeline", [], {"As (shared)", "B (global)"}),
        ("../matmul", "fragment", [], {"W0 T7 R5", "wgmma_m64n256k16_f32_bf16_bn: 128 lanes"}),
    ],
)
def test_kernels_are_drawn(name: str, what: str, sizes: list[str], expected: set[str], tmp_path: Path, texpr: Call) -> None:
    out = tmp_path / "f.svg"
    fixed = [word for size in sizes for word in ("--size", size)]
    code, said, err = texpr("draw", TILES / f"{name}.te", "--what", what, "-o", out, *fixed)
    assert (code, err) == (0, "") and what in said
    assert expected <= set(texts(out.read_text(encoding="utf-8")))
