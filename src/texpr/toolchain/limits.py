"""A limit on the time and the memory of this process, for parsing untrusted files."""

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
    """Context manager: this process and each fork of it may use `seconds` more of processor time, and `memory` bytes.

    Beyond them `late()` is raised, or MemoryError. The limit of time applies to the main thread only.
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
    """The address space that this process uses, in bytes; 0 if it is not available."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError):
        return 0
