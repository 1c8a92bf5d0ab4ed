"""Work, counted: how many calls and lines of Python a thing takes. A count is the same on a busy machine, a time is not.

`steps(work, (20,), (40,), first=(5,))` counts `work(20)` and `work(40)`, each in a process of its own that has done `work(5)`
and no more, so that neither what other tests have left nor the order of them changes a count. `work` is a function of a
module of tests.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType

ROOT = Path(__file__).parents[1]


def steps(work: FunctionType, *arguments: Sequence[str | int], first: Sequence[str | int]) -> list[int]:
    """The steps of `work` with each of these arguments, what is loaded by it with the `first` ones not counted."""
    module = ".".join(Path(work.__code__.co_filename).relative_to(ROOT).with_suffix("").parts)
    command = [sys.executable, "-m", "tests.steps", module, work.__qualname__, json.dumps((first, *arguments))]
    path = os.pathsep.join(map(str, (ROOT, ROOT / "examples", ROOT / "src")))
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def growth(work: FunctionType, *arguments: str | int, length: int, times: int = 2) -> float:
    """How many times the steps there are of `work(*arguments, length)` where `length` is so many times as large."""
    short, long = steps(work, *((*arguments, each) for each in (length, times * length)), first=(*arguments, length // 4))
    return long / short


def counted(call: Callable[[], object]) -> int:
    """The calls and lines of Python of `call`, those of generators and comprehensions among them."""
    count = 0

    def seen(*_: object) -> Callable[..., object]:
        nonlocal count
        count += 1
        return seen

    sys.settrace(seen)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def pairs(things: int, each: int) -> int:
    """What compares each of some things with each other takes: so many steps a pair, to plant where a test should fail."""
    found = 0
    for _ in range(things * things * each):
        found += 1
    return found


def _apart(call: Callable[[], object]) -> int:
    """What is counted in a child of this process, which keeps nothing of it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, str(counted(call)).encode())
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit("what was to be counted has failed")
    return int(said)


def main(module: str, name: str, arguments: str) -> None:
    """Prints the steps of a function with each of these arguments, but the first, as JSON."""
    work = getattr(importlib.import_module(module), name)
    first, *others = json.loads(arguments)
    work(*first)
    found = [_apart(lambda given=given: work(*given)) for given in others]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
