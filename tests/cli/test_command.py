"""The command from outside: output, exit codes, `--json`, and that nothing escapes as a traceback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.cli.conftest import Call

from texpr import __version__
from texpr.cli import app, main
from texpr.support.diagnostic import CompilerBug

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

SCALE = "fn scale(a: f32, x: f32[n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = a * x[i] }\n    return y\n}\n"


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    """A small program in a file of its own."""
    path = tmp_path / "scale.te"
    path.write_text(SCALE, encoding="utf-8")
    return path


def test_version(texpr: Call) -> None:
    assert texpr("--version") == (0, f"texpr {__version__}\n", "")


def test_help_lists_the_verbs_without_loading_them(texpr: Call) -> None:
    code, out, _ = texpr("--help")
    assert code == 0
    for verb in app.VERBS:
        assert f"\n  {verb} " in out


@pytest.mark.parametrize("verb", app.VERBS)
def test_every_verb_has_help(verb: str, texpr: Call) -> None:
    code, out, err = texpr(verb, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: texpr {verb} ")


def test_check_says_that_a_program_is_legal(scale: Path, texpr: Call) -> None:
    assert texpr("check", scale) == (0, f"{scale}: legal (scale)\n", "")


def test_check_shows_what_is_wrong(scale: Path, texpr: Call) -> None:
    scale.write_text(SCALE.replace("x[i]", "x[i + 1]"), encoding="utf-8")
    code, out, err = texpr("check", scale)
    assert (code, out) == (1, "")
    assert err.startswith("error[E0401]: ")
    assert f" --> {scale}:3:28\n" in err
    assert "^^^^^^^^" in err


def test_check_json_is_one_object_and_nothing_else(scale: Path, texpr: Call) -> None:
    code, out, err = texpr("check", scale, "--json")
    assert (code, json.loads(out), err) == (0, {"ok": True, "functions": ["scale"], "diagnostics": []}, "")
    scale.write_text(SCALE.replace("x[i]", "q[i]"), encoding="utf-8")
    code, out, err = texpr("check", scale, "--json")
    data = json.loads(out)
    assert (code, err, data["ok"], data["diagnostics"][0]["at"]["line"]) == (1, "", False, 3)


@pytest.mark.parametrize(
    ("content", "code", "error"),
    [
        (None, 2, "E0850"),
        (b"-- \xff", 1, "E0853"),
        (b"fn f(" * 100, 1, "E01"),
        (b"fn f(x: f32[n]): f32 { new y: f32  y = " + b"(" * 50_000 + b"1.0" + b")" * 50_000 + b"  return y }", 1, "E0"),
        (b"fn f(inout x: f32[n]) { " + b"par n |i| { " * 5_000 + b"}" * 5_001, 1, "E0"),
        (b"\x00\x01\x02", 1, "E01"),
    ],
    ids=["missing", "not-utf8", "nonsense", "deep-expression", "deep-nest", "binary"],
)
def test_bad_files_are_refused_with_a_code(content: bytes | None, code: int, error: str, tmp_path: Path, texpr: Call) -> None:
    path = tmp_path / "a.te"
    if content is not None:
        path.write_bytes(content)
    got, out, err = texpr("check", path)
    assert (got, out) == (code, ""), err[:2000]
    assert f"[{error}" in err
    got, out, err = texpr("check", "--json", path)
    assert (got, err) == (code, "")
    assert json.loads(out)["diagnostics"][0]["code"].startswith(error)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["run"], "Missing argument"),
        (["chek"], "No such command"),
        (["run", "{file}", "other"], "there is no function `other`; the file has: scale"),
        (["run", "{file}", "--arg", "a=1"], "input `x: f32[n]` is missing"),
        (["run", "{file}", "--arg", "a=1", "--arg", "x=random"], "size `n` of `x: f32[n]` is not known"),
        (["run", "{file}", "--arg", "q=1"], "`scale` has no parameter `q`"),
        (["run", "{file}", "--arg", "a"], "--arg takes NAME=FILE.npy"),
        (["run", "{file}", "--arg", "a=1", "--arg", "a=2"], "argument `a` is given twice"),
        (["run", "{file}", "--arg", "a=one", "--arg", "x=zeros", "--size", "n=2"], "`one` is not FILE.npy, random or zeros"),
        (["run", "{file}", "--size", "n=few"], "--size takes NAME=INTEGER"),
        (["run", "{file}", "--size", "m=1"], "`scale` has no size `m`"),
        (["run", "{file}", "--size", "n=1", "--size", "n=2"], "size `n` is given twice"),
        (["run", "{file}", "--on", "moon"], "'moon' is not one of"),
        (["run", "{file}", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["run", "{file}", "--arg", "a=1", "--arg", "x=1", "--size", "n=3", "--order", "3"], "--order is for --on emulator"),
        (["run", "{file}", "--arg", "a=1", "--arg", "x=none.npy"], "there is no file `none.npy`"),
    ],
)
def test_a_wrong_call_names_what_is_wrong(arguments: list[str], word: str, scale: Path, texpr: Call) -> None:
    code, out, err = texpr(*(argument.format(file=scale) for argument in arguments))
    assert (code, out) == (2, "")
    assert word in err


def test_run_on_files(scale: Path, tmp_path: Path, texpr: Call) -> None:
    x = np.arange(6, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    out_folder = tmp_path / "deep" / "out"
    code, out, err = texpr(
        "run",
        scale,
        "--on",
        "interp",
        "--arg",
        "a=3",
        "--arg",
        f"x={tmp_path / 'x.npy'}",
        "-o",
        out_folder,
        "--against",
        "interp",
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["result", "type", "shape", "min", "max"]
    assert lines[1].split() == ["y", "f32", "[6]", "0", "15"]
    assert lines[3] == "y: equal to the bit (against interp)"
    assert np.array_equal(np.load(out_folder / "y.npy"), 3 * x)


def test_run_json(scale: Path, texpr: Call) -> None:
    code, out, err = texpr("run", scale, "--on", "interp", "--arg", "a=2", "--arg", "x=1", "--size", "n=3", "--json")
    data = json.loads(out)
    assert (code, err, data["ok"]) == (0, "", True)
    assert data["results"] == [{"name": "y", "type": "f32", "shape": [3], "min": "2", "max": "2"}]


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.zeros(3, np.float64), "E0857"),
        (np.zeros((3, 3), np.float32), "E0705"),
        (b"not an array", "E0856"),
        (np.array([object()]), "E0856"),
    ],
    ids=["type", "rank", "format", "pickle"],
)
@pytest.mark.parametrize("place", ["interp", "cpu"])
def test_a_wrong_array_is_refused(
    array: np.ndarray | bytes, error: str, place: str, scale: Path, tmp_path: Path, texpr: Call
) -> None:
    path = tmp_path / "x.npy"
    if isinstance(array, bytes):
        path.write_bytes(array)
    else:
        np.save(path, array, allow_pickle=True)
    code, out, err = texpr("run", scale, "--on", place, "--arg", "a=1", "--arg", f"x={path}")
    assert (code, out) == (1, "")
    assert f"error[{error}]" in err


def test_a_size_that_no_array_tells_is_asked_for(tmp_path: Path, texpr: Call) -> None:
    program = tmp_path / "flat.te"
    program.write_text("fn f(inout A: f32[m * n]) {\n par m |i| { par n |j| { A[i * n + j] = 1.0 } }\n}\n", encoding="utf-8")
    np.save(tmp_path / "A.npy", np.zeros(6, np.float32))
    code, _, err = texpr("run", program, "--arg", f"A={tmp_path / 'A.npy'}")
    assert code == 2
    assert "size `m` of `A: f32[m * n]` is not known: give --size m=…" in err


@pytest.mark.parametrize("size", [2**61, 2**63 - 1, 2**63, 10**30])
def test_arrays_larger_than_any_memory(size: int, scale: Path, texpr: Call) -> None:
    code, _, err = texpr("run", scale, "--arg", "a=1", "--arg", "x=zeros", "--size", f"n={size}")
    wrong_call = size >= 2**63
    assert code == (2 if wrong_call else 1)
    assert ("error[E0707]" if wrong_call else "error[E0859]") in err


def test_arrays_may_be_transposed_and_of_the_other_byte_order(tmp_path: Path, texpr: Call) -> None:
    program = tmp_path / "copy.te"
    program.write_text(
        "fn f(A: f32[m, n]): f32[m, n] {\n new B: f32[m, n]\n par m |i| { par n |j| { B[i, j] = A[i, j] } }\n return B\n}\n",
        encoding="utf-8",
    )
    array = np.asfortranarray(np.arange(12, dtype=">f4").reshape(3, 4))
    np.save(tmp_path / "A.npy", array)
    code, _, err = texpr("run", program, "--on", "interp", "--arg", f"A={tmp_path / 'A.npy'}", "-o", tmp_path)
    assert (code, err) == (0, "")
    assert np.array_equal(np.load(tmp_path / "B.npy"), array)


def test_small_floats_come_and_go_as_numpy_stores_them(tmp_path: Path, texpr: Call) -> None:
    program = tmp_path / "copy.te"
    program.write_text(
        "fn f(x: bf16[n]): bf16[n] {\n new y: bf16[n]\n par n |i| { y[i] = x[i] }\n return y\n}\n", encoding="utf-8"
    )
    x = np.arange(5).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", x)
    code, _, err = texpr("run", program, "--on", "interp", "--arg", f"x={tmp_path / 'x.npy'}", "-o", tmp_path)
    assert (code, err) == (0, "")
    assert np.array_equal(np.load(tmp_path / "y.npy").view(ml_dtypes.bfloat16), x)


def test_random_inputs_keep_what_the_text_promises(tmp_path: Path, texpr: Call) -> None:
    program = tmp_path / "scatter.te"
    program.write_text(
        "fn f(x: f32[n], I: i32[n], inout y: f32[m])\n assume I in 0..m, injective(I)\n{\n par n |i| { y[I[i]] = x[i] }\n}\n",
        encoding="utf-8",
    )
    words = ["--arg", "x=random", "--arg", "I=random", "--size", "n=50", "--size", "m=50"]
    for seed in range(3):
        code, out, err = texpr("run", program, "--on", "interp", "--seed", seed, *words)
        assert (code, err) == (0, "")
        assert "y " in out


def test_an_output_folder_that_cannot_be_made(scale: Path, texpr: Call) -> None:
    code, _, err = texpr("run", scale, "--on", "interp", "--arg", "a=1", "--arg", "x=1", "--size", "n=3", "-o", scale / "below")
    assert code == 2
    assert "E0855" in err


@pytest.mark.parametrize("fault", [CompilerBug("lost a barrier"), KeyError("x"), RecursionError("too deep")])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_fault_of_ours_says_so(
    fault: Exception, as_json: bool, scale: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(function: object) -> None:
        raise fault

    monkeypatch.setattr("texpr.cli.program.check", fail)
    code, out, err = texpr("check", scale, *(["--json"] if as_json else []))
    assert code == 3
    assert type(fault).__name__ in err
    assert "This is a fault of texpr, not of your program. Please report it" in err
    assert (json.loads(out)["ok"] is False) if as_json else (out == "")


def test_the_traceback_is_shown_on_request(
    scale: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(function: object) -> None:
        raise CompilerBug("lost a barrier")

    monkeypatch.setattr("texpr.cli.program.check", fail)
    monkeypatch.setenv("TEXPR_TRACEBACK", "1")
    assert main(["check", str(scale)]) == 3
    assert "Traceback" in capfd.readouterr().err


def test_interrupt_is_quiet(scale: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(function: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("texpr.cli.program.check", interrupt)
    assert texpr("check", scale) == (130, "", "")


STARTED = """
import os, signal, sys, time, texpr.support.lazy
from texpr.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores it
def load(name):
    os.kill(os.getpid(), signal.{name})
    time.sleep(60)
texpr.cli.resolve = load
sys.exit(main(["check", "x.te"]))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_it_loads_is_quiet(name: str) -> None:
    command = [sys.executable, "-c", STARTED.replace("{name}", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.Signals[name], "", "")


SLEEPER = """#!/bin/sh
case "$*" in *--version*) echo "g++ (fake) 1"; exit 0;; esac
touch "{told}"
sleep 60
"""


def test_being_ended_leaves_no_folder_and_no_tool(scale: Path, tmp_path: Path) -> None:
    told, temporary = tmp_path / "told", tmp_path / "tmp"
    temporary.mkdir()
    tool = tmp_path / "cc"
    tool.write_text(SLEEPER.replace("{told}", str(told)))
    tool.chmod(0o755)
    environment = {**os.environ, "CXX": str(tool), "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "texpr", "build", str(scale), "--for", "cpu", "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(600):
            if told.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        assert list(temporary.iterdir())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (128 + signal.SIGTERM, b"", b"")
    assert list(temporary.iterdir()) == []


def test_a_reader_that_leaves_is_no_fault(scale: Path) -> None:
    command = f'"{sys.executable}" -m texpr check "{scale}"; echo "code $?" >&2'
    done = subprocess.run(["bash", "-c", f"({command}) | true"], capture_output=True, text=True, check=False, timeout=600)
    assert done.stderr.strip() == "code 0"


ENDING = """
import atexit
from texpr.cli import app, process

def run(arguments):
    atexit.register(print, "closed")
    {end}

app.run = run
process()
"""


@pytest.mark.parametrize(("end", "code"), [("return 3", 3), ("raise SystemExit(143)", 143), ("raise KeyError", 1)])
def test_what_is_open_is_closed_before_the_process_leaves(end: str, code: int) -> None:
    found = subprocess.run([sys.executable, "-c", ENDING.format(end=end)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (code, "closed\n")
    assert ("KeyError" in found.stderr) == (code == 1)


def test_doctor(texpr: Call) -> None:
    code, out, _ = texpr("doctor")
    assert code == 0
    assert f"texpr {__version__}" in out
    assert "target cpu" in out
    code, out, _ = texpr("doctor", "--json")
    data = json.loads(out)
    assert data["versions"]["texpr"] == __version__
    assert all({"subject", "state", "detail", "help"} == finding.keys() for finding in data["findings"])


def loaded_by(*arguments: str) -> set[str]:
    """The modules that the command has loaded when it ends."""
    code = f"import sys; from texpr.cli import main; main({list(arguments)!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    return set(done.stderr.split())


def test_little_is_loaded_where_little_is_asked() -> None:
    slow = {"numpy", "ml_dtypes", "islpy", "rich"}
    assert not (slow | {"click"}) & loaded_by("--version")
    assert not slow & loaded_by("--help")
    assert not {"numpy", "ml_dtypes", "rich"} & loaded_by("check", str(EXAMPLES / "matmul.te"))


INSTALLED = {"attrs", "cattrs", "click", "islpy", "lsprotocol", "ml_dtypes", "msgspec", "numpy", "ortools", "pygls", "rich"}
"""Packages that are not of Python, and that users have."""


@pytest.mark.parametrize(
    ("arguments", "modules", "others"),
    [
        (["--version"], 100, set[str]()),
        (["check", str(EXAMPLES / "matmul.te")], 400, {"click", "islpy", "msgspec"}),
        (["fmt", "--check", str(EXAMPLES / "matmul.te")], 400, {"click", "islpy", "msgspec"}),
    ],
)
def test_it_starts_with_few_modules(arguments: list[str], modules: int, others: set[str]) -> None:
    """`bench/compile.py` measures how long it takes; an import is what makes it slow."""
    loaded = loaded_by(*arguments)
    assert len(loaded) < modules
    assert not (INSTALLED & loaded) - others


def test_a_slow_import_is_found() -> None:
    code = "import numpy, sys; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert len(loaded) > 100 and INSTALLED & loaded == {"numpy"}


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals(environment: dict[str, str], coloured: bool, scale: Path) -> None:
    scale.write_text(SCALE.replace("x[i]", "q[i]"), encoding="utf-8")
    here = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "texpr", "check", str(scale)],
        env={**here, "TERM": "xterm", **environment},
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
        timeout=600,
    )
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 1
    assert "E0201" in said
    assert ("\x1b[1;31m" in said) == coloured
