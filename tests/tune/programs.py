"""Programs to search, measurements that are made up, and a crew that has no processes."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from texpr.support.diagnostic import error
from texpr.tune.outcome import MEASURED, Outcome, read_task, refused
from texpr.tune.problem import Problem, identity
from texpr.tune.space import Dimension, Space
from texpr.tune.study import Study

PLUS = """
fn plus(x: f32[n], y: f32[n], const tile: i32 = 128): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = x[i] + y[i] }
    return z
}

schedule plus "tiled" for cpu {
    split(i, tile) -> (outer, inner)
}
"""

CUBE = {"M": 64, "N": 64, "K": 64}


def problem(text: str = PLUS, function: str = "plus", target: str = "cpu", **sizes: int) -> Problem:
    return Problem(text, "page.te", function, target, sizes or {"n": 1000}, "auto", "time")


def space(*values: int, name: str = "tile") -> Space:
    return Space((Dimension(name, values, values[0]),))


def study(folder: Path, space: Space, problem: Problem) -> Study:
    return Study(f"sqlite:///{folder / 'trials.db'}", identity(problem, space), space, {})


class Made:
    """A crew of `room` that measures by a function of the point, the last task first; an exception of it ends the search."""

    def __init__(self, value: Callable[[dict[str, int]], Outcome], count: int = 1):
        self.value, self.count = value, count
        self.tasks: list[tuple[int, str]] = []
        self.points: list[dict[str, int]] = []
        self.closed = False

    @property
    def room(self) -> int:
        return self.count - len(self.tasks)

    def give(self, number: int, task: str) -> None:
        assert self.room > 0
        self.tasks.append((number, task))

    def take(self) -> tuple[int, Outcome]:
        number, task = self.tasks.pop()
        _, _, point = read_task(task)
        self.points.append(point)
        return number, self.value(point)

    def close(self) -> None:
        self.closed = True


def least_at(best: int) -> Callable[[dict[str, int]], Outcome]:
    """The distance from the best tile; multiples of 7 are refused."""

    def value(point: dict[str, int]) -> Outcome:
        if point["tile"] % 7 == 0:
            return refused(error("E0911", None, f"no vectors of {point['tile']}"))
        return Outcome(MEASURED, float(abs(point["tile"] - best)))

    return value


def by_tile(task: str) -> str:
    """What a worker does: by the tile it ends itself, takes long, prints, or measures."""
    _, _, point = read_task(task)
    match point["tile"]:
        case 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case 2:
            time.sleep(60)
        case 3:
            print("noise", flush=True)  # noqa: T201
            os.write(1, b"noise\n")
        case 4:
            return "no JSON"
        case 5:
            sys.exit("the last words")
        case _:
            pass
    return json.dumps(Outcome(MEASURED, float(point["tile"])).data)
