"""What a peer has for a problem: machine code, and how it is launched. Read by `bench/peers.py`, in another environment.

A peer's file is run as `FILE --out FOLDER PROBLEM…`, and prints a JSON object a line for each configuration that it could
compile, and one with `failed` for each that it could not; `--only CONFIG` compiles one, for its time. It needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Values = Sequence["int | None"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch. `name`: empty where the code has one kernel. `values`: of arguments in their order, None where it is an
    address or decides nothing. `shared`: bytes of a block that the launch asks for beyond what the code declares. `l2`: bytes
    that blocks bring and take away; `dram`: that must come from memory and go there; machine code says neither. `turns`: how
    often loops run that data ends, in the order of their addresses."""

    cubin: bytes
    name: str
    grid: tuple[int, int, int]
    threads: int
    values: Values
    l2: float
    dram: float
    shared: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    turns: Sequence[int] = ()


Made = Callable[[], Sequence[Kernel]]


@dataclass(slots=True)
class Peer:
    """A peer's problems: of each its configurations by name, each compiled when it is called."""

    name: str
    version: str
    problems: dict[str, Mapping[str, Made]] = field(default_factory=dict)

    def main(self) -> int:
        """The command."""
        parser = argparse.ArgumentParser()
        parser.add_argument("problems", nargs="*")
        parser.add_argument("--out", type=Path, required=True)
        parser.add_argument("--only")
        asked = parser.parse_args()
        for problem in asked.problems or self.problems:
            for config, make in self.problems.get(problem, {}).items():
                if asked.only in (None, config):
                    sys.stdout.write(json.dumps(self._made(problem, config, make, asked.out)) + "\n")
                    sys.stdout.flush()
        return 0

    def _made(self, problem: str, config: str, make: Made, out: Path) -> Mapping[str, object]:
        said: dict[str, object] = {"peer": self.name, "version": self.version, "problem": problem, "config": config}
        try:
            kernels = make()
        except Exception as reason:  # whatever a compiler throws: another configuration may do
            told = str(reason).strip().splitlines()
            return {**said, "failed": f"{type(reason).__name__}: {told[-1] if told else ''}"[:300]}
        found: list[dict[str, object]] = []
        for number, kernel in enumerate(kernels):
            path = out / f"{self.name}-{problem}-{list(self.problems[problem]).index(config)}-{number}.cubin"
            path.write_bytes(kernel.cubin)
            found.append(_row(kernel, path))
        return {**said, "kernels": found}


def _row(kernel: Kernel, path: Path) -> dict[str, object]:
    names = ("name", "grid", "threads", "values", "l2", "dram", "shared", "cluster", "turns")
    return {"cubin": str(path), **{name: getattr(kernel, name) for name in names}}


def tiles(rows: int, columns: int, depth: int, tile: tuple[int, int], bytes_in: float, bytes_out: float) -> float:
    """Bytes between blocks and the second-level cache of a product: each tile brings its rows and its columns once."""
    many = -(-rows // tile[0]) * -(-columns // tile[1])
    return many * (tile[0] + tile[1]) * depth * bytes_in + rows * columns * bytes_out


def up(amount: int, by: int) -> int:
    """How many of `by` hold an amount."""
    return -(-amount // by)
