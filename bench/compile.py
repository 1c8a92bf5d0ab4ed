"""How long compiling takes: programs of the gallery from their text to their `.cu`, files that grow, and the command's start.

Promised: a `.cu` within 0.25 s, compiled first in its process; the gallery proved in less time than it is made; a nest of 12
loops within 1 s; a file of 200 products, convolutions and sweeps, proofs included, within 20 s by two processes on two cores;
`texpr check` within 0.4 s, its start included.

What is made is source and certificate: of proofs, `compile ms` is from the text to the source and to the tags that the proof
is by; `search ms` is what of that the tags took. `proof ms` is what `texpr verify` repeats, in another process that knows
nothing yet: what is to be proved is read off plan and program, and proved by the tags; `schedule ms`, of that, is to prove that
the program as it was laid out is the one that was written. `read ms` is to parse these texts.
A package is built twice: `cold s` finds its plan, `warm s` proves the one of the build before.
Processor time, as one process runs on one core and the machine may have other work; by the clock where two share the work.
Modules are imported before the clock starts, isl's among them; every program is the first that its process compiles, so nothing
is remembered from another one, and searches for garbage as seldom as the command does.
`--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import log
from pathlib import Path
from time import perf_counter, process_time

from common.growing import GROWING
from common.measure import Row, seconds, show
from texpr import artifact, delivery, driver
from texpr.artifact.certificate import numbered
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof.notes_text import noted
from texpr.ir.proof.tags_parse import parse_tags
from texpr.proof.plan import prove, question
from texpr.proof.schedule import faithful
from texpr.proof.search import search
from texpr.support.garbage import settle

EXAMPLES = Path(__file__).parents[1] / "examples"
LONGEST, LONGEST_START, DEEPEST, WHOLE_FILE = 0.25, 0.4, 1.0, 20.0
TIMES = 5
# What a build of these has to fix.
SIZES: dict[str, dict[str, int]] = {"conv2d": {"stride": 2, "dilation": 1, "padding": 1}}

PARTS = {
    "compile ms": ("first", "search"),
    "search ms": ("search",),
    "read ms": ("read",),
    "proof ms": ("proof", "schedule"),
    "schedule ms": ("schedule",),
}
"""What is told of a proof, each by what it is a sum of."""

PACKAGES = ("saxpy", "softmax", "attention", "matmul")
"""Examples of which packages are built."""

LENGTHS: dict[str, tuple[int, ...]] = {
    "nests": (50, 100, 200, 400),
    "updates": (50, 100, 200, 400),
    "statements": (50, 100, 200, 400),
    "phases": (50, 100, 200, 400),
    "deep": (6, 9, 12),
    "functions": (25, 50, 100, 200),
}


def cold(program: str, target: str = "sm_90a") -> Mapping[str, float]:
    """Seconds from the text to the source, to find tags for it, and to make it once more, in a process of its own; to read
    what is shipped of it, and to prove that, in another one."""
    asked = [sys.executable, __file__, "--of", program, "--target", target]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


def _of(program: str, target: str) -> Mapping[str, float]:
    """What `cold` asks of this process; `program` is the stem of an example, or `KIND:LENGTH` of what grows."""
    importlib.import_module("islpy")
    kind, _, length = program.partition(":")
    if length:
        text = GROWING[kind](int(length))
        compiled = partial(_all, lambda: driver.parse(text), target)
    else:
        path, sizes = EXAMPLES / f"{program}.te", SIZES.get(program, {})
        compiled = partial(_all, lambda: driver.load(path, sizes), target)
    settle()
    times = [process_time()]
    found = compiled()
    times.append(process_time())
    for each in found:
        search(question(each.function, each.plan))
    times.append(process_time())
    shown = [artifact.show(each.function, each.plan, each.written) for each in found]
    own = {"first": times[1] - times[0], "search": times[2] - times[1], **_apart(shown)}
    return own if length else {**own, "again": seconds(compiled, process_time)}


def _apart(shown: Sequence[artifact.Shown]) -> Mapping[str, float]:
    """What `_again` says of what is shipped, in a process of its own."""
    texts = json.dumps([(each.program, each.plan, each.tags, each.written, each.notes) for each in shown])
    asked = [sys.executable, __file__, "--again"]
    return json.loads(subprocess.run(asked, input=texts, check=True, capture_output=True, text=True).stdout)


def _again(shipped: Sequence[tuple[str, str, str, str | None, str | None]]) -> Mapping[str, float]:
    """Seconds to read programs, plans, tags and notes, and to prove them, as `texpr verify` does."""
    importlib.import_module("islpy")
    settle()
    reading, proving, keeping = 0.0, 0.0, 0.0
    for program, shipped_plan, tags, written, notes in shipped:
        times = [process_time()]
        function, plan = driver.parse(program).functions[0], parse_plan(shipped_plan)
        times.append(process_time())
        asked = question(function, plan)
        times.append(process_time())
        said = parse_tags(tags, numbered(asked))
        times.append(process_time())
        prove(asked, plan, said)
        times.append(process_time())
        took = [after - before for before, after in pairwise(times)]
        reading, proving = reading + took[0] + took[2], proving + took[1] + took[3]
        if written is not None and notes is not None:
            times = [process_time()]
            before, laid = driver.parse(written).functions[0], noted(function, notes)
            times.append(process_time())
            faithful(before, laid)
            times.append(process_time())
            reading, keeping = reading + times[1] - times[0], keeping + times[2] - times[1]
    return {"read": reading, "proof": proving, "schedule": keeping}


def _all(read: Callable[[], driver.Program], target: str) -> list[driver.Compiled]:
    return [driver.lower(function, target, schedule="auto") for function in read().functions]


def by_two(program: str, target: str = "sm_90a") -> float:
    """Seconds by the clock from a text that grows to all that is proved of it, by two processes."""
    asked = [sys.executable, __file__, "--of", program, "--target", target, "--jobs", "2"]
    return json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)["wall"]


def _shared(program: str, target: str, jobs: int) -> Mapping[str, float]:
    """What `by_two` asks of this process."""
    kind, _, length = program.partition(":")
    text = GROWING[kind](int(length))
    importlib.import_module("islpy")
    settle()
    start = perf_counter()
    delivery.parts(driver.parse(text).functions, [target], jobs=jobs)
    return {"wall": perf_counter() - start}


def proofs() -> list[Row]:
    """One row a program and target: milliseconds to make source and certificate, the search for that, and to read and to prove
    what was made; and of all of them."""
    rows: list[Row] = []
    for target in ("sm_90a", "cpu"):
        for path in sorted(EXAMPLES.glob("*.te")):
            found = [cold(path.stem, target) for _ in range(TIMES)]
            times = {
                what: 1e3 * statistics.median(sum(each[kind] for kind in kinds) for each in found)
                for what, kinds in PARTS.items()
            }
            rows.append({"program": path.stem, "target": target, **times})
    for target in ("sm_90a", "cpu", "all"):
        own = [row for row in rows if target in ("all", row["target"]) and row["program"] != "all"]
        total = {kind: sum(float(row[kind]) for row in own) for kind in PARTS}
        rows.append({"program": "all", "target": target, **total})
    return [{**row, "ratio": float(row["proof ms"]) / float(row["compile ms"])} for row in rows]


def gallery() -> list[Row]:
    """One row a program: milliseconds to parse and to check it, and from the text to the `.cu`, first and when all is warm."""
    rows: list[Row] = []
    for path in sorted(EXAMPLES.glob("*.te")):
        sizes = SIZES.get(path.stem, {})
        program = driver.load(path, sizes)
        found = [cold(path.stem) for _ in range(TIMES)]
        times = {
            "parse": seconds(partial(driver.load, path, sizes), process_time),
            "check": seconds(partial(driver.check, program), process_time),
            "text to .cu, first": statistics.median(each["first"] for each in found),
            "again": statistics.median(each["again"] for each in found),
        }
        rows.append({"program": path.stem, **{f"{name} ms": 1e3 * each for name, each in times.items()}})
    return rows


def growth() -> list[Row]:
    """One row a length: seconds, and by which power of the length the time grew since the length before."""
    rows: list[Row] = []
    for kind, lengths in LENGTHS.items():
        before: tuple[int, float] | None = None
        for length in lengths:
            found = cold(f"{kind}:{length}")
            took, whole = found["first"], found["first"] + found["search"] + found["proof"] + found["schedule"]
            power = "" if before is None else log(whole / before[1]) / log(length / before[0])
            rows.append(
                {
                    "kind": kind,
                    "length": length,
                    "s": took,
                    "search s": found["search"],
                    "proof s": found["proof"],
                    "by two s": by_two(f"{kind}:{length}") if kind == "functions" else "",
                    "ms each": 1e3 * whole / length,
                    "power": power,
                }
            )
            before = length, whole
    return rows


def start_up() -> list[Row]:
    """Seconds of whole processes: what the command takes before it does anything."""
    small = str(EXAMPLES / "saxpy.te")
    asked = {
        "texpr --help": ["-m", "texpr", "--help"],
        "texpr check": ["-m", "texpr", "check", small],
        "import of texpr.driver": ["-c", "import texpr.driver"],
        "import of texpr build": ["-c", "import texpr.cli.verbs.build"],
    }

    def run(command: list[str]) -> None:
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return [{"process": name, "s": seconds(partial(run, command), _of_children)} for name, command in asked.items()]


def packages() -> list[Row]:
    """Seconds of `texpr build`, its start included and what other compilers take left out: with no plan of an earlier build,
    and with the plan of the build before, which is proved again."""
    rows: list[Row] = []
    for program in PACKAGES:
        with tempfile.TemporaryDirectory() as folder:
            build = partial(_build, program, Path(folder))
            build()  # what nvcc and the host's compiler make is kept from here on
            found: list[tuple[float, float]] = []
            for _ in range(TIMES):
                shutil.rmtree(Path(folder, "cache", "plans"))
                found.append((build(), build()))
        cold, warm = (statistics.median(times) for times in zip(*found, strict=True))
        rows.append({"program": program, "cold s": cold, "warm s": warm})
    return rows


def _build(program: str, folder: Path) -> float:
    """Seconds of the command that builds an example, with a cache in `folder`."""
    command = [sys.executable, "-m", "texpr", "build", str(EXAMPLES / f"{program}.te"), "--for", "sm_90a"]
    environment = {**os.environ, "TEXPR_CACHE": str(folder / "cache")}
    before = _of_children()
    subprocess.run([*command, "-o", str(folder / "out")], env=environment, check=True, capture_output=True)
    return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the tables; exit 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the numbers here, those of growing files and of the start beside it")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    parser.add_argument("--target", default="sm_90a", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.again:
        sys.stdout.write(json.dumps(_again(json.load(sys.stdin))) + "\n")
        return 0
    if options.of is not None:
        asked = _of(options.of, options.target) if options.jobs == 1 else _shared(options.of, options.target, options.jobs)
        sys.stdout.write(json.dumps(asked) + "\n")
        return 0
    out: Path | None = options.json
    rows, proved_in, growing, start, whole = gallery(), proofs(), growth(), start_up(), packages()
    show("from text to .cu", rows, out)
    show("proofs", proved_in, out and out.with_stem(f"{out.stem}-proofs"))
    show("files that grow", growing, out and out.with_stem(f"{out.stem}-growth"))
    show("start", start, out and out.with_stem(f"{out.stem}-start"))
    show("packages", whole, out and out.with_stem(f"{out.stem}-packages"))
    kept = [
        all(float(row["ratio"]) < 1 for row in proved_in if (row["program"], row["target"]) == ("all", "all")),
        all(float(row["text to .cu, first ms"]) <= 1e3 * LONGEST for row in rows),
        all(float(row["s"]) <= DEEPEST for row in growing if row["kind"] == "deep"),
        all(float(row["by two s"]) <= WHOLE_FILE for row in growing if row["kind"] == "functions"),
        all(float(row["s"]) <= LONGEST_START for row in start if row["process"] == "texpr check"),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
