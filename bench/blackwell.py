"""Machine code for sm_100a, ours beside that of Triton and CuTe DSL: counts, as the model lacks what a bound would need.

`products`: which instructions multiply (`UTC…MMA`: the tensor core of a multiprocessor, whose sums are in tensor memory; HMMA:
that of a warp), and how many there are in the code; `in loop`: of these in the loop that has most of them; `instructions`: of
that loop, all warps' together, and of all code; `beside`: those in the loop for each product there; `copies`: by the engine;
`tensor`: reads and writes of tensor memory; `registers`: of a thread; `local`: instructions that touch local memory, where
registers are spilled. Of a peer each configuration is shown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.compared import CASES, Case
from common.cubin import Entry
from common.measure import Row, keep, show
from common.reading import code_of
from peers import PYTHON, Bench
from texpr import __version__
from texpr.backends.cuda import headers
from texpr.driver import load, lower
from texpr.ir.program.selection import AUTO
from texpr.model.code.classes import UNIT
from texpr.model.code.flow import flow
from texpr.model.code.text import Code, Instruction
from texpr.support.diagnostic import TexprError
from texpr.toolchain.cuda import compile_cuda

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "blackwell.json"
TARGET = "sm_100a"
FILES = {"triton": "of_triton.py", "cute": "of_blackwell.py"}
PROBLEMS = ("matmul_bf16", "matmul_f8", "attention_128", "attention_128_causal")


def counted(code: Code, entry: Entry) -> Mapping[str, Any] | None:
    """What is counted of a kernel; None where nothing multiplies."""
    products = Counter(one.name for one in code.instructions if UNIT.get(one.name) == "matrix")
    if not products:
        return None
    hot = _hot(code, frozenset(products))
    here = sum(one.name in products for one in hot)
    named = Counter(one.name for one in code.instructions)
    return {
        "products": dict(products),
        "in_loop": here,
        "loop": len(hot),
        "instructions": len(code.instructions),
        "beside": (len(hot) - here) / here if here else None,
        "copies": sum(times for name, times in named.items() if UNIT.get(name) == "copy"),
        "tensor": named["LDTM"] + named["STTM"],
        "registers": entry.registers,
        "local": named["LDL"] + named["STL"],
    }


def _hot(code: Code, products: frozenset[str]) -> list[Instruction]:
    """The body of the loop with most products, of those around no other that has several: an instruction whose operands must
    be the same in all lanes is in a loop of its own, which is gone round once."""
    bodies = [loop.body for loop in flow(code).loops]
    many = [body for body in bodies if sum(code.instructions[at].name in products for at in body) > 1]
    inner = [body for body in many if not any(other < body for other in many)]
    found = max(inner, key=lambda body: sum(code.instructions[at].name in products for at in body), default=frozenset[int]())
    return [code.instructions[at] for at in sorted(found)]


class Blackwell(Bench):
    """The same tools, for the other target."""

    target = TARGET
    files = FILES

    def own(self, case: Case) -> Iterator[Mapping[str, Any]]:
        """Of our automatic schedule: kernels that multiply."""
        function = load(ROOT / case.file)[case.function]
        compiled = lower(function, TARGET, case.sizes, schedule=AUTO)
        compiled = compiled.wide or compiled
        binary = compile_cuda(self.machine, self.nvcc, compiled.source, headers(), TARGET)
        for code, entry in code_of(self.machine, self.nvcc, binary.cubin, TARGET).values():
            if found := counted(code, entry):
                yield {"config": "auto", **found}

    def others(self, peer: str, problem: str) -> Iterator[Mapping[str, Any]]:
        """Of each configuration of a peer."""
        for said in self.offers(peer, problem):
            if "failed" in said:
                sys.stderr.write(f"{peer} {problem} {said['config']}: {said['failed']}\n")
                continue
            for kernel in said["kernels"]:
                for code, entry in code_of(self.machine, self.nvcc, Path(kernel["cubin"]).read_bytes(), TARGET).values():
                    if found := counted(code, entry):
                        yield {"config": said["config"], "version": said["version"], **found}


def rows(problem: str, told: Mapping[str, Any]) -> Iterator[Row]:
    """A line for each kernel."""
    for who, kernels in told["kernels"].items():
        for each in kernels:
            yield {
                "problem": problem,
                "whose": who,
                "products": ", ".join(f"{times} {name}" for name, times in each["products"].items()),
                "in loop": each["in_loop"],
                "loop": each["loop"],
                "instructions": each["instructions"],
                "beside": "" if each["beside"] is None else float(each["beside"]),
                "copies": each["copies"],
                "tensor": each["tensor"],
                "registers": each["registers"],
                "local": each["local"],
                "config": each["config"],
            }


def main() -> int:
    """Print the table; exit 4 where the peers' environment, or nvcc, is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="all, unless some are named")
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="keep the numbers here, of other problems, too")
    asked = parser.parse_args()
    if not PYTHON.exists():
        sys.stderr.write(f"no {PYTHON}: run `make peers`\n")
        return 4
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
        try:
            bench = Blackwell(Path(folder))
        except TexprError as reason:
            sys.stderr.write(f"{reason}\n")
            return 4
        for problem in asked.problems or PROBLEMS:
            case = CASES[problem]
            others = {peer: list(bench.others(peer, problem)) for peer in FILES}
            found[problem] = {"sizes": dict(case.sizes), "kernels": {"ours": list(bench.own(case)), **others}}
            sys.stderr.write(f"{problem}\n")
    if asked.json is not None:
        keep(asked.json, {"texpr": __version__, "nvcc": bench.nvcc.release, "target": TARGET}, found)
    table = [row for problem, told in found.items() for row in rows(problem, told)]
    show(f"machine code for {TARGET}, texpr {__version__}, nvcc {bench.nvcc.release}", table, None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
