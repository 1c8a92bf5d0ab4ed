"""`texpr fmt` from outside: what is written, what is not, and the exit codes."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from texpr import sources
from texpr.editor import formatting

BAD = "fn f( x:f32[n] ) { -- a\n  par n |i| { x[ i ]=1.0 } }"
GOOD = "fn f(x: f32[n]) {  -- a\n    par n |i| { x[i] = 1.0 }\n}\n"
WRONG = "fn f( x:f32[n] ) {\n  x[0] = = 1\n}\n"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A file that is not in the format."""
    path = tmp_path / "bad.te"
    path.write_text(BAD, encoding="utf-8")
    return path


def given(text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the command read `text` from its standard input."""
    data = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_file_is_rewritten_once(bad: Path, texpr: Call) -> None:
    assert texpr("fmt", bad) == (0, f"{bad}: formatted\n", "")
    assert bad.read_text(encoding="utf-8") == GOOD
    before = bad.stat().st_mtime_ns
    assert texpr("fmt", bad) == (0, "", "")
    assert bad.stat().st_mtime_ns == before
    assert os.listdir(bad.parent) == ["bad.te"]


def test_permissions_and_links_stay(bad: Path, texpr: Call) -> None:
    bad.chmod(0o640)
    link = bad.with_name("link.te")
    link.symlink_to(bad)
    assert texpr("fmt", link)[0] == 0
    assert link.is_symlink()
    assert bad.read_text(encoding="utf-8") == GOOD
    assert stat.S_IMODE(bad.stat().st_mode) == 0o640


def test_check_lists_and_fails(bad: Path, texpr: Call) -> None:
    good = bad.with_name("good.te")
    good.write_text(GOOD, encoding="utf-8")
    assert texpr("fmt", "--check", bad, good) == (1, f"{bad}\n", "")
    assert texpr("fmt", "--check", good) == (0, "", "")
    assert bad.read_text(encoding="utf-8") == BAD


def test_diff_shows_and_writes_nothing(bad: Path, texpr: Call) -> None:
    code, out, err = texpr("fmt", "--diff", bad)
    assert (code, err) == (0, "")
    assert "\n-fn f( x:f32[n] ) { -- a\n" in out
    assert "\n+fn f(x: f32[n]) {  -- a\n" in out
    assert bad.read_text(encoding="utf-8") == BAD
    assert texpr("fmt", "--diff", "--check", bad) == (1, out, "")


def test_standard_input(texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    given(BAD.replace("\n", "\r\n"), monkeypatch)
    assert texpr("fmt", "-") == (0, GOOD.replace("\n", "\r\n"), "")
    given(BAD, monkeypatch)
    assert texpr("fmt", "--check", "-") == (1, "<stdin>\n", "")
    given("", monkeypatch)
    assert texpr("fmt", "-") == (0, "", "")
    given(WRONG, monkeypatch)
    code, out, err = texpr("fmt", "-")
    assert (code, out) == (1, "")
    assert " --> <stdin>:2:10\n" in err
    given(b"\xff", monkeypatch)
    code, _, err = texpr("fmt", "-")
    assert (code, err[:12]) == (1, "error[E0853]")
    given(BAD, monkeypatch)
    monkeypatch.setattr(sources, "LARGEST_SOURCE", 10)
    assert texpr("fmt", "-")[0] == 1


def test_standard_input_stands_alone(bad: Path, texpr: Call) -> None:
    code, _, err = texpr("fmt", bad, "-")
    assert (code, "`-` stands alone" in err) == (2, True)
    assert texpr("fmt")[0] == 2


def test_a_wrong_file_is_left_alone_and_others_are_not(bad: Path, texpr: Call) -> None:
    wrong = bad.with_name("wrong.te")
    wrong.write_text(WRONG, encoding="utf-8")
    code, out, err = texpr("fmt", wrong, bad)
    assert (code, out) == (1, f"{bad}: formatted\n")
    assert err == texpr("check", wrong)[2]
    assert "^" in err
    assert wrong.read_text(encoding="utf-8") == WRONG


def test_what_is_no_file(tmp_path: Path, texpr: Call) -> None:
    assert texpr("fmt", tmp_path)[0] == 2
    assert texpr("fmt", tmp_path / "none.te")[0] == 2


def test_a_file_that_cannot_be_written(bad: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("texpr.cli.files.tempfile.mkstemp", refuse)
    code, _, err = texpr("fmt", bad)
    assert (code, err[:12]) == (2, "error[E0855]")
    assert bad.read_text(encoding="utf-8") == BAD


def test_json(bad: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = texpr("fmt", "--check", "--json", bad)
    assert (code, json.loads(out), err) == (1, {"ok": False, "changed": [str(bad)], "diagnostics": []}, "")
    given(BAD, monkeypatch)
    code, out, _ = texpr("fmt", "--json", "-")
    assert (code, json.loads(out)["text"]) == (0, GOOD)
    bad.write_text(WRONG, encoding="utf-8")
    code, out, _ = texpr("fmt", "--json", bad)
    assert (code, json.loads(out)["diagnostics"][0]["code"]) == (1, "E0102")


def test_a_fault_writes_nothing(bad: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "spaces", lambda tokens, marks: [0] * len(tokens.kinds))
    code, out, err = texpr("fmt", bad)
    assert (code, out) == (3, "")
    assert err.startswith("internal error: CompilerBug: the formatted text has other tokens\n")
    assert bad.read_text(encoding="utf-8") == BAD
