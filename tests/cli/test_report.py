"""`texpr doctor --report`: what it has to say, and what it must not."""

from __future__ import annotations

import getpass
import json
import os
import platform
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from texpr import __version__
from texpr.cli.report import anonymous, report
from texpr.toolchain.doctor import Finding, State


def test_it_says_versions_and_tools(texpr: Call) -> None:
    code, out, err = texpr("doctor", "--report")
    assert (code, err) == (0, "")
    first, *rest = out.splitlines()
    assert first.startswith(f"texpr {__version__}, CPython {platform.python_version()}, {platform.system()} ")
    assert any(line.startswith("packages: numpy ") for line in rest)
    subjects = {line.partition(":")[0] for line in rest}
    assert {"C++ compiler", "CUDA compiler", "target cpu", "cache", "environment", "beside them"} <= subjects


def test_it_names_nobody(texpr: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of a home, by its environment, are not in it."""
    home = tmp_path / "people" / "ada"
    (home / ".cache").mkdir(parents=True)
    for name, value in {"HOME": str(home), "USER": "ada", "TEXPR_CACHE": f"{home}/.cache/built"}.items():
        monkeypatch.setenv(name, value)
    code, out, _ = texpr("doctor", "--report")
    assert code == 0 and "ada" not in out and "TEXPR_CACHE=~/.cache/built" in out
    assert json.loads(texpr("doctor", "--report", "--json")[1]) == {"ok": True, "report": out.rstrip("\n")}


def test_secrets_stay_where_they_are(texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hunter2")
    assert "hunter2" not in texpr("doctor", "--report")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/home/ada/bin/g++ (12)", "~/bin/g++ (12)"),
        ("/home/eve/bin/g++", "~/bin/g++"),
        ("/Users/eve", "~"),
        ("CXX=/mnt/ada/cc, x", "CXX=/mnt/USER/cc, x"),
        ("/home/adam/x and /opt/adam/x", "~/x and /opt/adam/x"),
        ("ada ada++ canada", "ada ada++ canada"),
        ("/usr/bin/g++", "/usr/bin/g++"),
    ],
)
def test_names_in_paths(text: str, said: str) -> None:
    assert anonymous(text, Path("/home/ada"), {"USER": "ada"}) == said


def test_a_home_at_the_root_hides_nothing() -> None:
    assert anonymous("/usr/bin", Path("/"), {"USER": "root"}) == "/usr/bin"


def test_the_name_of_the_home_is_a_name() -> None:
    assert anonymous("/mnt/fast/ada/cc", Path("/data/people/ada"), {}) == "/mnt/fast/USER/cc"


def test_details_of_findings_are_told_without_names() -> None:
    text = report([Finding("C++ compiler", State.OK, "/home/ada/gcc (1)")], {"CXX": "/home/ada/gcc"}, Path("/home/ada"))
    assert "C++ compiler: ok: ~/gcc (1)" in text and "environment: CXX=~/gcc" in text and "ada" not in text


def test_this_user_is_not_in_the_report(texpr: Call) -> None:
    out = texpr("doctor", "--report")[1]
    home = os.path.expanduser("~")
    assert home == "/" or home not in out
    assert f"/{getpass.getuser()}/" not in out
