"""Plans for callers whose arrays begin, and whose rows are, whole vectors: proved, tested for by the launcher, and shipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.planner.bare import TILED
from tests.proof.plan.verdicts import is_proved

import texpr
from texpr import artifact, driver
from texpr.affine.expr import Sym, expr
from texpr.artifact.check.recheck import recheck
from texpr.cli import main
from texpr.explain import explain
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel.verify import verify as verify_plan
from texpr.ir.kernel.verify import wide_plan_is_of_the_same_function
from texpr.ir.value import Buffer
from texpr.ir.value.types import U64
from texpr.proof.schedule import faithful
from texpr.proof.search import proved
from texpr.runtime.memory import aligned_empty
from texpr.support.diagnostic import limitation
from texpr.support.record import replace
from texpr.toolchain import this_machine

from .conftest import Log, Make
from .forging import forged, refusal, swap

TEXT = """
fn line(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
fn rows(x: f32[m, n], b: f32[n]): f32[m, n] {
    new y: f32[m, n]
    par m, n |i, j| { y[i, j] = gelu(x[i, j] + b[j]) }
    return y
}
fn apart(x: bf16[m, n] stride(ld, 1), b: bf16[n]): bf16[m, n] where ld >= n {
    new y: bf16[m, n]
    par m, n |i, j| { y[i, j] = x[i, j] + b[j] }
    return y
}
fn nine(x: f32[m, 9, c]): f32[m, 9 * c] {
    new y: f32[m, 9 * c]
    par m, 9, c |i, s, j| { y[i, c * s + j] = x[i, s, j] }
    return y
}
fn beside(x: f32[m, n], t: f32[n, m]): f32[m, n] {
    new y: f32[m, n]
    par m, n |i, j| { y[i, j] = 2.0 * x[i, j] }
    return y
}
fn promised(x: f32[m, n] align(16)): f32[m, n] where n % 4 == 0 {
    new y: f32[m, n]
    par m, n |i, j| { y[i, j] = 2.0 * x[i, j] }
    return y
}
fn odd(x: f32[m, 7]): f32[m, 7] {
    new y: f32[m, 7]
    par m, 7 |i, j| { y[i, j] = 2.0 * x[i, j] }
    return y
}
"""
TEXT += TILED


def compiled(name: str, target: str = "sm_90a", **sizes: int) -> driver.Compiled:
    return driver.lower(driver.parse(TEXT)[name], target, sizes, schedule="auto")


ASKED = {
    "line": ({"x": 16, "y": 16, "z": 16}, []),
    "rows": ({"x": 16, "b": 16, "y": 16}, ["(n % 4) == 0"]),
    "apart": ({"x": 16, "b": 16, "y": 16}, ["(ld % 8) == 0", "(n % 8) == 0"]),
    "nine": ({"x": 16, "y": 16}, ["(c % 4) == 0"]),
    "beside": ({"x": 16, "y": 16}, ["(n % 4) == 0"]),
}


@pytest.mark.parametrize("name", ASKED)
def test_no_more_is_asked_for_than_is_used(name: str) -> None:
    found = compiled(name)
    align, where = ASKED[name]
    wide = explain(found, this_machine())["wide"]
    assert (wide["align"], wide["where"]) == (align, where)
    assert len(wide["kernels"]) == 1 and wide["kernels"][0]["vectors"]


def test_explain_says_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "biased.te"
    path.write_text("".join(part for part in TEXT.partition("fn apart")[0].partition("fn rows")[1:]))
    assert main(["explain", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.partition("launched instead")[2].split())
    assert "addresses: x, b, y begin at a multiple of 16 bytes sizes: (n % 4) == 0 bound:" in said
    assert "kernel rows_y_wide" in said and "vectors: load of 4 of x" in said


@pytest.mark.parametrize("name", ["promised", "odd"])
def test_where_there_is_none(name: str) -> None:
    """What is promised is used already; rows of 7 are no vectors."""
    assert compiled(name).wide is None


def test_who_has_none() -> None:
    assert compiled("line", "cpu").wide is None
    assert driver.lower(driver.parse(TEXT)["line"], "sm_90a", schedule=None).wide is None
    assert compiled("rows", n=7).wide is None
    fixed = compiled("rows", n=8).wide
    assert fixed is not None and fixed.plan.requires == ()


@pytest.mark.parametrize("name", ASKED)
def test_both_plans_are_proved(name: str) -> None:
    found = compiled(name)
    assert found.wide is not None and found.wide.written is not None and found.plan.wide is found.wide.plan
    verify_plan(found.plan, found.target)
    for each in (found, found.wide):
        assert is_proved(proved(each.function, each.plan))
        assert each.written is None or is_proved(faithful(each.written, each.function))


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_for_is_needed(name: str) -> None:
    """Without one of the promises, the wide kernels are not proved, or not well formed."""
    wide = compiled(name).wide
    assert wide is not None
    for fact in wide.plan.requires[len(compiled(name).plan.requires) :]:
        fewer = replace(wide.plan, requires=tuple(each for each in wide.plan.requires if each is not fact))
        function = replace(wide.function, where=tuple(f for f in wide.function.where if str(f.left) != str(fact.left)))
        assert not is_proved(proved(function, fewer)), fact


def addresses(bytes_: int, *moved: int) -> list[int]:
    """Addresses of three arrays, so many bytes behind what is aligned: nothing is read there."""
    return [(1 << 30) + at * bytes_ + shift for at, shift in enumerate(moved)]


PLACES = [((0, 0, 0), "wide"), ((4, 0, 0), ""), ((0, 8, 0), ""), ((0, 0, 12), ""), ((16, 32, 48), "wide")]


@pytest.mark.parametrize(("moved", "chosen"), PLACES)
def test_the_launcher_looks_at_addresses(make_launcher: Make, log: Log, moved: tuple[int, ...], chosen: str) -> None:
    launcher = make_launcher([compiled("line").plan])
    assert launcher.load() == 0
    log.lines()
    assert launcher(2.0, *addresses(4096, *moved), 1000) == 0
    (launch,) = log.launches()
    assert launch["name"] == ("line_z_wide" if chosen else "line_z")
    assert launcher.unload() == 0


@pytest.mark.parametrize(("n", "chosen"), [(64, "wide"), (66, ""), (68, "wide"), (0, None)])
def test_the_launcher_looks_at_sizes(make_launcher: Make, log: Log, n: int, chosen: str | None) -> None:
    launcher = make_launcher([compiled("rows").plan])
    assert launcher.load() == 0
    log.lines()
    assert launcher(*addresses(1 << 16, 0, 0, 0), 10, n) == 0
    assert [each["name"] for each in log.launches()] == ([] if chosen is None else ["rows_y_wide" if chosen else "rows_y"])
    assert launcher.unload() == 0


def test_what_fails_fails_as_without(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([compiled("apart").plan])
    x, b, y = addresses(1 << 16, 0, 0, 0)
    assert launcher.load() == 0
    assert launcher(x, b, y, 10, 64, 32) == -6  # ld >= n does not hold
    assert launcher(x, b, y + 1, 10, 64, 64) == -4
    assert launcher(None, b, y, 10, 64, 64) == -3
    assert launcher.unload() == 0


def placed(source: np.ndarray, shift: int) -> np.ndarray:
    """The same array, so many elements behind an aligned address."""
    room = aligned_empty(source.dtype, (source.size + shift,), 256)
    found = room[shift:].reshape(source.shape)
    found[...] = source
    return found


@pytest.mark.parametrize("n", [64, 66])
@pytest.mark.parametrize("shift", [0, 1])
def test_both_compute_the_same(n: int, shift: int) -> None:
    """The emulator reports an access that is not aligned."""
    kernel = texpr.compile(texpr.parse(TEXT)["rows"], "sm_90a", emulate=True)
    rng = np.random.default_rng(n)
    given = {"x": rng.standard_normal((5, n)).astype(np.float32), "b": rng.standard_normal(n).astype(np.float32)}
    want = interpret(texpr.parse(TEXT)["rows"], given)["y"]
    assert np.allclose(kernel(placed(given["x"], shift), placed(given["b"], 0)), want, rtol=1e-5, atol=1e-6)
    out = placed(np.zeros((5, n), np.float32), shift)
    kernel(given["x"], given["b"], out=out)
    assert np.allclose(out, want, rtol=1e-5, atol=1e-6)


def test_what_is_not_proved_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wide plan alone: the other one is still there."""
    shown = artifact.show

    def open_(function: object, plan: k.Plan, written: object = None) -> artifact.Shown:
        if any(kernel.name.endswith("_wide") for kernel in k.kernels(plan.steps)):
            raise limitation("E0508", None, "undecided")
        return shown(function, plan, written)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr("texpr.artifact.show", open_)
    (part,) = texpr.delivery.parts([texpr.parse(TEXT)["line"]], ["sm_90a"])
    assert part.plans[0].wide is None and part.shown[0].wide is None


WRONG: list[tuple[str, Callable[[k.Plan, k.Plan], k.Plan]]] = [
    ("another one", lambda plan, wide: replace(wide, wide=plan)),
    ("another function", lambda plan, wide: replace(wide, name="other")),
    ("other parameters", lambda plan, wide: replace(wide, params=wide.params[::-1])),
    ("begin elsewhere", lambda plan, wide: replace(wide, params=tuple(replace(p, align=4) for p in wide.params))),
    ("asks for less", lambda plan, wide: replace(wide, requires=())),
    ("are called", lambda plan, wide: replace(wide, steps=plan.steps)),
    ("one launch", lambda plan, wide: replace(wide, steps=(_together(wide),))),
]


def _together(plan: k.Plan) -> k.HostLoop:
    return k.HostLoop(Sym("t"), expr(2), plan.steps, k.Together("all", Buffer("meet", U64, (), "local")))


@pytest.mark.parametrize(("told", "change"), WRONG, ids=[told for told, _ in WRONG])
def test_a_wide_plan_is_of_the_same_function(told: str, change: Callable[[k.Plan, k.Plan], k.Plan]) -> None:
    plan = compiled("apart").plan
    assert plan.wide is not None and not [*wide_plan_is_of_the_same_function(plan)]
    aligned = replace(plan, params=tuple(replace(p, align=8) for p in plan.params))
    said = wide_plan_is_of_the_same_function(replace(aligned, wide=change(plan, plan.wide)))
    assert any(told in each for each in said)


def test_a_wide_plan_of_another_program_is_refused() -> None:
    """It is proved, and asks for what the right one does; but its program is not that of the other plan."""
    own, other = (texpr.delivery.parts([texpr.parse(text)["apart"]], ["sm_90a"])[0] for text in (TEXT, OTHER))
    assert recheck([own])[0] == recheck([other])[0] == []
    plan, shown = replace(own.plans[0], wide=other.plans[0].wide), replace(own.shown[0], wide=other.shown[0].wide)
    (wrong,) = recheck([replace(own, plans=(plan,), shown=(shown,))])[0]
    assert "not the program for callers who promise more" in wrong


@pytest.mark.long
def test_results_that_both_plans_align() -> None:
    """They are stored in pairs by the one plan, and by the other in vectors: neither is a promise of callers."""
    text = (Path(__file__).parents[2] / "bench" / "problems" / "attention_plain.te").read_text(encoding="utf-8")
    (part,) = texpr.delivery.parts([texpr.parse(text)["attention"]], ["sm_90a"], {"D": 64})
    assert part.plans[0].wide is not None and all(b.align for b in part.plans[0].results)
    assert recheck([part])[0] == []


OTHER = TEXT.replace("y[i, j] = x[i, j] + b[j]", "y[i, j] = x[i, j] - b[j]")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp("wide") / "out"
    texpr.build(texpr.parse(TEXT)["apart"], ("sm_80", "sm_90a"), directory)
    return directory


PROOF = "proof/sm_90a/apart.wide."


def asks_for_less(out: Path) -> None:
    """Rows may begin anywhere, as the launcher does not look at them."""
    for end in ("te", "written.te", "plan"):
        path = out / (PROOF + end)
        kept = [line for line in path.read_text().split("\n") if not line.lstrip().startswith(("where ld %", "require (ld %"))]
        path.write_text("\n".join(kept))


def not_there(out: Path) -> None:
    for end in ("te", "written.te", "plan", "tags", "notes"):
        (out / (PROOF + end)).unlink()


def of_the_other_target(out: Path) -> None:
    for end in ("plan", "te"):
        shutil.copy(out / f"proof/sm_90a/apart.{end}", out / (PROOF + end))


def not_tested(out: Path) -> None:
    swap(out, "src/apart.c", "== TEXPR_OK) return tx_run_0_wide", "!= 77) return tx_run_0_wide")


FORGERIES = [asks_for_less, not_there, of_the_other_target, not_tested]


def test_it_is_verified(built: Path) -> None:
    found = artifact.verify(built)
    assert all("wide" in proof for each in found.proofs.values() for proof in each)


@pytest.mark.parametrize("edit", FORGERIES, ids=lambda edit: edit.__name__)
def test_a_forged_one_is_refused(built: Path, tmp_path: Path, edit: Callable[[Path], None]) -> None:
    assert refusal(forged(built, tmp_path / "out", edit))
