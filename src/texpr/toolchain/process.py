"""Running a tool: no shell, a time limit, all output captured."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from pathlib import Path

from texpr.support.diagnostic import Note, error
from texpr.support.record import Record
from texpr.toolchain.machine import Machine

SECONDS = 300.0
"""The default time limit of a tool."""


class Finished(Record):
    """A finished tool: its command line, exit status (negative: the signal that killed it), and output."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def command(self) -> str:
        """The command line, as typed in a shell."""
        return shlex.join(self.argv)

    @property
    def output(self) -> str:
        """Both streams, for a message."""
        return (self.stderr + self.stdout).strip()


def run(machine: Machine, argv: Sequence[str | Path], *, cwd: Path | None = None, seconds: float = SECONDS) -> Finished:
    """Runs a tool to its end.

    Raises `TexprError` if it cannot be started (E0605) or exceeds `seconds` (E0606); then it and its child processes are
    stopped.
    """
    words = tuple(str(word) for word in argv)
    process: subprocess.Popen[bytes] | None = None
    try:
        with _undisturbed():
            process = _started(machine, words, cwd)
        out, err = process.communicate(timeout=seconds)
    except BaseException as reason:
        if process is not None:
            _stop(process)
        if isinstance(reason, subprocess.TimeoutExpired):
            raise error(
                "E0606",
                None,
                f"{Path(words[0]).name} took longer than {seconds:g} s and was stopped",
                Note(shlex.join(words)),
                help="is the machine short of memory or very busy?",
            ) from reason
        raise
    return Finished(words, process.returncode, _text(out), _text(err))


def _started(machine: Machine, words: tuple[str, ...], cwd: Path | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            cwd=cwd,
            env=machine.tool_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as reason:
        raise error(
            "E0605",
            None,
            f"cannot start {words[0]}: {reason.strerror}",
            help="`texpr doctor` shows which tools are found and used",
        ) from reason


@contextlib.contextmanager
def _undisturbed() -> Generator[None]:
    """Context manager that defers signals: a tool that was just started, and is not yet recorded, would be orphaned."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    if threading.current_thread() is not threading.main_thread() or not all(map(callable, before.values())):
        yield
        return
    asked: list[int] = []
    for number in numbers:
        signal.signal(number, lambda number, frame: asked.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in asked:
            signal.raise_signal(number)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stops the tool and its child processes, which share its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
