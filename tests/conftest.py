"""Options and fixtures that every room's tests share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import settings
from tests.kept import EMULATED
from tests.shares import divided, shares
from tests.trapping import trapping

from texpr.support.garbage import settle

LISTED = Path(__file__).with_name("skips.txt")
LONG = Path(__file__).with_name("long.txt")

MOST = 1 << 30
"""How many bytes of compiled kernels are kept between runs."""

settings.register_profile("texpr", deadline=None, print_blob=True)
settings.load_profile("texpr")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forbid-skips", action="store_true", help="a skipped test fails unless tests/skips.txt lists it")
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files with what was produced")


@pytest.fixture(scope="session", autouse=True)
def overflow_traps() -> Generator[None]:
    """Whatever a test builds ends its process where a signed integer overflows."""
    with trapping():
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_kept() -> Generator[None]:
    """No build in these processes takes a plan of an earlier one, which a planted bug may have made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("texpr.delivery.plans", lambda folder: None)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuses files that hide each other, and leaves to the long suite what is listed, before tests are chosen by marks."""
    for item in items:
        module = item.module if isinstance(item, pytest.Function) else None
        if module is not None and module.__file__ != str(item.path):
            # Two files of one name are one module to pytest where their folders are packages: it runs one of them twice.
            raise pytest.UsageError(f"{item.path} is not run: its module is {module.__file__}")
    listed = shares(LONG.read_text(encoding="utf-8")) if LONG.exists() else ()
    tests = {item.nodeid: item for item in items if not item.get_closest_marker("long")}
    left, unused = divided(listed, tests)
    for test in left:
        tests[test].add_marker(pytest.mark.long)
    if (
        unused and not session.testsfailed and config.args == config.getini("testpaths")
    ):  # an error while collecting is told first
        raise pytest.UsageError(f"{LONG} names what is no test: {', '.join(share.pattern for share in unused)}")


def pytest_collection_finish() -> None:
    """What is loaded stays: searching for garbage as often as Python does took a tenth of the time."""
    settle()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One process, when its workers are done, forgets the kernels that were compiled first, where there are too many.

    What is left is no garbage to anybody: pytest searches all of it twice when it ends, which takes seconds.
    """
    gc.freeze()
    if not hasattr(session.config, "workerinput"):
        bound(EMULATED, MOST)


def bound(folder: Path, most: int) -> None:
    """Removes the oldest files of a folder, so that no more than so many bytes are left."""
    files = list[tuple[float, int, Path]]()
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another session has put it there, and taken it away
            if path.is_file():
                files.append(((found := path.stat()).st_mtime, found.st_size, path))
    kept = 0
    for _, size, path in sorted(files, reverse=True):
        kept += size
        if kept > most:
            path.unlink(missing_ok=True)


def allowed_skips(text: str) -> tuple[str, ...]:
    """The patterns of a skip list: one to a line, `pattern -- reason`; `#` starts a comment."""
    lines = (line.split("#", 1)[0].split(" -- ", 1)[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def _fails(config: pytest.Config, nodeid: str) -> bool:
    if not config.getoption("--forbid-skips"):
        return False
    patterns = allowed_skips(LISTED.read_text(encoding="utf-8")) if LISTED.exists() else ()
    return not any(nodeid == pattern or fnmatch(nodeid, pattern) for pattern in patterns)


def _forbid(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid} was skipped, and tests/skips.txt does not list it: {reason}"
    if hasattr(report, "wasxfail"):
        del report.wasxfail


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and _fails(item.config, item.nodeid):
        _forbid(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _fails(collector.config, collector.nodeid):
        _forbid(report)
    return report


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: the file at `path` holds `text`; with --update-golden it is rewritten instead."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path}; run with --update-golden, then read it"
        assert path.read_text(encoding="utf-8") == text

    return compare
