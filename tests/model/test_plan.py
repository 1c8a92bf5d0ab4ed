"""What is counted of a plan before anything runs, against what the emulator counts as it runs, and against closed forms."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.gallery.scheduled import CASES, Scheduled, Sizes
from tests.lowering.emulated import module, run_plan

from references import FOLDER
from texpr.affine.expr import Sym
from texpr.driver import Compiled, load, lower
from texpr.frontend import parse
from texpr.isa.registry import DEVICES, resolve
from texpr.model.bound import bound
from texpr.model.least import least
from texpr.model.plan.walk import walk_of
from texpr.model.plan.work import Launched, launched, launches

TARGET, DEVICE = resolve("sm_90a"), DEVICES["sm_90a"]


def emulated(compiled: Compiled, case: Scheduled, sizes: Sizes) -> Counter[str]:
    """Requests and sectors of global memory, rounds of shared memory, and arrivals of warps at barriers of their block."""
    made = module(compiled.source)
    made.clear_counts()
    open_sizes = {s.name: sizes[s.name] for s in compiled.function.sizes}
    run = run_plan(compiled.function, compiled.plan, case.arrays(sizes), open_sizes, count=True)
    assert run.reports == []
    found: Counter[str] = Counter()
    for each in made.counts().values():
        found["requests"] += each.global_load_requests + each.global_store_requests
        found["sectors"] += each.global_load_sectors + each.global_store_sectors
        found["shared"] += each.shared_wavefronts
    return found


def literal(compiled: Compiled, sizes: Sizes) -> Counter[str]:
    """The same, of the plan."""
    values = {s: sizes[s.name] for s in compiled.plan.sizes}
    found: Counter[str] = Counter()
    for kernel, times in launched(compiled.plan.steps, values):
        counted = walk_of(kernel, values, TARGET.coalescing, literal=True).run()
        found.update({name: times * int(counted.sums[name]) for name in ("requests", "sectors", "shared")})
    return found


COUNTED: tuple[tuple[str, str | None, dict[str, int]], ...] = (
    ("saxpy", None, {"n": 5003}),
    ("transpose2d", "padded", {"M": 67, "N": 101}),
    ("transpose2d", "swizzled", {"M": 96, "N": 96}),
    ("wide", "vectors", {"M": 68, "N": 100}),
    ("matmul", "tiles", {"M": 70, "N": 66, "K": 19}),
    ("whole", "copies", {"M": 128, "N": 128, "K": 32}),
    ("jacobi", None, {"H": 37, "W": 71}),
    ("softmax", None, {"M": 3, "N": 1028}),
)


@pytest.mark.parametrize(("function", "schedule", "sizes"), COUNTED, ids=lambda value: str(value) if value is None else None)
def test_requests_sectors_and_rounds_are_those_of_the_emulator(function: str, schedule: str | None, sizes: Sizes) -> None:
    case = next(c for c in CASES if c.function == function and schedule in c.schedules)
    fixed = tuple(sizes.items()) if case.fixed else ()
    compiled = case.lowered(schedule, fixed)
    assert literal(compiled, sizes) == emulated(compiled, case, sizes)


def only(text: str, sizes: Sizes | None = None) -> Launched:
    """The only launch of a text."""
    compiled = lower(parse(text).functions[0], "sm_90a", sizes or {})
    (found,) = launches(compiled.plan, dict(compiled.plan.fixed), TARGET)
    return found


ROWS = (
    "fn f(x: f32[M, N]): f32[M] {{\n new y: f32[M]\n par M |i| {{ y[i] = 0.0\n seq N |j| reduce(y) {{ {} }} }}\n return y\n}}"
)


def test_each_operation_is_counted_for_each_execution() -> None:
    found = only(ROWS.format("y[i] += x[i, j] * x[i, j]"), {"M": 256, "N": 1000})
    assert found.work.units["fma"] * 32 >= 256 * 1000
    assert found.work.dram == 256 * 1000 * 4 + 256 * 4


def test_what_is_touched_counts_once_however_often_it_is_read() -> None:
    text = "fn f(x: f32[n]): f32[n] {\n new y: f32[n]\n par n |i| { y[i] = x[i] + x[n - 1 - i] }\n return y\n}"
    found = only(text, {"n": 1 << 16})
    assert found.work.requests == 3 * (1 << 16) // 32
    assert found.work.dram == 2 * 4 * (1 << 16)


def test_a_part_of_an_array_is_its_box() -> None:
    text = "fn f(x: f32[8, n]): f32[n] {\n new y: f32[n]\n par n |i| { y[i] = x[3, i] }\n return y\n}"
    assert only(text, {"n": 4096}).work.dram == 2 * 4 * 4096


def test_some_warps_of_the_last_block_have_work() -> None:
    """28 rows by blocks of 8 warps, a row each: of the last block four have one, neither all nor one."""
    text = "fn f(x: f32[28, 64]): f32[28, 64] {\n new y: f32[28, 64]\n par 28, 64 |i, j| { y[i, j] = x[i, j] }\n return y\n}"
    scheduled = text + (
        "\nschedule f {\n split(i, 8) -> (io, ii)\n split(j, 32) -> (jo, ji)\n reorder(io, jo, ii, ji)\n"
        " bind(io, grid.y)\n bind(jo, grid.x)\n bind(ii, block.y)\n bind(ji, block.x)\n}"
    )
    function = parse(scheduled).functions[0]
    compiled = lower(function, "sm_90a", {}, schedule=function.schedules[0])
    (found,) = launches(compiled.plan, {}, TARGET)
    assert found.work.requests == 2 * 28 * 2 and found.work.dram == 2 * 4 * 28 * 64


def test_half_of_a_square_is_counted_as_half() -> None:
    """A test that compares two places of blocks: one between the first and the last, on the diagonal, told of neither side."""
    text = "fn f(inout x: f32[n, n]) {\n par n, n |i, j| { if j <= i { x[i, j] = x[i, j] + 1.0 } }\n}"
    found = only(text, {"n": 768})
    whole = walk_of(found.kernel, {Sym("n"): 768}, TARGET.coalescing, literal=True).run().sums["requests"]
    assert found.work.requests == pytest.approx(whole, rel=0.1)
    assert found.work.dram is not None and 768 * 768 * 4 < found.work.dram < 1.2 * 768 * 768 * 4


def test_an_element_that_a_turn_does_not_change_is_read_once() -> None:
    text = (
        "fn f(x: f32[n], z: f32[64]): f32[n] {\n new y: f32[n]\n par n |i| { new s: f32\n s = 0.0\n"
        " seq 64 |j| { s = s + x[i] * z[j] }\n y[i] = s }\n return y\n}"
    )
    assert only(text, {"n": 4096}).work.requests == (1 + 64 + 1) * 4096 // 32


PRODUCT = """fn f(A: f32[1024, 1024], B: f32[1024, 1024]): f32[1024, 1024] {
    new C: f32[1024, 1024]
    par 1024, 1024 |i, j| {
        C[i, j] = 0.0
        seq 1024 |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    }
    return C
}
schedule f for sm_90a {
    split(i, 128) -> (bi, ie)
    split(ie, 16) -> (vi, ti)
    split(j, 128) -> (bj, je)
    split(je, 64) -> (vj, jq)
    split(jq, 4) -> (tj, lj)
    split(k, 16) -> (ko, ki)
    reorder(bi, bj, ko, ti, tj, ki, vi, vj, lj)
    bind(tj, block.x)
    bind(ti, block.y)
    stage(C, at=bj, in=registers) -> Ca
    stage(A, at=ko, in=shared) -> As
    stage(B, at=ko, in=shared) -> Bs
    resize(As.d1, 0, PAD)
    resize(Bs.d1, 0, PAD)
    UNROLL
    unroll(vi)
    unroll(vj)
    unroll(lj)
}
"""


@pytest.mark.parametrize(
    ("pad", "unrolled", "reads"),
    [
        (4, "unroll(ki)", 2 + 2),
        (4, "unroll(ki, 4)", 2 + 2),
        (4, "unroll(ki, 2)", 4 + 2),
        (2, "unroll(ki)", 4 + 4),
        (1, "unroll(ki)", 8 + 8),
        (4, "", 8 + 2),
    ],
)
def test_neighbours_in_shared_memory_are_one_load(pad: int, unrolled: str, reads: int) -> None:
    """Of 8 rows of `As` those of turns of `ki` that stand side by side, of `Bs` those of `lj`; as rows begin at multiples of
    four, of two, or anywhere."""
    function = parse(PRODUCT.replace("PAD", str(pad)).replace("UNROLL", unrolled)).functions[0]
    compiled = lower(function, "sm_90a", {}, schedule=function.schedules[0])
    (found,) = launches(compiled.plan, {}, TARGET)
    turns = 1024**3 // 64 // 32
    copies = 2 * 2 * 128 * 16 * 64 * 64 // 32
    assert found.work.units["lsu"] == turns * reads + copies + 1024**2 // 32


def test_what_a_test_chooses_is_loaded_by_itself() -> None:
    """Turns of a loop that are tested one by one stand side by side, and each has its own load."""
    text = PRODUCT.replace("PAD", "4").replace("UNROLL", "unroll(ki)").replace("seq 1024 |k|", "seq 1000 |k|")
    function = parse(text).functions[0]
    compiled = lower(function, "sm_90a", {}, schedule=function.schedules[0])
    (found,) = launches(compiled.plan, {}, TARGET)
    assert found.work.units["lsu"] > 1000 * 1024**2 // 64 // 32 * (8 + 2)


def test_what_finds_a_place_is_read_too() -> None:
    text = "fn f(x: i32[n], inout y: i32[64]) assume x in 0..64 {\n par n |i| reduce(y) #atomic { y[x[i]] += 1 }\n}"
    found = only(text, {"n": 1 << 20})
    assert found.work.dram is not None and found.work.dram >= 4 << 20
    assert found.elements == 1 << 20


def test_what_an_engine_moves_is_counted_both_ways() -> None:
    """A copy by tiles brings and takes each byte once."""
    function = load(FOLDER / "tma" / "copy.te")["scale"]
    compiled = lower(function, "sm_90a", {s.name: 4096 for s in function.sizes}, schedule=function.schedules[0])
    sizes = dict(compiled.plan.fixed)
    (found,) = launches(compiled.plan, sizes, TARGET)
    assert found.work.dram == 2 * 4 * 4096**2
    assert bound(found.work, found.shape, TARGET, DEVICE).us >= 0.999 * least(function, sizes, DEVICE).us


def test_what_is_combined_in_memory_is_brought_and_taken() -> None:
    text = "fn f(x: f32[n], inout y: f32[n]) {\n par n |i| { y[i] += x[i] }\n}"
    assert only(text, {"n": 4096}).work.dram == 3 * 4 * 4096


def test_the_least_takes_the_best_unit_that_types_allow() -> None:
    """2 · 4096³ operations at 989.4 TFLOP/s, where factors are bf16; on lanes of f32, where they are f32."""
    text = (
        "fn f(a: {0}[n, n], b: {0}[n, n]): f32[n, n] {{\n new c: f32[n, n]\n par n |i| {{ par n |j| {{ c[i, j] = 0.0\n"
        " seq n |k| reduce(c) {{ c[i, j] += f32(a[i, k]) * f32(b[k, j]) }} }} }}\n return c\n}}"
    )

    def needed(dtype: str) -> float:
        function = parse(text.format(dtype)).functions[0]
        (n,) = function.sizes
        return least(function, {n: 4096}, DEVICE).unit

    assert needed("bf16") == pytest.approx(2 * 4096**3 / 989.4e12 * 1e6, rel=1e-3)
    assert needed("f32") == pytest.approx(4096**3 / (132 * 128 * 1.98e9) * 1e6, rel=1e-3)


@pytest.mark.parametrize("rows", [4096, 100])
def test_a_bound_is_no_less_than_the_least(rows: int) -> None:
    compiled = lower(parse(ROWS.format("y[i] += x[i, j]")).functions[0], "sm_90a", {"M": rows, "N": 4096})
    sizes = dict(compiled.plan.fixed)
    total = sum(bound(each.work, each.shape, TARGET, DEVICE).us * each.times for each in launches(compiled.plan, sizes, TARGET))
    assert total >= 0.999 * least(compiled.written or compiled.function, sizes, DEVICE).us
