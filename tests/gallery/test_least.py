"""What the gallery moves with no schedule written, counted in the emulator, over the least there is; and why it is more.

*Least* is what the bytes of each request would fill, were they neighbours: no mapping of these accesses to lanes moves less.
Where more is moved, the kernel's mapping has a certificate, or rows of its tiles begin between sectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.emulated import module, run_plan

from references import BY_NAME
from texpr.driver import Compiled, load, lower
from texpr.emulator.counts import Counts
from texpr.frontend import parse
from texpr.ir.program.selection import AUTO
from texpr.lowering.notes import Notes
from texpr.support.record import Record

PAGE = Path(__file__).parents[2] / "docs" / "gallery" / "counts.md"

Sizes = Mapping[str, int]

WHOLE: Mapping[str, Sizes] = {
    "saxpy": {"n": 65536},
    "sum": {"n": 65536},
    "argmax": {"n": 65536},
    "prefix_sum": {"n": 65536},
    "histogram": {"n": 65536, "bins": 256},
    "gather": {"V": 128, "D": 64, "n": 256},
    "transpose": {"M": 128, "N": 192},
    "permute5d": {"A": 2, "B": 64, "C": 3, "D": 2, "E": 64},
    "matmul": {"M": 128, "N": 128, "K": 64},
    "matmul_flat": {"M": 128, "N": 128, "K": 32},
    "conv2d": {"B": 1, "H": 16, "W": 32, "C": 8, "R": 3, "S": 3, "F": 64, "stride": 1, "dilation": 1, "padding": 1},
    "jacobi": {"H": 66, "W": 128, "T": 2},
    "softmax": {"M": 16, "N": 1024},
    "layernorm": {"M": 16, "N": 1024},
    "rmsnorm": {"M": 16, "N": 1024},
    "attention": {"H": 2, "L": 32, "D": 32},
    "cholesky": {"batch": 8, "n": 16},
}
"""Rows of whole sectors, in every program."""

ODD: Mapping[str, Sizes] = {
    "saxpy": {"n": 65537},
    "sum": {"n": 65537},
    "argmax": {"n": 65537},
    "prefix_sum": {"n": 65537},
    "histogram": {"n": 65537, "bins": 257},
    "gather": {"V": 127, "D": 61, "n": 257},
    "transpose": {"M": 127, "N": 193},
    "permute5d": {"A": 2, "B": 67, "C": 3, "D": 2, "E": 61},
    "matmul": {"M": 127, "N": 131, "K": 67},
    "matmul_flat": {"M": 127, "N": 131, "K": 31},
    "conv2d": {"B": 1, "H": 17, "W": 31, "C": 5, "R": 3, "S": 3, "F": 67, "stride": 1, "dilation": 1, "padding": 1},
    "jacobi": {"H": 67, "W": 131, "T": 2},
    "softmax": {"M": 17, "N": 1031},
    "layernorm": {"M": 17, "N": 1031},
    "rmsnorm": {"M": 17, "N": 1031},
    "attention": {"H": 2, "L": 31, "D": 31},
    "cholesky": {"batch": 9, "n": 13},
}
"""Prime rows."""

PROVED = {"globally optimal": "no bijection is better", "no box is better, as rows begin anywhere": "no box is better"}


class Kernel(Record, dict=True):
    """One kernel of a run: its counts, and what was said of it when it was compiled."""

    counts: Counts
    notes: Notes
    tiled: bool

    @property
    def sectors(self) -> int:
        return self.counts.global_load_sectors + self.counts.global_store_sectors

    @property
    def least(self) -> int:
        return self.counts.global_load_packed + self.counts.global_store_packed

    @property
    def reason(self) -> str:
        """Why it moves more than the least; empty where it does not."""
        if self.sectors <= self.least * 1.005:
            return ""
        said = [PROVED.get(each.solution.certificate, each.solution.certificate) for each in self.notes.solved]
        rows = ["rows of tiles begin between sectors"] if self.tiled else []
        return "; ".join(dict.fromkeys((*rows, *said))) or "nothing is proved"


@cache
def compiled(name: str, consts: tuple[tuple[str, int], ...]) -> Compiled:
    example = BY_NAME[name]
    return lower(load(example.path, dict(consts))[example.function], "sm_90a", schedule=AUTO)


def counted(name: str, sizes: Sizes) -> list[Kernel]:
    """The kernels of a program, run once."""
    example = BY_NAME[name]
    consts, given = example.split(sizes)
    made = compiled(name, tuple(consts.items()))
    emulated = module(made.source)
    emulated.clear_counts()
    arrays = example.make(np.random.default_rng(1), sizes)
    assert run_plan(made.function, made.plan, arrays, given, count=True).reports == []
    notes = {each.kernel: each for each in made.notes}
    return [Kernel(each, notes[kernel], made.schedule is not None) for kernel, each in emulated.counts().items()]


def cells(name: str, sizes: Sizes) -> list[str]:
    """A row of the table: sums over kernels; reasons of those that move more than the least."""
    kernels = counted(name, sizes)
    sectors, least = sum(each.sectors for each in kernels), sum(each.least for each in kernels)
    reasons = dict.fromkeys(part for each in kernels for part in each.reason.split("; ") if part)
    proofs = dict.fromkeys(each.notes.barriers.by for each in kernels if each.notes.barriers is not None)
    barriers = sum(each.counts.block_barriers + each.counts.warp_barriers for each in kernels)
    conflicts = sum(each.counts.bank_conflicts for each in kernels)
    consts = " ".join(f"{size}={value}" for size, value in sizes.items())
    row = [name, consts, str(sectors), str(least), f"{sectors / least:.2f}", "; ".join(reasons), str(conflicts)]
    return [*row, str(barriers), ", ".join(proofs)]


@pytest.mark.parametrize("name", ["saxpy", "sum", "transpose", "permute5d", "matmul_flat", "softmax", "gather"])
def test_nothing_is_moved_but_what_is_asked_for(name: str) -> None:
    """Where rows are whole sectors, and what each lane asks for is beside what its neighbour does."""
    for each in counted(name, WHOLE[name]):
        assert each.sectors == each.least and each.counts.bank_conflicts == 0
        assert each.notes.barriers is None or each.notes.barriers.cost == each.notes.barriers.bound


def test_lanes_of_a_product_store_neighbours_at_once_where_rows_are_known() -> None:
    """A lane has two neighbours of a row: where rows are of any length these are two stores, each of half of a sector."""
    sizes = WHOLE["matmul"]
    (kernel,) = counted("matmul", sizes)
    stores = sizes["M"] * sizes["N"] * 4 // 32
    assert (kernel.counts.global_load_sectors, kernel.counts.global_store_sectors) == (kernel.least - stores, 2 * stores)
    made = lower(load(BY_NAME["matmul"].path, {})["matmul"], "sm_90a", sizes, schedule=AUTO)
    emulated = module(made.source)
    emulated.clear_counts()
    arrays = BY_NAME["matmul"].make(np.random.default_rng(1), sizes)
    assert run_plan(made.function, made.plan, arrays, count=True).reports == []
    (found,) = emulated.counts().values()
    assert found.global_load_sectors + found.global_store_sectors <= found.global_load_packed + stores


def test_more_is_moved_for_a_proved_reason() -> None:
    for name in ("gather", "softmax"):
        (kernel,) = counted(name, ODD[name])
        assert kernel.sectors > kernel.least and kernel.reason == "no box is better"


def test_a_request_that_is_spread_out_is_seen() -> None:
    """Planted: a column of a matrix of rows of 64, one element a sector."""
    text = "fn f(x: f32[64, 64]): f32[64] { new y: f32[64] par 64 |i| { y[i] = x[i, 0] } return y }"
    (function,) = parse(text).functions
    from_text = lower(function, "sm_90a")
    emulated = module(from_text.source)
    emulated.clear_counts()
    run_plan(from_text.function, from_text.plan, {"x": np.zeros((64, 64), np.float32)}, count=True)
    (found,) = emulated.counts().values()
    assert (found.global_load_sectors, found.global_load_packed, found.global_store_packed) == (64, 8, 8)


@pytest.mark.long
def test_the_table(golden: Callable[[Path, str], None]) -> None:
    head = ["program", "sizes", "sectors", "least", "ratio", "why more", "bank conflicts", "barriers", "proved least by"]
    rows = [cells(name, sizes[name]) for name in WHOLE for sizes in (WHOLE, ODD)]
    assert not any("nothing is proved" in row[5] for row in rows)
    assert all("limit" not in row[8] for row in rows)
    made = "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index("<!-- table -->"), text.index("<!-- end -->")
    golden(PAGE, f"{text[:start]}<!-- table -->\n{made}\n{text[end:]}")
