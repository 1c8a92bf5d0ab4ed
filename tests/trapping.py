"""Flags by which overflow of signed integers ends the process where it happens: what tests build is built with them.

Data of the language wraps around by definition, and emitted code says so; indices and sizes are proved not to overflow.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from texpr.emulator import compile as emulator
from texpr.toolchain import Machine, host
from texpr.toolchain.host import HostCompiler, HostJob

TRAPPING = ("-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error")


@contextmanager
def trapping() -> Generator[None]:
    """Within, every library that the toolchain or the emulator builds traps; what an artifact records of flags stays."""
    plain = host.host_flags

    def flags(machine: Machine, compiler: HostCompiler, job: HostJob) -> tuple[str, ...]:
        return (*plain(machine, compiler, job), *TRAPPING)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "host_flags", flags)
        patch.setattr(emulator, "FLAGS", (*emulator.FLAGS, *TRAPPING))
        yield
