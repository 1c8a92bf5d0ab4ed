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
    text, words = PLANES.replace("K", planes), PARTED.format(stages=stages)
    why = (
        "loops over `o` and `o_1` copy it in turn, and one uses what another"
        if planes != "K"
        else "is not the number of its slot"
    )
    with pytest.raises(TexprError, match=why) as refused:
        laid(text, words)
    assert refused.value.diagnostics[0].code == "E0916"
    assert refused.value.diagnostics[0].help == "stage it by via=cp_async"
    made = laid(text, words.replace("tma", "cp_async"))
    for count in (1, 2, 9) if planes == "K" else (int(planes),):
        assert wrong(made, {"x": np.arange(count * 96, dtype=np.int32).reshape(count, 8, 12)}, {}, (None, 0)) is None


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
    """Its store was taken for that of the result. `tests/proofs.py` has the proof."""
    cluster = f"cluster(b, {blocks})" if blocks > 1 else ""
    words = f"""split(j, 4) -> (b, t)  split(i, 2) -> (o, p)  reorder(b, o, t, p)  bind(b, grid.x)  {cluster}
        stage(x, at=o, in=shared, via=tma, fill=zero) -> xs  place(s, workspace)"""
    made = laid(SUMS, words)
    assert wrong(made, {"x": np.arange(60, dtype=np.int32).reshape(5, 12)}, {}, (None, 0)) is None


@pytest.mark.parametrize("columns", ["m", "4"])
@pytest.mark.parametrize("blocks", [2, 4])
def test_blocks_that_fill_up_a_cluster_load_nothing_that_others_store(blocks: int, columns: str) -> None:
    """Their boxes were outside of the rows, which is inside of the next ones where the tensor was taken for one row."""
    text = f"""
    fn rows(inout a: i32[n, {columns}] align(16)){"where m % 4 == 0" if columns == "m" else ""} {{
        par n |i| {{ par {columns} |j| {{ a[i, j] = a[i, j] * 2 + i32(j) }} }}
    }}"""
    words = f"""split(i, 1) -> (b, t)  split(j, 4) -> (c, u)  reorder(b, c, t, u)  bind(b, grid.y)  bind(c, grid.z)
        cluster(c, {blocks})  stage(a, at=c, in=shared, via=tma) -> tile"""
    for m in (4, 12) if columns == "m" else (int(columns),):
        a = np.arange(4 * m, dtype=np.int32).reshape(4, m)
        assert wrong(laid(text, words), {"a": a}, {}, (None, 0)) is None


UNUSED = """
fn unused(x: i32[40], q: i32[8] align(16)): i32[40] {
    new p: i32[40]
    par 40 |i| {
        new v: i32 = 1
        seq 6 |e| reduce(v) { v min= USE }
        p[i] = x[i] + v
    }
    return p
}"""


@pytest.mark.parametrize("use", ["select(i >= 40, q[e], i)", "select(e >= 6, q[e], i)", "q[e]"])
@pytest.mark.parametrize("factor", [1, 2, 4])
@pytest.mark.parametrize("via", ["tma, fill=zero", "bulk", "tma"])
def test_a_copy_that_nobody_uses_has_phases_all_the_same(via: str, factor: int, use: str) -> None:
    """One thread began its next phase before all had seen the last one, for which some then waited for ever."""
    words = (
        f"split(i, 64) -> (b, t)  split(e, {factor}) -> (o, f)  reorder(b, o, t, f)  stage(q, at=o, in=shared, via={via}) -> qs"
    )
    if factor < 4:
        with pytest.raises(TexprError, match="16"):
            laid(UNUSED.replace("USE", use), words)
        return
    made = laid(UNUSED.replace("USE", use), words)
    assert wrong(made, {"x": np.arange(40, dtype=np.int32), "q": np.arange(-3, 5, dtype=np.int32)}, {}) is None


FLAT = """
fn flat(x: i32[n, m] align(16)): i32[m, n]
    where m % 4 == 0, n % 4 == 0
{
    new y: i32[m, n]
    par n |i| { par m |j| { y[j, i] = x[i, j] } }
    return y
}"""


@pytest.mark.parametrize("via", ["ld", "cp_async", "tma"])
@pytest.mark.parametrize("columns", [4, 6, 8])
def test_arrays_of_two_arms_need_no_order(columns: int, via: str) -> None:
    """They share bytes, and one pass runs one arm: between the two there was no place for a wait."""
    words = f"""split(i, 8) -> (b, t)  split(b, 8) -> (g, o)  split(j, {columns}) -> (c, u)  reorder(g, c, o, t, u)
        stage(x, at=o, in=shared, via={via}) -> xs  partition(c)"""
    if via == "tma" and columns == 6:
        with pytest.raises(TexprError, match="E0916"):
            laid(FLAT, words)
        return
    for n, m in ((0, 4), (4, 12), (64, 8), (68, 12)):
        x = np.arange(n * m, dtype=np.int32).reshape(n, m)
        assert wrong(laid(FLAT, words), {"x": x}, {}, (None, 0, 1)) is None


ROWS = """
fn rows(inout a: i32[n, m] align(16), g: i32[m] align(16))
    where m % 4 == 0
{
    par n |i| { seq 6 |q| { par m |j| { a[i, j] = a[i, j] * 2 + g[j] + i32(q) } } }
}"""


@pytest.mark.parametrize("level", ["warp", "block.x", "lane"])
@pytest.mark.parametrize("via", ["tma", "bulk"])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_use_in_a_loop_of_all_threads_waits_under_its_test(stages: int, via: str, level: str) -> None:
    """Mapping makes the test around such a loop anew, which was then taken for one around what is inside of it."""
    words = f"""split(i, 2) -> (b, t)  split(j, 32) -> (c, u)  split(q, 2) -> (o, s)
        reorder(b, c, o, t, u, s)  stage(g, at=o, in=shared, via={via}) -> gs  pipeline(o, stages={stages})  bind(u, {level})"""
    made = laid(ROWS, words)
    arrays = {"a": np.arange(24, dtype=np.int32).reshape(3, 8), "g": np.arange(-4, 4, dtype=np.int32)}
    assert wrong(made, arrays, {}, (None, 0, 1)) is None


@pytest.mark.parametrize(
    ("columns", "via", "fits"), [(4, "tma", False), (4, "bulk", True), (32, "tma", True), (64, "bulk", True)]
)
def test_tiles_of_a_distributed_loop_begin_as_the_engine_needs_it(columns: int, via: str, fits: bool) -> None:
    """Each of its iterations has a tile then, one behind the other in memory."""
    text = f"""
    fn rows(inout a: i32[4, {columns}] align(16), g: i32[{columns}] align(16)) {{
        par 4 |i| {{ seq 2 |t| {{ par {columns} |j| {{ a[i, j] = a[i, j] * 2 + g[j] + i32(t) }} }} }}
    }}"""
    words = f"split(t, 1) -> (o, s)  stage(g, at=o, in=shared, via={via}) -> gs  distribute(o)"
    if not fits:
        with pytest.raises(TexprError, match="tiles of `gs` need not begin at multiples of 128 bytes") as refused:
            laid(text, words)
        assert refused.value.diagnostics[0].code == "E0916"
        words = words.replace(via, "ld")
    arrays = {"a": np.arange(4 * columns, dtype=np.int32).reshape(4, columns), "g": np.arange(columns, dtype=np.int32)}
    assert wrong(laid(text, words), arrays, {}, (None, 0)) is None


@pytest.mark.parametrize("via", ["bulk", "tma"])
@pytest.mark.parametrize("rows", [4, 8])
def test_the_engine_stores_to_no_memory_of_a_block(rows: int, via: str) -> None:
    """What a loop makes for itself, and nobody reads, is no tensor: a run was stored to an array that there was not."""
    text = f"""
    fn made(q: i32[n]): i32[n] {{
        new y: i32[n]
        par n |i| {{
            new v: i32[{rows}, 4]
            par {rows} |a| {{ par 4 |b| {{ v[a, b] = q[i] + i32(a * b) }} }}
            y[i] = 1
        }}
        return y
    }}"""
    words = "split(i, 32) -> (g, t)  split(a, 4) -> (c, u)  stage(v, at=c, in=shared, via={}) -> vs"
    with pytest.raises(TexprError, match="`v` is not one tensor in global memory, but what a block keeps") as refused:
        laid(text, words.format(via))
    assert refused.value.diagnostics[0].code == "E0916"
    assert refused.value.diagnostics[0].help == "stage it by via=ld"
    assert wrong(laid(text, words.format("ld")), {"q": np.arange(40, dtype=np.int32)}, {}, (None, 0)) is None


@pytest.mark.parametrize("place", ["", "place(v, shared)", "place(v, workspace)"])
@pytest.mark.parametrize("inner", [1, 2, 3])
def test_what_a_loop_assigns_first_is_not_read_before(inner: int, place: str) -> None:
    """A register for it was given what was there, which nobody had written: not wrong, but read."""
    text = """
    fn kept(x: i32[n], w: i32[m]): i32[n] {
        new y: i32[n]
        par n |i| { y[i] = x[i] }
        seq 6 |t| {
            par n |j| {
                new v: i32
                v = x[j] + i32(t)
                par m |e| reduce(v) { v min= w[e] * t }
                par m |f| reduce(v) { v max= i32(f) * t }
                y[j] += v
            }
        }
        return y
    }"""
    words = f"""split(j, 4) -> (b, u)  split(f, 4) -> (g, h)  split(t, {inner}) -> (o, s)  reorder(b, g, o, u, h, s)
        bind(b, grid.y)  bind(u, block.z)  {place}"""
    arrays = {"x": np.arange(5, dtype=np.int32), "w": np.arange(-3, 4, dtype=np.int32)}
    assert wrong(laid(text, words), arrays, {}, (None, 0)) is None
