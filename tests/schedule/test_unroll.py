"""`unroll`: loops written out; a thread's own arrays are registers then, as nvcc says."""

from __future__ import annotations

import pytest
from tests.schedule.laid import Laid, binary, integers, laid, refusal, wrong

from texpr.ir import kernel as k

MATMUL = """
fn matmul(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""

OUTER = """
    split(i, 16) -> (bi, ti)  split(j, 16) -> (bj, tj)
    split(ti, 4) -> (t1, r1)  split(tj, 4) -> (t2, r2)
    reorder(bi, bj, t1, t2, k, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)  bind(t1, block.y)  bind(t2, block.x)"""

REGISTERS = f"{OUTER}  stage(C, at=t2, in=registers)  unroll(r1)  unroll(r2)"
PARTLY = f"{OUTER}  unroll(k, 4)"


def loops(made: Laid, name: str) -> list[k.For]:
    return [s for s in made.statements if isinstance(s, k.For) and s.sym.base == name]


@pytest.mark.parametrize("how", [REGISTERS, PARTLY], ids=["registers", "partly"])
@pytest.mark.parametrize("sizes", [(0, 3, 4), (4, 0, 5), (16, 7, 16), (19, 5, 33)])
def test_matmul(how: str, sizes: tuple[int, int, int]) -> None:
    m, depth, n = sizes
    arrays = {"A": integers(m, depth), "B": integers(depth, n, seed=1)}
    assert wrong(laid(MATMUL, how), arrays, {"M": m, "K": depth, "N": n}, orders=(None, 0)) is None


def test_what_is_asked_is_in_the_kernel() -> None:
    whole, partly = laid(MATMUL, REGISTERS), laid(MATMUL, PARTLY)
    assert loops(whole, "r1") and {(f.kind, f.factor) for f in loops(whole, "r1")} == {("unroll", 0)}
    assert loops(partly, "k") and {(f.kind, f.factor) for f in loops(partly, "k")} == {("unroll", 4)}
    assert "#pragma unroll 4\n" in partly.text and "#pragma unroll\n" in whole.text


def test_a_loop_of_the_whole_team() -> None:
    """The loop holds barriers, and every thread of the block runs it."""
    text = """
fn f(x: f32[n, 64]): f32[n, 64] {
    new y: f32[n, 64]
    par n |i| {
        new s: f32[64]
        par 64 |j| { s[j] = x[i, j] }
        seq 3 |k| {
            new t: f32[64]
            par 64 |j| { t[j] = s[63 - j] + 1.0 }
            par 64 |j| { s[j] = t[j] }
        }
        par 64 |j| { y[i, j] = s[j] }
    }
    return y
}"""
    made = laid(text, "bind(i, grid.x)  unroll(k)")
    (loop,) = loops(made, "k")
    assert loop.uniform and loop.kind == "unroll" and any(isinstance(s, k.Barrier) for s in k.walk(loop.body))
    assert wrong(made, {"x": integers(3, 64)}) is None


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_own_arrays_are_registers(target: str) -> None:
    made = laid(MATMUL, REGISTERS, target)
    (kernel,) = k.kernels(made.plan.steps)
    assert [a.space for a in kernel.arrays] == [k.Space.LOCAL]
    (used,) = binary(made, target).kernels
    assert used.stack_bytes == used.spill_stores == used.spill_loads == 0


def test_an_array_indexed_by_a_loop_is_not() -> None:
    """The check above can fail."""
    made = laid(MATMUL, REGISTERS)
    rolled = made.text.replace("#pragma unroll\n", "#pragma unroll 1\n")
    assert rolled != made.text
    (used,) = binary(made, "sm_90a", rolled).kernels
    assert used.stack_bytes > 0


def test_on_a_cpu() -> None:
    made = laid("fn f(x: f32[n]): f32[n] {\n new y: f32[n]\n par n |i| { y[i] = x[i] }\n return y\n}",
                "split(i, 4) -> (o, v)  unroll(v)", "cpu")  # fmt: skip
    assert {(f.kind, f.factor) for f in loops(made, "v")} == {("unroll", 0)}


REFUSED = {
    "unroll(i)": "error[E0905]: `i` cannot be unrolled wholly: its extent, M, is not a constant",
    "split(i, 512) -> (o, v)  unroll(v)": "error[E0905]: `v` cannot be unrolled wholly: 512 iterations are too many",
    "bind(i, grid.x)  unroll(i, 4)": "error[E0905]: `i` has been given to `bind` already, so its shape must stay",
    "unroll(i, 1)": "error[E0902]: `unroll` takes an integer of 2 or more here, not 1",
    "unroll(i, 2) -> a": "error[E0902]: `unroll` makes nothing that could be named",
    "split(i, 4) -> (o, v)  unroll(v)  bind(v, block.x)": "error[E0908]: `v` is given to `unroll` already",
}


@pytest.mark.parametrize("how", REFUSED)
def test_refusals(how: str) -> None:
    assert refusal(MATMUL, how).splitlines()[0] == REFUSED[how]


def test_a_part_is_offered() -> None:
    assert refusal(MATMUL, "unroll(i)").splitlines()[-1].strip() == "= help: unroll a part: `unroll(i, 4)`"
