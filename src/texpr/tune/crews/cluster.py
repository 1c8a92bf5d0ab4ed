"""Workers of a Dask cluster, which only this file speaks to. Each has the same release of the compiler.

Tasks and answers are text. A worker that dies has its task done by another one, as the scheduler does it, unless tasks of this
point end several workers: then that trial has failed.
"""

from __future__ import annotations

import time
from queue import Empty, Queue
from typing import Any

import distributed

from texpr.support.diagnostic import error
from texpr.support.lazy import resolve
from texpr.tune.outcome import Outcome, failed

_dask: Any = distributed  # most of it has no types

CONNECT = 10
"""Seconds to reach a scheduler."""

LONELY = 60.0
"""Seconds to wait for a cluster's first worker."""


def address_of(text: str) -> str:
    """The scheduler of `dask://HOST:PORT`."""
    return f"tcp://{text.removeprefix('dask://')}"


def done(measure: str, task: str) -> str:
    """The answer to a task, on a worker."""
    found: Any = resolve(measure)
    return str(found(task))


class Cluster:
    """The workers of a scheduler, which measure by the function `measure`, each trial in at most so many seconds."""

    def __init__(self, address: str, measure: str, seconds: float):
        """Raises TexprError E0844 where the cluster is not reached, or has no worker."""
        self._measure, self._seconds = measure, seconds
        self._going: dict[Any, tuple[int, float]] = {}
        self._over: Queue[Any] = Queue()
        try:
            self._client: Any = _dask.Client(address_of(address), timeout=CONNECT, set_as_default=False)
            self._client.wait_for_workers(1, timeout=LONELY)
        except (OSError, TimeoutError, ValueError) as fault:
            reason = f"the cluster at {address} cannot be used: {fault}"
            raise error(
                "E0844", None, reason, help="dask scheduler, and on each machine: dask worker HOST:PORT --nthreads 1"
            ) from None

    @property
    def room(self) -> int:
        """The workers that have nothing to do, if this search alone uses them."""
        return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"])) - len(self._going)

    def give(self, number: int, task: str) -> None:
        """Has a task done."""
        future = self._client.submit(done, self._measure, task, pure=False)
        self._going[future] = number, time.monotonic() + self._seconds
        future.add_done_callback(self._over.put)

    def take(self) -> tuple[int, Outcome]:
        """Waits for a trial to be over."""
        while True:
            first = min(self._going, key=lambda each: self._going[each][1])
            try:
                future = self._over.get(timeout=max(0.0, self._going[first][1] - time.monotonic()))
            except Empty:
                number, _ = self._going.pop(first)
                first.cancel(force=True)
                return number, failed(f"it took longer than {self._seconds:g} s")
            if future in self._going:  # else it was given up
                number, _ = self._going.pop(future)
                return number, _answer(future)

    def close(self) -> None:
        """Takes all back that is not done."""
        self._client.cancel(list(self._going), force=True)
        self._client.close()


def _answer(future: Any) -> Outcome:
    if future.status != "finished":
        fault = future.exception()
        return failed(f"{type(fault).__name__}: {fault}")
    try:
        return Outcome.of(str(future.result()))
    except ValueError as fault:
        return failed(str(fault))
