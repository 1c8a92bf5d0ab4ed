"""`texpr explain --dump`: one form of a function, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from texpr.cli import main
from texpr.explain import FORMS
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.steps.parse import parse_steps
from texpr.ir.steps.text import steps_text

TEXT = """
fn f(x: f32[n, 50]): f32[n] {
    new y: f32[n]
    par n |i| {
        y[i] = 0
        par 50 |j| reduce(y) { y[i] += x[i, j] }
    }
    return y
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "f.te").write_text(TEXT, encoding="utf-8")
    return str(tmp_path / "f.te")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", ["cpu", "sm_80"])
def test_each_form_is_printed(form: str, target: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--for", target, "--dump", form]) == 0
    printed = capsys.readouterr().out
    begins = {"program": "fn f(", "steps": "steps f_", "kernel": "plan f\n", "source": "#include"}
    assert printed.startswith(begins[form])


def test_the_kernel_form_reads_as_what_prints_so(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--for", "sm_90a", "--dump", "kernel"]) == 0
    printed = capsys.readouterr().out
    assert "wait" not in printed and plan_text(parse_plan(printed)).split("\n")[0] == "plan f"


def test_the_steps_form_reads_as_what_prints_so(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--for", "sm_90a", "--dump", "steps"]) == 0
    printed = capsys.readouterr().out
    assert steps_text(parse_steps(printed)) == printed


def test_json_has_a_text_for_each_target(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--for", "cpu", "--for", "sm_80", "--dump", "kernel", "--json"]) == 0
    assert {name: text.split("\n")[0] for name, text in json.loads(capsys.readouterr().out).items()} == {
        "cpu": "plan f",
        "sm_80": "plan f",
    }


def test_an_unknown_form_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--dump", "tree"]) == 2
    assert "'program', 'steps', 'kernel', 'source'" in capsys.readouterr().err
