"""The command, run in the process of its tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from texpr.cli import main

Call: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def texpr(capfd: pytest.CaptureFixture[str]) -> Call:
    """`texpr(…)` runs the command here: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call
