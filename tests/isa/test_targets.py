"""Targets and memories: facts against a table typed apart, and look-ups that fail well."""

from __future__ import annotations

from pathlib import Path

import pytest

from texpr.isa import targets
from texpr.isa.cuda import CLUSTER, TCGEN05, TMA, TMA_ROWS, WGMMA
from texpr.isa.gather import gather
from texpr.isa.instruction import capability
from texpr.isa.levels import Level, Space
from texpr.isa.memories import MEMORIES
from texpr.isa.registry import TARGETS, resolve
from texpr.isa.target import Target
from texpr.support.diagnostic import Limitation

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the same bytes stand in CUTLASS,
# include/cutlass/arch/arch.h, for sm_100 (232448) and sm_120 (101376).
SHEET = {
    # name: shared bytes of a block, of a multiprocessor (KiB), threads and blocks of a multiprocessor, first PTX
    "sm_80": (166912, 164, 2048, 32, (7, 0)),
    "sm_86": (101376, 100, 1536, 16, (7, 1)),
    "sm_89": (101376, 100, 1536, 24, (7, 8)),
    "sm_90": (232448, 228, 2048, 32, (7, 8)),
    "sm_90a": (232448, 228, 2048, 32, (8, 0)),
    "sm_100a": (232448, 228, 2048, 32, (8, 6)),
    "sm_103a": (232448, 228, 2048, 32, (8, 8)),
    "sm_120a": (101376, 100, 1536, 24, (8, 7)),
}


@pytest.mark.parametrize("name", sorted(SHEET))
def test_facts_of_a_device(name: str) -> None:
    shared, multiprocessor, threads, blocks, ptx = SHEET[name]
    target = resolve(name)
    assert name == f"sm_{target.capability[0]}{target.capability[1]}{'a' * target.exact}"
    assert (target.name, target.family, target.backend, target.has_blocks) == (name, "cuda", "cuda", True)
    assert (target.shared, target.shared_multiprocessor) == (shared, multiprocessor * 1024)
    assert (target.resident_threads, target.resident_blocks, target.ptx) == (threads, blocks, ptx)
    assert (target.warp, target.max_threads, target.max_block) == (32, 1024, (1024, 1024, 64))
    assert target.max_grid == (2147483647, 65535, 65535) and target.shared_static == 49152
    assert (target.registers_thread, target.registers_block, target.align, target.vector) == (255, 65536, 256, 16)


def test_every_target_is_in_the_sheet() -> None:
    assert set(TARGETS) == {*SHEET, "cpu", "cpu_avx512", "cpu_avx512_bf16"}


def test_clusters_begin_with_hopper() -> None:
    for name in SHEET:
        target, hopper = resolve(name), capability(name) >= 90
        assert (Level.CLUSTER in target.levels) == (CLUSTER in target.features) == (TMA in target.features) == hopper
        assert target.max_cluster == (8 if hopper else 1)
    assert {name for name in SHEET if WGMMA in resolve(name).features} == {"sm_90a"}
    assert {name for name in SHEET if TCGEN05 in resolve(name).features} == {"sm_100a", "sm_103a"}
    assert {name for name in SHEET if TMA_ROWS in resolve(name).features} == {"sm_100a", "sm_103a"}


def test_a_cpu_has_cores_and_lanes() -> None:
    cpu = resolve("cpu")
    assert cpu.levels == (Level.CORE, Level.THREAD, Level.LANE) and not cpu.has_blocks and cpu.family == cpu.backend == "cpu"
    assert cpu.align == 64 and cpu.max_threads == 1 and str(cpu) == "cpu"
    wide = resolve("cpu_avx512")
    assert (wide.levels, wide.family, wide.align) == (cpu.levels, cpu.family, cpu.align)
    assert (cpu.vector, cpu.vectors, wide.vector, wide.vectors) == (32, 16, 64, 32)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sm90a", "did you mean `sm_90a`?"),
        ("CPU", "the targets are "),
        ("sm_100", "did you mean `sm_100a`?"),
        ("", "the targets are"),
    ],
)
def test_unknown_target(name: str, hint: str) -> None:
    with pytest.raises(Limitation) as caught:
        resolve(name)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("E0580", f"there is no target `{name}`")
    assert found.help is not None and found.help.startswith(hint)


def test_each_file_is_a_target_of_its_name() -> None:
    (folder,) = targets.__path__
    assert {path.stem for path in Path(folder).glob("*.py")} - {"__init__"} == set(TARGETS)


def test_gathering_refuses_another_kind_of_record() -> None:
    with pytest.raises(TypeError, match=r"texpr.isa.targets.cpu.TARGET is not a int"):
        list(gather(targets.__name__, targets.__path__, "TARGET", int))
    assert [each.name for each in gather(targets.__name__, targets.__path__, "TARGET", Target)] == list(TARGETS)


def test_memories() -> None:
    assert set(MEMORIES) == set(Space)
    shared, memory = MEMORIES[Space.SHARED], MEMORIES[Space.GLOBAL]
    assert (shared.banks, shared.bank_width, shared.shared_by) == (32, 4, Level.BLOCK)
    assert (memory.sector, memory.line, memory.shared_by) == (32, 128, Level.GRID)
