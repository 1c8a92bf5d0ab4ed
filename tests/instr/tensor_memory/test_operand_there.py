"""Operands that lanes compute and products read in tensor memory: records, a product, attention, and bugs put into that."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.instr.texts import Arguments, Array
from tests.lowering.emulated import run_plan
from tests.planted import is_proved, is_shown, plain
from tests.proofs import undecided

from texpr.driver import Compiled, load, lower
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.value.structure import same
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record

EXAMPLE = Path(__file__).parents[3] / "examples" / "blackwell" / "attention.te"

PRODUCT = """\
fn product(A: {of}[M, K], B: {of}[N, K] align(16)): f32[M, N] align(16)
    where M % 128 == 0, K % 64 == 0, N % 64 == 0
{{
    new C: f32[M, N]
    par M |i| {{ par N |j| {{
        new total: f32
        total = 0.0
        seq K |k| reduce(total) {{ total += A[i, k] * B[j, k] }}
        C[i, j] = total
    }} }}
    return C
}}

schedule product "tiles" for sm_100a {{
    split(i, 128) -> (i_b, i_m)
    split(j, 64) -> (j_b, j_m)
    split(k, 64) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_m, j_m, k_i)
    bind(i_b, grid.y)
    bind(j_b, grid.x)
    stage(B, at=k_o, in=shared, via=tma, swizzle=128B) -> B_s
    stage(A, at=k_o, in={where}) -> A_r
    mma(i_m, j_m, k_i, tcgen05_m128n64k16_f32_{of}_at)
}}
"""


@cache
def product(of: str) -> Compiled:
    function = parse(PRODUCT.format(of=of, where="registers"), "case.te")["product"]
    return lower(function, "sm_100a", schedule=function.schedules[0])


@cache
def attention() -> Compiled:
    function = load(EXAMPLE)["attention"]
    return lower(function, "sm_100a", schedule=function.schedules[0])


def of_attention(rows: int, keys: int) -> tuple[Arguments, Array]:
    """Small numbers, and what softmax makes of them, in f64."""
    random = np.random.default_rng(1)
    q, keyed, v = (random.integers(-2, 3, (n, 64)) * s for n, s in ((rows, 0.5), (keys, 0.5), (keys, 1.0)))
    scores = q @ keyed.T
    weights = np.exp2(scores - scores.max(1, keepdims=True, initial=-1.0e30))
    with np.errstate(invalid="ignore"):
        wanted = weights @ v / weights.sum(1, keepdims=True)
    given = {name: each.astype(ml_dtypes.bfloat16) for name, each in (("Q", q), ("K", keyed), ("V", v))}
    return given, wanted


@pytest.mark.parametrize("name", [name for name in INSTRUCTIONS if name.startswith("tcgen05_m") and "_at" in name])
def test_records_differ_in_where_a_is(name: str) -> None:
    """PTX ISA 9.0, 9.7.16.10.9.1: `[a-tmem]` in place of `a-desc`; 9.7.16.2.1: two elements of 16 bits in a column."""
    there, other = INSTRUCTIONS[name], INSTRUCTIONS[name.replace("_at", "")]
    assert there.operands[1:] == other.operands[1:] and there.operands[0].shape == other.operands[0].shape
    assert there.operands[0].fragment == "tensor (128,16):(1@0,1@1)"
    for target in ("sm_100a", "sm_103a"):
        told = other.template(resolve(target))
        assert told is not None and there.template(resolve(target)) == told.replace(" {a},", " [{a}],")


@pytest.mark.parametrize("of", ["bf16", pytest.param("f16", marks=pytest.mark.long)])
def test_a_product(of: str) -> None:
    made, random = product(of), np.random.default_rng(2)
    dtype = ml_dtypes.bfloat16 if of == "bf16" else np.float16
    a, b = (random.integers(-3, 4, (rows, 128)).astype(dtype) for rows in (256, 64))
    for seed in (None, 1):
        found = run_plan(made.function, made.plan, {"A": a, "B": b}, seed=seed)
        assert not found.reports, found.reports[0]
        np.testing.assert_array_equal(found.arrays["C"], a.astype(np.float32) @ b.astype(np.float32).T)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("sizes", [(128, 192), (256, 64), (128, 0), (0, 64)])
def test_attention(sizes: tuple[int, int]) -> None:
    given, wanted = of_attention(*sizes)
    for seed in (None, 2):
        found = run_plan(attention().function, attention().plan, given, seed=seed)
        assert not found.reports, found.reports[0]
        np.testing.assert_allclose(found.arrays["O"], wanted, atol=2e-3)


def test_attention_is_proved_and_read_back() -> None:
    made = attention()
    assert not list(undecided(made.function, made.plan))
    assert same(parse_plan(plan_text(made.plan)), made.plan)
    (kernel,) = k.kernels(made.plan.steps)
    launched = [stmt.name for stmt in k.walk(kernel.body) if isinstance(stmt, k.CollectiveAlone)]
    assert launched == ["tcgen05_m128n64k16_f32_bf16", "tcgen05_m128n64k16_f32_bf16_at_bn"]
    assert {a.buffer.name: (a.at, a.buffer.shape[0].constant) for a in kernel.arrays if a.space is k.Space.TENSOR} == {
        "o": (0, 64),
        "s": (64, 64),
        "p": (128, 64),
    }
    assert [stmt.count for stmt in k.walk(kernel.body) if isinstance(stmt, k.TakeColumns)] == [256]


def test_operands_elsewhere_are_refused() -> None:
    function = parse(PRODUCT.format(of="bf16", where="shared"), "case.te")["product"]
    with pytest.raises(TexprError, match="reads `a` from tensor memory, and rows of `A_r` are no lanes there"):
        lower(function, "sm_100a", schedule=function.schedules[0])


class Planted(Record):
    """`old` becomes `new` in the plan of attention. `shown`: the emulator finds a fault, or other numbers."""

    old: str
    new: str
    shown: bool = True


BEFORE, AFTER = "columns fence before\n", "columns fence after\n"
STORE = "p_part[0] 32 read, p[32 * r_4] 32 write"
READ = "p[16 * vj_o] 16 read"
SECOND = "columns commit o_done[0]"

BUGS = {
    "weights of other columns": Planted(READ, "p[-16 * vj_o + 48] 16 read"),
    "the first weights each time": Planted(READ, "p[0] 16 read"),
    "weights stored to other columns": Planted(STORE, STORE.replace("32 * r_4", "16 * r_4")),
    "scores for weights": Planted("p: bf16[64] from 128", "p: bf16[64] from 64"),
    "half of the columns are taken": Planted("p: bf16[64] from 128", "p: bf16[64] from 240"),
    "no fence behind what lanes stored": Planted(f"                {BEFORE}", ""),
    "no fence ahead of products": Planted(f"            {AFTER}            for", "            for"),
    "scores read before they are there": Planted("            mbarrier wait s_done[0] parity (t % 2)\n", ""),
    "sums read before they are there": Planted("            mbarrier wait o_done[0] parity (t % 2)\n", ""),
    "the other parity": Planted("wait o_done[0] parity (t % 2)", "wait o_done[0] parity ((t + 1) % 2)"),
    "no commit of the second product": Planted(f"                {SECOND}\n", ""),
    "a commit to the barrier of the first": Planted(SECOND, "columns commit s_done[0]"),
    "values of another turn": Planted("V_s[((t + 1) % 3), 16 * vj_o", "V_s[((t + 2) % 3), 16 * vj_o"),
    "sums are scaled by another row's factor": Planted("(o_part_1[r_11] * less)", "(o_part_1[r_11] * most)"),
    "columns given back early": Planted("columns free 256", "columns free 128"),
    "elements of a word in another order": Planted(
        'operand a: bf16[128, 16] read columns fragment "(128,16):(1@0,1@1)"',
        'operand a: bf16[128, 16] read columns fragment "(128,(2,8)):(1@0,(8@1,1@1))"',
    ),
}  # fmt: skip


SLOW = ("sums are scaled by another row's factor",)
"""Those whose counterexample is looked for, for seconds."""


def planted(bug: Planted) -> k.Plan:
    text = plain(attention().plan)
    assert bug.old in text, bug.old
    return parse_plan(text.replace(bug.old, bug.new))


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in BUGS])
def test_none_is_proved(name: str) -> None:
    assert not is_proved(attention(), lambda: planted(BUGS[name]))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_what_changes_results_is_shown(name: str) -> None:
    given, wanted = of_attention(128, 192)

    def right(found: Mapping[str, NDArray[Any]]) -> bool:
        return np.allclose(found["O"], wanted, atol=2e-3)

    assert is_shown(attention(), lambda: planted(BUGS[name]), given, right, (None, 1, 2))
