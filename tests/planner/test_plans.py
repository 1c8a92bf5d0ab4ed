"""Which nests are tiled, and how: what a plan may take, what it says, that its text is a schedule like any other."""

from __future__ import annotations

import pytest
from tests.planner.programs import CONV, IN_ORDER, JACOBI, MATMUL, MATVEC, PAIRS, SUM_IN_ORDER, built, function
from tests.proofs import undecided

from references import EXAMPLES, FOLDER
from texpr.driver import load, lower, parse
from texpr.ir import kernel as k
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_directive, print_schedule
from texpr.ir.proof import Verdict
from texpr.isa.levels import Space
from texpr.isa.registry import resolve
from texpr.planner import nest as planner_nest
from texpr.planner.budget import budget
from texpr.planner.nest import Nest, nests
from texpr.planner.plan import Planned, plan
from texpr.planner.search import Search
from texpr.proof.schedule import faithful

TILED = {"matmul": 1, "matmul_flat": 1, "conv2d": 1, "jacobi": 2}
"""Programs of the gallery that are tiled, with the number of their nests that are."""


TRANSPOSE = """
fn transposed(x: f32[m, n]): f32[n, m] {
    new y: f32[n, m]
    par n |i| { par m |j| { y[i, j] = x[j, i] } }
    return y
}
"""


def planned(text: str, target: str = "sm_90a") -> Planned:
    return plan(function(text), resolve(target))


@pytest.mark.parametrize("name", sorted({e.path.stem for e in EXAMPLES}))
def test_which_programs_are_tiled(name: str) -> None:
    for found in load(FOLDER / f"{name}.te").functions:
        made = plan(found, resolve("sm_90a"))
        assert sum(each.candidate is not None for each in made.nests) == TILED.get(name, 0)
        assert all(bool(each.reason) != (each.candidate is not None) for each in made.nests), "a reason or a tile"


@pytest.mark.parametrize("text", [MATMUL, CONV, JACOBI, MATVEC, IN_ORDER.replace("TYPE", "f64")])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
def test_budgets_are_kept(text: str, target: str) -> None:
    compiled = built(text, (), target)
    assert compiled.schedule is not None
    for kernel in k.kernels(compiled.plan.steps):
        taken = sum(count(a) * a.buffer.dtype.bytes for a in kernel.arrays if a.space is Space.SHARED)
        assert 2 * (taken + 1024) <= compiled.target.shared_multiprocessor, "two blocks fit a multiprocessor"
        assert kernel.threads <= 256


def count(array: k.Array) -> int:
    total = 1
    for extent in array.buffer.shape:
        total *= extent.constant
    return total


@pytest.mark.parametrize("text", [MATMUL, CONV, JACOBI])
def test_the_text_of_a_plan_is_a_schedule(text: str) -> None:
    """Pasted into the file it gives the same code, but for a second plan, which a written schedule has not."""
    compiled = built(text)
    assert compiled.schedule is not None
    pasted = parse(f"{text}\n{print_schedule(compiled.schedule, function(text))}")
    (again,) = pasted.functions
    assert strip(lower(again, "sm_90a", schedule=again.schedules[0]).source) == strip(compiled.with_wide(None).source)


def strip(source: str) -> str:
    """Without what speaks of places in a text."""
    return "\n".join(line.split("//")[0] for line in source.splitlines() if "TX_AT" not in line)


DEEP = """
fn deep(A: f32[a, b, c, g, h, k, l, o, p], B: f32[g, h, k, l, o, p, d, e, f]): f32[a, b, c, d, e, f] {
    new C: f32[a, b, c, d, e, f]
    par a |i1| { par b |i2| { par c |i3| { par d |i4| { par e |i5| { par f |i6| {
        C[i1, i2, i3, i4, i5, i6] = 0.0
        seq g |j1| { seq h |j2| { seq k |j3| { seq l |j4| { seq o |j5| { seq p |j6| {
            C[i1, i2, i3, i4, i5, i6] += A[i1, i2, i3, j1, j2, j3, j4, j5, j6] * B[j1, j2, j3, j4, j5, j6, i4, i5, i6]
        } } } } } }
    } } } } } }
    return C
}
"""


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_a_deep_nest_is_left_alone(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many loops: nothing is tried, and the reason is told."""
    monkeypatch.setattr(planner_nest, "DEEPEST", 11)
    (chosen,) = planned(DEEP, target).nests
    assert chosen.candidate is None
    assert chosen.reason.startswith("it has 12 loops")


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_a_deep_nest_is_planned_and_proved(target: str) -> None:
    """Of twelve loops."""
    made = lower(function(DEEP), target, schedule="auto")
    assert made.planned is not None and made.planned.nests[0].candidate is not None and made.written is not None
    assert {each.verdict for each in faithful(made.written, made.function).obligations} == {Verdict.PROVED}
    assert list(undecided(made.function, made.plan)) == []


def test_many_parallel_loops_are_left_alone() -> None:
    """Of a grid of nine loops of open extents proofs are not found."""
    sizes, names = "a, b, c, d, e, f, g, h, k", "ijlmopqrs"
    loops = "".join(f"par {size} |{name}| {{ " for size, name in zip(sizes.split(", "), names, strict=True))
    element = ", ".join(names)
    body = f"new B: f32[{sizes}] {loops}B[{element}] = A[{element}] {'}' * 9} return B"
    text = f"fn f(A: f32[{sizes}]): f32[{sizes}] {{ {body} }}"
    (chosen,) = planned(text, "sm_90a").nests
    assert chosen.reason.startswith("it has 9 parallel loops")
    made = lower(function(text), "sm_90a", schedule="auto")
    assert list(undecided(made.function, made.plan)) == []


def test_few_candidates_are_looked_at() -> None:
    """However deep the nest: of twelve loops, seven at most are cut, and the search stays small."""
    ((_, nest),) = nests(function(DEEP))
    assert isinstance(nest, Nest)
    search = Search(nest, budget(resolve("sm_90a"), 12))
    assert sum(size > 1 for size in search.best().tile.values()) <= 7
    assert search.looked_at < 3000


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_where_a_sum_must_keep_its_order_the_next_candidate_keeps_it(target: str) -> None:
    """Steps of c outside of r and s would add up in another order: refused, told, and tried again with r and s outside."""
    (chosen,) = planned(SUM_IN_ORDER, target).nests
    assert chosen.candidate is not None
    (refused,) = chosen.refused
    assert refused.startswith("reorder(")
    assert "E0906" in refused
    freed = SUM_IN_ORDER.replace("seq 3 |r|", "seq 3 |r| reduce(Y)").replace("seq 3 |s|", "seq 3 |s| reduce(Y)")
    (chosen,) = planned(freed.replace("seq C |c|", "seq C |c| reduce(Y)"), target).nests
    assert chosen.candidate is not None
    assert chosen.refused == ()


def test_the_same_plan_every_time() -> None:
    first, again = planned(MATMUL), planned(MATMUL)
    assert first.schedule == again.schedule


def test_a_written_schedule_and_pragmas_come_first() -> None:
    written = parse(f"{MATMUL}\nschedule matmul for cuda {{ split(i, 8) -> (a, b) }}")["matmul"]
    assert written.schedules
    told = parse(MATMUL.replace("par M |i|", "par M |i| #grid"))["matmul"]
    compiled = lower(told, "sm_90a", schedule=AUTO)
    assert compiled.schedule is None
    assert compiled.planned is not None
    assert compiled.planned.schedule is None


def test_without_a_schedule_nothing_is_tiled() -> None:
    compiled = lower(function(MATMUL), "sm_90a")
    assert compiled.planned is None
    assert compiled.laid_out is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PAIRS, "nothing that it reads over and over could be kept in a tile"),
        (
            TRANSPOSE.replace("x[j, i]", "x[i, j]").replace("x: f32[m, n]", "x: f32[n, m]"),
            "no element is read by two iterations",
        ),
        (MATVEC.replace("seq K |k|", "par K |k|"), "the iterations of `k` meet, or are lanes already"),
        (
            MATMUL.replace("seq K |k|", "seq i * i + 1 |k|").replace("[M, K]", "[M, M]").replace("[K, N]", "[M, N]"),
            "the extent of `k`",
        ),
    ],
)
def test_why_a_nest_is_left_alone(text: str, reason: str) -> None:
    made = planned(text)
    assert made.schedule is None
    assert [each.reason[: len(reason)] for each in made.nests] == [reason]


def test_a_buffer_that_cannot_be_staged_is_left_out_and_told() -> None:
    """`B` lies flat, and is no whole number of rows: A is staged alone, or there is no tile; either is said."""
    text = MATMUL.replace("B: f32[K, N]", "B: f32[K * N + 3]").replace("B[k, j]", "B[k * N + j]")
    (chosen,) = planned(text).nests
    assert chosen.candidate is None or [s.form.buffer.name for s in chosen.candidate.staged] == ["A"]


EVEN = {"M": 4096, "N": 4096, "K": 4096}


def said(text: str, sizes: dict[str, int], target: str = "sm_90a") -> list[str]:
    compiled = lower(parse(text)["matmul"], target, sizes, schedule=AUTO)
    assert compiled.schedule is not None
    return [print_directive(each) for each in compiled.schedule.directives]


def test_what_a_thread_reads_of_a_row_are_neighbours() -> None:
    """Those of B lie along j, which results are written along, too; those of A along k, which is unrolled."""
    made = said(MATMUL, EVEN)
    assert {"split(j_q, 4) -> (j_t, j_l)", "unroll(k_i)", "unroll(j_l)", "vectorize(j_l_2)"} <= {*made}
    assert not any(line.startswith("split(i_q") for line in made)


def test_rows_of_both_operands_are_neighbours() -> None:
    made = said(MATMUL.replace("A: f32[M, K]", "A: f32[K, M]").replace("A[i, k]", "A[k, i]"), EVEN)
    assert {"split(j_q, 4) -> (j_t, j_l)", "split(i_q, 4) -> (i_t, i_l)", "vectorize(j_l_2)"} <= {*made}


def test_columns_are_dealt_out_one_by_one() -> None:
    """Of the product with a transpose both operands lie along k, and neither along a loop of threads."""
    made = said(MATMUL.replace("B: f32[K, N]", "B: f32[N, K]").replace("B[k, j]", "B[j, k]"), EVEN)
    assert not any("_l)" in line for line in made) and "unroll(k_i)" in made


def test_where_tiles_are_partial_some_turns_are_unrolled() -> None:
    """As many as are read at once: a loop that is written out whole would have a test for each turn."""
    made = said(MATMUL, {})
    assert "unroll(k_i, 4)" in made and not any(line.startswith("vectorize(C") for line in made)


@pytest.mark.parametrize("sizes", [EVEN, {}])
def test_padded_rows_are_whole_vectors(sizes: dict[str, int]) -> None:
    compiled = lower(parse(MATMUL)["matmul"], "sm_80", sizes, schedule=AUTO)
    (kernel,) = k.kernels(compiled.plan.steps)
    shared = [array.buffer for array in kernel.arrays if array.space is Space.SHARED]
    assert shared and all(buffer.shape[-1].constant % 4 == 0 for buffer in shared)


def test_a_turn_that_is_tested_is_not_unrolled() -> None:
    """Of a triangle that is made a square: what is left out of it is tested turn by turn, or is the end of a loop."""
    text = """
fn matmul(A: f32[N, N], B: f32[N, M]): f32[N, M] {
    new C: f32[N, M]
    par N |i| { par M |j| {
        C[i, j] = 0.0
        seq i + 1 |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""
    assert not any(line.startswith("unroll(k") for line in said(text, {"N": 512, "M": 512}))
