"""Measurements on a device: what they say without one, all of their host code in the emulator, events on a fake driver."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from texpr.runtime import DeviceArray
from texpr.runtime.memory import Driver
from texpr.toolchain import Toolchain, this_machine
from texpr.toolchain.doctor import find_device

ROOT = Path(__file__).parents[2]
PROGRAMS = ("saxpy", "sum", "transpose", "permute5d", "softmax", "layernorm", "rmsnorm", "matmul", "conv2d", "jacobi")
SCRIPTS = {"tma": ("tiled copy", "transpose"), "gallery": PROGRAMS}


def script(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / f"bench/{name}.py"), *words], capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_a_device_nothing_is_measured(name: str, tmp_path: Path) -> None:
    if not isinstance(find_device(), str):
        pytest.skip("there is a device")
    done = script(name, "--json", str(tmp_path / "none.json"))
    assert (done.returncode, done.stderr) == (4, "") and "no GPU: nothing measured" in done.stdout
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_run_in_the_emulator(name: str, tmp_path: Path) -> None:
    """Small sizes; results are compared with what they must be, and nothing is kept."""
    done = script(name, "--emulate", "--json", str(tmp_path / "none.json"))
    assert (done.returncode, done.stderr) == (0, "") and "EMULATED" in done.stdout
    lines = done.stdout.splitlines()
    assert all(sum(line.startswith(program) for line in lines) >= 1 for program in SCRIPTS[name])
    assert not (tmp_path / "none.json").exists()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that scripts share."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return import_module("common.device")


@pytest.fixture(scope="module")
def fake() -> Path:
    """The driver that runs nothing."""
    text = (ROOT / "tests/fake_driver/fake_driver.c").read_text(encoding="utf-8")
    return Toolchain(this_machine()).loadable("fake_driver", {"fake_driver.c": text}, {}, libraries=("pthread",))


def test_calls_are_timed_between_events(bench: Any, fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fake device: taken in turn, each between two events, whose difference is 1 ms here."""
    driver = Driver(ctypes.CDLL(str(fake)))
    driver.start()
    driver.enter()
    monkeypatch.setenv("FAKE_DRIVER_LOG", str(tmp_path / "log"))
    device = bench.Device("sm_90a", "fake device", emulated=False)
    one, other = (DeviceArray.of(driver, np.arange(4.0) + at) for at in (0, 1))
    calls: list[str] = []
    times = device.times(driver, {"ours": lambda: calls.append("ours"), "driver": bench.copied(one, other)})
    assert times == {"ours": [1e-4] * 11, "driver": [1e-4] * 11} and len(calls) == 3 + 11 * 10
    assert bench.ratio(times, "driver") == 1 and bench.ratio(times, "torch") == "" == bench.milliseconds(times, "torch")
    assert one.numpy().tolist() == [1, 2, 3, 4]
    log = (tmp_path / "log").read_text(encoding="utf-8").split("\n")
    verbs = [line.split()[0] for line in log if line.startswith("cuEvent")]
    assert verbs == [*2 * ["cuEventCreate"], *22 * [*2 * ["cuEventRecord"], "cuEventSynchronize"], *2 * ["cuEventDestroy"]]


def test_results_are_kept_with_the_device(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "find", lambda emulate: bench.Device("sm_90a", "fake device", emulated=False))
    monkeypatch.setattr(sys, "argv", ["bench", "--json", str(tmp_path / "deep" / "found.json")])
    assert bench.run("something", lambda device: iter([{"program": device.target, "ratio": 1.5}]), tmp_path / "default") == 0
    kept = json.loads((tmp_path / "deep" / "found.json").read_text(encoding="utf-8"))
    assert kept["device"] == "fake device" and kept["rows"] == [{"program": "sm_90a", "ratio": 1.5}] and kept["date"]
    assert "fake device" in capsys.readouterr().out


def test_the_command_for_a_device_says_that_there_is_none() -> None:
    if not isinstance(find_device(), str):
        pytest.skip("there is a device")
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", str(ROOT / "bench/device.sh")], capture_output=True, text=True, check=False, timeout=600, env=environment
    )
    assert done.returncode == 4 and "no GPU: nothing measured" in done.stdout + done.stderr
