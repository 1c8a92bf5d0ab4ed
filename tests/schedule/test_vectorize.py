"""`vectorize`: the same results by fewer, wider accesses; refused with the reason where an access is none."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.schedule.laid import binary, counts, integers, laid, refusal, wrong

from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.value.types import DTYPES
from texpr.proof.search import proved

SAXPY = """
fn saxpy(a: f32, x: f32[n] align(16), y: f32[n] align(16)): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}"""

SCALARS = "split(i, 256) -> (b, t)  bind(b, grid.x)  bind(t, block.x)"
VECTORS = """
    split(i, 256) -> (b, t)
    vectorize(t, 4) -> (u, v)
    bind(b, grid.x)
    bind(u, block.x)"""


def saxpy(n: int) -> dict[str, Any]:
    return {"a": np.float32(3), "x": integers(n), "y": integers(n, seed=1)}


@pytest.mark.parametrize("n", [0, 1, 3, 4, 255, 256, 1023, 1030])
def test_saxpy(n: int) -> None:
    assert wrong(laid(SAXPY, VECTORS), saxpy(n)) is None


def test_each_request_moves_four_elements() -> None:
    scalar, vector = (counts(laid(SAXPY, how), saxpy(1024)) for how in (SCALARS, VECTORS))
    assert (scalar.global_load_requests, scalar.global_store_requests) == (64, 32)
    assert (vector.global_load_requests, vector.global_store_requests) == (16, 8)
    assert vector.global_load_sectors == scalar.global_load_sectors == 256


def test_an_odd_end_is_left_to_single_lanes() -> None:
    """1022 = 255 · 4 + 2: one thread goes lane by lane, and its warp asks for its vectors apart."""
    found = counts(laid(SAXPY, VECTORS), saxpy(1022))
    assert (found.global_loads, found.global_stores) == (2 * (255 + 2), 255 + 2)


def test_a_promise_leaves_nothing_to_single_lanes() -> None:
    promised = laid(SAXPY.replace("f32[n] {\n", "f32[n]\n    where n % 4 == 0\n{\n", 1), VECTORS)
    assert not any(isinstance(s, k.For) for s in promised.statements)
    assert wrong(promised, saxpy(1028)) is None


def test_the_result_must_begin_at_a_multiple() -> None:
    made = laid(SAXPY, VECTORS)
    assert [b.align for b in made.plan.results] == [16] and [b.align for b in made.original.results] == [None]


@pytest.mark.parametrize(
    ("dtype", "lanes"),
    [(d, n) for d in DTYPES.values() for n in (2, 4, 8, 16) if 2 <= n * d.bytes <= 16],
    ids=lambda value: str(value),
)
def test_every_type(dtype: object, lanes: int) -> None:
    text = f"fn f(x: {dtype}[n] align(16)): {dtype}[n] {{\n new y: {dtype}[n]\n par n |i| {{ y[i] = x[i] }}\n return y\n}}"
    made = laid(text, f"split(i, 64) -> (b, t)  vectorize(t, {lanes}) -> (u, v)  bind(b, grid.x)  bind(u, block.x)")
    (load,) = (s for s in made.statements if isinstance(s, k.LoadVector))
    assert len(load.targets) == lanes


@pytest.mark.parametrize("name", ["f64", "bf16", "u8", "bool"])
def test_types_move_as_they_are(name: str) -> None:
    lanes = 16 // DTYPES[name].bytes
    text = f"fn f(x: {name}[n] align(16)): {name}[n] {{\n new y: {name}[n]\n par n |i| {{ y[i] = x[i] }}\n return y\n}}"
    made = laid(text, f"split(i, 64) -> (b, t)  vectorize(t, {lanes}) -> (u, v)  bind(b, grid.x)  bind(u, block.x)")
    x = (integers(77) > 0 if name == "bool" else np.abs(integers(77))).astype(numpy_dtype(DTYPES[name]))
    assert wrong(made, {"x": x}, orders=(None, 0)) is None


MATMUL = """
fn matmul(A: f32[M, K] align(16), B: f32[K, N] align(16)): f32[M, N]
    where K % 4 == 0, N % 4 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""

TILES = """
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)
    split(ti, 2) -> (t1, r1)  split(tj, 4) -> (t2, r2)  split(k, 8) -> (ko, ki)"""

DIRECT = f"""{TILES}
    reorder(bi, bj, t1, t2, ko, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)  bind(t1, block.y)  bind(t2, block.x)
    unroll(r1)  vectorize(r2)"""

STAGED = f"""{TILES}
    reorder(bi, bj, ko, t1, t2, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(A, at=ko, in=shared, fill=zero) -> As
    stage(B, at=ko, in=shared, fill=zero) -> Bs
    vectorize(As_1, 4)  vectorize(Bs_1, 4)
    bind(t1, block.y)  bind(t2, block.x)
    unroll(r1)  vectorize(r2)"""


@pytest.mark.parametrize("how", [DIRECT, STAGED], ids=["direct", "staged"])
@pytest.mark.parametrize("sizes", [(0, 4, 4), (1, 0, 4), (5, 4, 8), (16, 8, 32), (19, 20, 36)])
def test_matmul(how: str, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    arrays = {"A": integers(m, k), "B": integers(k, n, seed=1)}
    assert wrong(laid(MATMUL, how), arrays, {"M": m, "K": k, "N": n}, orders=(None, 0, 1)) is None


def test_a_reduction_stays_where_the_schedule_has_it() -> None:
    """Vectors inside a `par … reduce`: the loops around them keep their order."""
    made = laid(MATMUL.replace("seq K |k| reduce(C)", "par K |k| reduce(C)"), DIRECT)
    (inner,) = {s.sym.base for s in made.statements if isinstance(s, k.For) and s.kind == "unroll"}
    assert inner == "r1" and {s.sym.base for s in made.statements if isinstance(s, k.For)} >= {"ko", "ki"}
    assert {s.source.buffer.name for s in made.statements if isinstance(s, k.LoadVector)} == {"B", "C"}
    arrays = {"A": integers(19, 20), "B": integers(20, 36, seed=1)}
    assert wrong(made, arrays, orders=(None, 0)) is None


def test_staged_tiles_are_vectors_too() -> None:
    """A and B go to shared memory by four elements; of Bs, four elements are read at once."""
    made = laid(MATMUL, STAGED)
    read = {s.source.buffer.name for s in made.statements if isinstance(s, k.LoadVector)}
    written = {s.target.buffer.name for s in made.statements if isinstance(s, k.StoreVector)}
    assert {"A", "B", "Bs"} <= read and {"As", "Bs"} <= written


def forms(body: str, params: str = "x: f32[n] align(16)", result: str = "f32[n]") -> str:
    """A function of rows of four, `v` the element in a row; n is what there is."""
    return f"""
fn f({params}): {result} {{
    new y: {result}
    par (n + 3) / 4 |t| {{ par 4 |v| {{
{body}
    }} }}
    return y
}}"""


BODIES = {
    "let": "if 4 * t + v < n { let a = x[4 * t + v] * 2.0  y[4 * t + v] = a * a + a }",
    "scalar": "if 4 * t + v < n { new s: f32  s = x[4 * t + v]  s += 1.0  y[4 * t + v] = s * s }",
    "same_for_all": "if 4 * t + v < n { y[4 * t + v] = x[4 * t + v] + x[4 * t] * x[0] }",
    "twice": "if 4 * t + v < n { y[4 * t + v] = x[4 * t + v] * x[4 * t + v]  y[4 * t + v] += x[4 * t + v] }",
    "select": "if 4 * t + v < n { y[4 * t + v] = select(x[4 * t + v] > 0.0, x[4 * t + v], 0.0) }",
    "from_above": "if n - 1 >= 4 * t + v { y[4 * t + v] = x[4 * t + v] }",
    "two_parts": "if t < 5 and 4 * t + v < n { y[4 * t + v] = x[4 * t + v] } else { if 4 * t + v < n { y[4 * t + v] = 7.0 } }",
    "index": "if 4 * t + v < n { y[4 * t + v] = x[4 * t + v] + f32(v) }",
}
BIND = "split(t, 8) -> (b, u)  vectorize(v)  bind(b, grid.x)  bind(u, block.x)"


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("n", [0, 2, 20, 37])
def test_bodies(body: str, n: int) -> None:
    made = laid(forms(body), BIND)
    assert any(isinstance(s, k.StoreVector) for s in made.statements)
    assert not proved(made.function, made.plan).counts["refused"]
    assert wrong(made, {"x": integers(n)}, orders=(None, 0)) is None


def test_what_is_the_same_for_all_lanes_is_read_once() -> None:
    made = laid(forms(BODIES["same_for_all"]), BIND)
    found = counts(made, {"x": integers(32)})
    assert found.global_loads == 3 * 8


def test_lanes_that_meet_do_so_in_order() -> None:
    text = """
fn total(x: f32[n] align(16)): f32[n / 4]
    where n % 4 == 0
{
    new y: f32[n / 4]
    par n / 4 |t| { new s: f32  s = 0.0
        par 4 |v| reduce(s) { s += x[4 * t + v] }
        y[t] = s }
    return y
}"""
    made = laid(text, "split(t, 8) -> (b, u)  bind(b, grid.x)  bind(u, block.x)  vectorize(v)")
    (load,) = (s for s in made.statements if isinstance(s, k.LoadVector))
    _, *sums = (s for s in made.statements if isinstance(s, k.Assign))
    assert [[t for t in load.targets if t in k.value_symbols(s.value)] for s in sums] == [[t] for t in load.targets]
    assert wrong(made, {"x": integers(80)}) is None


ROWS = """
fn rows(x: f32[m, 64] align(16)): f32[m] {
    new y: f32[m]
    par m |i| { new s: f32  s = 0.0
        par 64 |k| reduce(s) { s += x[i, k] }
        y[i] = s }
    return y
}"""

LEADER = """
fn leader(x: f32[m, 64] align(16)): f32[m, 64] {
    new y: f32[m, 64]
    par m |i| {
        new s: f32[64]
        par 64 |j| { s[j] = x[i, 63 - j] + 1.0 }
        par 4 |v| { y[i, v] = s[v] * 2.0 }
        par 60 |w| { y[i, w + 4] = s[w] }
    }
    return y
}"""

EVERYONE = """
fn everyone(x: f32[m, 64] align(16)): f32[m, 64] {
    new y: f32[m, 64]
    par m |i| {
        new s: f32
        s = 0.0
        par 4 |v| reduce(s) { s += x[i, v] }
        par 64 |w| { y[i, w] = s + x[i, w] }
    }
    return y
}"""

ATOMIC = """
fn columns(x: f32[m, 64] align(16)): f32[64] {
    new y: f32[64]
    par 64 |i| { y[i] = 0.0 }
    par m |k| #atomic reduce(y) { par 64 |j| { y[j] += x[k, j] } }
    return y
}"""

TEAMS = {
    "reduction": (ROWS, "split(k, 4) -> (ko, v)  bind(i, grid.x)  vectorize(v)", {"LoadVector"}),
    "leader": (LEADER, "bind(i, grid.x)  vectorize(v)", {"LoadVector", "StoreVector"}),
    "everyone": (EVERYONE, "bind(i, grid.x)  vectorize(v)", {"LoadVector"}),
    "atomic": (ATOMIC, "vectorize(j, 4)", {"LoadVector"}),
}


@pytest.mark.parametrize("name", TEAMS)
def test_vectors_in_teams(name: str) -> None:
    """In each thread's share of a reduction; run by the first thread, or by all; around atomics, which stay apart."""
    text, how, wanted = TEAMS[name]
    made = laid(text, how)
    assert {type(s).__name__ for s in made.statements if isinstance(s, k.LoadVector | k.StoreVector)} == wanted
    for m in (0, 1, 5):
        assert wrong(made, {"x": integers(m, 64)}, {"m": m}, orders=(None, 0, 1)) is None


def test_groups_that_a_swizzle_moves_are_vectors() -> None:
    """Four elements of As stay together where a swizzle permutes groups of four."""
    swizzled = STAGED.replace(
        "vectorize(As_1", "split(As.d1, 4) -> (g, e)  swizzle(As.d0, As.g, xor=2) -> (a, x)  vectorize(As_1"
    )
    made = laid(MATMUL, swizzled)
    stores = [s for s in made.statements if isinstance(s, k.StoreVector) and s.target.buffer.name == "As"]
    assert stores and all("xor" in str(s.target.index) for s in stores)
    arrays = {"A": integers(19, 20), "B": integers(20, 36, seed=1)}
    assert wrong(made, arrays, orders=(None, 0)) is None


def test_an_accumulator_in_registers_may_be_wider_than_a_vector() -> None:
    """Eight bf16 are one access; the eight f32 that they are added to are registers."""
    text = MATMUL.replace("A: f32", "A: bf16").replace("B: f32", "B: bf16").replace("% 4", "% 8")
    how = (
        TILES.replace("split(tj, 4)", "split(tj, 8)")
        + """
    reorder(bi, bj, t1, t2, ko, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(C, at=t2, in=registers)
    bind(t1, block.y)  bind(t2, block.x)  unroll(r1)  vectorize(r2)"""
    )
    made = laid(text, how)
    assert {len(s.targets) for s in made.statements if isinstance(s, k.LoadVector)} == {8}
    to = numpy_dtype(DTYPES["bf16"])
    arrays = {"A": integers(20, 16).astype(to), "B": integers(16, 40, seed=1).astype(to)}
    assert wrong(made, arrays, orders=(None,)) is None


REFUSED = {
    "no_alignment": (SAXPY.replace("x: f32[n] align(16)", "x: f32[n]"), VECTORS),
    "too_wide": (SAXPY, VECTORS.replace("vectorize(t, 4)", "vectorize(t, 8)")),
    "not_aligned": (forms("if 4 * t + v + 1 < n { y[4 * t + v] = x[4 * t + v + 1] }"), BIND),
    "two_apart": (forms("if 8 * t + 2 * v < n { y[4 * t + v] = x[8 * t + 2 * v] }"), BIND),
    "odd_rows": (
        MATMUL.replace("N % 4 == 0", "N >= 1"),
        "distribute(j) -> (j0, j1)  split(j0, 4) -> (o, v)  vectorize(v)",
    ),
    "columns": (
        """
fn t(A: f32[n, n] align(16)): f32[n, n]
    where n % 4 == 0
{
    new B: f32[n, n]
    par n |i| { par n |j| { B[j, i] = A[i, j] } }
    return B
}""",
        "vectorize(j, 4)",
    ),
    "gather": (
        "fn g(x: f32[n], I: i32[n] align(16)): f32[n]\n assume I in 0..n\n{\n new y: f32[n]\n"
        " par n |i| { y[i] = x[I[i]] }\n return y\n}",
        "vectorize(i, 4)",
    ),
    "data": (forms("if 4 * t + v < n { y[4 * t + v] = 0.0  if x[4 * t + v] > 0.0 { y[4 * t + v] = 1.0 } }"), BIND),
    "lazy": (forms("if 4 * t + v < n { y[4 * t + v] = select(t > 0, x[4 * t + v - 4], 0.0) }"), BIND),
    "ordered": (MATMUL, "split(k, 4) -> (ko, ki)  vectorize(ki)"),
    "not_innermost": (MATMUL, "split(i, 4) -> (o, v)  vectorize(v)"),
    "not_constant": (SAXPY, "vectorize(i)"),
    "strided": (
        SAXPY.replace("x: f32[n] align(16)", "x: f32[n] stride(2) align(16)"),
        VECTORS,
    ),
}


SAID = {
    "no_alignment": "`x` may begin anywhere, and a vector of 16 bytes needs a multiple of that",
    "too_wide": "8 elements of `x` are 32 bytes, and one access moves 2, 4, 8 or 16",
    "not_aligned": "`x[32 * b + 4 * u + 1]` is not known to lie at a multiple of 16 bytes",
    "two_apart": "`x` moves by 2 elements from lane 0 to lane 1",
    "odd_rows": "`C[i, 4 * o]` is not known to lie at a multiple of 16 bytes",
    "columns": "`B` moves along its dimension 0, not along its last one",
    "gather": "`x` is accessed at places that data give, different for each lane",
    "data": "a condition is not the same for all lanes",
    "lazy": "`x` is read only where a `select` takes it",
    "not_innermost": "the loop over `j` is inside of it",
    "strided": "`x` has its neighbours 2 elements apart",
}
HELP = {
    "no_alignment": "promise where it begins: `x: f32[…] align(16)`",
    "too_wide": "split it: `vectorize(t, 4) -> (u, v)`",
    "odd_rows": 'add "where N % 4 == 0"',
    "data": "`select(…)` chooses values lane by lane",
    "lazy": "what an `if` keeps from the others is read for no lane that has no part in it",
    "not_innermost": "a loop of lanes is the innermost one",
    "ordered": "if its order is free, make it a `par`",
    "not_constant": "split it: `vectorize(i, 4)`",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_vector_is_refused(name: str) -> None:
    first, *rest = refusal(*REFUSED[name]).splitlines()
    if name in SAID:
        lane = {"columns": "j_i", "gather": "i_i"}.get(name, "v")
        assert first == f"error[E0911]: the loop over `{lane}` cannot be a vector: {SAID[name]}"
    help = [line.strip().removeprefix("= help: ") for line in rest if line.strip().startswith("= help")]
    assert help == ([HELP[name]] if name in HELP else [])


def test_the_access_in_the_way_is_shown() -> None:
    assert (
        refusal(*REFUSED["no_alignment"])
        == """\
error[E0911]: the loop over `v` cannot be a vector: `x` may begin anywhere, and a vector of 16 bytes needs a multiple of that
  --> t.te:10:5
   |
10 |     vectorize(t, 4) -> (u, v)
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^
note: this is in the way
  --> t.te:4:28
   |
 4 |     par n |i| { z[i] = a * x[i] + y[i] }
   |                            ----
   = help: promise where it begins: `x: f32[…] align(16)`
"""
    )


def test_other_refusals() -> None:
    assert refusal(*REFUSED["ordered"]).startswith("error[E0909]: the iterations of `ki` come in order (`seq`)")
    assert refusal(*REFUSED["not_constant"]).startswith("error[E0911]: `i` has n iterations, and a vector has 2 to 16 lanes")
    again = refusal(SAXPY, "vectorize(i, 4) -> (o, v)  split(v, 2) -> (a, b)")
    assert again.startswith("error[E0905]: `v` has been given to `vector` already, so its shape must stay")


def test_on_a_cpu_it_is_a_loop_over_lanes() -> None:
    made = laid(SAXPY.replace(" align(16)", ""), "vectorize(i, 8) -> (o, v)", "cpu")
    assert any(isinstance(s, k.For) and s.kind == "simd" for s in made.statements)


PLANTED = {
    "one_further": (r"tx_load<4>\(x, (.*?)\)", r"tx_load<4>(x, \1 + 1)", "misaligned"),
    "whole_too_early": (r"\+ 3 < n", r"+ 2 < n", "out_of_bounds"),
    "lanes_swapped": (r"v_x\[1\]", r"v_x[2]", "z differs"),
    "stored_elsewhere": (r"tx_store\(z, ", r"tx_store(z, 4 + ", None),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_seen(name: str) -> None:
    old, new, said = PLANTED[name]
    made = laid(SAXPY, VECTORS)
    text, count = re.subn(old, new, made.text)
    assert count
    found = wrong(made, saxpy(1023), orders=(None,), text=text)
    assert found is not None and found.startswith(said or "")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_nvcc_makes_wide_accesses(target: str) -> None:
    ptx = binary(laid(SAXPY, VECTORS, target), target).ptx.decode()
    assert len(re.findall(r"ld\.global\.(?:nc\.)?v4", ptx)) == 2 and len(re.findall(r"st\.global\.v4", ptx)) == 1
    # ptxas leaves registers to more blocks than are asked for, and spills, unless one is asked for
    (kernel,) = binary(laid(MATMUL, f"{STAGED} launch_bounds(1)", target), target).kernels
    assert kernel.stack_bytes == kernel.spill_stores == kernel.spill_loads == 0
