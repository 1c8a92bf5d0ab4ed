"""Computed factors in arrays: what the checker makes computes the same, and of what is no such factor it makes nothing."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from texpr.driver import parse
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.program.marked import read
from texpr.ir.program.marks import Computed
from texpr.ir.program.rewrite import Rewriter, map_value
from texpr.ir.program.text import print_function
from texpr.ir.proof import Verdict
from texpr.ir.value import Literal, Op, Value
from texpr.isa.registry import resolve
from texpr.presburger.formula import TRUE, compare, conj
from texpr.proof.schedule import faithful
from texpr.proof.schedule.factors import in_arrays
from texpr.schedule.apply import apply_schedule
from texpr.support.record import replace

PRODUCT = """
fn f(X: bf16[M, K], W: u8[K / 2, N], s: bf16[K / 16, N]): f32[M, N] where K % 16 == 0, M % 16 == 0, N % 8 == 0 {
    new Y: f32[M, N]
    par M, N |m, n| {
        Y[m, n] = 0.0
        seq K |k| reduce(Y) {
            Y[m, n] += X[m, k] * bf16(bf16(i32(bitand(shr(W[k / 2, n], 4 * (k % 2)), 15)) - 8) * s[k / 16, n])
        }
    }
    return Y
}

schedule f for sm_80 {
    split(m, 16) -> (mb, mm)  split(n, 8) -> (nb, nn)  split(k, 16) -> (ko, kk)
    reorder(mb, nb, ko, mm, nn, kk)
    stage(Y, at=nb, in=registers) -> acc
    mma(mm, nn, kk)
}
"""


def written() -> ir.Function:
    return parse(PRODUCT)["f"]


def laid() -> ir.Function:
    made = apply_schedule(written(), written().schedules[0], resolve("sm_80"))
    assert made is not None
    return made.function


def is_proved(function: ir.Function) -> bool:
    return all(each.verdict is Verdict.PROVED for each in faithful(written(), function).obligations)


def with_marks(function: ir.Function, *marks: Computed) -> ir.Function:
    kept = tuple(each for each in read(replace(function, body=())).directives if not isinstance(each, Computed))
    return replace(function, directives=(*kept, *marks))


def test_a_computed_operand_is_proved() -> None:
    made = laid()
    assert [each.words for each in read(made).directives if isinstance(each, Computed)] == [(1, 1, 0)]
    assert is_proved(made)


MARKS = {
    "none": (),
    "another statement": (Computed(0, 1, 0),),
    "no statement": (Computed(7, 1, 0),),
    "another factor": (Computed(1, 0, 0),),
    "the other way round": (Computed(1, 1, 1),),
}


@pytest.mark.parametrize("name", MARKS)
def test_a_wrong_mark_proves_nothing(name: str) -> None:
    assert not is_proved(with_marks(laid(), *MARKS[name]))


CHANGES = {
    "bits": (Literal, 15, 7),
    "the zero point": (Literal, 8, 7),
    "a shift": (Op, "shr", "bitand"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_wrong_operand_is_not_proved(name: str) -> None:
    kind, old, new = CHANGES[name]

    def leaf(node: Value) -> Value | None:
        if kind is Literal and isinstance(node, Literal) and node.value == old:
            return replace(node, value=new)
        if kind is Op and isinstance(node, Op) and node.name == old:
            return replace(node, name=str(new))
        return None

    made = laid()
    body = Rewriter(value=lambda value: map_value(value, leaf)).block(made.body)
    assert print_function(replace(made, body=body)) != print_function(made)
    assert not is_proved(replace(made, body=body))


@pytest.mark.parametrize("swapped", [0, 1])
def test_an_array_computes_the_same(swapped: int) -> None:
    """What the proof compares with, against the program, by the interpreter: all that has to be believed of it."""
    function, random = written(), np.random.default_rng(3)
    made = in_arrays(function, [Computed(1, 1, swapped)], conj(compare(c.op, c.left, c.right) for c in function.where))
    assert made is not None
    again = parse(re.sub("◆", "_", print_function(replace(made, schedules=()))))["f"]
    for m, k, n in ((16, 32, 8), (0, 16, 8), (16, 0, 8)):
        x = random.integers(-3, 4, (m, k)).astype(ml_dtypes.bfloat16)
        w = random.integers(0, 256, (k // 2, n)).astype(np.uint8)
        s = random.integers(-2, 3, (k // 16, n)).astype(ml_dtypes.bfloat16)
        found = [interpret(f, {"X": x, "W": w, "s": s}, {"M": m, "K": k, "N": n})["Y"] for f in (function, again)]
        assert np.array_equal(*found)


NO_FACTORS = {
    "written in its loops": "par M, N |m, n| { seq K |k| reduce(Y) { W[k, n] = 1.0  Y[m, n] += X[m, k] * (W[k, n] + 1.0) } }",
    "made in its loops": "par M, N |m, n| { new t: f32 = 2.0  seq K |k| reduce(Y) { Y[m, n] += X[m, k] * (t + 1.0) } }",
    "rows that data say": "par M, N |m, n| { seq K |k| reduce(Y) { Y[m, n] += X[m, k] * (W[at[k], n] + 1.0) } }",
    "in a condition": "par M, N |m, n| { seq K |k| reduce(Y) { if k < 4 { Y[m, n] += X[m, k] * (W[k, n] + 1.0) } } }",
    "an extent of an index": "par M, N |m, n| { seq m |k| reduce(Y) { Y[m, n] += X[m, k] * (W[k, n] + 1.0) } }",
    "a difference": "par M, N |m, n| { seq K |k| reduce(Y) { Y[m, n] -= X[m, k] * (W[k, n] + 1.0) } }",
    "no product": "par M, N |m, n| { seq K |k| reduce(Y) { Y[m, n] += X[m, k] + (W[k, n] + 1.0) } }",
}


@pytest.mark.parametrize("name", NO_FACTORS)
def test_what_is_no_factor_has_no_array(name: str) -> None:
    head = "fn f(X: f32[M, K], inout W: f32[K, N], at: i32[K], inout Y: f32[M, N]) where M <= K assume at in 0..K {"
    function = parse(f"{head} {NO_FACTORS[name]} }}")["f"]
    binds = [stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Bind | ir.Let)]
    number = next(n for n, stmt in enumerate(binds) if isinstance(stmt, ir.Bind) and stmt.targets[0].buffer.name == "Y")
    assert in_arrays(function, [Computed(number, 1, 0)], TRUE) is None


def test_an_array_reads_elements_that_there_are() -> None:
    """Where there are no rows, the program as written reads nothing."""
    text = "fn f(X: f32[M, K], W: f32[L], inout Y: f32[M]) where {} {{ par M |m| {{ seq K |k| reduce(Y) {{ {} }} }} }}"
    for where, is_one in (("K <= L", True), ("M * K <= M * L", False)):
        function = parse(text.format(where, "Y[m] += X[m, k] * (W[k] + 1.0)"))["f"]
        premises = compare("<=", function.where[0].left, function.where[0].right)
        assert (in_arrays(function, [Computed(0, 1, 0)], premises) is not None) is is_one
