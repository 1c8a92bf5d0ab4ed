"""Worker processes of this machine. One that dies, or takes too long, costs its trial, and another one takes its place."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO

from texpr.support.diagnostic import error
from texpr.support.record import Mutable
from texpr.tune.crews.worker import READY
from texpr.tune.outcome import Outcome, failed

GRACE = 3.0
"""Seconds that a worker has to end on request."""

START = 60.0
"""Seconds that a worker has to begin."""


class _Worker(Mutable, eq=False):
    """A process, what it prints, and the trial that it is at, with the end of its time; `partial`: of a line."""

    process: subprocess.Popen[bytes]
    printed: IO[bytes]
    number: int | None = None
    ends: float = 0.0
    partial: bytes = b""


class Here:
    """`count` workers, which measure by the function `measure`, each trial in at most so many seconds."""

    def __init__(self, measure: str, count: int, seconds: float):
        """Raises TexprError E0844 where none can be started."""
        self._measure, self._seconds = measure, seconds
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        try:
            for _ in range(count):
                self._hire()
        except BaseException:
            self.close()
            raise

    @property
    def room(self) -> int:
        """The workers that have nothing to do."""
        return sum(each.number is None for each in self._workers)

    def give(self, number: int, task: str) -> None:
        """Has a task done. One that cannot be given is over at once, as its worker is gone."""
        worker = next(each for each in self._workers if each.number is None)
        worker.number, worker.ends = number, time.monotonic() + self._seconds
        with contextlib.suppress(OSError):
            assert worker.process.stdin is not None
            worker.process.stdin.write(task.encode() + b"\n")
            worker.process.stdin.flush()

    def take(self) -> tuple[int, Outcome]:
        """Waits for a trial to be over."""
        while True:
            first = min(each.ends for each in self._workers if each.number is not None)
            ready = [key.data for key, _ in self._selector.select(max(0.0, first - time.monotonic()))]
            late = [each for each in self._workers if each.number is not None and time.monotonic() >= each.ends]
            for worker in ready or late:
                number = worker.number
                line = self._line(worker) if ready else None
                if line is None:
                    reason = self._replaced(worker, late=not ready)
                    if number is not None:
                        return number, failed(reason)
                elif line and number is not None:
                    worker.number = None
                    return number, _read(line)

    def close(self) -> None:
        """Ends every worker, and the tools that it started."""
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                worker.process.terminate()
        for worker in self._workers:
            self._end(worker)
        self._workers = []
        self._selector.close()

    def _hire(self) -> None:
        printed = tempfile.TemporaryFile()  # noqa: SIM115 -- as long as the worker
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "texpr.tune.crews.worker", self._measure],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                process_group=0,  # a terminal's interrupt is for this process, which ends them
            )
        except OSError as fault:
            raise error("E0844", None, f"no worker can be started: {fault.strerror or fault}") from None
        worker = _Worker(process, printed)
        self._workers.append(worker)
        self._begun(worker)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)

    def _begun(self, worker: _Worker) -> None:
        """Waits for a worker's first line. Raises TexprError E0844 where that does not come."""
        assert worker.process.stdout is not None
        with selectors.DefaultSelector() as one:
            one.register(worker.process.stdout, selectors.EVENT_READ)
            if not one.select(START) or worker.process.stdout.readline().strip() != READY.encode():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    worker.process.wait(GRACE)
                raise error("E0844", None, f"a worker does not begin: {self._last_words(worker)}")

    def _line(self, worker: _Worker) -> bytes | None:
        """A worker's answer; empty where it is not complete, None where the worker is gone."""
        assert worker.process.stdout is not None
        data = os.read(worker.process.stdout.fileno(), 1 << 20)
        if not data:
            return None
        worker.partial += data
        if not worker.partial.endswith(b"\n"):
            return b""
        line, worker.partial = worker.partial, b""
        return line

    def _replaced(self, worker: _Worker, late: bool) -> str:
        """Why a worker is gone, or is stopped; another one takes its place."""
        assert worker.process.stdout is not None
        self._selector.unregister(worker.process.stdout)
        if late:
            worker.process.terminate()
        code = self._end(worker)
        words = "" if late else self._last_words(worker)
        self._workers.remove(worker)
        self._hire()
        if late:
            return f"it took longer than {self._seconds:g} s"
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return f"its worker {how}{': ' if words else ''}{words}"

    def _end(self, worker: _Worker) -> int:
        """Waits for a worker's end, and helps."""
        for stream in (worker.process.stdin, worker.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            return worker.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            return worker.process.wait()

    def _last_words(self, worker: _Worker) -> str:
        """The last line that a worker printed."""
        try:
            worker.printed.seek(0)
            lines = worker.printed.read().decode(errors="replace").split("\n")
        except (OSError, ValueError):
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _read(line: bytes) -> Outcome:
    try:
        return Outcome.of(line.decode())
    except ValueError as fault:
        return failed(str(fault))
