"""No integer of a plan leaves its width: what is shown of right plans, and what is said where the compiler is wrong."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from tests.proof.plan.verdicts import is_proved
from tests.proof.plan.verdicts import open_of as open_of_proof
from tests.schedule.laid import laid

from texpr.affine import typed as trees
from texpr.affine.expr import Sym, expr
from texpr.affine.typed import Typed
from texpr.backends.cpu import print_cpu
from texpr.driver import lower, parse
from texpr.ir.kernel import HostLoop, Plan, arithmetic
from texpr.ir.kernel.arithmetic import Turn
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Compare
from texpr.ir.proof import Obligation, Verdict
from texpr.proof.plan.overflow import _enter, overflows  # pyright: ignore[reportPrivateUsage]
from texpr.proof.plan.spans import Spans
from texpr.proof.search import proved
from texpr.support.limits import LARGEST_SIZE, MOST_INDEX, Width
from texpr.support.record import replace

READ = "fn f(x: i8[n]): i8[n] {{ new y: i8[n]\n par n |i| {{ y[i] = x[{}] }}\n return y }}"
BELOW = {
    "min": READ.format("min(i, n * n * n)"),
    "quotient": READ.format("(i * n * n + i) / (n * n + 1)"),
    "remainder": READ.format("(i * n * n * n + i) % n"),
    "flat": "fn f(x: f32[n * m * k]): f32[n, m, k] { new y: f32[n, m, k]\n par n |i| { par m |j| { par k |l| {"
    " y[i, j, l] = x[(i * m + j) * k + l] } } }\n return y }",
    "empty": "fn f(x: i8[n], w: i8[z]): i8[n * n * n, z] { new y: i8[n * n * n, z]\n"
    " par n * n * n |i| { par z |j| { y[i, j] = w[j] } }\n return y }",
    "groups": "fn f(x: f32[n * r * r]): f32[n, r, r] { new y: f32[n, r, r]\n"
    " par n * r * r |i| { y[i / (r * r), i / r % r, i % r] = x[i] }\n return y }",
    "host loop": "fn f(x: f32[n]): f32[n] { new y: f32[n]\n par n |i| { y[i] = x[i] }\n"
    " seq n * n |t| { par n |i| { y[i] = y[n - 1 - i] * 0.5 } }\n return y }",
}


def plan_of(text: str, target: str) -> Plan:
    """The plan of the one function of a text."""
    return lower(parse(text).functions[0], target).plan


def open_of(plan: Plan) -> list[Obligation]:
    """What is not proved."""
    return [each for each in overflows(plan) if each.verdict is not Verdict.PROVED]


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", [name for name in BELOW if name != "host loop"])
def test_what_exceeds_64_bits_is_computed_wider_or_bounded(name: str, target: str) -> None:
    plan = plan_of(BELOW[name], target)
    assert open_of(plan) == []


def test_a_loop_of_the_host_turns_as_often_as_an_int_says() -> None:
    plan = plan_of(BELOW["host loop"].replace("y[n - 1 - i] * 0.5", "y[i] * 0.5"), "cpu")
    assert open_of(plan) == []


def test_an_array_that_may_be_empty_brings_no_sizes_that_overflow() -> None:
    """z = 0 lets any n pass but for the bound."""
    plan = plan_of(BELOW["empty"], "cpu")
    assert any(str(bound.left).count("n * n * n") and bound.right.constant == MOST_INDEX for bound in plan.bounds)


DATA = {
    "rows": "fn f(first: {0}[m + 1], x: f32[k]): f32[m] assume first in 0..k + 1 {{ new y: f32[m]\n"
    " par m |i| {{ new s: f32 = 0.0\n"
    " seq first[i + 1] - first[i] |j| reduce(s) {{ s += x[min(first[i] + j, k - 1)] }}\n y[i] = s }}\n return y }}",
    "next": "fn f(x: i8[n + 1], t: {0}[n]): i8[n] assume t in 0..n {{ new y: i8[n]\n"
    " par n |i| {{ y[i] = x[t[i] + 1] }}\n return y }}",
    "any": "fn f(x: i8[n], t: {0}[n]): i8[n] {{ new y: i8[n]\n"
    " par n |i| {{ y[i] = x[max(min(t[i], n - 1), 0)] }}\n return y }}",
    "quotient": "fn f(x: i8[n], t: {0}[n]): i8[n] where n >= 1 {{ new y: i8[n]\n"
    " par n |i| {{ y[i] = x[max(min(t[i] / (0 - n), n - 1), 0)] }}\n return y }}",
    "square": "fn f(x: i8[n], t: {0}[n]): i8[n] {{ new y: i8[n]\n par n |i| {{ y[i] = x[(t[i] * t[i]) % n] }}\n return y }}",
}
"""Integers that data say, of any type."""


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [each for each in product(DATA, ("i8", "i32", "i64", "u32", "u64")) if each != ("square", "u64")],
)
def test_data_are_as_large_as_is_promised_or_computed_wider(name: str, dtype: str, target: str) -> None:
    """But for the square of 64 bits without a sign, which 128 with one do not hold."""
    plan = plan_of(DATA[name].format(dtype), target)
    assert open_of(plan) == []


@pytest.mark.planted
def test_no_promise_that_is_not_made() -> None:
    """What the compiler believes of data is looked up again."""
    plan = plan_of(DATA["rows"].format("i64"), "cpu")
    assert plan.assumes and open_of(plan) == []
    assert [each for each in overflows(replace(plan, assumes=())) if each.verdict is not Verdict.PROVED]


@pytest.mark.planted
def test_a_promise_of_the_plan_alone() -> None:
    """It would let d[i] + 1 be an `int`, for data that the program takes as they are."""
    text = (
        "fn f(x: f32[n], d: i32[n]): f32[n] where n >= 1 { new y: f32[n]\n par n |i| { y[i] = x[(d[i] + 1) % n] }\n return y }"
    )
    made = lower(parse(text).functions[0], "sm_90a")
    assert is_proved(proved(made.function, made.plan))
    more = plan_text(made.plan).replace("    require n >= 1\n", "    require n >= 1\n    assume d in 0..n\n", 1)
    left = open_of_proof(proved(made.function, parse_plan(more)))
    assert [each.what for each in left] == ["same interface"]


KEPT = """
fn f(x: f32[n], data: i64[1]): f32
    assume data in 0..n
{
    new s: f32 = 0.0
    let t = data[0]
    par t |i| reduce(s) { s += x[i] }
    return s
}"""


@pytest.mark.planted
@pytest.mark.parametrize("wrong", ["(data[0] + 1:i64)", "-9223372036854775808:i64", "t_1[]"])
def test_data_that_one_launch_keeps_for_another_are_what_is_promised(wrong: str) -> None:
    """Where nothing else is kept there: else the variable of a loop up to them may leave its type."""
    assert open_of(plan_of(KEPT, "cpu")) == []
    text = plan_text(plan_of(KEPT, "sm_90a"))
    assert text.count("t_1[] = data[0]") == 1
    assert open_of(parse_plan(text)) == []
    assert open_of(parse_plan(text.replace("t_1[] = data[0]", f"t_1[] = {wrong}")))
    assert open_of(parse_plan(text.replace("t_1[] = data[0]", f"t_1[] = data[0]\n t_1[] = {wrong}")))


@pytest.mark.planted
def test_what_is_not_yet_kept_is_no_promise() -> None:
    """What nobody wrote is any number, and so is what one of it makes, though nobody asks for that."""
    text = plan_text(plan_of(KEPT, "sm_90a")).replace(" dependent\n", "\n")
    more = "let z: i64 = t_1[]\n let w: i64 = i64(4611686018427387904 * z)\n"
    for old, new in (
        ("t_1[] = data[0]", f"{more} t_1[] = data[0]"),
        ("launch f_s\n    launch f_s_1\n", "launch f_s_1\n launch f_s\n"),
    ):
        assert text.count(old) == 1
        assert open_of(parse_plan(text.replace(old, new)))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_factor_that_is_never_negative_is_no_larger_for_what_is_subtracted(target: str) -> None:
    text = """fn f(x: i8[k], w: i8[n, z], v: i8[m, z]): i8[k] { new y: i8[k]
    par k |i| { y[i] = x[(2147483647 * i * n * n * min(2147483647 - i, m - n)) % k] }
    return y }"""
    plan = plan_of(text, target)
    assert open_of(plan) == []
    assert not plan.bounds or open_of(replace(plan, bounds=()))


ALONE = """
fn f(x: i32[n, m]): i32[n] {
    new y: i32[n]
    par n |j| { y[j] = 0
        par m |i| reduce(y) { y[j] += x[j, i] } }
    return y
}"""


@pytest.mark.planted
@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("", "(i32(4294967296 * thread) == 0:i32)"),
        ("", "(i32(4294967296 * thread) < 1:i32)"),
        ("", "(i8(256 * thread) == 0:i8)"),
        ("", "(0:u8 == u8(256 * thread))"),
        ("", "(u32(thread) == u32(0)) and (u32(-thread) <= 0:u32)"),
        ("let low: i8 = i8(256 * thread)", "(low == 0:i8)"),
    ],
)
def test_a_test_of_an_index_that_its_type_does_not_hold(before: str, test: str) -> None:
    """Where it is read as the number that it is, and is another one when it is asked: here all threads store."""
    made = laid(ALONE, "bind(j, grid.x) stage(x, at=i, in=shared, via=cp_async) -> held")
    text, store = plan_text(made.plan), "        if (i32(thread) == 0:i32) {"
    assert text.count(store) == 1 and not open_of(made.plan)
    test = f"({test})" if " and " in test else test
    assert open_of(parse_plan(text.replace(store, f"        {before}\n        if {test} {{")))
    kept = test.replace("4294967296 * ", "").replace("256 * ", "").replace("-thread", "thread")
    kept = text.replace(store, f"        {before.replace('256 * ', '')}\n        if {kept} {{")
    assert not open_of(parse_plan(kept))


def test_what_a_product_of_indices_that_data_say_is_more_than_0_for() -> None:
    """It turns for two that are negative, too, so that none is at least 1; what is not negative is."""
    a, b, i = Sym("a"), Sym("b"), Sym("i")
    for low in (-5, 0):
        known = Spans({a: (low, 5), b: (-5, 5)})
        _enter(Turn(i, expr(0), expr(a) * b), known, [], [])
        assert known.ends_of(expr(a)) == (low if low < 0 else 1, 5) and known.ends_of(expr(b)) == (-5, 5)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_no_turns_are_no_reason_to_bound_sizes(target: str) -> None:
    """Below 0 a loop of the host turns as little as at 0, however far; one that turns too often is bounded still."""
    text = BELOW["host loop"].replace("seq n * n", "seq {}").replace("y[n - 1 - i]", "y[i]").replace("n])", "n], w: i8[m])")
    plan = plan_of(text.replace("{}", "n - m * m"), target)
    assert (plan.bounds, open_of(plan)) == ((), [])
    plan = plan_of(text.replace("{}", "m * m - n"), target)
    assert plan.bounds and open_of(plan) == []
    assert open_of(replace(plan, bounds=()))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_turns_of_the_host_may_be_more_than_a_size(target: str) -> None:
    plan = plan_of(
        "fn f(x: f32[n], v: i8[m], w: i8[k]): f32[n] { new y: f32[n]\n par n |i| { y[i] = x[i] }\n seq m + k |t| {"
        " par n |i| { y[i] = x[i] * x[min(t + 40000, n - 1)] }\n par n |i| { y[i] = y[i] + x[min(t + 65000, n - 1)] } }\n"
        " return y }",
        target,
    )
    assert open_of(plan) == []


@pytest.mark.parametrize("turns", ["1", "3", "19"])
def test_turns_of_the_host_are_no_more_than_its_loop_has(turns: str) -> None:
    """A lane is a number of 32 bits; what the host passes was taken for any number."""
    plan = plan_of(
        "fn f(x: i32[n]): i32[n] { new y: i32[n]\n par n |i| { y[i] = x[i] }\n"
        f" seq {turns} |t| {{ par n |i| {{ new v: i32[40] par 40 |d| {{ v[d] = i32(d) * y[i] }}"
        " y[i] = select(2 * t < 40, v[2 * t], 3) } }\n return y }",
        "sm_90a",
    )
    assert open_of(plan) == []


@pytest.mark.unproved("shares by products of sizes")
@pytest.mark.parametrize("index", ["2 * j", "3 * j + 1"])
@pytest.mark.parametrize("shared", ["m + 1", "m + 2"])
def test_an_index_is_no_more_than_its_test_says(shared: str, index: str) -> None:
    """A bound on one index bounds the size that another rests on, but not what its block is rounded up to."""
    text = f"""
    fn f(x: i32[n], w: i32[m]): (i32[n], i32[m]) {{
        new p: i32[n]
        new r: i32[m]
        par n |k| {{ p[k] = k }}
        par m |j| {{ r[j] = w[j] * select({index} < n, x[{index}], 1) }}
        return (p, r)
    }}"""
    plan = laid(text, f"split(k, {shared}) -> (a, b)").plan
    assert any(not bound.left.is_constant for bound in plan.bounds)
    assert open_of(plan) == []


@pytest.mark.planted
def test_a_test_says_no_more_of_an_index_than_of_others() -> None:
    """What is above one by another test is left; where it is less than a sum, so is what the others of that may take away."""
    m, n, i, j = map(Sym, "mnij")
    known = Spans({s: (0, LARGEST_SIZE) for s in (m, n, i, j)}, {m: (expr(m), 1), n: (expr(n), 1), i: (expr(m) + 255, 1)})
    for fact, top in (
        (expr(n) - 1 - i, expr(m) + 255),
        (expr(m) - 1 - expr(i) * 2, expr(m) + 255),
        (expr(m) + j - i, expr(m) + 255),
        (expr(m) + 300 - i, expr(m) + 255),
        (expr(m) + 7 - i - j, expr(m) + 7),
        (expr(m) - 1 - i, expr(m) - 1),
    ):
        known.lower([fact])
        assert known.tops[i] == (top, 1)


STEPS = """
fn steps(x: i32[n, m] align(16)): i32[n]
    where m % 4 == 0
{
    new y: i32[n]
    par n |i| { y[i] = 0 }
    seq m |k| { par n |j| reduce(y) { y[j] += x[j, k] } }
    return y
}"""
STEP = "split(k, {step}) -> (o, s)  split(j, 8) -> (b, t)  reorder(o, b, t, s)  stage(x, at=b, in=shared, via={via}) -> xs"


@pytest.mark.parametrize("via", ["ld", "cp_async", "tma"])
@pytest.mark.parametrize("step", [4, 32])
def test_turns_of_the_host_are_no_more_than_a_size_says(step: int, via: str) -> None:
    """Where a tile begins was taken to exceed an `int`, and was bounded to one at all sizes: none would have passed."""
    plan = laid(STEPS, STEP.format(step=step, via=via)).plan
    assert any(isinstance(each, HostLoop) and not each.extent.is_constant for each in plan.steps)
    assert not any(bound.left.is_constant for bound in plan.bounds)
    assert open_of(plan) == []


@pytest.mark.planted
@pytest.mark.parametrize("step", [4, 32])
def test_turns_of_the_host_that_are_more_than_tiles(step: int) -> None:
    """An engine takes coordinates of 32 bits, which those of the last turns exceed."""
    plan = laid(STEPS, STEP.format(step=step, via="tma")).plan
    lines = plan_text(plan).splitlines()
    (turns,) = (line for line in lines if "loop o < " in line)
    assert open_of(parse_plan("\n".join("loop o < m {" if line is turns else line for line in lines)))


def test_what_is_fetched_ahead_of_a_test_may_lie_outside() -> None:
    """32 bits hold the place of any element, but not of those that the test leaves out."""
    plan = plan_of(
        "fn f(x: f32[200000, 10000], v: f32[k]): f32[200000] { new y: f32[200000]\n par 200000 |i| { y[i] = 0.0\n"
        " par k |j| reduce(y) { if j < 10000 { y[i] += x[i, j] } } }\n return y }",
        "cpu",
    )
    ahead = [line for line in print_cpu(plan).splitlines() if "tx_fetch_ahead" in line]
    assert ahead and all("(long long)" in line for line in ahead)
    assert open_of(plan) == []


@pytest.mark.planted
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", ["min", "quotient", "remainder"])
def test_no_integer_of_64_bits_for_one_of_128(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(BELOW[name], target)
    narrow: Callable[..., Typed] = trees._step  # pyright: ignore[reportPrivateUsage]

    def step(*args: object) -> Typed:
        found = narrow(*args)
        return replace(found, width=min(found.width, Width.LONG, key=lambda w: w.value))

    monkeypatch.setattr(trees, "_step", step)
    assert open_of(plan)


@pytest.mark.planted
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_no_integer_of_32_bits_for_one_of_64(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(
        "fn f(x: f32[n, m]): f32[m, n] { new y: f32[m, n]\n par m |i| { par n |j| { y[i, j] = x[j, i] } }\n return y }", target
    )
    assert open_of(plan) == []
    narrow: Callable[..., Typed] = trees._step  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(trees, "_step", lambda *args: replace(narrow(*args), width=Width.INT))
    assert open_of(plan)


@pytest.mark.planted
def test_no_plan_without_its_bounds() -> None:
    plan = plan_of(BELOW["empty"], "cpu")
    assert plan.bounds and open_of(plan) == []
    assert open_of(replace(plan, bounds=()))
    loose = tuple(replace(bound, right=expr(2**80)) for bound in plan.bounds)
    assert open_of(replace(plan, bounds=loose))


HALVED = """
fn f(y: i32[n], w: i32[m]): i32
{
    new z: i32[n]
    par n |j| { z[j] = y[j] }
    new s: i32
    s = 0
    par m |i| reduce(s) {
        s max= min(select(2 * i >= 0 and 2 * i < n, y[2 * i], 3), select(i + 1 >= 0 and i + 1 < n, z[i + 1], 3)) - i
    }
    return s
}"""
"""Each second element, staged where it is: the condition on the element is computed in 32 bits, as the launcher bounds `m`."""


def test_what_launchers_check_bounds_parts_of_a_condition() -> None:
    schedule = "split(i, 100) -> (o, l)  stage(y, at=l, in=shared, fill=zero, via=ld) -> ys  pipeline(l, stages=4)"
    plan = laid(HALVED, schedule).plan
    assert any(bound.left.syms() for bound in plan.bounds)
    assert open_of(plan) == []


@pytest.mark.planted
def test_no_division_that_truncates_what_may_be_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(READ.format("max((i - 2 * n) / 3, 0)"), "cpu")
    assert open_of(plan) == []
    division: Callable[..., Typed] = trees._division  # pyright: ignore[reportPrivateUsage]

    def truncated(*args: object) -> Typed:
        found = division(*args)
        return replace(found, op="/") if found.op == "floordiv" else found

    monkeypatch.setattr(trees, "_division", truncated)
    assert open_of(plan)


@pytest.mark.planted
def test_no_tree_that_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(BELOW["flat"], "cpu")
    right: Callable[..., Typed] = arithmetic.place  # type: ignore[attr-defined]
    monkeypatch.setattr(arithmetic, "place", lambda *args, **how: replace(right(*args, **how), op="-"))
    assert all(each.verdict is Verdict.REFUSED for each in open_of(plan)) and open_of(plan)


def test_a_requirement_is_no_bound_that_launchers_can_trust_before_it_is_checked() -> None:
    """Conditions are computed before they hold: they may not be used for themselves."""
    plan = plan_of(READ.format("i"), "cpu")
    n = expr(Sym("n"))
    five = replace(plan, requires=(Compare("<=", n * n * n * n * n, expr(9)),))
    assert open_of(five)


POWERS = {
    "difference": READ.format("max(min(n * n * n * n * n - n * n * n * n * n * i, i), 0)"),
    "less": READ.format("max(min(n * n * n * n - n * n * n * n * n * i, i), 0)"),
    "product": READ.format("max(min(n * n * n * n * n * i, i), 0)"),
    "two sizes": "fn f(x: i8[n], w: i8[m]): i8[n] { new y: i8[n]\n"
    " par n |i| { y[i] = x[max(min(n * n * n * m * m - n * n * m * m * m * i, i), 0)] }\n return y }",
    "squared": READ.format("max(min(n * n * n * n * n - n * n * n * n * i * i, i), 0)"),
    "sum": "fn f(x: i8[n], w: i8[m]): i8[n] { new y: i8[n]\n"
    " par n |i| { y[i] = x[max(min(n * n * n * n * n + m * i - n * n * n * n * n * i, i), 0)] }\n return y }",
}
"""Powers of sizes that lowering bounds, with parts that only a term of the bound with more factors is as great as."""


@pytest.mark.parametrize("target", ["cpu", "sm_90a", "sm_80"])
@pytest.mark.parametrize("name", POWERS)
def test_powers_of_sizes_are_shown_to_fit_by_the_bounds_that_lowering_makes(name: str, target: str) -> None:
    plan = plan_of(POWERS[name], target)
    assert plan.bounds and open_of(plan) == []
