"""Machine code of others beside ours, problem by problem, read by one reader: Triton, TileLang, CuTe DSL. No GPU is needed.

All numbers but those of compiling are bounds on an H100, none is a time: a kernel takes at least so long, and how near it comes
is another question. `ours` is the automatic schedule at fixed sizes; of a peer the configuration is shown whose bound is least.
`by`: the unit that decides; `turn`: clocks of a steady turn of the hottest loop over those that its busiest unit needs, of
which a bound says nothing; `registers`: of a thread, the most of all launches; `load`: bytes of a lane in an average load of
global memory, "engine" where an engine copies; `per element`: instructions of lanes for each element of the problem; `cold s`,
`warm s`: CPU seconds from the start of a process to machine code, the second time with what the first left on disk; ours has a
whole package by then, proofs included. `over`: our bound over that of the best peer.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
class Case:
    """A problem: our program, at which sizes; elements that instructions are told for."""

    file: str
    function: str
    sizes: Mapping[str, int]
    elements: int


CUBE = {"M": 4096, "N": 4096, "K": 4096}
ROWS = {"M": 8192, "N": 4096}
CASES: Mapping[str, Case] = {
    "matmul_f32": Case("bench/problems/matmul_f32.te", "matmul_f32", CUBE, 4096**2),
    "matmul_bf16": Case("bench/problems/matmul_bf16.te", "matmul_bf16", CUBE, 4096**2),
    "matmul_f8": Case("bench/problems/matmul_f8.te", "matmul_f8", CUBE, 4096**2),
    "matmul_i8": Case("bench/problems/matmul_i8.te", "matmul_i8", CUBE, 4096**2),
    "attention": Case("bench/problems/attention_bf16.te", "attention", {"H": 64, "L": 4096, "D": 128}, 64 * 4096 * 128),
    "conv3x3": Case("bench/problems/conv3x3.te", "conv3x3", {"B": 32, "H": 56, "W": 56, "C": 64, "F": 64}, 32 * 56**2 * 64),
    "softmax": Case("examples/softmax.te", "softmax", ROWS, 8192 * 4096),
    "layernorm": Case("examples/layernorm.te", "layernorm", ROWS, 8192 * 4096),
    "rmsnorm": Case("examples/rmsnorm.te", "rmsnorm", ROWS, 8192 * 4096),
    "scan": Case("bench/problems/scans.te", "cumsum_rows", ROWS, 8192 * 4096),
    "bias_gelu": Case("bench/problems/bias_gelu.te", "bias_gelu", ROWS, 8192 * 4096),
    "transpose": Case("examples/transpose.te", "transpose2d", {"M": 8192, "N": 8192}, 8192**2),
    "permute5d": Case("examples/permute5d.te", "permute5d", {"A": 16, "B": 64, "C": 32, "D": 16, "E": 64}, 1 << 25),
    "sum": Case("examples/sum.te", "sum", {"n": 1 << 28}, 1 << 28),
    "gather": Case("examples/gather.te", "gather", {"V": 50_000, "D": 1024, "n": 1 << 15}, 1 << 25),
}


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
    def rank(self) -> tuple[float, int, float]:
        """What is better is less: the bound, then what is not known, then instructions."""
        unknown = sum(len(each.undecided) + len(each.unknown) + each.cut for each, _ in self.reads)
        return round(self.us, 1), unknown, sum(each.instructions * times for each, times in self.reads)

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
            "instructions_per_element": sum(each.instructions * times for each, times in self.reads) / elements,
            "unknown_opcodes": sorted({name for each, _ in self.reads for name in each.unknown}),
            "decided_by_data": sorted({f"{at:#x}" for each, _ in self.reads for at in each.undecided}),
            "whole": not any(each.cut for each, _ in self.reads),
        }


class Bench:
    """Tools and folders of a run."""

    def __init__(self, folder: Path) -> None:
        self.machine = this_machine()
        self.nvcc = find_nvcc(self.machine)
        self.folder = folder

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
        for said in self._offers(peer, problem):
            version = said["version"]
            if "failed" in said:
                failed.append(f"{said['config']}: {said['failed']}")
            else:
                found.append(Found(said["config"], [(self._read(kernel), 1) for kernel in said["kernels"]]))
        return min(found, key=lambda each: each.rank, default=None), failed, version

    def _offers(self, peer: str, problem: str) -> Iterator[Any]:
        done = self._run(peer, problem, self.folder / "cache")
        yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        if done.returncode:
            sys.stderr.write(f"{peer} {problem}: {done.stderr.strip()[-500:]}\n")

    def _run(self, peer: str, problem: str, cache: Path, *more: str) -> subprocess.CompletedProcess[str]:
        places = {
            "TRITON_CACHE_DIR": str(cache / "triton"),
            "TILELANG_CACHE_DIR": str(cache / "tilelang"),
            "CUTE_DSL_CACHE_DIR": str(cache / "cute"),
            "CUTE_DSL_ARCH": TARGET,
            "CUDA_HOME": str(self.nvcc.program.resolve().parents[1]),
            "PYTHONPATH": "",
        }
        command = [str(PYTHON), "-W", "ignore", str(FOLDER / "peers" / FILES[peer]), "--out", str(self.folder), problem, *more]
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
    best: float | None = None
    for peer in peers:
        found, failed, version = bench.peer(peer, problem)
        for reason in failed:
            sys.stderr.write(f"{peer} {problem} {reason}\n")
        if found is None:
            continue
        figures = found.told(case.elements)
        if timed:
            figures["cold_s"], figures["warm_s"] = bench.times(peer, problem, found.config)
        told["peers"][peer] = {"version": version, **figures}
        best = found.us if best is None else min(best, found.us)
    return {**told, "over": None if best is None else made.us / best}


def kept_peers(file: Path, problem: str, own: float) -> dict[str, Any]:
    """What a file has of peers, and our bound over the least of theirs."""
    peers = json.loads(file.read_text(encoding="utf-8"))["problems"][problem]["peers"]
    return {"peers": peers, "over": own / min(each["bound_us"] for each in peers.values())}


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
            "registers": each["registers"],
            "load": "" if load is None else load if isinstance(load, str) else float(load),
            "per element": each["instructions_per_element"],
            "cold s": each.get("cold_s", ""),
            "warm s": each.get("warm_s", ""),
            "over": told["over"] if who == "ours" and told["over"] is not None else "",
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
    parser.add_argument("--untimed", action="store_true", help="do not time compiling")
    asked = parser.parse_args()
    if not PYTHON.exists():
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
            if asked.ours and asked.json is not None:
                found[problem] |= kept_peers(asked.json, problem, found[problem]["ours"]["bound_us"])
            sys.stderr.write(f"{problem}: {found[problem]['over']}\n")
            if asked.json is not None:
                keep(asked.json, {"texpr": __version__, "nvcc": bench.nvcc.release, "device": DEVICES[TARGET].name}, found)
    table = [row for problem, told in found.items() for row in rows(problem, told)]
    show(f"bounds on an {DEVICES[TARGET].name}, texpr {__version__}, nvcc {bench.nvcc.release}", table, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
