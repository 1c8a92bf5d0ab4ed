"""What schedules are for, counted: comparisons and index arithmetic in loops, sectors, bank conflicts, barriers, registers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.gallery.counting import turn
from tests.gallery.scheduled import CASES, Arrays, Scheduled, Sizes, unscheduled
from tests.lowering.emulated import module, run_plan

from references import FOLDER
from texpr.backends.cuda import headers
from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, as_dict
from texpr.toolchain import this_machine
from texpr.toolchain.cuda import compile_cuda, find_nvcc

PAGE = Path(__file__).parents[2] / "docs" / "schedules.md"
SECTOR = 32

TRANSPOSE = (FOLDER / "scheduled" / "transpose.te").read_text(encoding="utf-8")
MATMUL = (FOLDER / "scheduled" / "matmul.te").read_text(encoding="utf-8")


class Row(Record, dict=True):
    """A line of the table: a schedule, the hot loops without and with it, the elements or products of a turn of the latter."""

    case: Scheduled
    schedule: str | None
    before: str | None
    after: str | None
    work: int
    sizes: Mapping[str, int]


def _rows() -> tuple[Row, ...]:
    case = {(c.file, c.function, s): c for c in CASES for s in c.schedules}

    def row(name: str, schedule: str | None, before: str | None, after: str | None, work: int, sizes: Sizes) -> Row:
        file, _, function = name.partition("/")
        return Row(case[file, function or file, schedule], schedule, before, after, work, sizes)

    square, cube = {"M": 256, "N": 256}, {"M": 256, "N": 256, "K": 64}
    return (
        row("saxpy", None, None, None, 4, {"n": 65536}),
        row("sum", None, "i", "item", 16, {"n": 65536}),
        row("transpose/transpose2d", "padded", None, None, 4, square),
        row("transpose/transpose2d", "swizzled", None, None, 4, square),
        row("transpose/wide", "vectors", None, None, 4, square),
        row("matmul", "tiles", "k", "ki", 16, cube),
        row("matmul/whole", "loads", "k", "ko", 1024, cube),
        row("matmul/whole", "copies", "k", "ko", 1024, cube),
        row("matmul_ring/whole_ring", "ring", "k", "ko", 1024, cube),
        row("jacobi", None, None, None, 2, {"H": 130, "W": 130}),
        row("conv2d", None, "s", "ci", 144, {"B": 1, "H": 16, "W": 32, "C": 16, "F": 64}),
        row("softmax", None, "k", "k_quad", 4, {"M": 64, "N": 1024}),
        row("softmax", "kept", "k", "k_quad", 4, {"M": 64, "N": 2048}),
        row("softmax_long", None, "k", "k_quad", 4, {"M": 2, "N": 65536}),
        row("rmsnorm", None, "j", "j_part", 8, {"M": 64, "N": 2048}),
        row("permute5d", None, None, None, 4, {"A": 2, "B": 64, "C": 3, "D": 2, "E": 64}),
    )


ROWS = _rows()


def hot(compiled: Compiled, loop: str | None) -> k.Kernel:
    """The kernel that has `loop`; the last one where it is None."""
    every = list(k.kernels(compiled.plan.steps))
    with_it = (e for e in every if any(isinstance(s, k.For) and s.sym.name == loop for s in k.walk(e.body)))
    return every[-1] if loop is None else next(with_it)


def counted(compiled: Compiled, arrays: Arrays, sizes: Sizes) -> Counter[str]:
    """What a run does to memory, over all kernels, in 32-byte sectors, wavefronts, requests and barriers of blocks."""
    emulated = module(compiled.source)
    emulated.clear_counts()
    open_sizes = {s.name: sizes[s.name] for s in compiled.function.sizes}
    assert run_plan(compiled.function, compiled.plan, arrays, open_sizes, count=True).reports == []
    found: Counter[str] = Counter()
    for each in emulated.counts().values():
        found.update(as_dict(each))
        found["bank_conflicts"] += each.bank_conflicts
    return found


def comparisons(compiled: Compiled) -> dict[str, int]:
    """Comparisons of indices that a thread makes, by kernel, the ways of rare turns apart."""
    return {kernel.name: turn(kernel, None).comparisons for kernel in k.kernels(compiled.plan.steps)}


# Predicates.

WHOLE = {
    "saxpy": {"n": 4096},
    "transpose2d": {"M": 96, "N": 96},
    "wide": {"M": 96, "N": 96},
    "matmul": {"M": 192, "N": 192, "K": 32},
    "whole": {"M": 384, "N": 384, "K": 32},
    "softmax": {"M": 3, "N": 1024},
    "softmax_long": {"M": 3, "N": 65536},
    "rmsnorm": {"M": 4, "N": 2048},
    "permute5d": {"A": 2, "B": 64, "C": 2, "D": 3, "E": 96},
}
"""Sizes that every split of the schedules divides."""


@pytest.mark.parametrize("name", WHOLE)
def test_no_comparison_is_left_where_fixed_sizes_divide(name: str) -> None:
    for case in (c for c in CASES if c.function == name):
        for schedule in case.schedules:
            assert set(comparisons(case.lowered(schedule, tuple(WHOLE[name].items()))).values()) == {0}, schedule


def test_no_comparison_is_left_in_scheduled_kernels_of_several() -> None:
    """Where a program has kernels that its schedule does not speak of, and where a comparison is the program's own."""
    cases = {c.function: c for c in CASES}
    found = comparisons(cases["jacobi"].lowered(None, (("H", 50), ("W", 98))))
    assert found["jacobi_next"] == found["jacobi_now_1"] == 0
    assert comparisons(cases["sum"].lowered(None, (("n", 16384),)))["sum_total_parts"] == 0
    conv = cases["conv2d"].lowered(None, tuple({"B": 2, "H": 8, "W": 32, "C": 16, "F": 128}.items()))
    assert comparisons(conv) == {"conv2d_Y": 4}, "only the four of the rim, where the tile is filled"


def promised(text: str, function: str, promise: str) -> str:
    """`text` with a `where` after the results of `function`."""
    made = re.sub(rf"(fn {function}\([^)]*\): [^{{]*?) {{", rf"\1 where {promise} {{", text, count=1)
    assert made != text
    return made


@pytest.mark.parametrize(
    ("text", "function", "schedule", "promise"),
    [
        (TRANSPOSE, "transpose2d", "padded", "M % 32 == 0, N % 32 == 0"),
        (TRANSPOSE, "transpose2d", "swizzled", "M % 32 == 0, N % 32 == 0"),
        (MATMUL, "matmul", "tiles", "M % 64 == 0, N % 64 == 0, K % 16 == 0"),
        (MATMUL, "whole", "loads", ""),
        (MATMUL, "whole", "copies", ""),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)
def test_no_comparison_is_left_where_open_sizes_are_promised_to_divide(
    text: str, function: str, schedule: str, promise: str
) -> None:
    program = parse(promised(text, function, promise) if promise else text)
    (chosen,) = (s for s in program[function].schedules if s.name == schedule)
    assert set(comparisons(lower(program[function], "sm_90a", schedule=chosen)).values()) == {0}


def test_parted_loops_compare_nothing_inside() -> None:
    """With sizes of which nothing is known; and the count can tell: unparted, the same loops compare."""
    for file, function, schedule in (("matmul", "matmul", "tiles"), ("conv2d", "conv2d", None)):
        (case,) = (c for c in CASES if c.function == function)
        kernel = hot(case.lowered(schedule), "ki" if function == "matmul" else "ci")
        assert turn(kernel, "ki" if function == "matmul" else "ci").comparisons == 0
        text = (FOLDER / "scheduled" / f"{file}.te").read_text(encoding="utf-8")
        kept = parse(re.sub(r"partition\((\w+)\)", r"partition(\1, off)", text))[function]
        (chosen,) = (s for s in kept.schedules if s.name == schedule)
        (whole,) = k.kernels(lower(kept, "sm_90a", schedule=chosen).plan.steps)
        assert turn(whole, "ki" if function == "matmul" else "ci").comparisons > 4


@pytest.mark.parametrize("function", ["transpose2d", "permute5d", "jacobi"])
def test_whole_tiles_compare_nothing_and_share_the_memory_of_ragged_ones(function: str) -> None:
    """A block asks once; the two copies of its body have one tile in shared memory."""
    (case,) = (c for c in CASES if c.function == function)
    for schedule in case.schedules:
        for kernel in k.kernels(case.lowered(schedule).plan.steps):
            arrays = [a for a in kernel.arrays if a.space is k.Space.SHARED]
            if arrays:
                assert len(arrays) == 1
                assert turn(kernel, None).comparisons == 2


# Memory.

PADS = {"f64": 1, "f32": 1, "bf16": 2, "u8": 4}
"""Elements that make a row of 32 an odd number of words of 4 bytes (f64: of pairs of them)."""


@pytest.mark.parametrize("schedule", ["padded", "swizzled"])
@pytest.mark.parametrize("name", PADS)
def test_transpose_moves_each_sector_once_and_has_no_conflict(name: str, schedule: str) -> None:
    text = TRANSPOSE.replace("f32", name).replace("resize(tile.d1, 0, 1)", f"resize(tile.d1, 0, {PADS[name]})")
    function = parse(text)["transpose2d"]
    (chosen,) = (s for s in function.schedules if s.name == schedule)
    compiled = lower(function, "sm_90a", schedule=chosen)
    array = np.arange(96 * 160).reshape(96, 160).astype(numpy_dtype(function.params[0].dtype))
    found = counted(compiled, {"A": array}, {"M": 96, "N": 160})
    least = array.nbytes // SECTOR
    assert (found["global_load_sectors"], found["global_store_sectors"]) == (least, least)
    assert found["bank_conflicts"] == 0
    if name == "f32":
        assert found["global_load_sectors"] == 4 * found["global_load_requests"]
        assert found["global_store_sectors"] == 4 * found["global_store_requests"]


def test_the_tile_would_have_conflicts_without_either() -> None:
    function = parse(TRANSPOSE.replace("    resize(tile.d1, 0, 1)\n", ""))["transpose2d"]
    (chosen,) = (s for s in function.schedules if s.name == "padded")
    array = np.zeros((64, 64), np.float32)
    found = counted(lower(function, "sm_90a", schedule=chosen), {"A": array}, {"M": 64, "N": 64})
    assert found["bank_conflicts"] == 31 * 64 * 64 // 32, "each read of a column takes 32 turns"


def test_vectors_of_a_transpose_ask_a_quarter_as_often() -> None:
    (case,) = (c for c in CASES if c.function == "wide")
    sizes = {"M": 96, "N": 160}
    found = counted(case.lowered("vectors"), case.arrays(sizes), sizes)
    assert found["global_load_requests"] == found["global_store_requests"] == 96 * 160 // 128
    assert found["global_load_sectors"] == found["global_store_sectors"] == 96 * 160 * 4 // SECTOR
    assert found["bank_conflicts"] == 0


@pytest.mark.parametrize(
    ("function", "schedule", "tile"),
    [("matmul", "tiles", 64), ("whole", "loads", 128), ("whole", "copies", 128), ("whole_ring", "ring", 128)],
)
def test_matmul_moves_what_its_tiles_say(function: str, schedule: str, tile: int) -> None:
    (case,) = (c for c in CASES if c.function == function)
    m, n, depth = 256, 384, 64
    sizes = {"M": m, "N": n, "K": depth}
    found = counted(case.lowered(schedule), case.arrays(sizes), sizes)
    read = (m // tile) * (n // tile) * (tile + tile) * depth * 4
    assert found["global_load_sectors"] * SECTOR == pytest.approx(read, rel=0.01)
    assert found["global_store_sectors"] * SECTOR == pytest.approx(m * n * 4, rel=0.01)
    assert found["block_barriers"] % ((m // tile) * (n // tile)) == 0


# The table of the page on schedules.

COLUMNS: tuple[tuple[str, Callable[[Counter[str]], int]], ...] = (
    ("sectors", lambda c: c["global_load_sectors"] + c["global_store_sectors"]),
    ("requests", lambda c: c["global_load_requests"] + c["global_store_requests"]),
    ("conflicts", lambda c: c["bank_conflicts"]),
    ("barriers", lambda c: c["block_barriers"]),
)


def line(row: Row) -> list[str]:
    """Cells of a row: each pair is without and with the schedule."""
    fixed = tuple(row.sizes.items()) if row.case.fixed else ()
    pair = (unscheduled(row.case, fixed), row.case.lowered(row.schedule, fixed))
    turns = [turn(hot(c, loop), loop) for c, loop in zip(pair, (row.before, row.after), strict=True)]
    arrays = row.case.arrays(row.sizes)
    counts = [counted(compiled, arrays, row.sizes) for compiled in pair]
    cells = [f"{row.case.function} {row.schedule or ''}".rstrip(), ", ".join(f"{n}={v}" for n, v in row.sizes.items())]
    cells.append(" → ".join(f"{t.comparisons / w:.3g}" for t, w in zip(turns, (1, row.work), strict=True)))
    cells.append(" → ".join(f"{t.integers / w:.3g}" for t, w in zip(turns, (1, row.work), strict=True)))
    cells += [" → ".join(str(of(c)) for c in counts) for _, of in COLUMNS]
    return [*cells, " → ".join(registers(c) for c in pair)]


def registers(compiled: Compiled) -> str:
    """The most registers of a thread, as ptxas says; a dot where there is no nvcc."""
    machine = this_machine()
    try:
        nvcc = find_nvcc(machine)
    except TexprError:
        return "·"
    binary = compile_cuda(machine, nvcc, compiled.source, headers(), "sm_90a")
    assert not any(each.spill_loads + each.spill_stores for each in binary.kernels)
    return str(max(each.registers for each in binary.kernels))


@pytest.mark.long
def test_the_table_of_the_page_is_what_is_counted(golden: Callable[[Path, str], None], request: pytest.FixtureRequest) -> None:
    names = ["schedule", "sizes", "comparisons", "integer operations", *(name for name, _ in COLUMNS), "registers"]
    lines = [names, ["---"] * len(names), *map(line, ROWS)]
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index("<!-- counts -->"), text.index("<!-- end -->")
    if not request.config.getoption("--update-golden") and any("·" in cells[-1] for cells in lines[2:]):
        lines = [cells[:-1] for cells in lines]
        old = [part.rsplit("|", 2)[0] + "|" for part in text[start:end].splitlines()[1:]]
        assert old == [f"| {' | '.join(cells)} |" for cells in lines]
        return
    made = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    golden(PAGE, f"{text[:start]}<!-- counts -->\n{made}\n{text[end:]}")
