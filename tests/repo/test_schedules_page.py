"""The page on schedules shows what the compiler does: loops after a directive, messages, emitted loops, what explain says.

Fences: `te` a program with a schedule; `te step` directives that go on from there; `te after` the statements as laid out;
`te error=CODE` a program that is refused, followed by what is said; `cuda LOOP` the emitted loop; `python NAME.py` and
`console` a command, followed by what it prints.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from texpr.cli import main
from texpr.driver import Compiled, lower, parse
from texpr.ir.program.text import print_function
from texpr.schedule.rules import RULES
from texpr.support.codes.schedule import CODES
from texpr.support.diagnostic import TexprError
from texpr.support.record import Mutable, field
from texpr.support.render import render
from texpr.support.span import Source

PAGE = Path(__file__).parents[2] / "docs" / "schedules.md"
BLOCK = re.compile(r"^```(?P<what>\S+)(?: (?P<more>[^\n]*))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = "page.te"


class Reader(Mutable, dict=True):
    """What the page has said so far: the program at hand, and what is to be said of the last block, if anything."""

    text: str = ""
    said: str | None = None
    kinds: list[str] = field(default_factory=list[str])

    def block(self, what: str, more: str, text: str) -> str:
        """What a block should hold; raises where the page says what is not so."""
        self.kinds.append(f"{what} {more}".strip())
        match what, more:
            case "te", "":
                self.text = text
                Path(NAME).write_text(text, encoding="utf-8")
                compiled(text)
            case "te", "step":
                head, _, _ = self.text.rpartition("}")
                self.text = f"{head}{''.join(f'    {line}' for line in text.splitlines(keepends=True))}}}\n"
                Path(NAME).write_text(self.text, encoding="utf-8")
            case "te", "after":
                return after(compiled(self.text))
            case "te", _:
                self.said = refusal(text, more.removeprefix("error="))
            case "cuda", loop:
                return emitted(compiled(self.text), loop)
            case "python", _:
                self.said = printed(text)
            case "text", _:
                assert self.said is not None, "nothing was said"
                said, self.said = self.said, None
                return said
            case _:
                raise AssertionError(f"no block is called {what} {more}")
        return text


def compiled(text: str) -> Compiled:
    """The first function of `text` as its only schedule lays it out, for the CPU that it names, or for sm_90a."""
    function, cpu = parse(Source(NAME, text)).functions[0], re.search(r"^schedule \w+ for (cpu\w*)", text, re.MULTILINE)
    return lower(function, cpu[1] if cpu else "sm_90a", schedule=next(iter(function.schedules), None))


def after(made: Compiled) -> str:
    """The statements of the function as it is laid out."""
    lines = print_function(made.function).splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if line.rstrip().endswith("{")) + 1
    return "".join(line.removeprefix("    ") for line in lines[start:-2])


def refusal(text: str, code: str) -> str:
    """What is said of a program that is refused with `code`."""
    with pytest.raises(TexprError) as found:
        compiled(text)
    assert [d.code for d in found.value.diagnostics] == [code]
    return "".join(map(render, found.value.diagnostics))


def emitted(made: Compiled, loop: str) -> str:
    """The first loop over `loop` in the CUDA source, without notes for the emulator."""
    lines = made.source.splitlines()
    start = next(n for n, line in enumerate(lines) if f"for (int {loop} =" in line)
    indent = re.match(" *", lines[start])
    assert indent is not None
    end = next(n for n in range(start, len(lines)) if lines[n] == f"{indent[0]}}}")
    start -= "#pragma" in lines[start - 1]
    kept = (line.removeprefix(indent[0]) for line in lines[start : end + 1] if "TX_AT(" not in line)
    return "".join(f"{line}\n" for line in kept)


def printed(code: str) -> str:
    """What a Python program of the page prints."""
    Path("example.py").write_text(code, encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path("example.py")
    return out.getvalue()


def renewed(page: str, command: Callable[[str], str]) -> Iterator[str]:
    """The page, with blocks as they should be."""
    reader = Reader()
    done = 0
    for block in BLOCK.finditer(page):
        more = block["more"] or ""
        if block["what"] == "console":
            line, _, shown = block["text"].partition("\n")
            said = f"{line}\n{cut(command(line), shown)}"
        else:
            said = reader.block(block["what"], more, block["text"])
        yield page[done : block.start()]
        yield f"```{block['what']}{' ' + more if more else ''}\n{said}```"
        done = block.end()
    yield page[done:]


def cut(said: str, shown: str) -> str:
    """As many lines of `said` as are shown, where what is shown ends with a line of dots."""
    if not shown.endswith("…\n"):
        return said
    return "".join(said.splitlines(keepends=True)[: shown.count("\n") - 1]) + "…\n"


def test_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(tmp_path)

    def command(line: str) -> str:
        main(shlex.split(line)[2:])
        out, err = capfd.readouterr()
        return err + out

    golden(PAGE, "".join(renewed(PAGE.read_text(encoding="utf-8"), command)))


@pytest.mark.parametrize("name", RULES)
def test_every_directive_has_its_form_on_the_page(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"### `{name}`" in page
    assert f"`{RULES[name].form}`" in page


def test_every_code_of_a_schedule_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [code for code in CODES if code not in page] == []
