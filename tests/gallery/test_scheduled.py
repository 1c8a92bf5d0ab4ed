"""The scheduled gallery: what it computes as emulated CUDA, in any order of threads; that nvcc takes it without spills."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.gallery.scheduled import CASES, Scheduled, Sizes
from tests.lowering.emulated import results, run_plan

from references import FOLDER, distance
from texpr.affine.expr import Sym
from texpr.backends.cuda import headers
from texpr.driver import Compiled, load
from texpr.emulator import LOCKSTEP
from texpr.interp import run as interpret
from texpr.ir.kernel import kernels
from texpr.ir.proof import Verdict
from texpr.isa.levels import Level
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError
from texpr.toolchain import this_machine
from texpr.toolchain.cuda import compile_cuda, find_nvcc

FILES = sorted((FOLDER / "scheduled").glob("*.te"))
ORDERS = (LOCKSTEP, 0, 1, 2, 3)
"""Besides threads in their order, which is None."""

EACH = [
    pytest.param(case, schedule, id=f"{case.file}-{case.function}-{schedule or 'only'}")
    for case in CASES
    for schedule in case.schedules
]


def check(case: Scheduled, schedule: str | None, sizes: Sizes, orders: tuple[int | None, ...], *, fix: bool = False) -> None:
    """Run at those sizes, in those orders: no fault, and what NumPy and the interpreter say."""
    compiled = case.lowered(schedule, tuple(sizes.items()) if fix else ())
    arrays = case.arrays(sizes)
    wanted = case.reference(arrays, sizes)
    (meant,) = interpret(case.program, arrays, sizes).values()
    assert distance(np.asarray(meant), wanted, case.floor) <= case.ulp
    for order in orders:
        ran = run_plan(compiled.function, compiled.plan, arrays, {} if fix else sizes, seed=order)
        assert ran.reports == [], (order, sizes)
        (got,) = results(compiled.function, ran).values()
        assert distance(got, wanted, case.floor) <= case.ulp, (order, sizes)


def test_every_schedule_of_the_folder_is_tried() -> None:
    written = {(f.stem, fn.name, s.name) for f in FILES for fn in load(f).functions for s in fn.schedules}
    assert written == {(case.file, case.function, schedule) for case in CASES for schedule in case.schedules}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_says_why(file: Path) -> None:
    text = file.read_text(encoding="utf-8").splitlines()
    comment = next(n for n, line in enumerate(text) if not line.startswith("--"))
    assert 3 <= comment <= 8


@pytest.mark.parametrize(("case", "schedule"), EACH)
def test_small(case: Scheduled, schedule: str | None) -> None:
    for sizes in case.small[-1:] if case.fixed else case.small:
        check(case, schedule, sizes, (None, 0), fix=case.fixed)


@pytest.mark.long
@pytest.mark.parametrize(("case", "schedule"), EACH)
def test_small_in_every_order(case: Scheduled, schedule: str | None) -> None:
    for sizes in case.small:
        check(case, schedule, sizes, ORDERS, fix=case.fixed)


@pytest.mark.long
@pytest.mark.parametrize(("case", "schedule"), EACH)
def test_sizes_fixed_at_build(case: Scheduled, schedule: str | None) -> None:
    for sizes in (*case.small, *case.large):
        check(case, schedule, sizes, (None, LOCKSTEP, 0), fix=True)


def test_zeros_are_written_where_the_condition_of_a_copy_does_not_hold() -> None:
    """With one row, a copy's condition says which row it is of: not so for the zeros of all others."""
    (case,) = (each for each in CASES if (each.file, each.function) == ("matmul_bf16", "linear"))
    compiled = case.lowered("ring", (("M", 1), ("N", 8), ("K", 8)))
    proof = proved(compiled.function, compiled.plan)
    assert not proof.of(Verdict.REFUSED) and not proof.of(Verdict.UNDECIDED)


@pytest.mark.long
@pytest.mark.parametrize(("case", "schedule"), EACH)
def test_large_in_every_order(case: Scheduled, schedule: str | None) -> None:
    for sizes in case.large:
        check(case, schedule, sizes, (None, *ORDERS), fix=case.fixed)


@pytest.mark.parametrize(("case", "schedule"), EACH)
def test_large_has_three_blocks_on_each_axis(case: Scheduled, schedule: str | None) -> None:
    for sizes in case.large:
        fixed = tuple(sizes.items()) if case.fixed else ()
        for kernel in kernels(case.lowered(schedule, fixed).plan.steps):
            blocks = [a.extent.evaluate({Sym(n): v for n, v in sizes.items()}) for a in kernel.axes if a.level is Level.GRID]
            assert all(count >= 3 for count in blocks), (kernel.name, blocks)


def spills(compiled: Compiled, target: str) -> dict[str, int]:
    """Bytes that each kernel spills, as ptxas says; skips where there is no nvcc."""
    machine = this_machine()
    try:
        nvcc = find_nvcc(machine)
    except TexprError as reason:
        pytest.skip(str(reason))
    binary = compile_cuda(machine, nvcc, compiled.source, headers(), target)
    return {each.kernel: each.spill_stores + each.spill_loads + each.stack_bytes for each in binary.kernels}


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "schedule", "target"),
    [
        pytest.param(case, schedule, target, id=f"{case.file}-{case.function}-{schedule or 'only'}-{target}")
        for case in CASES
        for schedule in case.schedules
        for target in case.targets
    ],
)
def test_compiles_without_spills(case: Scheduled, schedule: str | None, target: str) -> None:
    fixed = tuple(case.large[-1].items()) if case.fixed else ()
    found = spills(case.lowered(schedule, fixed, target), target)
    assert found
    assert not any(found.values()), found
