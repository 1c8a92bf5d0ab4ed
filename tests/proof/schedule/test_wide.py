"""Sums that a schedule keeps in f32: proved where a `reduce` frees their rounding, and no mistake is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from texpr.driver import parse
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value
from texpr.ir.proof import Verdict
from texpr.ir.value import Cast, Literal, Load, Op, Value
from texpr.ir.value.types import BF16, F16, F32
from texpr.isa.registry import resolve
from texpr.proof.schedule import faithful
from texpr.schedule.apply import apply_schedule
from texpr.support.record import replace

TEXT = """
fn f(A: f16[m, k], B: f16[n, k], bias: f16[n]): f16[m, n] {
    new C: f16[m, n]
    par m |i| { par n |j| {
        new s: f16 = bias[j]
        seq k |l| reduce(s) { s += A[i, l] * B[j, l] }
        new t: f16 = 0.0
        seq k |l| reduce(t) { t += A[i, l] }
        C[i, j] = 2.0 * s + t
    } }
    return C
}
schedule f { widen(s, f32)  widen(t, f32) }
"""


def laid(text: str = TEXT) -> ir.Function:
    function = parse(text)["f"]
    found = apply_schedule(function, function.schedules[0], resolve("sm_80"))
    assert found is not None
    return found.function


def is_proved(written: str, made: ir.Function) -> bool:
    proof = faithful(parse(written)["f"], made)
    return not any(True for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for _ in proof.of(verdict))


def test_proved() -> None:
    assert is_proved(TEXT, laid())


@pytest.mark.parametrize("mark", ["", "reduce(s) #ieee"])
def test_no_rounding_that_is_not_free_is_changed(mark: str) -> None:
    assert not is_proved(TEXT.replace("reduce(s)", mark), laid())


def changed(leaf: Callable[[Value], Value | None]) -> ir.Function:
    """With values changed."""
    made = laid()
    body = Rewriter(value=lambda value: map_value(value, leaf)).block(made.body)
    return replace(made, body=body)


def not_rounded(node: Value) -> Value | None:
    return node.arg if isinstance(node, Cast) and node.dtype == F16 and isinstance(node.arg, Load) else None


def rounded_otherwise(node: Value) -> Value | None:
    return Cast(Cast(node.arg, BF16), F16) if isinstance(node, Cast) and node.dtype == F16 else None


def other_operand(node: Value) -> Value | None:
    return Op("mul", (node.args[0], node.args[0]), F32) if isinstance(node, Op) and _is_product(node) else None


def not_multiplied(node: Value) -> Value | None:
    return node.args[0] if isinstance(node, Op) and _is_product(node) else None


def begins_at_one(node: Value) -> Value | None:
    return Literal(1.0, F32) if isinstance(node, Literal) and node.dtype == F32 and node.value == 0 else None


def begins_at_what_is_rounded(node: Value) -> Value | None:
    return Literal(0.1, F32) if isinstance(node, Literal) and node.dtype == F32 and node.value == 0 else None


def of_bias_twice(node: Value) -> Value | None:
    return Op("add", (node, node), F32) if isinstance(node, Cast) and node.dtype == F32 and _is_bias(node.arg) else None


def _is_bias(value: Value) -> bool:
    return isinstance(value, Load) and value.buffer.name == "bias"


def _is_product(node: Value) -> bool:
    return isinstance(node, Op) and node.name == "mul" and node.dtype == F32


BUGS = (
    not_rounded, rounded_otherwise, other_operand, not_multiplied, begins_at_one, begins_at_what_is_rounded, of_bias_twice,
)  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_no_bug_is_proved(bug: Callable[[Value], Value | None]) -> None:
    assert not is_proved(TEXT, changed(bug))


@pytest.mark.planted
def test_no_update_is_proved_twice_or_outside_of_its_loop() -> None:
    made = laid()

    def twice(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for stmt in body:
            inner = replace(stmt, body=twice(stmt.body)) if isinstance(stmt, ir.Par | ir.Seq) else stmt
            found += [inner, inner] if isinstance(inner, ir.Bind) and inner.update else [inner]
        return tuple(found)

    assert not is_proved(TEXT, replace(made, body=twice(made.body)))


@pytest.mark.planted
def test_a_sum_that_is_no_longer_freed_is_refused() -> None:
    made = laid()

    def bound(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(replace(s, body=bound(s.body), reduce=()) if isinstance(s, ir.Par | ir.Seq) else s for s in body)

    assert not is_proved(TEXT, replace(made, body=bound(made.body)))
