"""A page that is one file: it holds all, loads nothing, and runs its own script alone."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from tests.explore.test_html import Reader
from tests.explore.test_panes import SAXPY

from texpr.cli import main
from texpr.explore.asked import Asked
from texpr.explore.look import look
from texpr.explore.page import document
from texpr.explore.page.document import STATIC, alone, served, static
from texpr.explore.panes import PANES

HOSTILE = "-- </script><script>alert(1)</script> <!-- \"'> \0 \u202e\n" + SAXPY


@pytest.fixture(scope="module")
def page() -> str:
    return alone(look(Asked(HOSTILE, '<b>"x".te', target="cpu")))


def hashed(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_it_holds_every_pane(page: str) -> None:
    ids = {names.get("id") for _, names in Reader(page).tags}
    assert {f"pane-{name}" for name in PANES} <= ids
    assert "z[i] = a * x[i] + y[i]" in Reader(page).text


def test_its_policy_allows_its_own_script_and_style_alone(page: str) -> None:
    (policy,) = (names["content"] for tag, names in Reader(page).tags if names.get("http-equiv") == "Content-Security-Policy")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'", f"script-src '{hashed(script)}'", f"style-src '{hashed(style)}'",
        "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip


def test_a_hostile_program_is_a_text_in_it(page: str) -> None:
    found = Reader(page)
    assert sum(tag == "script" for tag, _ in found.tags) == 1
    assert not [name for _, names in found.tags for name in names if name.startswith("on")]
    assert "\0" not in page and "\u202e" not in page


def test_it_loads_nothing(page: str) -> None:
    assert [value for _, names in Reader(page).tags for name, value in names.items() if name in ("src", "href")] == []


def test_a_served_page_asks_its_own_server_alone() -> None:
    found = Reader(served(Asked(HOSTILE, '<b>"x".te')))
    addresses = [value for _, names in found.tags for name, value in names.items() if name in ("src", "href")]
    assert sorted(addresses) == sorted(f"static/{name}" for name in STATIC)
    assert not [names for tag, names in found.tags if tag in ("script", "style") and "src" not in names]


@pytest.mark.parametrize("name", ["page.css", "../__init__.py", "/etc/passwd", "codemirror/LICENSE", "", "page.js\0"])
def test_a_server_has_its_own_files_alone(name: str) -> None:
    if name in STATIC:
        assert static(name)
    else:
        with pytest.raises(KeyError):
            static(name)


@pytest.mark.parametrize("text", ["var a = '</script>'", "<!-- x"])
def test_a_script_that_would_end_its_element_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "static", lambda name: text.encode())
    with pytest.raises(ValueError, match="end of an element"):
        alone(look(Asked(SAXPY, target="cpu")))


def test_the_command_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.te").write_text(SAXPY, encoding="utf-8")
    assert main(["explore", "saxpy.te", "--for", "cpu", "--size", "n=64", "-o", "page.html"]) == 0
    assert capsys.readouterr().out == "page.html: saxpy for cpu\n"
    assert "n = 64" in Path("page.html").read_text(encoding="utf-8")
    first = Path("page.html").read_bytes()
    assert main(["explore", "saxpy.te", "--for", "cpu", "--size", "n=64", "-o", "page.html"]) == 0
    assert Path("page.html").read_bytes() == first


def test_a_program_with_errors_is_shown_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.te").write_text(SAXPY.replace("x[i]", "q[i]"), encoding="utf-8")
    assert main(["explore", "wrong.te", "-o", "page.html"]) == 1
    assert "error[E0201]" in capsys.readouterr().err
    assert "error[E0201]" in Reader(Path("page.html").read_text(encoding="utf-8")).text
