"""What automatic schedules move, as the emulator counts it, against the formulas of tiles that an engineer would take."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import module, run_plan
from tests.planner.programs import BATCHED, CONV, JACOBI, MATMUL, VALID, arrays_of, built, function

from texpr.driver import Compiled, lower
from texpr.support.record import as_dict

SECTOR = 32


def counted(compiled: Compiled, text: str, sizes: dict[str, int], but: str | None = None) -> dict[str, int]:
    """Bytes of global memory, read and written in sectors, and bank conflicts, of all kernels but one."""
    emulated = module(compiled.source)
    emulated.clear_counts()
    arrays = {name: np.zeros_like(array) for name, array in arrays_of(function(text), sizes).items()}
    assert run_plan(compiled.function, compiled.plan, arrays, sizes, count=True).reports == []
    found = {"bytes": 0, "conflicts": 0}
    for name, each in emulated.counts().items():
        if name == but:
            continue
        data = as_dict(each)
        found["bytes"] += SECTOR * (data["global_load_sectors"] + data["global_store_sectors"])
        found["conflicts"] += each.bank_conflicts
    return found


def product(m: int, n: int, k: int) -> int:
    """Bytes of tiles of 64 × 64 × 16 of f32: each block brings its strips of A and of B, and writes its tile of C."""
    blocks = -(-m // 64) * -(-n // 64)
    return 4 * (blocks * k * (64 + 64) + m * n)


def stencil(h: int, w: int, tile: int, halo: int) -> int:
    """Bytes of square tiles of f32 cells: each block brings its tile with the halo, and writes its tile."""
    blocks = -(-h // tile) * -(-w // tile)
    return 4 * (blocks * (tile + halo) ** 2 + h * w)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_matmul(target: str) -> None:
    sizes = {"M": 256, "N": 256, "K": 64}
    found = counted(built(MATMUL, (), target), MATMUL, sizes)
    assert found["bytes"] <= 1.3 * product(256, 256, 64)
    assert found["conflicts"] == 0


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_convolution(target: str) -> None:
    """Of an image with zeros around, and of whole tiles of one without."""
    found = counted(built(CONV, (), target), CONV, {"H": 256, "W": 256})
    assert found["bytes"] <= 1.3 * stencil(256, 256, 16, 2)
    found = counted(built(VALID, (), target), VALID, {"H": 258, "W": 258})
    assert found["bytes"] <= 1.3 * stencil(256, 256, 16, 2)
    assert found["conflicts"] == 0


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_jacobi(target: str) -> None:
    """Four sweeps of whole tiles; the copies before them are not tiled."""
    found = counted(built(JACOBI, (), target), JACOBI, {"H": 258, "W": 258}, "jacobi_now")
    assert found["bytes"] <= 1.3 * 4 * stencil(256, 256, 32, 2)
    assert found["conflicts"] == 0


def test_rows_of_wide_elements_are_made_longer_only_where_banks_conflict() -> None:
    """Elements of 8 bytes are served in halves of a warp: rows of 16 of them lie in all banks as they are."""
    text = BATCHED.replace("f32", "f64").replace("+=", "-=")  # which no instruction of lanes does
    compiled = built(text)
    assert compiled.schedule is not None
    assert not [each for each in compiled.schedule.directives if each.name == "resize"]
    found = counted(compiled, text, {"B": 2, "M": 64, "N": 64, "K": 32})
    assert found["conflicts"] == 0


def test_the_count_can_tell() -> None:
    """Without the tiles, the same programs move far more."""
    found = counted(lower(function(MATMUL), "sm_90a"), MATMUL, {"M": 256, "N": 256, "K": 64})
    assert found["bytes"] > 10 * product(256, 256, 64)
    found = counted(lower(function(JACOBI), "sm_90a"), JACOBI, {"H": 258, "W": 258}, "jacobi_now")
    assert found["bytes"] > 1.3 * 4 * stencil(256, 256, 32, 2)


def test_batches() -> None:
    sizes = {"B": 2, "M": 128, "N": 128, "K": 32}
    found = counted(built(BATCHED), BATCHED, sizes)
    assert found["bytes"] <= 1.3 * 2 * product(128, 128, 32)
    assert found["conflicts"] == 0


def test_the_model_says_what_is_counted() -> None:
    """Bytes of whole tiles, where sizes are known: the model's number is the emulator's."""
    sizes = {"M": 1024, "N": 512, "K": 16}
    compiled = built(MATMUL, tuple(sizes.items()))
    assert compiled.planned is not None
    (chosen,) = compiled.planned.nests
    assert chosen.candidate is not None
    emulated = module(compiled.source)
    emulated.clear_counts()
    arrays = {name: np.zeros_like(array) for name, array in arrays_of(function(MATMUL), sizes).items()}
    assert run_plan(compiled.function, compiled.plan, arrays, {}, count=True).reports == []
    (found,) = emulated.counts().values()
    moved = SECTOR * (found.global_load_sectors + found.global_store_sectors)
    assert moved == chosen.candidate.moved + chosen.candidate.direct


@pytest.mark.long
def test_matmul_of_1024() -> None:
    """Whole: 1024 cubed, sizes open and fixed at build."""
    sizes = {"M": 1024, "N": 1024, "K": 1024}
    found = counted(built(MATMUL), MATMUL, sizes)
    assert found["bytes"] <= 1.3 * product(1024, 1024, 1024)
    assert found["conflicts"] == 0
