"""Products that the planner gives to pairs of blocks by itself: where the model says so, right in the emulator, and proved."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.proofs import undecided

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.ir import kernel as k

TEXT = """\
fn product(A: {of}[{rows}, {deep}] align(16), B: {of}[{columns}, {deep}] align(16)): {of}[{rows}, {columns}] align(16)
    where {where}
{{
    new C: {of}[{rows}, {columns}]
    par {rows} |i| {{ par {columns} |j| {{
        new total: f32
        total = 0.0
        seq {deep} |k| reduce(total) {{ total += A[i, k] * B[j, k] }}
        C[i, j] = {of}(total)
    }} }}
    return C
}}
"""


@cache
def compiled(rows: int | str, columns: int | str, deep: int | str, of: str = "bf16") -> Compiled:
    open_ = [each for each in (columns, deep) if isinstance(each, str)]
    where = ", ".join(f"{each} % 16 == 0" for each in open_) or "1 == 1"
    text = TEXT.format(rows=rows, columns=columns, deep=deep, of=of, where=where)
    return lower(parse(text.replace("    where 1 == 1\n", ""), "case.te")["product"], "sm_100a", schedule="auto")


def launched(made: Compiled) -> list[str]:
    return [s.name for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.CollectiveAlone)]


PAIRS = {
    (4096, 4096, 4096, "bf16"): "tcgen05_pair_m128n256k16_f32_bf16",
    (2048, 8192, 1024, "f16"): "tcgen05_pair_m128n128k16_f32_f16",
}


@pytest.mark.parametrize("sizes", PAIRS)
def test_pairs_are_found_and_proved(sizes: tuple[int, int, int, str]) -> None:
    made = compiled(*sizes)
    assert launched(made) == [PAIRS[sizes]]
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("sizes", [(4096 + 128, 4096, 4096), ("M", "N", "K")])
def test_blocks_that_are_no_whole_number_of_pairs_are_alone(sizes: tuple[int | str, int | str, int | str]) -> None:
    """An odd number of strips, and one that nobody knows."""
    assert all("pair" not in name for name in launched(compiled(*sizes)))


def test_emulated() -> None:
    made = compiled(512, 512, 512)
    assert all("pair" in name for name in launched(made)) and launched(made)
    random = np.random.default_rng(5)
    a, b = (random.integers(-2, 3, (512, 512)).astype(ml_dtypes.bfloat16) for _ in range(2))
    found = run_plan(made.function, made.plan, {"A": a, "B": b}, seed=2)
    assert not found.reports, found.reports[0]
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found.arrays["C"], wanted)
