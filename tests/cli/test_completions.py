"""Completions are asked of the shells themselves: keys are typed into bash and zsh, and fish says what it would offer."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from tests.cli.conftest import Call

from texpr.cli import app
from texpr.isa.registry import TARGETS

SHELLS = ("bash", "zsh", "fish")
SHOWS = 'texpr() { printf "<%s>" "$@" >>LOG; echo >>LOG; }'
"""What stands in for the command: its words, as the shell passes them on."""

CASES = [
    ("texpr expla", "<explain>"),
    ("texpr run --on em", "<run><--on><emulator>"),
    ("texpr bench --cac", "<bench><--cache>"),
    ("texpr check pro", "<check><program one.te>"),
    ("texpr draw x --what tim", "<draw><x><--what><timeline>"),
    ("texpr explain --for cpu_", "<explain><--for><cpu_avx512>"),
    ("texpr run --schedule no", "<run><--schedule><none>"),
    ("texpr verify --source pro", "<verify><--source><program one.te>"),
    ("texpr completions fi", "<completions><fish>"),
]


def shell(name: str) -> str:
    found = shutil.which(name)
    return found or pytest.skip(f"no {name}")


@pytest.fixture
def scripts(texpr: Call, tmp_path: Path) -> Path:
    """A folder with the scripts, and files to complete."""
    for name in SHELLS:
        code, out, err = texpr("completions", name)
        assert (code, err) == (0, "")
        (tmp_path / f"script.{name}").write_text(out, encoding="utf-8")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/program one.te").write_text("")
    (tmp_path / "work/program.txt").write_text("")
    return tmp_path


@pytest.mark.parametrize("name", SHELLS)
def test_every_verb_and_option_is_there(scripts: Path, name: str) -> None:
    """As the parser has them, asked in another way."""
    text = (scripts / f"script.{name}").read_text(encoding="utf-8")
    context = click.Context(app.texpr)
    for verb in app.VERBS:
        command = app.texpr.get_command(context, verb)
        assert command is not None
        shown = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
        options = [name for param in shown for name in param.opts]
        lines = text.splitlines()
        if name == "bash":
            (own,) = (line for line in lines if line.strip().startswith(f'"{verb}") _texpr_words "-'))
        elif name == "zsh":
            own = text.split(f"\n        {verb})\n", 1)[1].split(";;", 1)[0]
        else:
            own = "\n".join(line for line in lines if f"_from {verb}'" in line)
        for option in options:
            written = option if name != "fish" else f"-l {option[2:]} " if option.startswith("--") else f"-s {option[1:]} "
            assert written in own, (verb, option)
    assert all(target in text for target in TARGETS)


PROMPT = "ask> "


def typed(words: list[str], lines: list[str], folder: Path) -> None:
    """Types lines into a shell at a terminal, each when it asks for one."""
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover
        os.chdir(folder)
        environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(folder), "LC_ALL": "C.UTF-8", "PS1": PROMPT}
        os.execve(words[0], words, environment)
    try:
        for line in [*lines, "exit\n"]:
            _until(terminal, PROMPT.encode())
            os.write(terminal, line.encode())
        _until(terminal, b"\0 never")
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def _until(terminal: int, wanted: bytes) -> None:
    shown = b""
    while wanted not in shown:
        if not select.select([terminal], [], [], 20)[0]:
            raise AssertionError(f"the shell waits: {shown!r}")
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # it has ended
            return
        if not piece:
            return
        shown += piece


def completed(words: list[str], scripts: Path, first: list[str]) -> list[str]:
    """The words of the command for each case, typed up to where Tab has to go on."""
    log = scripts / "log"
    keys = [f"{line}\n" for line in (*first, SHOWS.replace("LOG", str(log)))]
    typed(words, keys + [f"{line}\t\n" for line, _ in CASES], scripts / "work")
    return log.read_text(encoding="utf-8").splitlines()


def test_bash(scripts: Path) -> None:
    """By readline, at a terminal."""
    said = completed([shell("bash"), "--norc", "--noprofile", "-i"], scripts, [f"source {scripts}/script.bash"])
    assert said == [wanted for _, wanted in CASES]


@pytest.mark.parametrize("how", ["sourced", "found"])
def test_zsh(scripts: Path, how: str) -> None:
    """By its completion system, at a terminal; the script is sourced, or found in a folder of $fpath."""
    (scripts / "zfunc").mkdir()
    shutil.copy(scripts / "script.zsh", scripts / "zfunc" / "_texpr")
    begin = "autoload -Uz compinit; compinit -u -D"
    first = [begin, f"source {scripts}/script.zsh"] if how == "sourced" else [f"fpath=({scripts}/zfunc $fpath)", begin]
    assert completed([shell("zsh"), "-f", "-i"], scripts, first) == [wanted for _, wanted in CASES]


def test_bash_lists_what_is_possible(scripts: Path) -> None:
    """By the function that bash was told to call."""

    def offered(*words: str) -> list[str]:
        given = " ".join(f"'{word}'" for word in words)
        text = f"""source {scripts}/script.bash; complete -p texpr >&2
COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _texpr 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run([shell("bash"), "-c", text], cwd=scripts / "work", capture_output=True, text=True, check=True)
        assert done.stderr == "complete -F _texpr texpr\n"
        return done.stdout.split("\n")[:-1]

    assert offered("texpr", "") == list(app.VERBS)
    assert offered("texpr", "run", "--on", "=", "c") == ["cpu", "cuda"]
    assert offered("texpr", "run", "--on", "=") == ["interp", "cpu", "emulator", "cuda"]
    assert offered("texpr", "run", "--seed", "") == [""]
    assert "--help" in offered("texpr", "doctor", "-") and offered("texpr", "--v") == ["--version"]


def test_fish(scripts: Path) -> None:
    """It says itself what it offers for a line."""
    for line, wanted in CASES:
        done = subprocess.run(
            [shell("fish"), "--no-config", "-c", f"source {scripts}/script.fish; complete -C '{line}'"],
            cwd=scripts / "work", env={"PATH": os.environ["PATH"], "HOME": str(scripts)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        first = done.stdout.splitlines()[0].partition("\t")[0].replace("\\ ", " ")
        assert wanted.endswith(f"<{first}>"), (line, done.stdout)


def test_an_unknown_shell(texpr: Call) -> None:
    code, _, err = texpr("completions", "tcsh")
    assert code == 2 and "'tcsh' is not one of 'bash', 'zsh', 'fish'" in err
