"""Progress: on a terminal alone, on standard error, and gone at the end."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = """\
fn one(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = 2 * x[i] }
    return y
}

fn two(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = 3 * x[i] }
    return y
}
"""


def called(folder: Path, *words: str, terminal: bool = True, term: str = "xterm") -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a call, which is a terminal or a pipe."""
    environment = {**os.environ, "TERM": term, "PYTHONPATH": str(ROOT / "src"), "TEXPR_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "texpr", *words]
    if not terminal:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
        return done.returncode, done.stdout, done.stderr
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # nobody has the other end any more
                break
            if not piece:
                break
            said += piece
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(ours)
    return process.returncode, out, said.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "f.te").write_text(FILE, encoding="utf-8")
    return tmp_path


def steps(said: str) -> list[str]:
    """The states of the line, in order."""
    return [line for line in said.replace("\x1b[K", "").split("\r") if line]


def test_a_build_says_what_nvcc_is_at(folder: Path) -> None:
    code, out, err = called(folder, "build", "f.te", "one", "--for", "sm_90a", "-o", "out", "-j", "1")
    assert code == 0 and out.startswith("out: ")
    assert [line.partition(": ")[2] for line in steps(err)] == [
        "", "`one` for sm_90a, 1 of 1", "the compilers of this machine", "nvcc for sm_90a, 1 of 1",
    ]  # fmt: skip
    assert err.endswith("\r\x1b[K")


def test_a_check_says_which_plan_is_proved(folder: Path) -> None:
    assert called(folder, "build", "f.te", "--for", "cpu", "-o", "out", "-j", "1", terminal=False)[0] == 0
    code, _, err = called(folder, "verify", "out", "-j", "1")
    assert code == 0
    assert [line.rpartition(", ")[2] for line in steps(err)] == ["proving it again", "1 of 2", "2 of 2"]


def test_forms_are_made_with_progress(folder: Path) -> None:
    code, out, err = called(folder, "explain", "f.te", "one", "--dump", "kernel")
    assert code == 0 and "kernel one_y" in out
    assert steps(err) == ["compiling one for sm_90a"]


@pytest.mark.parametrize(("terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_it_is_quiet_elsewhere(terminal: bool, term: str, folder: Path) -> None:
    code, out, err = called(folder, "explain", "f.te", "one", "--dump", "kernel", terminal=terminal, term=term)
    assert (code, err) == (0, "")
    assert "\x1b" not in out


def test_data_are_not_disturbed(folder: Path) -> None:
    code, out, err = called(folder, "explain", "f.te", "one", "--dump", "kernel", "--json")
    assert (code, err) == (0, "")
    assert out.startswith("{")
