"""No test judges by a clock: machines are slow, and shared. `bench` measures, tests count (tests/steps.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
REPORTS = {"proofs.py", "repo/test_clocks.py"}
"""What reads a clock and judges nothing by it, and the texts below."""

CLOCKS = {
    *(f"{name}{unit}" for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time") for unit in ("", "_ns")),
    *("clock_gettime", "clock_gettime_ns", "getrusage", "times", "timeit", "default_timer", "utcnow", "now", "today"),
}
MODULES = {"time", "timeit", "resource", "datetime", "os", "datetime.datetime", "datetime.date"}


def clocks(text: str) -> Iterator[int]:
    """Lines that ask what time it is, by whatever name; of programs within strings, too."""
    tree = ast.parse(text)
    names = {"datetime": "datetime.datetime", "date": "datetime.date"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            if any(each.name in CLOCKS for each in node.names):
                yield node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield from (node.lineno for _ in _within(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS and isinstance(node.value, ast.Name | ast.Attribute):
            of = names.get(ast.unparse(node.value), ast.unparse(node.value))
            if of in MODULES:
                yield node.lineno


def _within(text: str) -> Iterator[int]:
    """Clocks in a string, where that is a program."""
    try:
        yield from clocks(text)
    except (SyntaxError, ValueError):
        return


def test_no_test_reads_a_clock() -> None:
    found = {
        f"{path.relative_to(TESTS)}:{line}"
        for path in TESTS.rglob("*.py")
        if str(path.relative_to(TESTS)) not in REPORTS
        for line in clocks(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_clocks_are_found() -> None:
    for text in (
        "import time\nassert time.process_time() < 1",
        "from time import perf_counter",
        "import time as t\nt.monotonic_ns()",
        "from datetime import datetime\ndatetime.now()",
        "import resource\nresource.getrusage(0)",
        "import os\nos.times()",
        "text = '''\nimport time\nprint(time.time())\n'''",
    ):
        assert list(clocks(text)), text
    for text in ("import time\ntime.sleep(1)", "from time import sleep", "event.time(1)"):
        assert not list(clocks(text)), text
