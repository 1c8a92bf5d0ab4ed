"""`texpr tune`, whole: a search by worker processes, and everything that keeps one from beginning."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Call
from tests.planner.programs import MATMUL
from tests.tune.programs import CUBE, PLUS, problem

from texpr import delivery
from texpr.cli.tuning import measure as module
from texpr.cli.tuning.measure import measure, small_sizes
from texpr.cli.verbs.tune import none_measured
from texpr.driver import parse
from texpr.support.record import replace
from texpr.tune.outcome import FAILED, REFUSED, Outcome, task
from texpr.tune.problem import Problem, compiled_at


@pytest.fixture
def plus(tmp_path: Path) -> Path:
    file = tmp_path / "plus.te"
    file.write_text(PLUS, encoding="utf-8")
    return file


def test_a_search_is_told_kept_and_written(texpr: Call, plus: Path) -> None:
    code, out, err = texpr("tune", plus, "--size", "n=1000", "--space", "tile=16", "--write")
    assert (code, err) == (0, "")
    assert "plus for cpu" in out and "time, measured on a worker's processor" in out and "first:" in out
    assert "1 of 1 points tried; 0 refused, 0 failed" in out and 'schedule plus "tiled" for cpu {' in out
    data = json.loads((plus.with_name("plus.tune") / "tune.json").read_text(encoding="utf-8"))
    assert plus.read_text(encoding="utf-8") == PLUS.replace("= 128", "= 16")
    assert data["objective_means"].startswith("measured on") and data["measured"] == 1
    assert all(each["details"]["checked"] == {"sizes": {"n": 1000}, "equal": True} for each in data["trials"])
    code, out, _ = texpr("tune", plus, "--size", "n=1000", "--space", "tile=16", "--json")
    again = json.loads(out)
    assert code == 0 and again["ok"] and again["trials"] == data["trials"]  # nothing was measured again


def test_a_bound_is_named_one(texpr: Call, plus: Path) -> None:
    plus.write_text(PLUS.replace("for cpu", "for cuda"), encoding="utf-8")
    code, out, err = texpr("tune", plus, "--for", "sm_90a", "--size", "n=1000", "--space", "tile=64")
    assert (code, err) == (0, "")
    assert "plus for sm_90a at n = 1000: bound, the model's lower bound of the time, read from the plan; no GPU ran it" in out
    (trial,) = json.loads((plus.with_name("plus.tune") / "tune.json").read_text(encoding="utf-8"))["trials"]
    assert trial["details"]["device"] == "H100 SXM5" and trial["details"]["checked"]["equal"] and 0 < trial["value"] < 1e-3


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--space", "tile="), 2, "E0841"),
        (("--space", "tile"), 2, "--space takes NAME=16,32"),
        (("--space", "tile=x"), 2, "`x` is neither a whole number"),
        (("--space", "tile=1", "--space", "tile=2"), 2, "given twice"),
        (("--space", "n=1"), 2, "`n` is none of consts"),
        (("--size", "tile=8"), 2, "there is nothing to search"),
        (("--schedule", "none"), 2, "no schedule has nothing to search"),
        (("--schedule", "other"), 2, "E0860"),
        (("--for", "sm_90a", "--objective", "time"), 2, "--objective time is for --for cpu"),
        (("--objective", "bound"), 2, "nothing is known of how fast"),
        (("--workers", "0"), 2, "--workers takes a number"),
        (("--workers", "dask://127.0.0.1:x"), 2, "E0844"),
        (("--storage", "nonsense"), 2, "E0842"),
        (("--storage", "sqlite:////nowhere/at/all.db"), 2, "unable to open database file"),
        (("--storage", "postgresql://me:secret@localhost/x"), 2, "E0842"),
    ],
)
def test_what_cannot_begin(texpr: Call, plus: Path, arguments: tuple[str, ...], code: int, told: str) -> None:
    sizes = ("--size", "n=100")
    found, out, err = texpr("tune", plus, *sizes, *arguments)
    assert (found, out, told in err) == (code, "", True), err
    assert "secret" not in err


def test_a_size_that_time_needs_is_asked_for(texpr: Call, plus: Path) -> None:
    code, _, err = texpr("tune", plus)
    assert code == 2 and "give --size n=" in err


@pytest.mark.parametrize(("missing", "extra"), [("optuna", "tune"), ("distributed", "cluster")])
def test_where_a_package_is_missing_its_extra_is_named(
    missing: str, extra: str, texpr: Call, plus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each in ("texpr.tune.study", "texpr.tune.crews.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    code, out, err = texpr("tune", plus, "--size", "n=100", "--workers", "dask://127.0.0.1:1")
    assert (code, out, "E0840" in err, f"pip install 'texpr-compiler[{extra}]'" in err) == (2, "", True, True), err


def outcome(of: Problem, **point: int) -> Outcome:
    return Outcome.of(measure(task(of, point)))


def test_a_candidate_that_is_refused_is_an_outcome() -> None:
    found = outcome(problem(), tile=0)
    assert (found.state, found.code, found.value) == (REFUSED, "E0902", None)
    wrong = problem(PLUS.replace(": f32[n] {", ": f32[n] where n % tile == 0 {", 1), n=1000)
    assert outcome(wrong, tile=16).code == "E0710"


def test_a_candidate_that_computes_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.interp, "run", lambda *_: {"z": module.np.ones(1000, "float32") * 1e6})
    module._kept().clear()  # pyright: ignore[reportPrivateUsage]
    found = outcome(problem(), tile=16)
    module._kept().clear()  # pyright: ignore[reportPrivateUsage]
    assert (found.state, found.code) == (REFUSED, "E0858")


@pytest.mark.planted
def test_a_candidate_that_is_not_proved_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, of = delivery.proved, problem(PLUS)
    wrong = compiled_at(replace(of, text=PLUS.replace("x[i] +", "x[i] -")), {"tile": 8}).plan
    monkeypatch.setattr(delivery, "proved", lambda function, plan: whole(function, wrong))
    monkeypatch.setattr(module, "measured", lambda *_: pytest.fail("it was measured"))
    found = outcome(of, tile=8)
    assert (found.state, found.code) == (REFUSED, "E0508")


def test_a_fault_of_the_compiler_costs_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(*_: object) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(module, "schedule_at", planted)
    found = outcome(problem(), tile=16)
    assert (found.state, "internal error: ValueError: planted" in found.reason) == (FAILED, True)


def test_another_release_does_not_measure() -> None:
    found = Outcome.of(measure(task(problem(), {"tile": 4}).replace('"version": "', '"version": "9')))
    assert (found.state, "the worker has release" in found.reason) == (FAILED, True)


def test_where_nothing_is_measured_reasons_are_told() -> None:
    class Over:
        point: dict[str, int] = {"tile": 1}  # noqa: RUF012
        outcome = Outcome(REFUSED, code="E0911", reason="no vectors")

    (found,) = none_measured(problem(), [Over(), Over()]).diagnostics
    assert (found.code, [note.text for note in found.notes]) == ("E0843", ["2 times: E0911: no vectors"])


def test_small_sizes_keep_what_is_left_of_tiles() -> None:
    whole = parse(MATMUL)["matmul"]
    found = list(small_sizes(whole, {"M": 4096, "N": 1000, "K": 70}))
    assert found[0] == {"M": 128, "N": 232, "K": 70}
    assert all(each["N"] % 8 == 0 and each["M"] % 8 == 0 for each in found)
    assert next(small_sizes(whole, CUBE)) == CUBE
