"""The two readings of the model of the machine, on all programs of the gallery and the scheduled ones: from the plan, before
nvcc has run, and from machine code. All numbers are bounds, none is a time.

`plan µs`, `code µs`: the bound of all launches by each; `over`: the first by the second; `by`: the units that decide. `least`:
what any program for the function needs; `ratio`: how many times that. `per element`: instructions by each. `turn`: clocks of a
steady turn of the hottest loop of the longest kernel over those that its busiest unit needs. Exit 1 where the readings of a
bound differ by more than 15 % and the program is not one of `KNOWN`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.measure import Row, show
from texpr import __version__
from texpr.driver import Compiled, load, lower
from texpr.explain import explain
from texpr.ir.program.selection import AUTO
from texpr.support.diagnostic import TexprError
from texpr.toolchain.cuda import find_nvcc
from texpr.toolchain.machine import this_machine

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "model.json"
TARGET = "sm_90a"
NEAR = 0.15

sys.path.insert(0, str(ROOT / "examples"))
references: Any = importlib.import_module("references")

GALLERY: dict[str, dict[str, int]] = {
    "saxpy": {"n": 1 << 27},
    "sum": {"n": 1 << 27},
    "argmax": {"n": 1 << 27},
    "prefix_sum": {"n": 1 << 26},
    "histogram": {"n": 1 << 26, "bins": 1024},
    "gather": {"V": 50_000, "D": 1024, "n": 1 << 15},
    "transpose": {"M": 8192, "N": 8192},
    "permute5d": {"A": 16, "B": 64, "C": 32, "D": 16, "E": 64},
    "softmax": {"M": 16384, "N": 4096},
    "layernorm": {"M": 16384, "N": 4096},
    "rmsnorm": {"M": 16384, "N": 4096},
    "matmul": {"M": 4096, "N": 4096, "K": 4096},
    "matmul_flat": {"M": 2048, "N": 2048, "K": 2048},
    "conv2d": {"B": 8, "H": 66, "W": 66, "C": 64, "R": 3, "S": 3, "F": 128, "stride": 1, "dilation": 1, "padding": 0},
    "jacobi": {"H": 8192, "W": 8192, "T": 2},
    "attention": {"H": 16, "L": 2048, "D": 64},
    "cholesky": {"batch": 4096, "n": 64},
}
SCHEDULED: tuple[tuple[str, str, str | None, dict[str, int]], ...] = (
    ("saxpy", "saxpy", None, {"n": 1 << 27}),
    ("sum", "sum", None, {"n": 1 << 27}),
    ("transpose", "transpose2d", "padded", {"M": 8192, "N": 8192}),
    ("transpose", "transpose2d", "swizzled", {"M": 8192, "N": 8192}),
    ("transpose", "wide", "vectors", {"M": 8192, "N": 8192}),
    ("matmul", "matmul", "tiles", {"M": 4096, "N": 4096, "K": 4096}),
    ("matmul", "whole", "loads", {"M": 4096, "N": 4096, "K": 4096}),
    ("matmul", "whole", "copies", {"M": 4096, "N": 4096, "K": 4096}),
    ("matmul_ring", "whole_ring", "ring", {"M": 4096, "N": 4096, "K": 4096}),
    ("jacobi", "jacobi", None, {"H": 8194, "W": 8194}),
    ("conv2d", "conv2d", None, {"B": 8, "H": 64, "W": 64, "C": 64, "F": 128}),
    ("softmax", "softmax", None, {"M": 16384, "N": 4096}),
    ("softmax", "softmax", "kept", {"M": 16384, "N": 4096}),
    ("softmax_long", "softmax_long", None, {"M": 256, "N": 65536}),
    ("rmsnorm", "rmsnorm", None, {"M": 16384, "N": 4096}),
    ("permute5d", "permute5d", None, {"A": 16, "B": 64, "C": 32, "D": 16, "E": 64}),
)

KNOWN: Mapping[str, str] = {}
"""Programs whose readings differ, and why: `docs/model.md` tells of each."""


def programs() -> Iterator[tuple[str, Mapping[str, int], Compiled]]:
    """Each program as it is compiled, by its name."""
    for name, sizes in GALLERY.items():
        example = references.BY_NAME[name]
        consts, rest = example.split(sizes)
        function = load(example.path, consts)[example.function]
        yield name, sizes, lower(function, TARGET, rest, schedule=AUTO)
    for file, name, schedule, sizes in SCHEDULED:
        function = load(ROOT / "examples" / "scheduled" / f"{file}.te")[name]
        chosen = next(each for each in function.schedules if each.name == schedule)
        yield f"{name}, scheduled {schedule or ''}".rstrip(), sizes, lower(function, TARGET, sizes, schedule=chosen)


def row(name: str, sizes: Mapping[str, int], compiled: Compiled) -> Row:
    """What both readings say of a program."""
    found = explain(compiled, this_machine())["speed"]
    kernels = list(found["kernels"].values())
    longest = max(kernels, key=lambda each: each["bound_us"] * each["launches"])
    codes = [each["code"] for each in kernels]
    total = sum(code["bound_us"] * each["launches"] for code, each in zip(codes, kernels, strict=True))
    turn = longest["code"]["steady"]
    return {
        "program": name,
        "sizes": ", ".join(f"{key}={value}" for key, value in sizes.items()),
        "plan µs": found["bound_us"],
        "code µs": total,
        "over": found["bound_us"] / total,
        "by": f"{longest['deciding']}, {longest['code']['deciding']}",
        "least µs": found["least_us"],
        "ratio": found["ratio"],
        "per element": f"{longest['instructions_per_element']:.3g}, {longest['code']['instructions_per_element']:.3g}",
        "turn": "" if turn is None else f"{turn['clocks']:.0f} over {turn['least_clocks']:.0f}, {turn['unit']}",
        "spilled": sum(code["spilled_bytes"] for code in codes),
        "whole": "yes" if all(code["whole"] and not code["unknown_opcodes"] for code in codes) else "no",
    }


def main() -> int:
    """Print the table; exit 1 where readings differ and nobody knows why, 4 where there is no nvcc."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="also write the numbers here")
    options = parser.parse_args()
    try:
        release = find_nvcc(this_machine()).release
    except TexprError as reason:
        sys.stderr.write(f"{reason}\n")
        return 4
    rows = [row(*each) for each in programs()]
    show(f"bounds on an H100 SXM5, texpr {__version__}, nvcc {release}", rows, options.json)
    if options.json is not None:
        kept = json.loads(options.json.read_text(encoding="utf-8"))
        made = json.dumps({"texpr": __version__, "nvcc": release, "device": "H100 SXM5", **kept}, indent=1, ensure_ascii=False)
        options.json.write_text(made + "\n", encoding="utf-8")
    wrong = [each["program"] for each in rows if abs(float(each["over"]) - 1) > NEAR and each["program"] not in KNOWN]
    for name in wrong:
        sys.stderr.write(f"the readings of {name} differ\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
