"""A pool of worker processes: forks of this one, each of which runs one task after another.

A fork inherits its parent's memory. So only a task's number is sent to it, and bytes are sent back, but no code. Answers come
in the order of the tasks, and the exception of a task is raised in place of its answer; later tasks are not started.

No fork outlives its parent's interest: it ends on request, and when its parent is gone; a tool that it runs is stopped with
it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import NoReturn, TypeAlias

from texpr.support.diagnostic import CompilerBug, error
from texpr.support.faults import packed, unpacked
from texpr.support.record import Mutable

Task: TypeAlias = Callable[[int], bytes]
"""A function from a task's number to its answer. May raise whatever a compile raises."""

GRACE = 2.0
"""The seconds that a worker has to exit on request; longer work is inside the solver, and runs no tool."""

_WORD = 8
"""The bytes of a task's number, and of the length of an answer."""

_ASKED_TO_END = {signal.SIGINT, signal.SIGTERM}


def shared(task: Task, names: Sequence[str], jobs: int) -> Iterator[bytes]:
    """The answers of `task` for 0, 1, … as many as there are `names`, in order, from at most `jobs` processes.

    In this process only if `jobs` is 1, if there is one task, or if other threads run, whose locks a fork would inherit
    locked. `names` describe the tasks in messages. Raises what a task raised; TexprError E0611 if a process was killed,
    CompilerBug if it crashed.
    """
    jobs = min(jobs, len(names))
    if jobs < 2 or threading.active_count() > 1:
        yield from map(task, range(len(names)))
        return
    crew = _Crew(task, names)
    try:
        if any([crew.hire() for _ in range(jobs)]):
            yield from crew.answers()
        else:
            yield from map(task, range(len(names)))
    finally:
        crew.end()


class _Worker(Mutable):
    """A worker process: the pipes for task numbers and answers, and its current task."""

    pid: int
    orders: int
    answers: int
    doing: int | None = None


class _Crew:
    """The worker processes of one call."""

    def __init__(self, task: Task, names: Sequence[str]):
        self.task, self.names = task, names
        self.workers: list[_Worker] = []
        self.life = os.pipe()
        """Nobody writes to it; workers read its end when this process dies."""

    def hire(self) -> bool:
        """Starts one more worker, if the machine has resources."""
        orders, answers = os.pipe(), os.pipe()
        # A signal between the fork and the first line of the child would make it run on as a second parent.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED_TO_END)
        try:
            pid = os.fork()
            if pid == 0:
                self._begin(orders, answers, before)
            self.workers.append(_Worker(pid, orders[1], answers[0]))
        except OSError:
            _close(orders[1], answers[0])
            return False
        finally:
            _close(orders[0], answers[1])
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return True

    def _begin(self, orders: tuple[int, int], answers: tuple[int, int], before: set[signal.Signals | int]) -> NoReturn:
        """The main function of a worker, from which no exception may escape: it would continue as its parent."""
        code = 1
        try:
            try:
                for worker in self.workers:
                    _close(worker.orders, worker.answers)
                _close(self.life[1], orders[1], answers[0])
                for number in _ASKED_TO_END:
                    signal.signal(number, _leave)
                # before signals are unblocked: they are for the working thread, which may be waiting for a tool
                threading.Thread(target=_watch, args=(self.life[0],), daemon=True).start()
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
                while order := _read(orders[0], _WORD):
                    _write(answers[1], *_answer(self.task, int.from_bytes(order, "little")))
                code = 0
            except _Leave as asked:
                code = 128 + asked.number
            except BrokenPipeError:
                pass  # nobody wants the answer
            finally:
                os._exit(code)  # what the parent has buffered or opened is the parent's to flush and close
        finally:
            os._exit(code)  # a termination request came between; it comes once

    def answers(self) -> Iterator[bytes]:
        """Every answer, in order."""
        found: dict[int, bytes | Exception] = {}
        begun, last, due = 0, len(self.names), 0
        while due < last:
            for worker in self.workers:
                if worker.doing is None and begun < last:
                    worker.doing, begun = begun, begun + 1
                    with contextlib.suppress(BrokenPipeError):  # it has exited: its answers say so
                        os.write(worker.orders, worker.doing.to_bytes(_WORD, "little"))
            for worker in self._ready():
                assert worker.doing is not None
                answer = found[worker.doing] = self._take(worker)
                if isinstance(answer, Exception):
                    last = min(last, worker.doing + 1)
                worker.doing = None
            while due in found:
                answer = found.pop(due)
                if isinstance(answer, Exception):
                    raise answer
                yield answer
                due += 1

    def _ready(self) -> list[_Worker]:
        """The workers that have answered, or exited, at least one."""
        poll = select.poll()
        busy = {worker.answers: worker for worker in self.workers if worker.doing is not None}
        for file in busy:
            poll.register(file, select.POLLIN)
        return [busy[file] for file, _ in poll.poll()]

    def _take(self, worker: _Worker) -> bytes | Exception:
        length = _read(worker.answers, _WORD)
        answer = _read(worker.answers, int.from_bytes(length, "little")) if length else b""
        if not answer:
            return self._ended(worker)
        return answer[1:] if answer[:1] == b"+" else unpacked(answer[1:])

    def _ended(self, worker: _Worker) -> Exception:
        """Why a worker exited during a task. Raises KeyboardInterrupt if it was interrupted: then so is this process."""
        self.workers.remove(worker)
        _close(worker.orders, worker.answers)
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        number = -code if code < 0 else code - 128
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        assert worker.doing is not None
        name = self.names[worker.doing]
        if number in (signal.SIGTERM, signal.SIGKILL, signal.SIGHUP, signal.SIGXCPU):
            help = "most often the machine ran out of memory: `--jobs 1` takes least" if number == signal.SIGKILL else None
            return error("E0611", None, f"the process that worked on {name} was killed by signal {number}", help=help)
        return CompilerBug(f"the process that worked on {name} broke down, with exit code {code}")

    def end(self) -> None:
        """Stops every worker: idle ones now, the others on request, or by force."""
        _close(*self.life)
        for worker in self.workers:
            _close(worker.orders, worker.answers)
            if worker.doing is not None:
                os.kill(worker.pid, signal.SIGTERM)
        until = time.monotonic() + GRACE
        for worker in self.workers:
            while os.waitpid(worker.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > until:
                    os.kill(worker.pid, signal.SIGKILL)
                time.sleep(0.002)
        self.workers.clear()


class _Leave(BaseException):
    """Raised in a worker that is asked to exit."""

    def __init__(self, number: int):
        self.number = number


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    for each in _ASKED_TO_END:
        signal.signal(each, lambda number, frame: None)  # once is enough; a second one would disturb the exit
    raise _Leave(number)


def _watch(life: int) -> None:
    """Waits for the parent's end, and then exits as on request."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def _answer(task: Task, number: int) -> tuple[bytes, bytes]:
    try:
        return b"+", task(number)
    except Exception as fault:
        return b"-", packed(fault)


def _close(*files: int) -> None:
    for file in files:
        os.close(file)


def _write(file: int, kind: bytes, data: bytes) -> None:
    rest = memoryview((len(data) + 1).to_bytes(_WORD, "little") + kind + data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _read(file: int, length: int) -> bytes:
    """Reads so many bytes, or none if the other end closes earlier."""
    parts: list[bytes] = []
    while length:
        part = os.read(file, min(length, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
