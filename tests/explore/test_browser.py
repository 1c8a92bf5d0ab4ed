"""The page in a browser: it shows a program, lights lines, takes changes, and asks nothing of anybody else."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.explore.test_panes import SAXPY

from texpr.explore.asked import Asked
from texpr.explore.look import look
from texpr.explore.page.document import alone

playwright: Any = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("needs Chromium", allow_module_level=True)

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
HOSTILE = '-- </script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">\n'


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with playwright.sync_playwright() as engine:
        found = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Any) -> Generator[Any]:
    """A page whose every complaint is a failure, as is every request to elsewhere."""
    found = browser.new_page(viewport={"width": 1400, "height": 850})
    said: list[str] = []
    found.on("pageerror", lambda fault: said.append(str(fault)))
    found.on("console", lambda message: said.append(message.text))
    found.on(
        "request",
        lambda asked: said.extend([asked.url] if not re.match(r"http://127\.0\.0\.1:|file:|data:|blob:", asked.url) else []),
    )
    yield found
    found.close()
    assert said == []


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    file = tmp_path_factory.mktemp("program") / "saxpy.te"
    file.write_text(HOSTILE + SAXPY, encoding="utf-8")
    command = [sys.executable, "-m", "texpr", "explore", str(file), "--size", "n=256"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=600) == 130


def opened(page: Any, address: str, pane: str = "program") -> None:
    page.goto(address)
    turned(page, pane)


def turned(page: Any, pane: str) -> None:
    page.click(f"#tab-{pane}")
    playwright.expect(page.locator(f"#pane-{pane} :is(pre.code, svg, table, details, .note)").first).not_to_have_text("…")


def lit(page: Any, pane: str) -> list[str]:
    return [text.strip() for text in page.locator(f"#pane-{pane} .l.lit").all_inner_texts()]


def test_every_pane_is_shown(page: Any, address: str) -> None:
    opened(page, address)
    for pane in ("steps", "kernel", "source", "machine", "proof", "decisions", "domain", "mapping", "timeline"):
        turned(page, pane)
        assert page.locator(f"#pane-{pane}").is_visible()
        assert page.locator(f"#pane-{pane} .fault").count() == 0
    turned(page, "mapping")
    assert page.locator("#pane-mapping svg").evaluate("picture => picture.getBoundingClientRect().width") > 100


def test_a_line_lights_its_origin_everywhere(page: Any, address: str) -> None:
    opened(page, address)
    turned(page, "kernel")
    page.locator("#pane-kernel .l", has_text="z[").first.click()
    assert any("z[" in text for text in lit(page, "kernel"))
    assert any("z[" in text for text in lit(page, "program"))
    playwright.expect(page.locator(".CodeMirror-linebackground.lit")).to_have_count(1)
    turned(page, "proof")
    assert len(lit(page, "proof")) > 5
    page.locator(".CodeMirror-line", has_text="new z").click()
    assert lit(page, "kernel") == []


def test_a_change_is_compiled(page: Any, address: str) -> None:
    opened(page, address)
    page.locator(".CodeMirror-line", has_text="z[i]").click()
    page.keyboard.press("End")
    page.keyboard.type(" oops")
    playwright.expect(page.locator("#problems")).to_contain_text("error[E01")
    playwright.expect(page.locator(".wave").first).to_be_visible()
    for _ in " oops":
        page.keyboard.press("Backspace")
    playwright.expect(page.locator("#problems")).to_contain_text("legal, and proved")
    page.select_option("#target", "cpu")
    turned(page, "source")
    playwright.expect(page.locator("#pane-source")).to_contain_text("omp parallel for")


def test_what_is_chosen_stays_while_a_text_cannot_be_read(page: Any, address: str, tmp_path: Path) -> None:
    opened(page, address)
    second = SAXPY.replace("saxpy", "second") + 'schedule second "halves" { split(i, 2) -> (p, q) }\n'
    (tmp_path / "two.te").write_text(SAXPY + second, encoding="utf-8")
    page.set_input_files("#file", tmp_path / "two.te")
    playwright.expect(page.locator("#function")).to_have_value("saxpy")
    page.select_option("#function", "second")
    playwright.expect(page.locator("#schedule option")).to_have_count(3)
    page.select_option("#schedule", "halves")
    playwright.expect(page.locator("#pane-program")).to_contain_text("laid out by the schedule “halves”")
    page.locator(".CodeMirror-line", has_text="z[i]").first.click()
    page.keyboard.press("End")
    page.keyboard.type("=")
    playwright.expect(page.locator("#problems")).to_contain_text("error[E01")
    page.keyboard.press("Backspace")
    playwright.expect(page.locator("#pane-program")).to_contain_text("laid out by the schedule “halves”")
    assert page.locator("#function").input_value() == "second"


def test_examples_are_opened_and_programs_saved(page: Any, address: str, tmp_path: Path) -> None:
    opened(page, address)
    page.select_option("#examples", "transpose.te")
    playwright.expect(page.locator("#function")).to_have_value("transpose2d")
    with page.expect_download() as saved:
        page.click("#save")
    saved.value.save_as(tmp_path / saved.value.suggested_filename)
    assert (tmp_path / "transpose.te").read_bytes() == (ROOT / "examples" / "transpose.te").read_bytes()
    (tmp_path / "mine.te").write_text(SAXPY.replace("saxpy", "mine"), encoding="utf-8")
    page.set_input_files("#file", tmp_path / "mine.te")
    playwright.expect(page.locator("#function")).to_have_value("mine")


def test_a_hostile_program_runs_nothing(page: Any, address: str, tmp_path: Path) -> None:
    opened(page, address)
    assert page.evaluate("window.hacked") is None
    file = tmp_path / "page.html"
    file.write_text(alone(look(Asked(HOSTILE + SAXPY))), encoding="utf-8")
    page.goto(file.as_uri())
    assert page.evaluate("window.hacked") is None


def test_a_page_that_is_one_file_needs_no_server(page: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(alone(look(Asked(SAXPY, sizes=(("n", 256),)))), encoding="utf-8")
    page.goto(f"{file.as_uri()}#kernel")
    assert page.locator("#pane-kernel").is_visible() and not page.locator("#pane-program").is_visible()
    page.locator("#listing .l", has_text="z[i]").click()
    assert any("z[" in text for text in lit(page, "kernel"))
    assert len(lit(page, "source")) > 1
    page.click("#tab-timeline")
    assert page.locator("#pane-timeline text.lit").count() > 0
    page.click("#tab-mapping")
    assert page.locator("#pane-mapping svg").evaluate("picture => picture.getBoundingClientRect().width") > 100


def test_the_policy_is_enforced(browser: Any, address: str) -> None:
    """The same page with a script planted in it: the browser does not run that."""
    page = browser.new_page()
    try:
        page.goto(address)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.planted = 1\">')")
        page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.planted = 1'; document.body.append(s)"
        )
        page.wait_for_timeout(200)
        assert page.evaluate("window.planted") is None
        assert any("Content Security Policy" in text for text in said)
    finally:
        page.close()
