"""The launcher against a driver that records: what is launched, what is refused, and that nothing else is done."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from tests.backends.tile_texts import BULK
from tests.backends.tiles import TILED

from texpr.affine.expr import Sym, expr
from texpr.backends.cuda.launcher import Image
from texpr.ir.kernel import Axis, HostStep, Launch, Level, Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.program import Monotone
from texpr.support.limits import LARGEST_INT
from texpr.support.record import replace

from .conftest import Launcher, Log, Make
from .plans import gather, saxpy, sweep

BAD_SIZE, WHERE_FAILS, NO_WORKSPACE, NOT_LOADED, NULL, MISALIGNED = -5, -6, -7, -8, -3, -4
NO_DRIVER, UNSUPPORTED, ASSUMPTION_FAILS, NO_TENSOR_MAPS = -1, -2, -9, -14
SIZES = "saxpy_0:4,8,8,8,4"
POINTERS = (None, None, None)


@pytest.fixture
def loaded(make_launcher: Make, log: Log) -> Iterator[Launcher]:
    """saxpy, loaded on device 0."""
    launcher = make_launcher([saxpy()])
    assert launcher.load() == 0
    log.lines()
    yield launcher
    assert launcher.unload() == 0


def arrays(*sizes: int) -> list[int]:
    """Addresses of memory that the driver knows."""
    found: list[int] = []
    driver = ctypes.CDLL(None) if not sizes else DRIVER["library"]
    for size in sizes:
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        found.append(address.value)
    return found


DRIVER: dict[str, ctypes.CDLL] = {}


@pytest.fixture(autouse=True)
def _driver(fake_driver: object) -> None:
    """The very library that the launchers use."""
    DRIVER.setdefault("library", ctypes.CDLL(str(fake_driver)))


def test_the_grid_covers_the_elements_and_arguments_are_in_order(loaded: Launcher, log: Log) -> None:
    log.setenv("KERNELS", SIZES)
    x, y, z = arrays(4000, 4000, 4000)
    log.lines()
    assert loaded(2.0, x, y, z, 1000, stream=0xABC) == 0
    (launch,) = log.launches()
    assert (launch["name"], launch["grid"], launch["block"], launch["stream"]) == ("saxpy_0", "4,1,1", "256,1,1", "0xabc")
    assert launch["arguments"] == f"40000000,{x:x},{y:x},{z:x},3e8"


def test_a_launch_does_nothing_but_launch(loaded: Launcher, log: Log) -> None:
    x, y, z = arrays(400, 400, 400)
    log.lines()
    assert loaded(2.0, x, y, z, 100) == 0
    assert [line.split()[0] for line in log.lines()] == ["cuLaunchKernel"]


def test_the_fake_driver_sees_a_wrong_pointer(loaded: Launcher, log: Log) -> None:
    log.setenv("KERNELS", SIZES)
    assert loaded(2.0, 1 << 20, 1 << 20, 1 << 20, 100) == 700


def test_nothing_is_launched_for_no_elements(loaded: Launcher, log: Log) -> None:
    assert loaded(2.0, *POINTERS, 0) == 0
    assert log.lines() == []


@pytest.mark.parametrize("n", [-1, 2**31, 2**62, -(2**63)])
def test_sizes_out_of_range(loaded: Launcher, log: Log, n: int) -> None:
    assert loaded(2.0, *POINTERS, n) == BAD_SIZE
    assert loaded.workspace_bytes(n)[0] == BAD_SIZE
    assert log.lines() == []


def test_null_and_misaligned_pointers(loaded: Launcher, log: Log) -> None:
    x, y, z = arrays(400, 400, 400)
    log.lines()
    assert loaded(2.0, x, None, z, 100) == NULL
    assert loaded(2.0, x, y, z + 2, 99) == MISALIGNED
    assert log.lines() == []


def test_every_pointer_may_be_null(make_launcher: Make, log: Log) -> None:
    """The place for the bytes of a workspace, each array in turn, and a workspace that is not needed, which may be anything."""
    launcher = make_launcher([sweep()])
    assert launcher.load() == 0
    sizes = (ctypes.c_int64(100), ctypes.c_int64(3))
    assert launcher.entry("_workspace_bytes")(*sizes, None) == NULL
    u, workspace = arrays(400, 1024)
    log.lines()
    assert launcher(None, 100, 3, workspace=workspace) == launcher.validate(None, 100, 3) == NULL
    assert log.lines() == [] and launcher(u, 100, 3) == NO_WORKSPACE and launcher.unload() == 0
    launcher = make_launcher([saxpy()])
    assert launcher.load() == 0
    given = arrays(400, 400, 400)
    for at in range(3):
        without = [None if which == at else address for which, address in enumerate(given)]
        assert launcher(2.0, *without, 100) == launcher.validate(2.0, *without, 100) == NULL
    assert launcher.entry("_workspace_bytes")(ctypes.c_int64(100), None) == NULL
    assert launcher(2.0, *given, 100, workspace=4) == 0 and launcher.unload() == 0


def test_an_alignment_that_the_text_promises(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([gather()])
    assert launcher.load() == 0
    x, at, z = arrays(400, 400, 400)
    assert launcher(x, at, z + 4, 10, 1) == MISALIGNED
    assert launcher(x, at, z + 16, 10, 1) == 0
    assert len(log.launches()) == 1 and launcher.unload() == 0


def test_a_grid_larger_than_the_device_takes_is_cut_into_slabs(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([saxpy(Sym("first"))])
    log.setenv("GRID", "3,65535,65535")
    log.setenv("KERNELS", "saxpy_0:4,8,8,8,4,4")
    assert launcher.load() == 0
    x, y, z = arrays(8000, 8000, 8000)
    assert launcher(1.0, x, y, z, 2000) == 0
    found = log.launches()
    assert [(one["grid"], one["arguments"].split(",")[-1]) for one in found] == [("3,1,1", "0"), ("3,1,1", "3"), ("2,1,1", "6")]
    assert launcher.unload() == 0


SLABS = """plan shift
    param x: i8[m * n + 1]
    result y: i8[m * n]
    size n, m
{
    launch shift_y
}

kernel shift_y
    buffer x: i8[m * n + 1]
    buffer y: i8[m * n] role result
    size i_base
    writes y
    axis grid.y i < m * n base i_base
{
    y[i] = x[i + 1]
}
"""


@pytest.mark.planted
def test_no_slab_has_a_block_that_index_arithmetic_does_not_reach(make_launcher: Make, log: Log) -> None:
    """The last block is 2³¹ − 2, so that the index behind it is still an `int`."""
    launcher = make_launcher([parse_plan(SLABS)])
    log.setenv("GRID", "65535,1073741824,65535")
    assert launcher.load() == 0
    x, y = arrays(2**31 + 1, 2**31)
    log.lines()
    assert launcher(x, y, 2**16, 2**15) == BAD_SIZE
    assert log.lines() == []
    assert launcher(x, y, 2, LARGEST_INT // 2) == 0
    assert [one["grid"] for one in log.launches()] == ["1,1073741824,1", "1,1073741822,1"] and launcher.unload() == 0


def clustered() -> Plan:
    """saxpy whose blocks run in pairs."""
    plan = saxpy(Sym("first"))
    (launch,) = plan.steps
    assert isinstance(launch, Launch)
    pairs = Axis(Sym("rank"), Level.CLUSTER, expr(2))
    return replace(plan, steps=(Launch(replace(launch.kernel, axes=(*launch.kernel.axes, pairs))),))


def test_slabs_are_whole_clusters(make_launcher: Make, log: Log) -> None:
    """Three blocks at most are one pair at a time; a grid that is none of whole pairs, the driver refuses."""
    launcher = make_launcher([clustered()])
    log.setenv("GRID", "3,65535,65535")
    log.setenv("KERNELS", "saxpy_0:4,8,8,8,4,4")
    assert launcher.load() == 0
    x, y, z = arrays(8000, 8000, 8000)
    assert launcher(1.0, x, y, z, 2000) == 0
    found = [(one["grid"], one["cluster"], one["arguments"].split(",")[-1]) for one in log.launches()]
    assert found == [("2,1,1", "2,1,1", first) for first in "0246"]
    assert launcher(1.0, x, y, z, 200) == 1
    assert launcher.unload() == 0


def test_a_grid_that_cannot_be_cut_is_refused_before_the_first_launch(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([sweep()])
    log.setenv("GRID", "3,65535,65535")
    assert launcher.load() == 0
    (u, workspace) = arrays(8000, 1 << 20)
    log.lines()
    assert launcher(u, 2000, 1, workspace=workspace) == BAD_SIZE
    assert log.lines() == []
    assert launcher(u, 768, 1, workspace=workspace) == 0
    assert len(log.launches()) == 2 and launcher.unload() == 0


def test_steps_of_the_host_and_the_workspace(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([sweep()])
    log.setenv("KERNELS", "sweep_0:8,8,4;sweep_1:8,8,4")
    assert launcher.load() == 0
    assert launcher.workspace_bytes(100, 3) == (0, 512 + 512)  # 101 and 100 floats, each at a multiple of 256 bytes
    assert launcher.workspace_bytes(0, 3) == (0, 256)
    u, workspace = arrays(400, 1024)
    assert launcher(u, 100, 2, workspace=workspace) == 0
    found = [(one["name"], one["arguments"]) for one in log.launches()]
    there, back = f"{u:x},{workspace + 512:x},64", f"{workspace + 512:x},{u:x},64"
    assert found == [("sweep_0", there), ("sweep_1", back)] * 2
    assert launcher(u, 100, 2) == NO_WORKSPACE
    assert launcher(u, 100, 2, workspace=workspace + 4) == MISALIGNED
    assert launcher(u, 98, 2, workspace=workspace) == launcher.workspace_bytes(98, 2)[0] == WHERE_FAILS
    assert launcher(u, 100, 0, workspace=workspace) == 0
    assert log.launches() == [] and launcher.unload() == 0


def test_a_launch_that_fails_ends_the_call(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([sweep()])
    assert launcher.load() == 0
    u, workspace = arrays(400, 1024)
    log.lines()
    log.setenv("FAIL", "cuLaunchKernel=719")
    assert launcher(u, 100, 2, workspace=workspace) == 719
    assert log.lines() == ["cuLaunchKernel fails=719"] and launcher.unload() == 0


def test_not_loaded(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([saxpy()])
    assert launcher(1.0, *POINTERS, 0) == NOT_LOADED
    assert launcher.load() == 0 and launcher(1.0, *POINTERS, 0) == 0
    assert launcher.unload() == 0 and launcher(1.0, *POINTERS, 0) == NOT_LOADED


def test_a_thread_without_a_context_is_told_so(loaded: Launcher) -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(loaded(1.0, *POINTERS, 0)))
    thread.start()
    thread.join()
    assert found == [NOT_LOADED]


def test_loading_twice_loads_once(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([saxpy()])
    assert launcher.load() == launcher.load() == 0
    lines = [line.split()[0] for line in log.lines()]
    assert lines.count("cuModuleLoadData") == 1
    assert launcher.unload() == 0
    lines = [line.split()[0] for line in log.lines()]
    assert lines.count("cuModuleUnload") == 1 and launcher.unload() == 0


def test_a_failed_load_leaves_nothing(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([saxpy()])
    for call, code in (("cuModuleLoadData", 218), ("cuModuleGetFunction", 500), ("cuDevicePrimaryCtxRetain", 2)):
        log.setenv("FAIL", f"{call}={code}")
        assert launcher.load() == code
        log.setenv("FAIL", "")
        assert launcher(1.0, *POINTERS, 0) == NOT_LOADED
    names = [line.split()[0] for line in log.lines() if "fails" not in line]
    assert names.count("cuModuleLoadData") == names.count("cuModuleUnload")
    retained, released = (names.count(f"cuDevicePrimaryCtx{what}") for what in ("Retain", "Release"))
    assert retained == released


def test_functions_do_not_take_the_context_from_each_other(make_launcher: Make, log: Log) -> None:
    one, other = make_launcher([saxpy()]), make_launcher([sweep()])
    assert one.load() == other.load() == 0
    log.lines()
    assert one.unload() == 0
    assert "cuDevicePrimaryCtxRelease device=0 references=0" not in log.lines()
    assert other(None, 0, 0, workspace=256) == 0 and other.unload() == 0
    assert "cuDevicePrimaryCtxRelease device=0 references=0" in log.lines()


def test_a_context_of_the_users_own_is_used(make_launcher: Make, log: Log) -> None:
    launcher, own, there = make_launcher([saxpy()]), ctypes.c_void_p(), ctypes.c_void_p()
    assert launcher.load() == 0
    assert DRIVER["library"].fake_make_context(ctypes.byref(own)) == 0
    assert DRIVER["library"].cuCtxSetCurrent(own) == 0
    assert launcher(1.0, *POINTERS, 0) == NOT_LOADED, "loaded in the primary context alone"
    assert launcher.load() == 0 and launcher(1.0, *POINTERS, 0) == 0
    DRIVER["library"].cuCtxGetCurrent(ctypes.byref(there))
    assert there.value == own.value
    assert launcher.unload() == 0
    assert DRIVER["library"].cuCtxSetCurrent(None) == 0


def test_each_device_has_its_own_module(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([saxpy()])
    log.setenv("DEVICES", "2")
    assert launcher.load(0) == launcher.load(1) == 0
    assert launcher.load(2) == 101
    loads = [line for line in log.lines() if line.startswith("cuModuleLoadData")]
    assert [line.split()[-1] for line in loads] == ["device=0", "device=1"]
    assert launcher.unload() == 0


IMAGES = [
    Image(8, 0, "", False, 0, "image_80"),
    Image(9, 0, "a", False, 1, "image_90a"),
    Image(8, 0, "", True, 0, "image_80_ptx"),
]


@pytest.mark.parametrize(
    ("capability", "grid"),
    [("8.0", "1,1,1"), ("8.6", "1,1,1"), ("8.9", "1,1,1"), ("9.0", "2,1,1"), ("10.0", "1,1,1"), ("7.5", None)],
)
def test_each_device_gets_the_code_made_for_it(make_launcher: Make, log: Log, capability: str, grid: str | None) -> None:
    launcher = make_launcher([saxpy(), saxpy(factor=2)], IMAGES)
    log.setenv("CAPABILITY", capability)
    assert launcher.entry("_supported")(0) == (0 if grid else UNSUPPORTED)
    assert launcher.load() == (0 if grid else UNSUPPORTED)
    if grid:
        x, y, z = arrays(2000, 2000, 2000)
        assert launcher(1.0, x, y, z, 200) == 0
        assert [one["grid"] for one in log.launches()] == [grid]
    assert launcher.unload() == 0


@pytest.mark.parametrize(("capability", "fits"), [("9.0", True), ("10.0", False), ("8.0", False)])
def test_code_for_one_generation_alone_says_so(make_launcher: Make, log: Log, capability: str, fits: bool) -> None:
    launcher = make_launcher([saxpy()])
    log.setenv("CAPABILITY", capability)
    assert launcher.entry("_supported")(0) == (0 if fits else UNSUPPORTED)


def test_no_driver(make_launcher: Make) -> None:
    launcher = make_launcher([saxpy()], library="libno_such_driver.so")
    assert launcher.load() == launcher(1.0, *POINTERS, 0) == launcher.entry("_supported")(0) == NO_DRIVER
    assert launcher.unload() == NO_DRIVER


@pytest.mark.parametrize(
    ("indices", "step", "status"),
    [
        ([2, 0, 1], 1, 0),
        ([2, 0, 3], 1, ASSUMPTION_FAILS),
        ([2, 0, -1], 1, ASSUMPTION_FAILS),
        ([2, 0, 2], 1, ASSUMPTION_FAILS),
        ([2, 9, 0, 9, 1], 2, 0),
        ([2, 0, 0, 2, 1], 2, 0),
        ([2, 0, 2, 0, 1], 2, ASSUMPTION_FAILS),
    ],
)
def test_validate_checks_what_is_assumed(make_launcher: Make, log: Log, indices: list[int], step: int, status: int) -> None:
    launcher = make_launcher([gather()])
    assert launcher.load() == 0
    data = np.array(indices, np.int32)
    x, at, z = arrays(400, data.nbytes, 400)
    DRIVER["library"].cuMemcpyHtoD_v2(ctypes.c_uint64(at), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))
    assert launcher.validate(x, at, z, 3, step) == status
    assert launcher.validate(None, None, None, 0, step) == 0
    assert launcher.unload() == 0


@pytest.mark.parametrize(
    ("indices", "step", "status"),
    [
        ([0, 0, 7], 1, 0),
        ([-4, -1, 2], 1, 0),
        ([0, 7, 6], 1, ASSUMPTION_FAILS),
        ([1, 9, 2, 0, 3], 2, 0),
        ([1, 1, 0], 1, ASSUMPTION_FAILS),
    ],
)
def test_validate_checks_an_order(make_launcher: Make, log: Log, indices: list[int], step: int, status: int) -> None:
    plan = gather()
    launcher = make_launcher([replace(plan, assumes=(Monotone(plan.params[1]),))])
    assert launcher.load() == 0
    data = np.array(indices, np.int32)
    x, at, z = arrays(400, data.nbytes, 400)
    DRIVER["library"].cuMemcpyHtoD_v2(ctypes.c_uint64(at), ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))
    assert launcher.validate(x, at, z, 3, step) == status
    assert launcher.unload() == 0


def test_threads_load_and_launch_at_the_same_time(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([saxpy()])
    assert launcher.load() == 0  # memory needs a context
    x, y, z = arrays(4000, 4000, 4000)
    assert launcher.unload() == 0
    log.lines()
    wrong: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for _ in range(50):
            codes = {launcher.load(), launcher(1.0, x, y, z, 1000)}
            wrong.extend(code for code in codes if code != 0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line.split()[0] for line in log.lines()]
    assert not wrong
    assert lines.count("cuLaunchKernel") == 200 and lines.count("cuModuleLoadData") == 1
    assert launcher.unload() == 0


def test_every_status_says_something(loaded: Launcher) -> None:
    told = loaded.library.texpr_status_string
    told.restype = ctypes.c_char_p
    texts = [told(code) for code in range(0, -11, -1)]
    assert len(set(texts)) == len(texts) and told(719) == b"CUDA driver: launch failure"
    assert b"CUDA driver" in told(12345) and told(-999) == b"unknown status"


def test_a_driver_that_encodes_no_maps_is_told_of_before_the_first_launch(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([TILED["store"].plan])
    assert launcher.load() == 0
    x, z = arrays(4 * 19 * 44, 4 * 19 * 44)
    log.lines()
    assert launcher(x, z, 19, 44) == NO_TENSOR_MAPS
    assert log.lines() == []
    assert launcher.unload() == 0


def test_more_shared_memory_than_is_declared_is_asked_for(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([parse_plan(BULK.replace("tile: f32[64]", "tile: f32[20000]"))])
    assert launcher.load() == 0
    assert "cuFuncSetAttribute name=bulk_0 attribute=8 value=80008" in log.lines()
    x, z = arrays(4 * 64, 4 * 64)
    assert launcher(x, z, 1) == 0
    (launch,) = log.launches()
    assert launch["shared"] == "80008" and launcher.unload() == 0


def dependent(plan: Plan) -> Plan:
    """The same plan, each launch of which may start before the one before it has ended."""

    def early(step: HostStep) -> HostStep:
        return replace(step, dependent=True) if isinstance(step, Launch) else replace(step, steps=tuple(map(early, step.steps)))

    return replace(plan, steps=tuple(map(early, plan.steps)))


def test_the_first_launch_of_a_call_waits_for_all_before_it(make_launcher: Make, log: Log) -> None:
    """So it does in each call, wherever its step stands: a launch of no blocks is none."""
    launcher = make_launcher([dependent(sweep())])
    assert launcher.load() == 0
    (u,), (workspace,) = arrays(16), arrays(1024)
    for _ in range(2):
        log.lines()
        assert launcher(u, 4, 2, workspace=workspace) == 0
        found = [(each["name"], each.get("dependent")) for each in log.launches()]
        assert found == [("sweep_0", None), ("sweep_1", "1"), ("sweep_0", "1"), ("sweep_1", "1")]
    log.lines()
    assert launcher(u, 0, 2, workspace=workspace) == 0
    assert log.lines() == [] and launcher.unload() == 0


def test_each_launch_begins_behind_the_one_before_where_none_is_dependent(make_launcher: Make, log: Log) -> None:
    launcher = make_launcher([sweep()])
    assert launcher.load() == 0
    (u,), (workspace,) = arrays(16), arrays(1024)
    log.lines()
    assert launcher(u, 4, 2, workspace=workspace) == 0
    assert [line.split()[0] for line in log.lines()] == ["cuLaunchKernel"] * 4 and launcher.unload() == 0


def test_slabs_of_a_dependent_launch_are_dependent(make_launcher: Make, log: Log) -> None:
    plan = saxpy(Sym("first"))
    launcher = make_launcher([dependent(replace(plan, steps=plan.steps * 2))])
    log.setenv("GRID", "3,65535,65535")
    assert launcher.load() == 0
    assert launcher(1.0, *arrays(8000, 8000, 8000), 1000) == 0
    assert [each.get("dependent") for each in log.launches()] == [None, "1", "1", "1"] and launcher.unload() == 0


def test_clusters_may_be_dependent(make_launcher: Make, log: Log) -> None:
    plan = clustered()
    launcher = make_launcher([dependent(replace(plan, steps=plan.steps * 2))])
    assert launcher.load() == 0
    assert launcher(1.0, *arrays(4096, 4096, 4096), 1024) == 0
    found = [(each["cluster"], each.get("dependent")) for each in log.launches()]
    assert found == [("2,1,1", None), ("2,1,1", "1")] and launcher.unload() == 0
