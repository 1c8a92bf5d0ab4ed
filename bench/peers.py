"""Machine code of others beside ours, problem by problem, read by one reader: Triton, TileLang, CuTe DSL. No GPU is needed.

All numbers but those of compiling are bounds on an H100, none is a time: a kernel takes at least so long, and how near it comes
is another question. `ours` is the automatic schedule at fixed sizes; of a peer the configuration is shown whose `steady µs`, or
else bound, is least.

`by`: the unit that decides. `turn`: clocks of a steady turn of the hottest loop over those that its busiest unit needs, of
which a bound says nothing. `steady µs`: a bound in which all products of warpgroups take as long as in the steady turns of
their loops (`common/steadily.py`). `in row`: of these products, those that follow another with nothing that lanes do between;
`beside`: instructions a product in these loops. `registers`: of a thread, the most of all launches; `spilled`: bytes. `load`:
bytes of a lane in an average load of global memory, "engine" where an engine copies. `per element`: instructions of lanes for
each element of the problem. `cold s`, `warm s`: CPU seconds from the start of a process to machine code, the second time with
what the first left on disk; ours has a whole package by then, proofs included. `over`: our bound over that of the best peer;
`over steady`: likewise.

Bytes of memory are those that each launch must move, bytes of the second-level cache what its blocks bring: machine code says
neither, so the plan says it for ours, and each peer's file for its own, from the extents of its tiles.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.compared import CASES, Case
from common.measure import Row, keep, show
from common.reading import Asked, Read, code_of, read
from texpr import __version__
from texpr.backends.cuda import headers
from texpr.driver import load, lower
from texpr.explain.speed import launch_of
from texpr.ir.program.selection import AUTO
from texpr.isa.registry import DEVICES
from texpr.model.least import least
from texpr.model.plan.work import launches
from texpr.support.diagnostic import TexprError
from texpr.toolchain.cuda import compile_cuda, find_nvcc
from texpr.toolchain.machine import this_machine

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "peers.json"
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
TARGET = "sm_90a"
FILES = {"triton": "of_triton.py", "tilelang": "of_tilelang.py", "cute": "of_cute.py"}


@dataclass(frozen=True, slots=True)
class Found:
    """All launches of one program: what was read of each, and how often it is launched."""

    config: str
    reads: Sequence[tuple[Read, int]]

    @property
    def us(self) -> float:
        """The bounds of all launches, one after the other."""
        return sum(each.bound.us * times for each, times in self.reads)

    @property
    def steady_us(self) -> float | None:
        """The same where products take as long as in steady turns; None where no launch has products that go on."""
        if all(each.products is None for each, _ in self.reads):
            return None
        return sum(max(each.bound.us, each.products.us if each.products else 0.0) * times for each, times in self.reads)

    @property
    def rank(self) -> tuple[float, int, float]:
        """What is better is less: steady turns, or else the bound; then what is not known, then instructions."""
        unknown = sum(len(each.undecided) + len(each.unknown) + each.cut for each, _ in self.reads)
        return round(self.steady_us or self.us, 1), unknown, sum(each.instructions * times for each, times in self.reads)

    def told(self, elements: int) -> dict[str, Any]:
        """The figures for a table and a file."""
        longest = max(self.reads, key=lambda each: each[0].bound.us * each[1])[0]
        loads = [each.load for each, _ in self.reads if each.load is not None]
        engine = any(each.engine for each, _ in self.reads)
        return {
            "config": self.config,
            "bound_us": self.us,
            "by": longest.bound.deciding,
            "units_us": {part.unit: part.us for part in longest.bound.parts},
            "launches": sum(times for _, times in self.reads),
            "registers": max(each.registers for each, _ in self.reads),
            "load_bytes": "engine" if engine and not loads else max(loads) if loads else None,
            "turn": longest.waits,
            "steady_us": self.steady_us,
            "products": None if longest.products is None else asdict(longest.products),
            "spilled_bytes": sum(each.spilled * times for each, times in self.reads),
            "instructions_per_element": sum(each.instructions * times for each, times in self.reads) / elements,
            "unknown_opcodes": sorted({name for each, _ in self.reads for name in each.unknown}),
            "decided_by_data": sorted({f"{at:#x}" for each, _ in self.reads for at in each.undecided}),
            "whole": not any(each.cut for each, _ in self.reads),
        }


class Bench:
    """Tools and folders of a run."""

    target = TARGET
    files: Mapping[str, str] = FILES

    def __init__(self, folder: Path) -> None:
        self.machine = this_machine()
        self.nvcc = find_nvcc(self.machine)
        self.folder = folder
        self.known: dict[tuple[str, str], Mapping[str, Any] | None] = {}

    def ours(self, case: Case) -> Found:
        """Our own machine code, at sizes that are fixed."""
        function = load(ROOT / case.file)[case.function]
        compiled = lower(function, TARGET, case.sizes, schedule=AUTO)
        binary = compile_cuda(self.machine, self.nvcc, compiled.source, headers(), TARGET)
        codes = code_of(self.machine, self.nvcc, binary.cubin)
        compiled = compiled.wide or compiled  # peers' arrays are promised to begin at multiples of 16 bytes, too
        sizes = dict(compiled.plan.fixed)
        reads: list[tuple[Read, int]] = []
        for each in launches(compiled.plan, sizes, compiled.target):
            launch = launch_of(each.kernel, sizes, compiled)
            assert launch is not None
            values = [value for _, value in launch.arguments]
            dynamic = max(0, each.shape.shared - codes[each.kernel.name][1].shared)
            asked = Asked(launch.grid, each.shape.threads, values, dynamic, each.work.l2, each.work.dram, launch.cluster)
            reads.append((read(*codes[each.kernel.name], asked), each.times))
        return Found("auto", reads)

    def peer(self, peer: str, problem: str) -> tuple[Found | None, list[str], str]:
        """The best configuration of a peer, why others have none, and the peer's version."""
        found: list[Found] = []
        failed: list[str] = []
        version = ""
        for said in self.offers(peer, problem):
            version = said["version"]
            if "failed" in said:
                failed.append(f"{said['config']}: {said['failed']}")
            else:
                found.append(Found(said["config"], [(self._read(kernel), 1) for kernel in said["kernels"]]))
        return min(found, key=lambda each: each.rank, default=None), failed, version

    def figures(self, peer: str, problem: str, elements: int, timed: bool) -> Mapping[str, Any] | None:
        """What is told of a peer, once a problem; None where no configuration compiles."""
        if (peer, problem) not in self.known:
            found, failed, version = self.peer(peer, problem)
            for reason in failed:
                sys.stderr.write(f"{peer} {problem} {reason}\n")
            figures = None if found is None else {"version": version, **found.told(elements)}
            if figures is not None and found is not None and timed:
                figures["cold_s"], figures["warm_s"] = self.times(peer, problem, found.config)
            self.known[peer, problem] = figures
        return self.known[peer, problem]

    def offers(self, peer: str, problem: str) -> Iterator[Any]:
        """What a peer's file says, configuration by configuration."""
        done = self._run(peer, problem, self.folder / "cache")
        yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        if done.returncode:
            sys.stderr.write(f"{peer} {problem}: {done.stderr.strip()[-500:]}\n")

    def _run(self, peer: str, problem: str, cache: Path, *more: str) -> subprocess.CompletedProcess[str]:
        places = {
            "TRITON_CACHE_DIR": str(cache / "triton"),
            "TILELANG_CACHE_DIR": str(cache / "tilelang"),
            "CUTE_DSL_CACHE_DIR": str(cache / "cute"),
            "CUTE_DSL_ARCH": self.target,
            "PEERS_TARGET": self.target,
            "CUDA_HOME": str(self.nvcc.program.resolve().parents[1]),
            "PYTHONPATH": "",
        }
        file = FOLDER / "peers" / self.files[peer]
        command = [str(PYTHON), "-W", "ignore", str(file), "--out", str(self.folder), problem, *more]
        return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **places}, timeout=1200)

    def _read(self, kernel: Mapping[str, Any]) -> Read:
        codes = code_of(self.machine, self.nvcc, Path(kernel["cubin"]).read_bytes())
        code, entry = codes[kernel["name"] or next(iter(codes))]
        x, y, z = kernel["grid"]
        i, j, k = kernel["cluster"]
        shared, threads, values, turns = (kernel[key] for key in ("shared", "threads", "values", "turns"))
        asked = Asked((x, y, z), threads, values, shared, kernel["l2"], kernel["dram"], (i, j, k), turns)
        return read(code, entry, asked)

    def times(self, peer: str, problem: str, config: str) -> tuple[float, float]:
        """CPU seconds of a process that compiles one configuration, with an empty cache, and with what it left."""
        with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
            took = [_cpu(lambda: self._run(peer, problem, Path(folder), "--only", config)) for _ in "cw"]
        return took[0], took[1]

    def own_times(self, case: Case) -> tuple[float, float]:
        """The same of our own command, to a package."""
        with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
            sizes = [word for key, value in case.sizes.items() for word in ("--size", f"{key}={value}")]
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
            environment["TEXPR_CACHE"] = f"{folder}/cache"

            def build(turn: str) -> None:
                words = ["build", str(ROOT / case.file), case.function, "--for", TARGET, "-o", f"{folder}/{turn}", *sizes]
                command = [sys.executable, "-m", "texpr", *words]
                subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)

            took = [_cpu(lambda turn=turn: build(turn)) for turn in "cw"]
        return took[0], took[1]


def _cpu(call: Any) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(bench: Bench, problem: str, case: Case, peers: Sequence[str], timed: bool) -> dict[str, Any]:
    """One problem: ours, and each peer's best."""
    made = bench.ours(case)
    own = made.told(case.elements)
    if timed:
        own["cold_s"], own["warm_s"] = bench.own_times(case)
    function = load(ROOT / case.file)[case.function]
    needed = least(function, {sym: case.sizes[sym.name] for sym in function.sizes}, DEVICES[TARGET])
    told: dict[str, Any] = {"sizes": dict(case.sizes), "least_us": needed.us, "ours": own, "peers": {}}
    for peer in peers:
        figures = bench.figures(peer, case.peers or problem, case.elements, timed)
        if figures is not None:
            told["peers"][peer] = figures
    return {**told, **over(own, told["peers"])}


def over(own: Mapping[str, Any], peers: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Our bound over the least of the peers', and our steady turns over theirs."""
    found: dict[str, float | None] = {}
    for name, key in (("over", "bound_us"), ("over_steady", "steady_us")):
        theirs = [each[key] for each in peers.values() if each[key] is not None]
        found[name] = own[key] / min(theirs) if theirs and own[key] is not None else None
    return found


def kept_peers(file: Path, problem: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """What a file has of peers, and ours over theirs."""
    peers = json.loads(file.read_text(encoding="utf-8"))["problems"][problem]["peers"]
    return {"peers": peers, **over(own, peers)}


def keep_times(file: Path, problem: str, told: Mapping[str, Any]) -> None:
    """What a file has of how long compiling took stays."""
    known = json.loads(file.read_text(encoding="utf-8"))["problems"].get(problem, {"ours": {}, "peers": {}})
    for who, each in (("ours", told["ours"]), *told["peers"].items()):
        before = known["ours"] if who == "ours" else known["peers"].get(who, {})
        each |= {name: before[name] for name in ("cold_s", "warm_s") if name in before}


def rows(problem: str, told: Mapping[str, Any]) -> Iterator[Row]:
    """Ours, and each peer's, as lines of a table."""
    for who, each in (("ours", told["ours"]), *told["peers"].items()):
        load = each["load_bytes"]
        yield {
            "problem": problem if who == "ours" else "",
            "whose": who,
            "bound µs": each["bound_us"],
            "by": each["by"],
            "turn": "" if each["turn"] is None else float(each["turn"]),
            "steady µs": "" if each["steady_us"] is None else float(each["steady_us"]),
            "in row": "" if each["products"] is None else float(each["products"]["in_row"]),
            "beside": "" if each["products"] is None else float(each["products"]["beside"]),
            "registers": each["registers"],
            "spilled": float(each["spilled_bytes"]),
            "load": "" if load is None else load if isinstance(load, str) else float(load),
            "per element": each["instructions_per_element"],
            "cold s": each.get("cold_s", ""),
            "warm s": each.get("warm_s", ""),
            "over": told["over"] if who == "ours" and told["over"] is not None else "",
            "over steady": told["over_steady"] if who == "ours" and told["over_steady"] is not None else "",
            "not known": ", ".join(_not_known(each)),
            "config": each["config"],
        }


def _not_known(each: Mapping[str, Any]) -> Iterator[str]:
    yield from each["unknown_opcodes"]
    if each["decided_by_data"]:
        yield f"{len(each['decided_by_data'])} jumps by data"
    if not each["whole"]:
        yield "cut"


def main() -> int:
    """Print the table; exit 4 where the peers' environment, or nvcc, is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="all, unless some are named")
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="keep the numbers here, of other problems, too")
    parser.add_argument("--peer", action="append", choices=list(FILES), help="these only")
    parser.add_argument("--ours", action="store_true", help="with --json: ours alone is new, peers stay as the file has them")
    parser.add_argument("--untimed", action="store_true", help="do not time compiling: such times stay as the file has them")
    asked = parser.parse_args()
    if not PYTHON.exists() and not asked.ours:
        sys.stderr.write(f"no {PYTHON}: run `make peers`\n")
        return 4
    with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
        try:
            bench = Bench(Path(folder))
        except TexprError as reason:
            sys.stderr.write(f"{reason}\n")
            return 4
        found: dict[str, Any] = {}
        for problem in asked.problems or CASES:
            peers = [] if asked.ours else asked.peer or list(FILES)
            found[problem] = compare(bench, problem, CASES[problem], peers, not asked.untimed)
            if asked.untimed and asked.json is not None:
                keep_times(asked.json, problem, found[problem])
            if asked.ours and asked.json is not None:
                found[problem] |= kept_peers(asked.json, problem, found[problem]["ours"])
            sys.stderr.write(f"{problem}: {found[problem]['over']}\n")
            if asked.json is not None:
                keep(asked.json, {"texpr": __version__, "nvcc": bench.nvcc.release, "device": DEVICES[TARGET].name}, found)
    table = [row for problem, told in found.items() for row in rows(problem, told)]
    show(f"bounds on an {DEVICES[TARGET].name}, texpr {__version__}, nvcc {bench.nvcc.release}", table, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
