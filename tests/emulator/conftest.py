"""One folder of built libraries for all, so that the core is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kept import EMULATED

from texpr.backends.cuda.headers import headers
from texpr.emulator import Emulated, build


@pytest.fixture(scope="session")
def work() -> Path:
    return EMULATED


@pytest.fixture(scope="session")
def emulate(work: Path) -> Callable[..., Emulated]:
    """`emulate(text, checked=True)`: the kernels of a `.cu`, ready to run."""
    return lambda text, checked=True: build(text, headers(), work, checked=checked)
