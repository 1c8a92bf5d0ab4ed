"""Bugs put into the kernel form, one at a time, are refused; those that are none, by a reason that is written here, are not."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.verifier.mutants import Mutant, mutants

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.ir.program import Function
from texpr.ir.updates import sum_and_product
from texpr.verifier import Proof
from texpr.witness import proved

EXAMPLES = Path(__file__).parents[2] / "examples"

HARMLESS = {
    "guard: lt for le": "the other arm is right for what comes to it",
    "guard: 0 + 1": "another thread does it, and all threads know the value",
    "one element too narrow": "what is left out pads rows, and is never touched",
    "guard: 4 * ": "the other arm is right for what comes to it",
    "guard: 16 * ": "the other arm is right for what comes to it",
}
"""Changes that change no result."""

SHORT = (
    ("saxpy", "sm_90a"),
    ("saxpy", "cpu"),
    ("transpose", "sm_90a"),
    ("cholesky", "sm_90a"),
    ("histogram", "sm_90a"),
    ("sum", "sm_90a"),
)
LONG = (
    ("matmul", "cpu"),
    ("softmax", "sm_90a"),
    ("layernorm", "cpu"),
    ("prefix_sum", "sm_90a"),
    ("jacobi", "sm_90a"),
    ("argmax", "cpu"),
)


def planted(name: str, target: str) -> Iterator[tuple[Mutant, Function]]:
    """The mutants of a program of the gallery, with the function that they are wrong of."""
    for function in driver.load(EXAMPLES / f"{name}.te").functions:
        compiled = driver.lower(function, target)
        assert is_proved(proved(compiled.function, compiled.plan))
        yield from ((mutant, compiled.function) for mutant in mutants(compiled.plan))


def is_proved(proof: Proof) -> bool:
    """Whether nothing is open."""
    return not proof.counts["refused"] and not proof.counts["undecided"]


def missed(name: str, target: str) -> tuple[int, list[str]]:
    """How many bugs were refused, and the names of those that were not and are not harmless."""
    refused, left = 0, list[str]()
    for mutant, function in planted(name, target):
        if not is_proved(proved(function, mutant.plan)):
            refused += 1
        elif not any(word in mutant.name for word in HARMLESS):
            left.append(mutant.name)
    return refused, left


def test_bugs_are_refused() -> None:
    total = 0
    for name, target in SHORT:
        refused, left = missed(name, target)
        assert not left, (name, target)
        total += refused
    assert total >= 150


@pytest.mark.long
@pytest.mark.parametrize(("name", "target"), LONG)
def test_more_bugs_are_refused(name: str, target: str) -> None:
    refused, left = missed(name, target)
    assert not left
    assert refused > 20


def test_a_refusal_names_two_instances() -> None:
    found = [
        obligation.how
        for mutant, function in planted("cholesky", "sm_90a")
        if "no barrier" in mutant.name
        for obligation in proved(function, mutant.plan).obligations
        if obligation.what == "in order" and obligation.verdict.value == "refused"
    ]
    assert found
    assert all("thread◁" in how and "thread▷" in how for how in found)


ORDERED = """
fn product(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""


@pytest.mark.parametrize("sign", ["+", "-"])
def test_only_a_freed_sum_may_be_fused(sign: str) -> None:
    """What `fused` says is proved again: by the loop's `reduce` alone may a product and its sum be rounded together."""
    free = ORDERED.replace("+=", f"{sign}=")
    (function,) = driver.parse(free).functions
    compiled = driver.lower(function, "cpu")
    assert all(s.fused for s in _sums(compiled.plan))
    assert is_proved(proved(compiled.function, compiled.plan))
    (ordered,) = driver.parse(free.replace(" reduce(C)", "")).functions
    plain = driver.lower(ordered, "cpu", schedule=None)
    assert not any(s.fused for s in _sums(plain.plan))
    assert is_proved(proved(plain.function, plain.plan))
    fused = parse_plan(re.sub(r"(?m)^( +)(c\w*(\[.*\])? = \(c)", r"\1fused \2", plan_text(plain.plan)))
    assert any(s.fused for s in _sums(fused))
    assert not is_proved(proved(plain.function, fused))


def _sums(plan: k.Plan) -> list[k.Assign | k.Store]:
    every = [s for kernel in k.kernels(plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.Assign | k.Store)]
    found = [s for s in every if sum_and_product(s.value)]
    assert found
    return found
