"""A thread that checks texts, the newest of each document, one after the other."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

Job: TypeAlias = Callable[[Callable[[], bool]], None]
"""Work that is given a way to ask whether it is out of date."""

STACK = 256 * 1024 * 1024
"""Bytes of the thread's stack; what is compiled recurs as deep as in the main thread of a command."""


def tell(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: object) -> None:
    """Has the thread of `loop` call something, if the loop has not ended: a job may be over behind the farewell."""
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(callback, *args)


class Worker:
    """Runs the last job of each key; a job that is out of date can end early."""

    def __init__(self) -> None:
        self._keys: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._jobs: dict[str, tuple[int, Job]] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._under_way = False

    def start(self) -> None:
        """Starts the thread, which ends with the process."""
        before = threading.stack_size(STACK)
        try:
            threading.Thread(target=self._run, name="texpr-check", daemon=True).start()
        finally:
            threading.stack_size(before)

    @property
    def busy(self) -> bool:
        """Whether a job is under way, or waits."""
        with self._lock:
            return self._under_way or bool(self._jobs)

    def put(self, key: str, job: Job) -> None:
        """Has `job` run, in place of an earlier one of the key."""
        with self._lock:
            self._count += 1
            self._jobs[key] = (self._count, job)
        self._keys.put(key)

    def drop(self, key: str) -> None:
        """Forgets the job of a key; where it is under way it is out of date."""
        with self._lock:
            self._jobs.pop(key, None)

    def _run(self) -> None:
        while True:
            key = self._keys.get()
            with self._lock:
                number, job = self._jobs.get(key, (0, None))
                self._under_way = job is not None
            if job is None:
                continue
            try:
                job(lambda key=key, number=number: self._number(key) != number)
            finally:
                with self._lock:
                    self._under_way = False
                    if self._number(key) == number:
                        del self._jobs[key]

    def _number(self, key: str) -> int:
        return self._jobs.get(key, (0, None))[0]
