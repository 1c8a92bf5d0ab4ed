"""A machine is a record: programs compile, verify and run for warps of 16 lanes, and for sectors of 16 bytes.

Nobody makes such machines, and nothing is said of them anywhere else. The emulator is told the same numbers, and refuses
kernels for warps of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from tests.kept import EMULATED
from tests.schedule.laid import in_shared

from references import BY_NAME, distance
from texpr import driver, runtime
from texpr.backends.cuda import headers, print_kernels
from texpr.emulator import IN_ORDER, LOCKSTEP, build
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.isa.levels import WARP
from texpr.isa.registry import TARGETS, resolve
from texpr.isa.target import Target
from texpr.lowering.lower import lower
from texpr.mapping.cost.access import accesses
from texpr.proof.search import proved
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

REAL = resolve("sm_80")
NARROW = replace(REAL, name="narrow", warp=16)
FINE = replace(REAL, name="fine", global_memory=replace(REAL.global_memory, sector=16))
MACHINES = (NARROW, FINE)
PROGRAMS = ("saxpy", "transpose", "sum", "softmax", "matmul")
ORDERS = (IN_ORDER, LOCKSTEP, *range(3))

TURNED = "fn turned(A: f32[n, m]): f32[m, n] { new B: f32[m, n] par m |j| { par n |i| { B[j, i] = A[i, j] } } return B }"
MET = """fn met(x: f32[32], inout y: f32[32]) {
    par 1 |b| {
        new v: f32[32]
        par 32 |j| { v[j] = x[j] }
        par 32 |j| { y[j] = v[31 - j] }
    }
}"""
STRIDED = "fn strided(x: f32[1024], inout y: f32[256]) { par 256 |i| { y[i] = x[4 * i] } }"


@pytest.fixture(autouse=True)
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The made-up machines, beside those that are."""
    for each in MACHINES:
        monkeypatch.setitem(TARGETS, each.name, each)
    yield


@cache
def tools() -> Toolchain:
    """This machine's compilers."""
    return Toolchain(this_machine())


def warps(plan: k.Plan) -> set[int]:
    """Lanes of the warps of kernels that have threads."""
    return {kernel.warp for kernel in k.kernels(plan.steps) if kernel.threads > 1}


@pytest.mark.parametrize("schedule", ["auto", "none"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_programs_compile_verify_and_run(machine: Target, name: str, schedule: str) -> None:
    example = BY_NAME[name]
    sizes = example.small[-1]
    consts, rest = example.split(sizes)
    function = driver.parse(example.path.read_text(encoding="utf-8"), consts)[example.function]
    compiled = driver.lower(function, machine.name, schedule="auto" if schedule == "auto" else None)
    assert warps(compiled.plan) == {machine.warp}
    verify(compiled.plan, machine)
    verify(parse_plan(plan_text(compiled.plan)), machine)
    proved(compiled.function, compiled.plan).require(False)
    arrays = example.make(np.random.default_rng(1), sizes)
    expected = example.reference(arrays, sizes)
    kernel = runtime.load_emulated(tools(), compiled.function, compiled.plan, machine.name)
    for order in ORDERS:
        kernel.seed = order
        given = {param.name: np.array(arrays[param.name]) for param in kernel.function.params}
        returned = kernel(*given.values(), **{sym.name: rest[sym.name] for sym in kernel.function.sizes})
        several = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
        found = {buffer.name: np.asarray(value) for buffer, value in zip(kernel.function.results, several, strict=True)}
        found |= {param.name: given[param.name] for param in kernel.function.params if param.role == "inout"}
        for result, wanted in expected.items():
            assert distance(found[result], wanted, example.floor) <= example.ulp, (result, order)


@pytest.mark.parametrize(("target", "side"), [("sm_80", 32), ("narrow", 16)])
def test_what_is_turned_round_is_as_wide_as_a_warp(target: str, side: int) -> None:
    """The planner's tile of shared memory, the lanes that join a sum, and how many warps leave a part of it."""
    planned = driver.lower(driver.parse(TURNED)["turned"], target, schedule="auto")
    tiles = [a.buffer.shape for kernel in k.kernels(planned.plan.steps) for a in kernel.arrays if a.space is k.Space.SHARED]
    assert [tuple(map(str, shape)) for shape in tiles] == [(str(side), str(side + 1))]
    summed = driver.lower(driver.parse(BY_NAME["sum"].path.read_text(encoding="utf-8"))["sum"], target)
    (first, *_) = k.kernels(summed.plan.steps)
    exchanges = [s for s in k.walk(first.body) if isinstance(s, k.Exchange)]
    assert exchanges and {(s.width, s.mask) for s in exchanges} == {(side, side // 2)}
    assert [str(a.buffer.shape[0]) for a in first.arrays if a.space is k.Space.SHARED] == [str(first.threads // side)]


def test_a_text_for_narrow_warps_says_so_and_no_other_does() -> None:
    """Of 32 lanes nothing is said: texts of targets that are stay as they were."""
    function = driver.parse(BY_NAME["sum"].path.read_text(encoding="utf-8"))["sum"]
    for target, said in (("sm_80", False), ("narrow", True), ("fine", False)):
        compiled = driver.lower(function, target)
        assert (compiled.source.startswith("#define TX_WARP 16u\n"), "warp 16" in plan_text(compiled.plan)) == (said, said)
        assert ("0xffffffffu" in compiled.source) != said and ("0xffffu" in compiled.source) == said


def test_a_kernel_for_other_warps_is_refused() -> None:
    """By the verifier, the printer and the emulator: what is right for 16 lanes may be wrong for 32."""
    plan = driver.lower(driver.parse(BY_NAME["sum"].path.read_text(encoding="utf-8"))["sum"], "narrow").plan
    with pytest.raises(CompilerBug, match="warps of 16 lanes, sm_80 has 32"):
        verify(plan, REAL)
    with pytest.raises(CompilerBug, match="has warps of 16 lanes, and sm_80 of 32"):
        print_kernels(plan, REAL)
    compiled = driver.lower(driver.parse(STRIDED)["strided"], "narrow")
    (kernel,) = k.kernels(compiled.plan.steps)
    arrays = np.zeros(1024, np.float32), np.zeros(256, np.float32)
    narrow, real = (build(compiled.source, headers(), EMULATED, machine=each.coalescing) for each in (NARROW, REAL))
    assert narrow.launch(kernel.name, 1, kernel.threads, arrays) == []
    with pytest.raises(CompilerBug, match="no kernel"):
        real.launch(kernel.name, 1, kernel.threads, arrays)


@pytest.mark.parametrize(("machine", "level"), [(REAL, k.Level.WARP), (NARROW, k.Level.BLOCK)], ids=str)
def test_threads_of_two_warps_meet_as_a_block(machine: Target, level: k.Level) -> None:
    """What 32 threads leave for each other: lanes of one warp, or of two, which then race where each warp waits for itself."""
    function = in_shared(driver.parse(MET)["met"])
    plan, _ = lower(function, machine)
    verify(plan, machine)
    proved(function, plan).require(False)
    (kernel,) = k.kernels(plan.steps)
    assert [s.level for s in k.walk(kernel.body) if isinstance(s, k.Barrier)] == [level]
    text, mask = print_kernels(plan, machine), f"__syncwarp({(1 << machine.warp) - 1:#x}u);"
    for barrier, races in (("", False), (mask, level is k.Level.BLOCK)):
        changed = text.replace("__syncthreads();", barrier) if barrier else text
        module = build(changed, headers(), EMULATED, machine=machine.coalescing)
        x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
        reports = [r for order in ORDERS for r in module.launch(kernel.name, 1, kernel.threads, [x, y], seed=order)]
        assert bool(reports) == races
        assert races or np.array_equal(y, x[::-1])


def _wider(kernel: k.Kernel) -> k.Kernel:
    return replace(kernel, warp=WARP)


def _met_by_more(kernel: k.Kernel) -> k.Kernel:
    return replace(kernel, body=(k.Barrier(k.Level.WARP), *kernel.body))


def _exchanged_by_more(kernel: k.Kernel) -> k.Kernel:
    def changed(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        found: list[k.Stmt] = []
        for stmt in body:
            match stmt:
                case k.For():
                    found.append(replace(stmt, body=changed(stmt.body)))
                case k.If():
                    found.append(replace(stmt, then=changed(stmt.then), orelse=changed(stmt.orelse)))
                case k.Exchange():
                    found.append(replace(stmt, mask=16, width=32))
                case _:
                    found.append(stmt)
        return tuple(found)

    return replace(kernel, body=changed(kernel.body))


@pytest.mark.parametrize("change", [_wider, _met_by_more, _exchanged_by_more])
def test_lanes_that_a_warp_does_not_have_are_found(change: Callable[[k.Kernel], k.Kernel]) -> None:
    compiled = driver.lower(driver.parse(BY_NAME["sum"].path.read_text(encoding="utf-8"))["sum"], "narrow")
    steps = tuple(k.Launch(change(kernel)) for kernel in k.kernels(compiled.plan.steps))
    plan = replace(compiled.plan, steps=steps)
    with pytest.raises(CompilerBug):
        verify(plan, NARROW)


@pytest.mark.parametrize("machine", [*MACHINES, REAL], ids=str)
def test_requests_are_counted_in_the_machine_s_sectors(machine: Target) -> None:
    """What is said of a kernel is what the emulator counts, and by hand: lanes that are 16 bytes apart."""
    compiled = driver.lower(driver.parse(STRIDED)["strided"], machine.name)
    (kernel,) = k.kernels(compiled.plan.steps)
    module = build(compiled.source, headers(), EMULATED, machine=machine.coalescing)
    x, y = np.zeros(1024, np.float32), np.zeros(256, np.float32)
    module.launch(kernel.name, 1, kernel.threads, [x, y], count=True)
    counted = module.counts()[kernel.name]
    load, store = accesses(kernel, machine.coalescing)
    requests = 256 // machine.warp
    assert (load.lanes, load.sectors) == (machine.warp, machine.warp * 16 // machine.global_memory.sector)
    assert counted.global_load_sectors == requests * (load.sectors or 0)
    assert counted.global_store_sectors == requests * (store.sectors or 0)
    assert counted.global_load_lines == requests * (load.lines or 0)
