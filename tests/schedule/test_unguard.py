"""Loops that run over holes: what is required of staged buffers then, and results that do not change."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.tiled import MATMUL, multiplying
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import integers, laid, refusal, wrong

from texpr.emulator import LOCKSTEP
from texpr.explain.layout import layout
from texpr.frontend import parse
from texpr.ir.program import text
from texpr.isa.registry import resolve
from texpr.proof.search import proved
from texpr.schedule.apply import apply_schedule
from texpr.schedule.holes.overrun import Holes

SIZES = [(19, 20, 36), (3, 0, 4), (16, 4, 32), (5, 12, 40)]


def staged(via: str, fill: str = "fill=zero") -> str:
    return multiplying(a="", b="").replace("via=tma, fill=zero, ", f"via={via}, {fill}")


@pytest.mark.parametrize("schedule", [multiplying(), staged("ld"), staged("cp_async")], ids=["tma", "ld", "cp_async"])
def test_a_product_over_holes(schedule: str) -> None:
    """Nothing is asked of k any more; of i and j still, as what their holes write is not there."""
    made = laid(MATMUL, f"{schedule}\nunguard(ki)")
    printed = text.print_function(made.function)
    loops = printed.split("seq 8 |ki")[1:]
    assert len(loops) == 2 and all("K" not in loop.split("C[")[0] for loop in loops)
    for m, depth, n in SIZES:
        arrays = {"A": integers(m, depth), "B": integers(depth, n, seed=1)}
        assert wrong(made, arrays, {"M": m, "K": depth, "N": n}, (None, LOCKSTEP, 0)) is None


@pytest.mark.parametrize("ring", ["", "pipeline(ko, stages=3)"], ids=["one", "ring"])
def test_holes_of_two_splits(ring: str) -> None:
    """Iterations of ko that are none of its items are holes as a whole, and filled, in each slot of a ring as well."""
    schedule = multiplying().replace("(ko, ki)", "(kk, ki)  split(kk, 3) -> (k1, ko)").replace("bj, ko,", "bj, k1, ko,")
    made = laid(MATMUL, f"{schedule}\n{ring}  unguard(ki)")
    for m, depth, n in (*SIZES, (16, 44, 32)):
        arrays = {"A": integers(m, depth), "B": integers(depth, n, seed=1)}
        assert wrong(made, arrays, {"M": m, "K": depth, "N": n}, (None, 0)) is None


REDUCE = """
fn greatest(x: {0}[m, k]{2}): {0}[m] {{
    new y: {0}[m]
    par m |i| {{
        new best: {0} = {1}
        seq k |j| reduce(best) {{ best max= x[i, j] }}
        y[i] = best
    }}
    return y
}}"""
ROWS = "split(i, 4) -> (b, t)  split(j, 8) -> (jo, ji)  reorder(b, jo, t, ji)  bind(b, grid.x)  bind(t, block.x)"


def test_a_maximum_over_holes() -> None:
    """Its neutral fill is the least integer."""
    made = laid(REDUCE.format("i32", "-5", ""), f"{ROWS}\nstage(x, at=jo, in=shared, fill=-2147483648) -> xs  unguard(ji)")
    assert "seq 8 |ji| reduce(best) {\n" in text.print_function(made.function)
    for m, k in ((5, 11), (4, 8), (1, 1), (3, 0)):
        assert wrong(made, {"x": integers(m, k, dtype="int32") - 9}, {"m": m, "k": k}, (None, 0)) is None


INTO = MATMUL.replace("): f32[M, N]", ", inout C: f32[M, N])").replace("new C: f32[M, N]", "").replace("C[i, j] = 0.0", "")
INTO = INTO.replace("return C", "")

BEFORE = (
    MATMUL.replace("C[i, j] = 0.0", "").replace(
        "new C: f32[M, N]", "new C: f32[M, N] par M |p| { par N |q| { C[p, q] = 0.0 } }"
    )
).replace("B: f32[K, N] align(16)", "B: f32[K, N] align(16), D: f32[M, N]")
TURNED = BEFORE.replace("{ C[p, q] = 0.0 }", "{ C[p, q] = 0.0  C[p, q] *= -1.0 }")
MINUS = "`C` may hold −0, and −0 + 0 is 0"


REFUSED = {
    "weak": (
        MATMUL,
        staged("tma", "fill=weak"),
        "`As` is read in holes, where nothing fills it",
        "stage `As` with `fill=zero`",
    ),
    "not staged": (
        MATMUL,
        "split(k, 8) -> (ko, ki)",
        "`A` is read in holes, where nothing fills it",
        "stage `A` with `fill=zero`",
    ),
    "another fill": (
        MATMUL,
        staged("ld", "fill=1.0"),
        "what holes hold makes a value that is 1.0, and 0 would change nothing",
        "fill what is read with the neutral value",
    ),
    "zero in a maximum": (
        REDUCE.format("i32", "-5", ""),
        f"{ROWS}\nstage(x, at=jo, in=shared, fill=zero) -> xs",
        "what holes hold makes a value that is 0, and -2147483648 would change nothing",
        "fill what is read with the neutral value",
    ),
    "what was there": (INTO, multiplying(), "`C` may hold −0, and −0 + 0 is 0", "begin the sum at 0.0"),
    "what was copied there": (BEFORE.replace("0.0", "D[p, q]"), multiplying(), MINUS, "begin the sum at 0.0"),
    "begun at −0": (BEFORE.replace("0.0", "-0.0"), multiplying(), MINUS, "begin the sum at 0.0"),
    "turned round": (TURNED, multiplying(), MINUS, "begin the sum at 0.0"),
    "items of the next tile": (
        MATMUL,
        "split(k, 6) -> (ko, k2)  split(k2, 4) -> (k3, ki)  split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)\n"
        "reorder(bi, bj, ko, ti, tj, k3, ki)  bind(bi, grid.y)  bind(bj, grid.x)\n"
        "stage(A, at=ko, in=shared, fill=zero) -> As  stage(B, at=ko, in=shared, fill=zero) -> Bs",
        "in a hole `As` may hold an element of the tensor, and not its fill: dimension 1, of size S = K, box B = 6, "
        "element stride e = 1",
        "let the split of that loop divide: then no hole lies inside of a box",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    program, schedule, reason, help = REFUSED[name]
    loop = "ji" if "|j| reduce(best)" in program else "ki"
    said = refusal(program, f"{schedule}\nunguard({loop})")
    assert f"error[E0906]: holes cannot be computed: {reason}\n" in said
    assert help is None or f"help: {help}" in said


def test_a_sum_that_begins_in_another_nest() -> None:
    made = laid(BEFORE, f"{multiplying()}\nunguard(ki)")
    for m, depth, n in SIZES:
        arrays = {"A": integers(m, depth), "B": integers(depth, n, seed=1), "D": integers(m, n)}
        assert wrong(made, arrays, {"M": m, "K": depth, "N": n}, (None, 0)) is None


ROWSUM = """
fn sums(A: f32[M, K] align(16)): f32[K]
    where K % 4 == 0
{
    new y: f32[K]
    par K |k| {
        new s: f32 = 0.0
        seq M |i| reduce(s) { s += A[i, k] }
        y[k] = s
    }
    return y
}"""
STRIDED = """split(i, 16) -> (bi, b)  split(b, {}) -> (t, phase)  split(k, 32) -> (bk, tk)  reorder(bk, bi, phase, tk, t)
stage(A, at=phase, in=shared, via={}) -> As  unguard(t)"""


@pytest.mark.parametrize("step", [1, 2, 4, 16, 20])
@pytest.mark.parametrize("via", ["tma", "cp_async", "ld"])
def test_what_consumers_need_is_derived(step: int, via: str) -> None:
    """No `fill=` was said: a sum over holes needs zeros. Levels 1 and 2 of a box of 16, with M at run time."""
    made = laid(ROWSUM, STRIDED.format(step, via))
    assert "= 0\n" in text.print_function(made.function)
    for m, k in ((37, 36), (16, 4), (5, 8), (1, 4), (0, 4)):
        assert wrong(made, {"A": integers(m, k) + 7}, {"M": m, "K": k}, (None, 0)) is None, (m, k)


@pytest.mark.parametrize("fill", ["", ", fill=zero", ", fill=nan", ", fill=weak"])
def test_a_hole_that_is_data_is_read_by_nobody_without_unguard(fill: str) -> None:
    """Level 3: the tile holds rows of the next one there, whatever is said of fills; and readers keep their guard."""
    made = laid(ROWSUM, STRIDED.format(3, f"tma{fill}").removesuffix("  unguard(t)"))
    assert open_of(proved(made.function, made.plan)) == []
    for m, k in ((37, 36), (16, 4), (5, 8), (0, 4)):
        assert wrong(made, {"A": integers(m, k) + 7}, {"M": m, "K": k}, (None, 0)) is None, (m, k)


def test_what_the_engine_cannot_fill_is_refused() -> None:
    """Level 3; and a maximum, which needs its least number, of which nan is none: `max` hands it on."""
    said = refusal(ROWSUM, STRIDED.format(3, "tma"))
    assert (
        "may hold an element of the tensor, and not its fill: dimension 0, of size S = M, box B = 16, element stride e = 3"
        in said
    )
    assert "help: let the split of that loop divide: then no hole lies inside of a box" in said
    most = ROWSUM.replace("0.0", "-inf").replace("s +=", "s max=")
    said = refusal(most, STRIDED.format(4, "tma"))
    assert "`As` is read in holes, where nothing fills it" in said
    assert "help: stage `As` with `fill=-inf` and `via=ld`: the engine fills with zero or nan" in said
    said = refusal(most, STRIDED.format(4, "tma, fill=nan"))
    assert "what holes hold makes a value that is nan, and -inf would change nothing" in said
    made = laid(most, STRIDED.format(4, "ld"))
    assert wrong(made, {"A": integers(37, 36) - 9}, {"M": 37, "K": 36}, (None, 0)) is None


def test_a_plain_statement_in_holes_is_refused() -> None:
    program = "fn f(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = x[i] } return y }"
    said = refusal(program, "split(i, 8) -> (b, t)  stage(x, at=b, in=shared, fill=zero) -> xs  unguard(t)")
    assert "iterations of `t` have elements of their own, which others know" in said


def test_a_proof_that_is_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: everything is taken for proved. The items of the next tile are then added once more."""
    monkeypatch.setattr(Holes, "_never", lambda self, formula: True)
    program, schedule, _, _ = REFUSED["items of the next tile"]
    made = laid(program + " ", f"{schedule}  unguard(ki)")
    ones = np.ones((4, 12), np.float32), np.ones((12, 4), np.float32)
    assert wrong(made, {"A": ones[0], "B": ones[1]}, {"M": 4, "K": 12, "N": 4}, (None,)) is not None


def test_explain_says_what_is_needed() -> None:
    (function,) = parse(f"{MATMUL}\nschedule matmul for cuda {{\n{multiplying()}\nunguard(ki)\n}}", "t.te").functions
    made = apply_schedule(function, function.schedules[0], resolve("sm_90a"))
    assert made is not None
    assert [each["needed"] for each in layout(made)["staged"]] == ["strong(0): holes of ki compute, too"] * 2
