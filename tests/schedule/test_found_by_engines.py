"""What random schedules with engines found, each as its least schedule."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.laid import laid, wrong

from texpr.support.diagnostic import TexprError

TURNED = """
fn turned(x: i32[4, 4] align(16)): i32[4, 4] {
    new y: i32[4, 4]
    par 4 |i| { par 4 |j| { y[j, i] = x[i, j] } }
    return y
}"""
SCALED = """
fn scaled(a: f32, x: f32[n] align(16)): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = a * x[i] }
    return y
}"""


@pytest.mark.parametrize("factor", [4, 8, 16])
def test_a_run_ends_where_the_tensor_does(factor: int) -> None:
    """Its length is a number that is less than the region's; it stored the whole of a row of the tile."""
    words = (
        f"split(i, {factor}) -> (b, t)  split(j, 4) -> (c, u)  reorder(b, c, t, u)\nstage(y, at=c, in=shared, via=bulk) -> ys"
    )
    made = laid(TURNED, words)
    assert wrong(made, {"x": np.arange(16, dtype=np.int32).reshape(4, 4)}, {}, (None, 0)) is None


@pytest.mark.parametrize("via", ["tma", "bulk"])
def test_a_number_is_no_box(via: str) -> None:
    with pytest.raises(TexprError, match="`a` is a single number") as refused:
        laid(SCALED, f"split(i, 4) -> (b, t)  stage(a, at=b, in=shared, via={via}) -> held")
    assert refused.value.diagnostics[0].code == "E0916"


PLANES = """
fn planes(x: i32[K, 8, 12] align(16)): i32[8, 12] {
    new y: i32[8, 12]
    par 8 |i| {
        par 12 |j| {
            new s: i32
            s = 0
            seq K |q| reduce(s) { s += x[q, i, j] }
            y[i, j] = s
        }
    }
    return y
}"""


PARTED = """split(i, 2) -> (b, t)  split(j, 4) -> (c, u)  split(q, 2) -> (o, p)  reorder(b, c, o, t, u, p)
    stage(x, at=o, in=shared, via=tma) -> xs  partition(o)  pipeline(o, stages={stages})"""


@pytest.mark.parametrize("planes", [4, 8, 12])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_parted_loop_copies_what_the_next_loop_uses(stages: int, planes: int) -> None:
    """Its copies are used behind it alone, yet each of its turns begins the next phase of their barrier."""
    made = laid(PLANES.replace("K", str(planes)), PARTED.format(stages=stages))
    assert wrong(made, {"x": np.arange(planes * 96, dtype=np.int32).reshape(planes, 8, 12)}, {}, (None, 0, 1)) is None


@pytest.mark.parametrize("planes", ["K", "3", "9"])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_copies_of_two_parted_loops_are_no_ring(stages: int, planes: str) -> None:
    """What the second loop uses first was copied by the first one, what it uses later by itself."""
    with pytest.raises(TexprError, match="is not a function of the loops around") as refused:
        laid(PLANES.replace("K", planes), PARTED.format(stages=stages))
    assert refused.value.diagnostics[0].code == "E0916"


SUMS = """
fn sums(x: i32[m, k] align(16)): i32[k]
    where k % 4 == 0
{
    new y: i32[k]
    par k |j| {
        new s: i32 = 0
        seq m |i| reduce(s) { s += x[i, j] }
        y[j] = s
    }
    return y
}"""
RUNS = """split(j, {wide}) -> (b, t)  split(i, 2) -> (o, p)  reorder(b, o, t, p)  bind(b, grid.x)  cluster(b, {blocks})
    stage(x, at=o, in=shared, via={via}) -> xs  bind(t, block.x)"""


@pytest.mark.parametrize("via", ["bulk", "tma"])
@pytest.mark.parametrize("blocks", [2, 4])
@pytest.mark.parametrize("columns", ["k", "36"])
@pytest.mark.parametrize("wide", [4, 32])
def test_blocks_that_fill_up_a_cluster_copy_no_runs(wide: int, columns: str, blocks: int, via: str) -> None:
    """Where their run would lie there is nothing of the tensor; they asked for less than no bytes, and waited for ever."""
    text = SUMS if columns == "k" else SUMS.replace("[m, k]", "[m, 36]").replace("[k]", "[36]").replace("par k", "par 36")
    made = laid(text.replace("where k % 4 == 0", "" if columns == "36" else "where k % 4 == 0"), RUNS.format(**locals()))
    for k in (36,) if columns == "36" else (0, 4, 8, 36):
        x = np.arange(3 * k, dtype=np.int32).reshape(3, k)
        assert wrong(made, {"x": x}, {}, (None, 0)) is None, k


@pytest.mark.parametrize("via", ["tma", "bulk"])
def test_a_tile_of_an_engine_stays_in_shared_memory(via: str) -> None:
    """It was a bug of the compiler, said the verifier of kernels."""
    with pytest.raises(TexprError, match="copies between global and shared memory alone") as refused:
        laid(TURNED, f"split(i, 4) -> (b, t)  stage(x, at=b, in=shared, via={via}) -> xs  place(xs, workspace)")
    assert refused.value.diagnostics[0].code == "E0913"


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_sum_in_the_workspace_is_proved(blocks: int) -> None:
    """Its store was taken for that of the result, and a register for one that others copy to. The proof is `tests/proofs.py`."""
    cluster = f"cluster(b, {blocks})" if blocks > 1 else ""
    words = f"""split(j, 4) -> (b, t)  split(i, 2) -> (o, p)  reorder(b, o, t, p)  bind(b, grid.x)  {cluster}
        stage(x, at=o, in=shared, via=tma, fill=zero) -> xs  place(s, workspace)"""
    made = laid(SUMS, words)
    assert wrong(made, {"x": np.arange(60, dtype=np.int32).reshape(5, 12)}, {}, (None, 0)) is None
