"""Builds by several processes: the same bytes, the same words, and nothing half written, whatever happens to one of them.

Each build is a process of its own: this one has the threads of whatever runs the tests, and so would never fork.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLUS = """fn plus{k}(x: f32[n], y: f32[n, {k}]): f32[n] {{
    new z: f32[n]
    par n |i| {{
        z[i] = x[i]
        seq {k} |j| {{ z[i] += y[i, j] }}
    }}
    return z
}}
"""
WRONG = "schedule plus{k} {{ split(j, 3, guard=never) -> (a, b) }}\n"

PLANTED = """
import os, signal, sys
from texpr import delivery
from texpr.cli import main

def lower(function, *more, **named):
    if function.name == "plus3":
        {deed}
    return own(function, *more, **named)

own, delivery.driver.lower = delivery.driver.lower, lower
sys.exit(main())
"""


def file_of(folder: Path, count: int, *wrong: int) -> Path:
    """A file of some functions, of which some have a schedule that cannot be."""
    texts = [PLUS.format(k=k) + (WRONG.format(k=k) if k in wrong else "") for k in range(1, count + 1)]
    (folder / "many.te").write_text("\n".join(texts), encoding="utf-8")
    return folder / "many.te"


def texpr(*words: object, planted: str | None = None, cache: Path | None = None) -> tuple[int, str, str]:
    """Exit code, output and error of the command; `planted`: what to do instead of compiling `plus3`."""
    begin = ["-m", "texpr"] if planted is None else ["-c", PLANTED.replace("{deed}", planted)]
    command = [sys.executable, *begin, *map(str, words)]
    with tempfile.TemporaryDirectory() as empty:  # a plan that is kept is not made again
        where = cache or (None if planted is None else empty)
        environment = {**os.environ, **({} if where is None else {"TEXPR_CACHE": str(where)})}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout, done.stderr


def everything(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("targets", "count"),
    [(["cpu_avx512"], 3), pytest.param(["sm_80", "sm_90a"], 3, marks=pytest.mark.long)],
    ids=["cpu", "cuda"],
)
def test_the_same_bytes_for_any_number_of_processes(targets: list[str], count: int, tmp_path: Path) -> None:
    file, words = file_of(tmp_path, count), [word for target in targets for word in ("--for", target)]
    told: list[str] = []
    for jobs in (1, 3):
        out = tmp_path / f"by{jobs}"
        code, said, wrong = texpr("build", file, *words, "-o", out, "-j", jobs, cache=tmp_path / f"cache{jobs}")
        assert (code, wrong) == (0, "")
        told.append(said.replace(str(out), "out"))
    assert told[0] == told[1]
    assert everything(tmp_path / "by1") == everything(tmp_path / "by3")
    again = [texpr("verify", tmp_path / "by3", "--json", "--jobs", jobs) for jobs in (1, 3)]
    assert again[0] == again[1]
    assert again[0][0] == 0 and json.loads(again[0][1])["proof"].keys() == {*targets}


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_the_first_error_of_the_file_is_told(target: str, tmp_path: Path) -> None:
    file = file_of(tmp_path, 20, 17, 18, 20)
    told = [texpr("build", file, "--for", target, "-o", tmp_path / "out", "--jobs", jobs) for jobs in (1, 3)]
    assert told[0] == told[1]
    code, out, wrong = told[0]
    assert (code, out) == (1, "")
    assert wrong.count("error[") == 1 and f"{file}:{16 * 9 + 9}:" in wrong
    assert not (tmp_path / "out").exists()


def test_a_fault_of_ours_is_told_as_by_one(tmp_path: Path) -> None:
    file = file_of(tmp_path, 5)
    words = ("build", file, "--for", "cpu", "-o", tmp_path / "out")
    told = [texpr(*words, "-j", jobs, planted="raise KeyError('x')") for jobs in (1, 3)]
    assert told[0] == told[1]
    assert told[0][0] == 3 and "internal error: KeyError: 'x'" in told[0][2]
    assert not (tmp_path / "out").exists()
    code, out, _ = texpr(*words, "-j", 2, "--json", planted="raise KeyError('x')")
    assert (code, json.loads(out)["internal_error"]["message"]) == (3, "KeyError: 'x'")


def test_a_process_that_is_killed(tmp_path: Path) -> None:
    file = file_of(tmp_path, 5)
    words = ("build", file, "--for", "cpu", "-o", tmp_path / "out", "--jobs", 3)
    code, out, wrong = texpr(*words, planted="os.kill(os.getpid(), signal.SIGKILL)")
    assert (code, out) == (1, "")
    assert "error[E0611]: the process that worked on `plus3` for cpu was killed by signal 9" in wrong
    assert "= help: most often the machine ran out of memory: `--jobs 1` takes least" in wrong
    assert not (tmp_path / "out").exists()


def test_the_number_of_processes_may_be_an_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(tmp_path, 2)
    monkeypatch.setenv("TEXPR_JOBS", "none")
    code, _, wrong = texpr("build", file, "--for", "cpu", "-o", tmp_path / "out")
    assert code == 2 and "'none' is not a valid integer" in wrong
    code, _, wrong = texpr("build", file, "--for", "cpu", "-o", tmp_path / "out", "-j", 0)
    assert code == 2 and "0 is not in the range" in wrong


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--for", "cpu", "--for", "sm_80", "-o", "out"], "E0805"),
        (["--for", "cpu", "-o", "."], "E0810"),
        (["--for", "cpu", "-o", "out"], "E0602"),
    ],
)
def test_what_cannot_be_built_is_refused_before_all_is_compiled(
    words: list[str], code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "no-such-compiler")
    exit_code, _, wrong = texpr("build", file_of(tmp_path, 3), *words, planted="raise KeyError('compiled')")
    assert exit_code == (1 if code == "E0602" else 2)
    assert f"error[{code}]" in wrong
