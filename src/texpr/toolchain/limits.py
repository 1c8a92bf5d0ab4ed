"""A bound on the time and the memory of what this process does: for reading what anybody may have written."""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


@contextmanager
def bounded(seconds: int, memory: int, late: Callable[[], Exception]) -> Generator[None]:
    """Within, this process and each fork of it may use `seconds` of processor time more, and `memory` bytes.

    Beyond them `late()` is raised, or MemoryError. Only the main thread can be told of time; in others there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expired(number: int, frame: FrameType | None) -> None:
        raise late()

    used = resource.getrusage(resource.RUSAGE_SELF)
    wanted = (
        (resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds),
        (resource.RLIMIT_AS, _virtual_bytes() + memory),
    )
    before = [(kind, resource.getrlimit(kind)) for kind, _ in wanted]
    handler = signal.signal(signal.SIGXCPU, expired)
    try:
        for (kind, most), (_, (soft, hard)) in zip(wanted, before, strict=True):
            limits = [each for each in (most, soft, hard) if each != resource.RLIM_INFINITY]
            resource.setrlimit(kind, (min(limits), hard))
        yield
    finally:
        for kind, limits in before:
            resource.setrlimit(kind, limits)
        signal.signal(signal.SIGXCPU, handler)


def _virtual_bytes() -> int:
    """How much of its address space this process has in use; 0 where that is not told."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return 0
