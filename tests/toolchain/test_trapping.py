"""What tests build traps where a signed integer overflows: what the toolchain builds, and the emulator's kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.trapping import TRAPPING, trapping

from texpr.emulator import compile as emulator
from texpr.toolchain import Toolchain, host, this_machine

ADD = 'extern "C" __attribute__((visibility("default"))) int add(int a, int b) { return a + b; }\n'
CALL = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).add(*map(int, sys.argv[2:])))"


def called(library: Path, a: int, b: int) -> subprocess.CompletedProcess[str]:
    """A sum, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", CALL, str(library), str(a), str(b)], capture_output=True, text=True, check=False
    )


def test_a_library_of_the_toolchain_traps(tmp_path: Path) -> None:
    library = tmp_path / "adds.so"
    library.write_bytes(Path(Toolchain(this_machine()).loadable("adds", {"add.cpp": ADD}, {})).read_bytes())
    assert called(library, 2, 3).stdout == "5\n"
    assert called(library, 2**31 - 1, 1).returncode < 0


def test_kernels_of_the_emulator_trap(tmp_path: Path) -> None:
    told = emulator.FLAGS, tmp_path, emulator.COMPILER
    library = emulator._library("adds", "add.cu", {"add.cu": ADD}, *told)  # pyright: ignore[reportPrivateUsage]
    assert called(library, 2, 3).stdout == "5\n"
    assert called(library, 2**31 - 1, 1).returncode < 0


def test_flags_are_as_before_behind_it() -> None:
    before = emulator.FLAGS, host.host_flags
    with trapping():
        assert (*before[0], *TRAPPING) == emulator.FLAGS and host.host_flags is not before[1]
    assert (emulator.FLAGS, host.host_flags) == before
