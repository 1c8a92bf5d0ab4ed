"""Searches whose processes are killed, here and in a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.tune.programs import PLUS

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

TILES = [8 << at for at in range(8)]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", *map(str, words)]


def environment() -> dict[str, str]:
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "TEXPR_JOBS": "1"}


def started(*words: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(*words), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tune(file: Path, *more: object) -> tuple[object, ...]:
    return ("texpr", "tune", file, "--size", "n=1000", "--space", f"tile={','.join(map(str, TILES))}", *more)


def finished(file: Path) -> dict[str, object]:
    """Runs a search to its end; what it found."""
    done = subprocess.run(command(*tune(file, "--json")), env=environment(), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{folder / 'trials.db'}?mode=ro", uri=True)) as base:
        return base.execute(query).fetchall()
    return []


def wait_for(folder: Path, complete: int) -> None:
    for _ in range(6000):
        if len(rows(folder, "select 1 from trials where state = 'COMPLETE'")) >= complete:
            return
        time.sleep(0.02)
    pytest.fail("no trial was over")


@pytest.fixture
def plus(tmp_path: Path) -> Path:
    file = tmp_path / "plus.te"
    file.write_text(PLUS, encoding="utf-8")
    return file


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_search_that_is_ended_goes_on_with_nothing_lost(number: signal.Signals, plus: Path) -> None:
    folder = plus.with_name("plus.tune")
    process = started(*tune(plus))
    wait_for(folder, 1)
    process.send_signal(number)
    assert process.wait(30) == (-9 if number == signal.SIGKILL else 128 + number)
    query = "select number, datetime_start from trials where state = 'COMPLETE' order by number"
    before = rows(folder, query)
    found = finished(plus)
    assert found["measured"] == len(TILES) and rows(folder, query)[: len(before)] == before
    points = rows(folder, "select param_value from trial_params join trials using (trial_id) where state = 'COMPLETE'")
    assert len(points) == len(TILES) == len(set(points))  # none was measured twice


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    file = tmp_path / "scheduler.json"
    scheduler = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file)
    every = [started("distributed.cli.dask_scheduler", *scheduler)]
    try:
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        worker = ("distributed.cli.dask_worker", address, "--nthreads", 1, "--no-dashboard", "--no-nanny")
        every += [started(*worker), started(*worker)]
        yield address.removeprefix("tcp://"), every[1:]
    finally:
        for each in every:
            each.kill()
            each.wait()


def test_a_cluster_loses_a_worker(cluster: tuple[str, list[subprocess.Popen[bytes]]], plus: Path) -> None:
    address, workers = cluster
    process = subprocess.Popen(command(*tune(plus, "--workers", f"dask://{address}", "--json")), env=environment(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    wait_for(plus.with_name("plus.tune"), 2)
    workers[0].kill()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["measured"] >= len(TILES) - 1 and found["measured"] + found["failed"] == len(TILES)
