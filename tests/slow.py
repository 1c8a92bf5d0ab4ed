"""Cases that take long run in the long suite alone."""

from collections.abc import Collection, Iterable

import pytest


def slow(names: Iterable[str], long: Collection[str]) -> list[object]:
    """The cases `names` of a test, of which those in `long` are left to the long suite. Every one of `long` is a case."""
    cases = list(names)
    assert {*long} <= {*cases}, f"no such cases: {', '.join({*long} - {*cases})}"
    return [pytest.param(name, marks=pytest.mark.long) if name in long else name for name in cases]
