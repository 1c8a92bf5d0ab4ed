"""Turns of processes of one machine: many compile at once, but a measurement of time is alone."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside_others(file: Path) -> Generator[None]:
    """Others may work meanwhile, but for a measurement."""
    yield from _held(file, fcntl.LOCK_SH)


@contextmanager
def alone(file: Path) -> Generator[None]:
    """No other that takes its turn by `file` works meanwhile."""
    yield from _held(file, fcntl.LOCK_EX)


def _held(file: Path, how: int) -> Generator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lock:
        fcntl.flock(lock, how)
        yield  # the lock ends with the file, also where the process is killed
