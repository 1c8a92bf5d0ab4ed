"""A machine whose tools are small scripts, so that each way to fail can be had."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from texpr.support.record import replace
from texpr.toolchain import Machine, this_machine

Script = Callable[[str, str], Path]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """This machine with an empty cache."""
    return replace(this_machine(), cache=tmp_path / "cache")


@pytest.fixture
def bare(tmp_path: Path, machine: Machine) -> Machine:
    """A machine with no compiler: its search path is the folder `bin`, empty but for what `script` puts there."""
    (tmp_path / "bin").mkdir()
    return replace(machine, environment={"PATH": str(tmp_path / "bin")}, packages=(), toolkits=())


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Put a shell script on the bare machine's search path."""

    def write(name: str, body: str) -> Path:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def real_path() -> str:
    """The search path of this machine."""
    return os.environ["PATH"]
