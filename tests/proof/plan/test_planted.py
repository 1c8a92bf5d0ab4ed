"""Bugs put into the kernel form, one at a time, are refused; what is not refused is shown to be none, by running it."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.lowering import machine
from tests.lowering.memory import Fault
from tests.proof.plan.mutants import Mutant, mutants
from tests.proof.plan.verdicts import is_proved
from tests.schedule.laid import Laid, laid, wrong

from references import EXAMPLES as PROGRAMS
from texpr import driver
from texpr.affine.expr import Sym
from texpr.emulator import LOCKSTEP
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function
from texpr.ir.program.updates import sum_and_product
from texpr.proof.search import proved

EXAMPLES = Path(__file__).parents[3] / "examples"

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


def missed(name: str, target: str) -> tuple[int, list[str]]:
    """How many bugs were refused, and the names of those that were not, and are bugs."""
    refused, left = 0, list[str]()
    for mutant, function in planted(name, target):
        if not is_proved(proved(function, mutant.plan)):
            refused += 1
        elif not is_harmless(name, function, mutant.plan):
            left.append(mutant.name)
    return refused, left


def is_harmless(name: str, function: Function, plan: k.Plan) -> bool:
    """Whether `plan`, run by hand in some orders, gives what the interpreter does, up to rounding, without a fault."""
    found = [example for example in PROGRAMS if example.name == name and example.function == function.name]
    for example in found:
        for sizes in example.small:
            consts, open_sizes = example.split(sizes)
            arrays = example.make(np.random.default_rng(1), sizes)
            if consts and any(dict(plan.fixed).get(Sym(const)) != value for const, value in consts.items()):
                continue
            want = interpret(function, arrays, open_sizes)
            for order in range(3):
                try:
                    got = machine.run(function, plan, arrays, open_sizes, order)
                except Fault:
                    return False
                if any(not np.allclose(got[each], want[each], rtol=1e-5, atol=1e-6) for each in want):
                    return False
    return bool(found)


def test_bugs_are_refused() -> None:
    total = 0
    for name, target in SHORT:
        refused, left = missed(name, target)
        assert not left, (name, target)
        total += refused
    assert total >= 150


def test_running_shows_bugs() -> None:
    """Most of what is refused goes wrong at the sizes at which programs are run by hand, so that being right there tells."""
    refused = [(f, m.plan) for m, f in planted("saxpy", "sm_90a") if not is_proved(proved(f, m.plan))]
    shown = [function for function, plan in refused if not is_harmless("saxpy", function, plan)]
    assert len(refused) > 3 and len(shown) > 0.6 * len(refused)


@pytest.mark.long
@pytest.mark.parametrize(("name", "target"), LONG)
def test_more_bugs_are_refused(name: str, target: str) -> None:
    refused, left = missed(name, target)
    assert not left
    assert refused > 20


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["lanes", "shared"])
def test_bugs_in_a_scan_are_refused(schedule: str) -> None:
    """Lanes that read each other's registers, or shared memory: another lane, another slot, a width, a guard, an order."""
    (function,) = driver.load(EXAMPLES / "scheduled" / "scan.te").functions
    compiled = driver.lower(function, "sm_90a", schedule=next(s for s in function.schedules if s.name == schedule))
    made, x = compiled.function, np.arange(3 * 70, dtype=np.int32).reshape(3, 70) % 11
    left = [mutant for mutant in mutants(compiled.plan) if is_proved(proved(made, mutant.plan))]
    wrongs = [m.name for m in left if wrong(Laid(made, made, m.plan), {"x": x}, orders=(None, LOCKSTEP, 0)) is not None]
    assert not wrongs
    # a first value that nobody reads; a barrier that goes past what it orders nothing of
    assert all("0 + 1" in mutant.name or "barrier one statement" in mutant.name for mutant in left)


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


def test_a_copy_that_data_decides_on_is_no_step_of_a_sum() -> None:
    """A join of tuples whose test is turned round picks the lesser: no step of any sum, though nothing is lost by its parts."""
    swapped = [(m, f) for m, f in planted("argmax", "cpu") if "operands of gt swapped" in m.name]
    assert len(swapped) > 5
    assert not [mutant.name for mutant, function in swapped if is_proved(proved(function, mutant.plan))]


def test_what_was_never_written_is_not_read() -> None:
    """A place of a larger array that nothing is written to holds no other element, either."""
    source = (EXAMPLES / "matmul.te").read_text(encoding="utf-8").replace("bf16", "f32")  # not for tensor cores
    (function,) = driver.parse(source).functions
    compiled = driver.lower(function, "sm_90a", schedule="auto")
    text = plan_text(compiled.plan)
    for array, larger, read, beside in (
        ("C_acc: f32[1, 1, 8, 8]", "C_acc: f32[1, 2, 8, 8]", "= C_acc[0, 0, C_acc_out_2", "= C_acc[0, 1, C_acc_out_2"),
        ("A_s: f32[2, 128, 16]", "A_s: f32[4, 128, 16]", "A_s[((k_o + 1) % 2), i_t", "A_s[((k_o + 1) % 2) + 2, i_t"),
    ):
        assert array in text and read in text
        plan = parse_plan(text.replace(array, larger).replace(read, beside))
        assert proved(compiled.function, plan).counts["refused"]


RACED = """
fn raced(x: i32[n], w: i32[n]): i32[n] {
    new s: i32[n]
    new y: i32[n]
    par n |h| { s[h] = x[h] }
    par n |i| { seq 0 |k| { s[i] += w[k] }  y[i] = READ }
    return y
}"""


@pytest.mark.parametrize("read", ["s[i] + s[max(i - 1, 0)]", "s[max(i - 1, 0)]", "s[n - 1 - i]"])
def test_no_copy_of_what_another_iteration_touches(read: str) -> None:
    """A register gives an element back as it was, in a `par` that only reads it: in another iteration, perhaps at that time."""
    made = laid(RACED.replace("READ", read))
    assert is_proved(proved(made.function, made.plan))
    lines = plan_text(made.plan).splitlines()
    begin = max(at for at, line in enumerate(lines) if line.startswith("    let i: i32"))
    (store,) = (line for line in lines[begin:] if line.strip().startswith("y[i] = "))
    copied = """    if (i32(i) < i32(n)) {
        let s_own: i32 = s[i]  -- line 6
        for k in 0..0 {
            s_own = (s_own + w[k])  -- line 6
        }
        s[i] = s_own  -- line 6"""
    text = "\n".join((*lines[: begin + 1], copied, store, "    }", "}"))
    head, kernel, rest = text.rpartition("kernel ")
    plan = parse_plan(head + kernel + re.sub("writes .*", "writes s, y", rest))
    assert not is_proved(proved(made.function, plan))
