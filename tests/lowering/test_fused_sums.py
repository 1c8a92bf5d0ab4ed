"""Sums that `reduce` frees: a product and its sum are one operation of the machine, there alone."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.lowering.test_tile_machine_code import disassembled, of
from tests.proof.plan.verdicts import is_proved
from tests.schedule.laid import Laid, binary, integers, laid, wrong

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.ir.program.updates import sum_and_product
from texpr.proof.search import proved

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = ("FFMA", "FMUL", "FADD", "DFMA", "DMUL", "DADD")

DOT = """
fn dot(c: {0}, a: {0}[n], b: {0}[n]): {0} {{
    new s: {0}
    s = c
    par n |i| reduce(s) {{ s {1}= a[i] * b[i] }}
    return s
}}
"""

ROWS = """
fn rows(a: {0}[m, n], b: {0}[m, n]): f32[m] {{
    new y: f32[m]
    par m |i| {{
        y[i] = 0.0
        {1} n |k| {2} {{ y[i] += a[i, k] * b[i, k] }}
    }}
    return y
}}
"""
FREE, ORDERED = ("seq", "reduce(y)"), ("seq", "")


def auto(name: str, target: str = "sm_90a", function: str | None = None, schedule: str = "auto") -> Laid:
    """A program of the examples as it is compiled."""
    program = driver.load(EXAMPLES / f"{name}.te")
    chosen = program[function] if function else program.functions[0]
    own = next((each for each in chosen.schedules if each.name == schedule), schedule)
    compiled = driver.lower(chosen, target, schedule=own)
    assert is_proved(proved(compiled.function, compiled.plan))
    return Laid(chosen, compiled.function, compiled.plan)


def sums(made: Laid) -> list[bool]:
    """Of each statement that adds a product, whether it is fused."""
    return [s.fused for s in made.statements if isinstance(s, k.Assign | k.Store) and sum_and_product(s.value)] + [
        s.fused for s in made.statements if isinstance(s, k.StoreVector) and None not in map(sum_and_product, s.stored)
    ]


def code(made: Laid, target: str = "sm_90a") -> Counter[str]:
    """How often each of the words stands in machine code."""
    return of(WORDS, disassembled(binary(made, target)))


MATRICES = [
    ("scheduled/matmul_ring", "whole_ring", "ring"),
    ("conv2d", None, "auto"),
]


@pytest.mark.parametrize(("name", "function", "schedule"), MATRICES)
def test_a_product_of_matrices_is_multiply_adds(name: str, function: str | None, schedule: str) -> None:
    made = auto(name, function=function, schedule=schedule)
    assert sums(made) and all(sums(made))
    found = code(made)
    assert found["FFMA"] >= 1 and found.keys() == {"FFMA"}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_what_is_ordered_rounds_as_written(target: str) -> None:
    made = laid(ROWS.format("f32", *ORDERED), target=target)
    assert not any(sums(made)) and code(made, target).keys() == {"FMUL", "FADD"}
    made = laid(ROWS.format("f32", *FREE), target=target)
    assert sums(made) and all(sums(made)) and code(made, target).keys() == {"FFMA"}


def test_each_type_has_its_own() -> None:
    assert code(laid(DOT.format("f64", "+")))["DFMA"] >= 1
    assert "DMUL" not in code(laid(DOT.format("f64", "-")))
    assert not sums(laid(DOT.format("i32", "+")))
    widened = laid(ROWS.format("bf16", *FREE))
    assert all(sums(widened)) and code(widened).keys() == {"FFMA"}


BEGUN = """
fn rows(c: {0}[m], a: {0}[m, n], b: {0}[m, n]): {0}[m] {{
    new y: {0}[m]
    par m |i| {{
        y[i] = c[i]
        seq n |k| reduce(y) {{ y[i] {1}= a[i, k] * b[i, k] }}
    }}
    return y
}}
"""


@pytest.mark.parametrize("sign", ["+", "-"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_emulator_rounds_once(dtype: str, sign: str) -> None:
    """Of (1 + e)² = 1 + 2e + e² the last part is below what a number near 1 holds: what rounds twice loses it."""
    real, tiny = (np.float32, 2.0**-12) if dtype == "f32" else (np.float64, 2.0**-27)
    turn = 1 if sign == "+" else -1
    given = {"c": np.full(3, -turn * (1 + 2 * tiny), real), "a": np.full((3, 1), 1 + tiny, real)}
    made = laid(BEGUN.format(dtype, sign))
    ran = run_plan(made.function, made.plan, {**given, "b": given["a"]})
    assert results(made.function, ran)["y"].tolist() == [turn * tiny**2] * 3


LANES = """
fn lanes(a: f32[n, 64] align(16), b: f32[n, 64] align(16)): f32[n] {
    new y: f32[n]
    par n |i| {
        new s: f32
        s = 0.0
        par 64 |k| reduce(s) { s += a[i, k] * b[i, k] }
        y[i] = s
    }
    return y
}
"""


def test_lanes_of_vectors_and_turns_written_out_are_fused() -> None:
    for directives in ("", "split(k, 4) -> (k_o, k_v)\nvectorize(k_v)", "split(k, 4) -> (k_o, k_v)\nunroll(k_v)"):
        made = laid(LANES, directives)
        assert sums(made) and all(sums(made)), directives
        assert "FMUL" not in code(made), directives
        given = {"a": integers(5, 64), "b": integers(5, 64, seed=1)}
        assert wrong(made, given, orders=(None, 0)) is None, directives


DOWN = """
fn down(a: f32[64, n] align(16), b: f32[64]): f32[n] align(16)
    where n % 4 == 0
{
    new y: f32[n]
    par n |j| {
        new s: f32
        s = 0.0
        seq 64 |k| reduce(s) { s += a[k, j] * b[k] }
        y[j] = s
    }
    return y
}
"""


def test_lanes_that_have_a_sum_each_are_fused() -> None:
    made = laid(DOWN, "split(j, 4) -> (j_o, j_v)\nreorder(j_o, k, j_v)\nvectorize(j_v)")
    assert sums(made) and all(sums(made)) and "FMUL" not in code(made)
    assert wrong(made, {"a": integers(64, 8), "b": integers(64, seed=1)}, orders=(None, 0)) is None


FOLDED = """
combine more(a: f32, b: f32): f32 identity 0.0 {
    return a + 2.0 * b
}
fn folded(x: f32[n]): f32 {
    new top: f32
    top = 0.0
    par n |i| reduce(top) { top more= x[i] }
    return top
}
"""


def test_what_a_combiner_says_is_no_sum() -> None:
    """It is rounded as it is written, each time."""
    (function,) = driver.parse(FOLDED).functions
    compiled = driver.lower(function, "sm_90a", schedule=None)
    made = Laid(function, compiled.function, compiled.plan)
    assert sums(made) and not any(sums(made))
    seq = driver.parse(FOLDED.replace("par n |i|", "seq n |i|")).functions[0]
    one = driver.lower(seq, "sm_90a", schedule=None)
    assert is_proved(proved(one.function, one.plan))
    fused = planted(Laid(seq, one.function, one.plan), r"(?m)^( +)(\S+ = \(\S+ \+ \()", r"\1fused \2")
    assert not is_proved(proved(one.function, fused))


PLAIN = "fn plain(a: f32[n], b: f32[n]): f32[n] {\n new y: f32[n]\n par n |i| { y[i] = a[i] + a[i] * b[i] }\n return y\n}"
GREATEST = """
fn greatest(a: f32[m, n], b: f32[m, n]): f32[m] {
    new y: f32[m]
    par m |i| {
        y[i] = 0.0
        seq n |k| reduce(y) { y[i] max= a[i, k] * b[i, k] }
    }
    return y
}
"""


def planted(made: Laid, pattern: str, new: str) -> k.Plan:
    """The kernels with something else in their text."""
    text = plan_text(made.plan)
    changed = re.sub(pattern, new, text)
    assert changed != text
    return parse_plan(changed)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_what_no_reduce_frees_is_not_fused(target: str) -> None:
    """In a sum whose order is the text's, and where nothing is summed up."""
    for text in (ROWS.format("f32", *ORDERED), PLAIN):
        made = laid(text, target=target)
        assert not any(sums(made)) and is_proved(proved(made.function, made.plan))
        fused = planted(made, r"(?m)^( +)(\S+ = \(\S+ \+ \()", r"\1fused \2")
        verify(fused)
        assert any(sums(Laid(made.original, made.function, fused)))
        assert not is_proved(proved(made.function, fused))


def test_products_are_those_of_the_program() -> None:
    made = laid(ROWS.format("f32", *FREE))
    for pattern, new in ((r"\* b\[", "* a["), (r"b\[i, k\]", "b[i, k + 1]"), (r"a\[i, k\] \*", "a[i, 0] *")):
        assert not is_proved(proved(made.function, planted(made, pattern, new))), new


def test_a_greatest_element_is_no_sum() -> None:
    made = laid(GREATEST)
    assert not any(sums(made))
    with pytest.raises(Exception, match="nothing is there to be fused"):
        verify(planted(made, r"(?m)^( +)(\S+ = max\()", r"\1fused \2"))
