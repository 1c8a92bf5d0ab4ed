"""Locals in registers of lanes: results in every order, of every type; what is saved; what is refused; the machine code."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering import machine
from tests.lowering.lanes import PROGRAMS, Lanes
from tests.lowering.memory import Fault
from tests.proof.plan.mutants import mutants
from tests.schedule.laid import Laid, binary, counts, laid, refusal, wrong

from references import FOLDER
from texpr.affine.expr import expr
from texpr.backends.cuda import print_kernels
from texpr.draw.timeline.statements import draw_timeline
from texpr.driver import lower
from texpr.explain.kernels import explain
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.value import Index, Literal, Op
from texpr.ir.value.types import BOOL, DTYPES, I32
from texpr.proof.search import proved
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.toolchain import find_nvcc, this_machine
from texpr.toolchain.cuda import disassemble

NAMED = {program.name: program for program in PROGRAMS}


def made(program: Lanes, place: str = "lanes", dtype: str = "", target: str = "sm_90a") -> Laid:
    """The program with its local in lanes, or where `place` says."""
    local = re.findall(r"new (\w+): T", program.body)[0]
    directive = f"place({local}, {place})" if place else ""
    return laid(program.text(dtype), f"{program.schedule} {directive}", target)


def rows(program: Lanes, count: int, dtype: str = "") -> dict[str, NDArray[Any]]:
    """Small integers, or 0 and 1, of the program's type."""
    kind = DTYPES[dtype or program.dtype]
    least, most = (0, 2) if kind is BOOL else (0, 3) if kind.name.startswith("u") else (-2, 3)
    drawn = np.random.default_rng(count).integers(least, most, (count, program.width))
    return {"x": drawn.astype(numpy_dtype(kind))}


def is_proved(found: Laid, plan: k.Plan | None = None) -> bool:
    """Whether nothing is open."""
    said = proved(found.function, plan or found.plan).counts
    return not said["refused"] and not said["undecided"]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_results_are_the_same_in_every_order_and_are_proved(program: Lanes) -> None:
    found = made(program)
    assert sum(isinstance(stmt, k.Shuffle) for stmt in found.statements) == program.shuffles
    assert not any(array.space is k.Space.SHARED for kernel in k.kernels(found.plan.steps) for array in kernel.arrays)
    assert not any(isinstance(stmt, k.Barrier) for stmt in found.statements)
    for count in (0, 1, 7):
        assert wrong(found, rows(program, count)) is None
    given = rows(program, 2)
    for order in range(4):
        got = machine.run(found.function, found.plan, given, order=order)
        assert np.array_equal(got["y"], interpret(found.original, given)["y"])
    assert is_proved(found)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_every_type_is_moved(dtype: str) -> None:
    program = NAMED["rotated"]
    found = made(program, dtype=dtype)
    assert wrong(found, rows(program, 3, dtype), orders=(None, 0, 1)) is None
    assert is_proved(found)


SUMS = """fn f(x: f32[m, 32]): f32[m] {
    new y: f32[m]
    par m |r| {
        new t: f32[32]
        par 32 |i| { t[i] = x[r, i] }
        new s: f32
        s = 0.0
        par 32 |j| reduce(s) { s += t[j] * t[31 - j] }
        y[r] = s + t[3]
    }
    return y
}"""

TABLE = """fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par 1 |b| {
        new t: i32[16]
        par 16 |i| { t[i] = i * i }
        par n |j| { y[j] = x[j] + t[j % 16] }
    }
    return y
}"""


def test_a_sum_over_threads_reads_lanes() -> None:
    found = laid(SUMS, "place(t, lanes)")
    x = np.random.default_rng(0).integers(-3, 4, (5, 32)).astype(np.float32)
    assert wrong(found, {"x": x}) is None
    assert is_proved(found)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100])
def test_a_loop_of_any_length_reads_a_table(n: int) -> None:
    """Lanes go through a loop that ends anywhere together; those beyond its end have something to hand out."""
    found = laid(TABLE, "split(j, 32) -> (jo, ji) bind(i, lane) bind(ji, lane) place(t, lanes)")
    assert wrong(found, {"x": np.arange(n, dtype=np.int32)}) is None
    assert is_proved(found)


def test_the_compiler_chooses_lanes_where_they_cost_less() -> None:
    chosen = {name: made(program, "") for name, program in NAMED.items() if name != "thin_block"}
    kept = {name: {a.space for kernel in k.kernels(each.plan.steps) for a in kernel.arrays} for name, each in chosen.items()}
    assert {name for name, spaces in kept.items() if k.Space.SHARED in spaces} == set()
    assert wrong(chosen["stencil"], rows(NAMED["stencil"], 3)) is None


CHOSEN = """fn f(x: i32[m, 128]): i32[m, 128] {
    new y: i32[m, 128]
    par m |r| {
        new t: i32[128]
        par 4 |a| { par 32 |i| { t[32 * a + i] = x[r, 32 * a + i] } }
        par 4 |b| { par 32 |j| { y[r, 32 * b + j] = t[(32 * b + 3 * j) % 128] } }
    }
    return y
}"""


@pytest.mark.parametrize(("reach", "space"), [("3 * j", "shared"), ("4 * j", "lanes")])
def test_the_dearer_place_is_not_taken(reach: str, space: str) -> None:
    """A lane gets what each of four slots holds: that is more than one request, and less than one to four words of a bank."""
    found = laid(CHOSEN.replace("3 * j", reach), "bind(i, lane) bind(j, lane) unroll(a) unroll(b)")
    (array,) = next(k.kernels(found.plan.steps)).arrays
    assert array.space.value == space, array.reason
    assert wrong(found, {"x": np.arange(256, dtype=np.int32).reshape(2, -1)}) is None


def test_what_is_saved_is_counted() -> None:
    program = NAMED["steps"]
    fewer, more = (counts(made(program, place), rows(program, 4)) for place in ("lanes", "shared"))
    assert (fewer.shuffles, fewer.shared_requests, fewer.shared_wavefronts, fewer.warp_barriers) == (20, 0, 0, 0)
    assert more.shuffles == 0
    a_row = 1 + 5 * (3 + 1) + 1  # a step reads in both arms, two elements in one of them, and writes
    assert (more.shared_requests, more.warp_barriers) == (4 * a_row, 40)


def test_what_a_prefix_sum_saves_is_as_the_page_on_schedules_says() -> None:
    text = (FOLDER / "scheduled" / "scan.te").read_text(encoding="utf-8").split("schedule")[0]
    given = {"x": np.arange(128, dtype=np.int32).reshape(1, -1)}
    fewer, more = (counts(laid(text, f"place(a, {place})"), given) for place in ("lanes", "shared"))
    assert (fewer.shuffles, fewer.shared_requests, fewer.warp_barriers) == (24, 0, 0)
    a_turn = 1 + 5 * (2 + 1) + 1 + 1  # a step reads two elements and writes one; then all lanes read their own, and the last
    assert (more.shuffles, more.shared_requests, more.warp_barriers) == (0, 4 * a_turn, 48)


# What is refused.

HEAD = """fn f(x: i32[m, 64]): i32[m, 64] {
    new y: i32[m, 64]
    par m |r| {
        new t: i32[64]
        par 64 |i| { t[i] = x[r, i] }
        par 64 |j| { y[r, j] = t[63 - j] }
    }
    return y
}"""


def test_another_warp_is_refused_with_two_instances() -> None:
    said = refusal(HEAD, "bind(i, block.x) bind(j, block.x) place(t, lanes)")
    assert "error[E0913]: `t` cannot live in lanes: an element is read in another warp than that which writes it" in said
    assert re.search(r"note: thread (\d+) writes `t\[\1\]`, at r = 0, i = \1", said)
    assert re.search(r"note: thread (\d+) reads `t\[(\d+)\]`, at r = 0, j = \1", said)
    assert "help: place it otherwise: `place(t, shared)`" in said


@pytest.mark.parametrize(
    ("change", "directives", "reason"),
    [
        (("t[63 - j]", "t[x[r, j] % 32]"), "", "which of its elements is touched depends on data"),
        (("y[r, j] = t[63 - j]", "y[r, j] = 0  seq j |k| { y[r, j] = t[k % 32] }"),
         "split(i, 32) -> (io, ii) split(j, 32) -> (jo, ji) bind(ii, lane) bind(ji, lane)",
         "lanes run the loop over `k` around a read of another's element unequally often"),
        (("new t: i32[64]", "new t: i32[8192]"),
         "split(i, 32) -> (io, ii) split(j, 32) -> (jo, ji) bind(ii, lane) bind(ji, lane)",
         "a thread would keep 256 words, and 127 are for what lanes read"),
        (("t[i] = x[r, i] }", "t[i] = x[r, i] } par 64 |l| { t[63 - l] = x[r, l] }"),
         "bind(i, block.x) bind(j, block.x) bind(l, block.x)", "an element is written by several threads"),
        (("par m |r| {\n        new t: i32[64]", "new t: i32[64]\n    par m |r| {"), "",
         "it is kept from one kernel to the next"),
        (("new t: i32[64]", "new t: i32[m]"), "", "its size is not a constant"),
    ],
    ids=["data", "unequal", "budget", "two writers", "kernels", "size"],
)  # fmt: skip
def test_what_lanes_cannot_hold_is_refused(change: tuple[str, str], directives: str, reason: str) -> None:
    said = refusal(HEAD.replace(*change), f"{directives} place(t, lanes)")
    assert "error[E0913]" in said and reason in said, said


def test_registers_that_differ_by_lane_are_few() -> None:
    text = HEAD.replace("64", "256").replace("63 - j", "7 * j % 256")
    said = refusal(text, "split(i, 32) -> (io, ii) split(j, 32) -> (jo, ji) bind(ii, lane) bind(ji, lane) place(t, lanes)")
    assert "`t` cannot live in lanes: lanes would touch different registers at a time" in said


def test_a_core_has_no_lanes_of_a_warp() -> None:
    assert "error[E0908]: cpu has no warps" in refusal(HEAD, "place(t, lanes)", "cpu")


# Bugs.

PLANTED = ("rotated", "prime", "two_slots", "warps_of_a_block", "ring")


def harmless(found: Laid, program: Lanes, plan: k.Plan) -> bool:
    """Whether a plan, run by hand in some orders, gives what the interpreter does."""
    given = {"x": np.arange(3 * program.width, dtype=np.int32).reshape(3, -1)}
    want = interpret(found.original, given)["y"]
    for order in range(2):
        try:
            if not np.array_equal(machine.run(found.function, plan, given, order=order)["y"], want):
                return False
        except Fault:
            return False
    return True


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_refused_or_are_none(name: str) -> None:
    found = made(NAMED[name])
    tried = 0
    for mutant in mutants(found.plan):
        if is_proved(found, mutant.plan):
            assert harmless(found, NAMED[name], mutant.plan), mutant.name
        elif "lane" in mutant.name or "slot" in mutant.name or "own" in mutant.name:
            tried += 1
    assert tried >= 3


def parted(found: Laid) -> k.Plan:
    """The shuffle under a test that half of the lanes pass; the other half goes on without."""
    (kernel,) = k.kernels(found.plan.steps)
    (row,) = (stmt for stmt in kernel.body if isinstance(stmt, k.If))
    at = next(number for number, stmt in enumerate(row.then) if isinstance(stmt, k.Shuffle))
    declared, shuffle, store = row.then[at - 1 : at + 2]
    assert isinstance(declared, k.Declare) and isinstance(shuffle, k.Shuffle) and isinstance(store, k.Store)
    low = Op("lt", (Index(expr(declared.sym), I32), Literal(16, I32)), BOOL)
    both = (k.If(low, (shuffle, store), (replace(store, value=shuffle.source),)),)
    body = tuple(replace(row, then=(*row.then[:at], *both)) if stmt is row else stmt for stmt in kernel.body)
    return replace(found.plan, steps=(k.Launch(replace(kernel, body=body)),))


def test_a_test_around_a_shuffle_is_seen_by_all() -> None:
    found = made(NAMED["rotated"])
    bad = parted(found)
    with pytest.raises(CompilerBug, match="32 lanes may part at the branch around it"):
        kernel_verify.verify(bad)
    (refused,) = {
        o.about for o in proved(found.function, bad).obligations if o.verdict.value == "refused" and o.what == "threads meet"
    }
    assert refused == "shuffle"
    assert wrong(found, rows(NAMED["rotated"], 3), text=print_kernels(bad)) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [("t[0], (j + 5) % 32", "t[0], (j + 6) % 32"), ("__shfl_sync(0xffffffffu, t[0], (j + 5) % 32)", "t[0]"),
     ("t[0] = x[", "t[0] = 1 + x["), ("0xffffffffu", "0x7fffffffu")],
    ids=["lane", "own", "value", "mask"],
)  # fmt: skip
def test_the_emulator_sees_bugs(old: str, new: str) -> None:
    found = made(NAMED["rotated"])
    assert found.text.count(old) == 1
    given = {"x": np.arange(96, dtype=np.int32).reshape(3, -1)}
    assert wrong(found, given) is None
    assert wrong(found, given, text=found.text.replace(old, new)) is not None


def test_a_place_that_nothing_was_written_to_is_not_read() -> None:
    """Of twice as many slots the first half is written, the second half read: each holds at most one element, but none."""
    found = made(NAMED["two_slots"])
    (kernel,) = k.kernels(found.plan.steps)
    (array,) = kernel.arrays
    text = plan_text(found.plan).replace("t: i32[2]", "t: i32[4]").replace("= t[jo]", "= t[jo + 2]")
    assert array.buffer.shape[0].constant == 2
    bad = parse_plan(text)
    kernel_verify.verify(bad)
    said = [o for o in proved(found.function, bad).obligations if o.verdict.value == "refused"]
    assert "what is read is there" in {o.what for o in said}


# What is told, and what is run.


def test_it_is_explained_and_drawn() -> None:
    (function,) = parse(NAMED["stencil"].text(), "t.te").functions
    compiled = lower(function, "sm_90a")
    (kernel,) = explain(compiled, replace(this_machine(), environment={}))["kernels"]
    (note,) = (each for each in kernel["buffers"] if each["buffer"] == "t")
    assert (note["space"], note["bytes"]) == ("lanes", "4")
    assert note["reason"] == (
        "lanes of one warp touch it: 2 shuffles a warp, in place of 6 requests to shared memory and 1 barrier"
    )
    assert {access["buffer"] for access in kernel["accesses"]} == {"x", "y"}
    drawn = draw_timeline("f", list(k.kernels(compiled.plan.steps)))
    assert "t (lanes)" in drawn and "shuffle, lane" in drawn


def test_machine_code_has_so_many_shuffles_and_no_memory_for_them() -> None:
    """A shuffle of 8 bytes is two; slots are registers: nothing is read from a thread's memory, or from shared memory."""
    kernels: list[k.Kernel] = []
    expected: dict[str, int] = {}
    for program in PROGRAMS:
        for dtype in ("i32", "f64"):
            (kernel,) = k.kernels(made(program, dtype=dtype).plan.steps)
            name = f"{program.name}_{dtype}"
            kernels.append(replace(kernel, name=name))
            expected[name] = unrolled(kernel.body) * (2 if dtype == "f64" else 1)
    first = made(PROGRAMS[0])
    text = print_kernels(replace(first.plan, steps=tuple(map(k.Launch, kernels))))
    whole = binary(first, "sm_90a", text)
    assert all(each.shared_bytes == 0 and each.stack_bytes == 0 for each in whole.kernels)
    try:
        code = disassemble(this_machine(), find_nvcc(this_machine()), whole)
    except TexprError as reason:
        pytest.skip(str(reason))
    parts = re.split(r"\.section\s+\.text\.(\w+)", code)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert found.keys() == expected.keys()
    for name, each in found.items():
        count, most = len(re.findall(r"\bSHFL\b", each)), expected[name]
        if name.startswith("last_"):  # of a mask that is not known ptxas makes two ways
            assert count in (most, 2 * most)
        elif name.startswith("slot_by_lane"):  # what is the same in each turn is read once
            assert most // 2 <= count <= most
        else:
            assert count == most, name
        assert not re.findall(r"\b(LDL|STL|LDS|STS|BAR)\b", each), name


def unrolled(body: tuple[k.Stmt, ...]) -> int:
    """How many shuffles stand in a kernel whose loops around them are written out."""
    total = 0
    for stmt in body:
        match stmt:
            case k.For():
                total += unrolled(stmt.body) * (stmt.hi - stmt.lo).constant
            case k.If():
                total += unrolled(stmt.then) + unrolled(stmt.orelse)
            case _:
                total += isinstance(stmt, k.Shuffle)
    return total
