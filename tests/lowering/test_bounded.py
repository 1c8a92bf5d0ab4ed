"""Bounds on sizes: what one scan after another would make, of a number of scans that does not grow with the bounds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest
from tests.proof.plan.test_overflow import BELOW, POWERS, open_of

from texpr.affine.expr import Sym
from texpr.driver import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel.arithmetic import Computed, computed
from texpr.isa.registry import resolve
from texpr.lowering.host import bounded as subject
from texpr.lowering.lower import lower
from texpr.schedule.apply import apply_schedule
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace


def one_by_one(plan: Plan) -> Plan:
    """The plan with its bounds, of which each is found by a scan from the start."""
    while True:
        found = next(_missing(plan), None)
        if found is None:
            return plan
        plan = replace(plan, bounds=(*plan.bounds, found))


def _missing(plan: Plan) -> Iterator[object]:
    for found in computed(plan):
        for node in found.tree.nodes():
            most = found.most if node is found.tree else None
            if not subject._holds(node, node.ends, found, most):  # pyright: ignore[reportPrivateUsage]
                yield subject._bound(node, found, most)  # pyright: ignore[reportPrivateUsage]


def bare(text: str, target: str) -> Plan:
    """The plan of the one function of a text, without its bounds."""
    return replace(lower(parse(text).functions[0], resolve(target))[0], bounds=())


def many(count: int) -> str:
    """A function with so many subscripts that need bounds of their own."""
    sizes = ", ".join(f"w{k}: i8[n{k}]" for k in range(count))
    reads = " + ".join(f"x[max(min(i * n{k} * n{k} * n{k} * n{k}, n - 1), 0)]" for k in range(count))
    return f"fn f(x: i8[n], {sizes}): i8[n] where n >= 1 {{ new y: i8[n]\n par n |i| {{ y[i] = {reads} }}\n return y }}"


TEXTS = {**BELOW, **POWERS, "many": many(5)}


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_same_bounds_as_one_by_one(name: str, target: str) -> None:
    plan = bare(TEXTS[name], target)
    assert subject.bounded(plan).bounds == one_by_one(plan).bounds


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_bounds_at_random_do_and_are_no_stricter(target: str) -> None:
    """Those of parts of a sum may be others, where several are too large; what is let pass is the same but for a hair."""
    rng, needed = random.Random(7), 0
    for _ in range(25):
        terms = [" * ".join(rng.choices("nnnmi", k=rng.randrange(2, 8))) for _ in range(rng.randrange(1, 4))]
        value = rng.choice([" + ", " - "]).join(terms)
        head = "fn f(x: i8[n], w: i8[m]): i8[n] { new y: i8[n]"
        plan = bare(f"{head}\n par n |i| {{ y[i] = x[max(min({value}, i), 0)] }}\n return y }}", target)
        made, other = subject.bounded(plan), one_by_one(plan)
        assert one_by_one(made) is made and (open_of(made) == [] or open_of(other))
        for n, m in product([2**k for k in range(31)], repeat=2):
            assert admits(made, n, m) or not admits(other, 2 * n, 2 * m), (value, n, m)
        needed += len(made.bounds) > 1
    assert needed >= 5


def admits(plan: Plan, n: int, m: int) -> bool:
    """Whether a launcher lets these sizes pass."""
    sizes = {Sym("n"): n, Sym("m"): m}
    return all(bound.left.evaluate(sizes) <= bound.right.constant for bound in plan.bounds)


def test_scans_do_not_grow_with_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers that are looked at, for each that the plan computes: as many for 24 bounds as for 3."""

    def looked_at(count: int) -> tuple[float, int]:
        plan, seen = bare(many(count), "cpu"), list[Computed]()

        def counted(plan: Plan) -> Iterator[Computed]:
            for each in computed(plan):
                seen.append(each)
                yield each

        monkeypatch.setattr(subject, "computed", counted)
        bounds = subject.bounded(plan).bounds
        return len(seen) / len(list(computed(plan))), len(bounds)

    (few, three), (more, others) = looked_at(3), looked_at(24)
    assert three >= 3 and others >= 24
    assert few == more <= 3


MERGED = """
fn merged(x: i32[n, m]): i32 {
    new s: i32 = 5
    par n |i| reduce(s) { par m |j| reduce(s) { s += x[i, j] * (i32(j) + 1) } }
    return s
}
schedule merged "s" for cpu { DIRECTIVES }"""


MERGES = ("reorder(j, i)  merge(j, i) -> q", "merge(i, j) -> q", "split(j, 3) -> (a, b)  merge(i, a) -> q")


@pytest.mark.parametrize("directives", MERGES)
def test_a_bound_lets_some_size_pass_or_the_program_is_refused(directives: str) -> None:
    """What no size satisfies would be a launcher that refuses every call."""
    function = parse(MERGED.replace("DIRECTIVES", directives)).functions[0]
    laid_out = apply_schedule(function, function.schedules[0], resolve("cpu"))
    assert laid_out is not None
    try:
        plan, _ = lower(laid_out.function, resolve("cpu"))
    except TexprError as refused:
        assert refused.diagnostics[0].code == "E0506"
        return
    assert admits(plan, 0, 3)
    assert admits(plan, 7, 0)
    assert admits(plan, 100, 100)
