"""Plans that are right and were refused by tags that were wrong, as random schedules found them: each class by its cause."""

from __future__ import annotations

import pytest
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import laid

from texpr.ir.proof import Verdict
from texpr.proof.search import proved

TURNED = """
fn turned(x: i32[R, C] align(16)): i32[C, R] {
    new y: i32[C, R]
    par R |i| { par C |j| { y[j, i] = x[i, j] } }
    return y
}"""
PLANES = """
fn planes(x: i32[p, n, m]): i32[n, m] {
    new y: i32[n, m]
    par n |i| { par m |j| {
        new s: i32
        s = 0
        seq p |q| reduce(s) { s += x[q, i, j] }
        y[i, j] = s
    } }
    return y
}"""
STAGED = """
fn staged(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| { y[i] = x[i] * 3 }
    return y
}"""
TWICE = """
fn twice(x: i32[n], y: i32[m]): i32[n] {
    new q: i32[n]
    par n |i| { q[i] = x[i] }
    par n |j| {
        seq TURNS |k| {
            q[j] max= x[j] - k
            q[j] -= x[j] * 2
        }
    }
    return q
}"""
SUMMED = """
fn summed(x: i32[n, 6], y: i32[n]): i32[n] {
    new z: i32[n]
    par n |i| {
        new s: i32
        s = y[i]
        seq 3 |k| { par 5 |e| reduce(s) { s min= x[i, e] * k } }
        par 6 |f| reduce(s) { s max= x[i, f] }
        z[i] = s
    }
    return z
}"""
ZEROS = """
fn zeros(x: i32[8, 24] align(16), w: i32[24, 12] align(16)): i32[8, 12] {
    new y: i32[8, 12]
    par 8 |i| { par 12 |j| {
        new acc: i32 = 0
        seq 24 |l| reduce(acc) { acc += x[i, l] * w[l, j] }
        y[i, j] = acc
    } }
    return y
}"""


def left(text: str, words: str) -> list[object]:
    """What is open of a program by a schedule."""
    made = laid(text, words)
    return open_of(proved(made.function, made.plan))


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 8), (2, 12)])
def test_rows_that_follow_each_other_begin_where_a_step_says(rows: int, columns: int, steps: int) -> None:
    """A run of whole rows begins at a product that is 0 in the only step that there is."""
    words = f"""split(i, {rows + 1}) -> (b, t)  split(j, {columns}) -> (c, u)  split(c, {steps}) -> (g, o)  serial(o)
        reorder(b, g, o, t, u)  stage(x, at=o, in=shared, via=bulk) -> xs"""
    assert not left(TURNED.replace("R", str(rows)).replace("C", str(columns)), words)


@pytest.mark.parametrize("cluster", ["", "cluster(c, 2)"])
@pytest.mark.parametrize("parted", ["c", "t", "u", "o"])
def test_a_copy_is_around_what_its_own_arm_does(parted: str, cluster: str) -> None:
    """A register is copied back behind a sum, and in the other arm it is given a first value, or is summed into, too."""
    words = f"""split(i, 3) -> (b, t)  split(j, 16) -> (c, u)  split(q, 8) -> (o, v)  reorder(b, c, o, t, u, v)
        bind(b, grid.x)  bind(c, grid.y)  {cluster}  partition({parted})"""
    assert not left(PLANES, words)


@pytest.mark.parametrize("via", ["ld", "cp_async"])
@pytest.mark.parametrize("blocks", [2, 4])
def test_an_arm_is_no_block_that_fills_a_cluster(blocks: int, via: str) -> None:
    """What is staged in one arm was taken for the statement of the other one, in blocks that do nothing."""
    words = f"""split(i, 4) -> (b, t)  bind(b, grid.x)  bind(t, block.x)  cluster(b, {blocks})
        stage(x, at=b, in=shared, via={via}) -> xs  partition(b)"""
    assert not left(STAGED, words)


@pytest.mark.parametrize("turns", ["1", "2", "m"])
def test_a_copy_is_outside_of_a_loop_of_one_turn(turns: str) -> None:
    """Its index needs no equation, so the copy was taken to be inside, where the other update is done between."""
    words = "split(j, 4) -> (b, t)  bind(b, grid.x)"
    assert not left(TWICE.replace("TURNS", turns), words)


@pytest.mark.parametrize("inner", [1, 3, 8])
def test_a_copy_is_behind_the_last_that_a_register_is_for(inner: int) -> None:
    """The register is given a first value, and updated: the copy was taken to be behind the first of these."""
    words = f"split(i, {inner}) -> (b, t)  split(f, 4) -> (c, u)  reorder(b, c, t, u)  bind(b, grid.x)"
    assert not left(SUMMED, words)


@pytest.mark.parametrize("blocks", [2, 4])
def test_a_first_value_leaves_the_statement_to_what_is_assigned(blocks: int) -> None:
    """A register that is declared with the same constant took it, and the rank in the cluster was taken for an index."""
    words = f"""split(i, 2) -> (b, t)  split(j, 4) -> (c, u)  split(l, 8) -> (o, s)  reorder(b, c, o, t, u, s)
        bind(b, grid.z)  bind(c, grid.x)  cluster(b, {blocks})  bind(t, block.z)  bind(u, block.y)
        stage(w, at=o, in=shared, via=tma, multicast=b) -> ws  stage(x, at=o, in=shared, via=tma) -> xs"""
    assert not left(ZEROS, words)


@pytest.mark.parametrize("blocks", [2, 4])
@pytest.mark.parametrize("rows", [8, 16, "n"])
def test_a_box_has_one_sender_where_the_grid_is_one_cluster(rows: int | str, blocks: int) -> None:
    """The first block of the cluster is block 0 then: which sends was hidden in a quotient that is 0."""
    text = f"""
fn rows(inout a: i32[{rows}, 12] align(16), g: i32[12] align(16)) {{
    par {rows} |i| {{ seq 2 |q| {{ par 12 |j| {{ a[i, j] = a[i, j] * 2 + g[j] + i32(q) }} }} }}
}}"""
    words = f"""split(i, 4) -> (b, t)  split(j, 16) -> (c, u)  split(q, 2) -> (o, v)  reorder(b, c, o, t, u, v)
        bind(b, grid.x)  cluster(b, {blocks})  stage(g, at=c, in=shared, via=tma, multicast=b) -> gs  bind(c, grid.y)
        bind(t, block.x)"""
    assert not left(text, words)


@pytest.mark.parametrize("rows", [12, "m"])
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_memory_is_called_after_what_it_keeps(steps: int, rows: int | str) -> None:
    """The copy of an accumulator begins with its name: its first value was taken for that of the accumulator."""
    text = f"""
fn sums(x: i32[{rows}, 36]): i32[36] {{
    new y: i32[36]
    par 36 |j| {{
        new s: i32 = 0
        seq {rows} |i| reduce(s) {{ s += x[i, j] }}
        y[j] = s
    }}
    return y
}}"""
    words = f"""split(j, 3) -> (b, t)  split(i, {steps}) -> (o, v)  reorder(b, o, t, v)  bind(b, grid.z)
        stage(s, at=o, in=registers) -> s_6  bind(t, block.z)"""
    assert not left(text, words)


@pytest.mark.parametrize("shape", [1, 3])
def test_memory_of_a_launch_is_no_other_copy_of_what_it_keeps(shape: int) -> None:
    """What a loop updates was taken for the tile that a copy fills later, of the one element there is."""
    text = f"""
fn kept(y: i32[{shape}], w: i32[{shape}]): (i32[{shape}], i32[{shape}]) {{
    new q: i32[{shape}]
    new r: i32[{shape}]
    par {shape} |h| {{ q[h] = y[h] }}
    seq {shape} |i| {{
        q[0] max= w[i]
        q[0] += i32(i)
    }}
    par {shape} |j| {{ r[j] = select(j >= 1 and j < {shape}, q[j - 1], 2) }}
    return (q, r)
}}"""
    words = """split(j, 16) -> (b, t)  split(b, 3) -> (c, o)  serial(o)  bind(c, grid.y)
        stage(q, at=o, in=shared, via=tma, fill=zero) -> q_5"""
    assert not left(text, words)


@pytest.mark.parametrize("inner", [2, 3, 5])
@pytest.mark.parametrize("cluster", ["", "cluster(b, 2)"])
def test_a_phase_follows_the_last_of_the_turn_before(cluster: str, inner: int) -> None:
    """What a test leaves of an inner loop depends on the turn of the outer one; and another arm arrives behind that."""
    words = f"""split(i, 8) -> (b, t)  split(j, 4) -> (c, u)  split(c, 8) -> (g, o)  serial(o)  reorder(b, g, o, t, u)
        bind(b, grid.z)  bind(g, grid.x)  {cluster}  stage(x, at=o, in=shared, via=bulk) -> xs  bind(t, block.y)
        bind(u, block.z)  split(o, {inner}) -> (p, q)"""
    assert not left(TURNED.replace("R", "8").replace("C", "28"), words)


@pytest.mark.parametrize("blocks", [2, 4])
def test_arms_of_a_test_bring_one_parcel(blocks: int) -> None:
    """Where nothing of the tensor is there, each block sends a box of holes, and else the first of the cluster sends one."""
    text = """
fn near(r: i32[m] align(16), y: i32[n]): i32[n] {
    new z: i32[n]
    par n |i| {
        new s: i32 = 0
        seq 1 |t| { s += y[i] + select(t >= 1 and t - 1 < m, r[t - 1], 0) }
        z[i] = s
    }
    return z
}"""
    words = f"""split(i, 4) -> (b, u)  split(t, 4) -> (o, v)  reorder(b, o, u, v)  bind(b, grid.y)  cluster(b, {blocks})
        stage(r, at=o, in=shared, via=tma, fill=zero, multicast=b) -> rs  bind(u, block.z)"""
    assert not left(text, words)


@pytest.mark.parametrize("level", ["grid.z", "grid.y"])
@pytest.mark.parametrize("blocks", [2, 4])
def test_the_only_block_of_a_cluster_is_one_of_it(blocks: int, level: str) -> None:
    """Its loop has one turn, and the axis is called after that of another nest: each block was taken for this one."""
    text = """
fn both(q: i32[1] align(16), y: i32[1]): (i32[1], i32[1]) {
    new p: i32[1]
    new r: i32[1]
    par 1 |h| { new v: i32[5]  par 5 |d| { v[d] = y[h] + i32(d) }  p[h] = v[3] }
    par 1 |j| { r[j] = select(j >= 1 and j < 2, q[j - 1], 0) - y[j] }
    return (p, r)
}"""
    words = f"""split(j, 8) -> (b, t)  split(b, 8) -> (c, o)  serial(o)  bind(c, {level})  cluster(c, {blocks})
        stage(q, at=o, in=shared, via=tma, fill=zero) -> qs  bind(t, block.x)"""
    assert not left(text, words)


@pytest.mark.parametrize("update", ["min=", "max=", "+="])
@pytest.mark.parametrize("turns", [1, 7])
def test_a_sum_over_turns_of_the_host_is_no_bug(turns: int, update: str) -> None:
    """Each turn joins what it has with the element; that this ends the whole sum is not proved, and is not refuted."""
    text = f"""
fn summed(x: i32[n], w: i32[5]): i32[n] {{
    new y: i32[n]
    new s: i32
    s = 0
    seq {turns} |i| reduce(s) {{ par 5 |j| reduce(s) {{ s {update} w[j] }} }}
    par n |k| {{ y[k] = x[k] + s }}
    return y
}}"""
    made = laid(text, "")
    assert not proved(made.function, made.plan).of(Verdict.REFUSED)


@pytest.mark.parametrize("rows", [2, 4])
def test_a_tile_of_chunks_is_turned_round(rows: int) -> None:
    """Its columns are quotients of quotients of the thread, of which nobody read a digit."""
    text = """
fn rows(inout a: i32[n, m] align(16), g: i32[m] align(16))
    where m % 4 == 0
{
    par n |i| { seq 2 |q| { par m |j| { a[i, j] = a[i, j] * 2 + g[j] + i32(q) } } }
}"""
    words = f"""split(i, {rows}) -> (b, t)  split(j, 8) -> (c, u)  split(q, 3) -> (o, v)  reorder(b, c, o, t, u, v)
        bind(b, grid.z)  bind(c, grid.x)  stage(a, at=c, in=shared, via=tma, swizzle=32B) -> tile  bind(t, block.y)
        bind(u, block.z)  partition(v)"""
    assert not left(text, words)


@pytest.mark.parametrize("update", ["s += 1", "s min= 0", "s max= 3", "s *= 2"])
@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("rows", [1, 7, 4096, "n"])
def test_lanes_of_a_vector_that_do_the_same_are_one_after_the_other(rows: int | str, lanes: int, update: str) -> None:
    """Nothing that they add says which of them does, so they were no updates of the sum that another arm makes."""
    text = f"""
fn summed(x: i32[{rows}]): i32[{rows}] {{
    new s: i32 = 1
    par {rows} |i| reduce(s) {{ {update} }}
    new y: i32[{rows}]
    par {rows} |j| {{ y[j] = x[j] + s }}
    return y
}}"""
    assert not left(text, f"vectorize(i, {lanes}) -> (v, w)")


@pytest.mark.parametrize("via", ["ld", "cp_async"])
@pytest.mark.parametrize("parts", [2, 4, 8])
@pytest.mark.parametrize("rows", [40, 1000, "n"])
def test_a_loop_is_as_long_as_that_around_it_says(rows: int | str, parts: int, via: str) -> None:
    """Blocks share the outer loop, so its index is another sum; the inner one was taken to be cut, since its end looked so."""
    text = f"""
fn total(x: i32[{rows}]): i32 {{
    new s: i32
    s = 0
    par {rows} |i| reduce(s) {{ s += x[i] }}
    return s
}}"""
    words = f"""split(i, 16) -> (b, t)  stage(x, at=b, in=shared, via={via}, fill=zero) -> xs  serial(t)
        split(b, parts={parts}) -> (c, d)"""
    assert not left(text, words)


@pytest.mark.parametrize("place", ["", "place(s, workspace)"])
@pytest.mark.parametrize("resized", ["", "resize(s.d0, 2, 2)"])
@pytest.mark.parametrize("rows", ["m", "0", "1", "5"])
def test_a_copy_is_behind_a_sum_of_no_turns(rows: str, resized: str, place: str) -> None:
    """Its element is read in that iteration, and is written, where the sum has no turn, in none but that of the loop before."""
    text = f"""
fn sums(x: i32[{rows}, k]): i32[k] {{
    new y: i32[k]
    par k |j| {{
        new s: i32
        s = 0
        seq {rows} |i| reduce(s) {{ s += x[i, j] }}
        y[j] = s
    }}
    return y
}}"""
    assert not left(text, f"distribute(j, 1, 2) -> (a, b)  {resized}  {place}")
