"""Times of calls by a made-up clock, and on a made-up driver: who is asked, in which order, and what is undone and flushed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from texpr.runtime import DeviceArray
from texpr.runtime.events import Events, Flush, has_graphs, replayed, stream
from texpr.runtime.memory import Driver
from texpr.runtime.timing import Timed, by_clock, in_turn, measured, ratio, spread, within
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain, this_machine
from texpr.toolchain.hardware import UNKNOWN, last_level_cache, processor

ROOT = Path(__file__).parents[2]


class Clock:
    """Goes on when somebody works, and not by itself."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> Callable[[], None]:
        def worked() -> None:
            self.now += seconds

        return worked


def test_what_is_done_before_a_run_takes_no_time() -> None:
    clock = Clock()
    calls = {
        "one": Timed(clock.work(2.0), by_clock(clock), clock.work(100.0)),
        "other": Timed(clock.work(3.0), by_clock(clock)),
    }
    assert in_turn(calls, lambda done: done < 3) == {"one": [2.0] * 3, "other": [3.0] * 3}


def test_calls_take_turns_forwards_and_backwards() -> None:
    order: list[str] = []
    calls = {name: Timed(lambda name=name: order.append(name), by_clock()) for name in "abc"}  # type: ignore[misc]
    in_turn(calls, lambda done: done < 2)
    assert "".join(order) == "abccba"


def test_several_runs_a_turn() -> None:
    """Each after what is done before a run, all after what is done when a turn begins."""
    order: list[str] = []

    def note(what: str) -> Callable[[], None]:
        return lambda: order.append(what)

    calls = {name: Timed(note(name), by_clock(), note("-"), note("|")) for name in "ab"}
    found = in_turn(calls, lambda done: done < 2, runs=2)
    assert "".join(order) == "|-a-a|-b-b|-b-b|-a-a" and {name: len(times) for name, times in found.items()} == {"a": 4, "b": 4}


def test_each_call_gets_its_share_of_time() -> None:
    """Ten seconds for each of two calls of 1 s: a tenth of them before what counts."""
    clock = Clock()
    calls = {name: Timed(clock.work(1.0), by_clock(clock)) for name in "ab"}
    found = measured(calls, 10.0, clock)
    assert {name: len(times) for name, times in found.items()} == {"a": 9, "b": 9} and clock.now == 20


@pytest.mark.parametrize(("seconds", "runs"), [(1e-9, 5), (1e9, 10_000)])
def test_runs_are_neither_few_nor_endless(seconds: float, runs: int) -> None:
    clock, done = Clock(), 0
    more = within(seconds, clock)
    while more(done):
        done, clock.now = done + 1, clock.now + 0.001
    assert done == runs


def test_the_middle_and_the_quartiles() -> None:
    times = [float(each) for each in range(1, 102)]
    found = spread(times[::-1])
    assert (found.low, found.median, found.high, found.runs) == (26.0, 51.0, 76.0, 101)
    assert spread([2.0]).high == 2.0
    assert ratio([2.0, 90.0, 8.0], [1.0, 30.0, 4.0]) == 2.0 and ratio([1.0], [0.0]) == float("inf")


def test_what_the_system_says_of_caches_and_processors(tmp_path: Path) -> None:
    for at, size in enumerate(("48K", "2048K", "30M", "much")):
        (tmp_path / f"index{at}").mkdir()
        (tmp_path / f"index{at}/size").write_text(f"{size}\n")
    assert last_level_cache(tmp_path) == 30 << 20 and last_level_cache(tmp_path / "none") == UNKNOWN
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A Processor: fast\n")
    assert processor(tmp_path / "cpuinfo") == "A Processor: fast" and processor(tmp_path / "nothing") is not None


@pytest.fixture(scope="module")
def fake() -> Path:
    """The driver that runs nothing."""
    text = (ROOT / "tests/fake_driver/fake_driver.c").read_text(encoding="utf-8")
    return Toolchain(this_machine()).loadable("fake_driver", {"fake_driver.c": text}, {}, libraries=("pthread",))


@pytest.fixture
def driver(fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver(ctypes.CDLL(str(fake)))
    made.start()
    made.enter()
    monkeypatch.setenv("FAKE_DRIVER_LOG", str(tmp_path / "log"))
    return made


def said(tmp_path: Path) -> list[str]:
    """The verbs of the log."""
    return [line.partition(" ")[0] for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]


def test_a_device_says_its_name_and_its_cache(driver: Driver, tmp_path: Path) -> None:
    assert driver.name == "fake device"
    flush = Flush(driver)
    assert flush.bytes == 2 << 20
    flush()
    assert (tmp_path / "log").read_text().splitlines() == ["cuMemAlloc bytes=2097152", "cuMemsetD32Async words=524288 stream=0"]


def test_work_is_timed_between_two_events(driver: Driver, tmp_path: Path) -> None:
    """The fake's events are a millisecond apart."""
    one, other = (DeviceArray.of(driver, np.arange(4.0) + at) for at in (0, 1))
    (tmp_path / "log").write_text("")
    with Events(driver) as events:
        assert [events.watch(lambda: one.take(other)) for _ in range(2)] == [1e-3, 1e-3]
    assert one.numpy().tolist() == [1, 2, 3, 4]
    run = ["cuEventRecord", "cuMemcpyDtoDAsync", "cuEventRecord", "cuEventSynchronize"]
    assert said(tmp_path)[:12] == [*2 * ["cuEventCreate"], *run, *run, *2 * ["cuEventDestroy"]]


def test_launches_are_replayed_from_a_graph(driver: Driver, tmp_path: Path) -> None:
    """Recorded once on a stream of its own, launched on the default one, and nothing is left."""
    one, other = (DeviceArray.of(driver, np.arange(4.0) + at) for at in (0, 1))
    (tmp_path / "log").write_text("")
    assert has_graphs(driver)
    with ExitStack() as stack:
        on = stack.enter_context(stream(driver))
        graph = stack.enter_context(replayed(driver, on, lambda: one.take(other, on)))
        graph()
        graph()
    made = ["cuStreamBeginCapture", "cuMemcpyDtoDAsync", "cuStreamEndCapture", "cuGraphInstantiate", "cuGraphDestroy"]
    assert said(tmp_path) == [*made, "cuGraphLaunch", "cuGraphLaunch", "cuGraphExecDestroy"]
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("cuGraphLaunch")]
    assert all(line.endswith("stream=0") for line in lines)


def test_a_capture_that_fails_is_ended(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (DeviceArray.of(driver, np.arange(4.0) + at) for at in (0, 1))
    monkeypatch.setenv("FAKE_DRIVER_FAIL", "cuMemcpyDtoDAsync=900")
    with ExitStack() as stack:
        on = stack.enter_context(stream(driver))
        with pytest.raises(TexprError, match="cuMemcpyDtoDAsync"):
            stack.enter_context(replayed(driver, on, lambda: one.take(other, on)))
        monkeypatch.delenv("FAKE_DRIVER_FAIL")
        stack.enter_context(replayed(driver, on, lambda: one.take(other, on)))()
    assert said(tmp_path).count("cuStreamEndCapture") == 2
