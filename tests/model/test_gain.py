"""Whether a second plan is worth its code: instructions of a block from between, which stands for all."""

from __future__ import annotations

import pytest

from references import FOLDER
from texpr import driver
from texpr.driver import Compiled, load, lower, parse
from texpr.ir import kernel as k
from texpr.ir.kernel.point import SIZE
from texpr.isa.target import Target
from texpr.model import gain
from texpr.model.gain import SHARE, cost, saves
from texpr.model.plan.walk import walk_of
from texpr.support.record import replace

TEXTS = {
    "a transpose": "fn f(A: f32[m, n]): f32[n, m] { new B: f32[n, m] par n, m |j, i| { B[j, i] = A[i, j] } return B }",
    "a border": """fn f(x: f32[m, n]): f32[m, n] {
    new y: f32[m, n]
    par m, n |i, j| { if j > 0 { y[i, j] = x[i, j - 1] } else { y[i, j] = 0.0 } }
    return y
}""",
    "a sum": "fn f(x: f32[n]): f32 { new s: f32 s = 0.0 par n |i| reduce(s) { s += x[i] } return s }",
}


def made(text: str, **sizes: int) -> Compiled:
    return lower(parse(text)["f"], "sm_90a", sizes, schedule="auto")


@pytest.mark.parametrize("name", TEXTS)
def test_a_block_tells_of_all(name: str) -> None:
    """Within a tenth, as blocks at a border have other work."""
    compiled = made(TEXTS[name])
    for kernel in k.kernels(compiled.plan.steps):
        sizes = {sym: SIZE for sym in kernel.sizes}
        whole, part = (walk_of(kernel, sizes, compiled.target.coalescing, roughly=rough).run() for rough in (False, True))
        assert part.sums["issued"] == pytest.approx(whole.sums["issued"], rel=0.1)


@pytest.mark.parametrize("shares", ["copy=1, compute=2", "copy=4, compute=2, registers=(24, 240)"])
def test_warps_of_a_role_stand_for_its_own(shares: str) -> None:
    """Of four warps that copy three have nothing to do, and none of them multiplies."""
    (function,) = load(FOLDER / "hopper" / "product.te").functions
    (schedule,) = function.schedules
    roles = next(each for each in schedule.directives if each.name == "roles")
    text = f"roles(k_o, {shares})"
    (other,) = parse(f"fn f() {{}} schedule f for cuda {{ {text} }}")["f"].schedules[0].directives
    chosen = replace(schedule, directives=tuple(other if each is roles else each for each in schedule.directives))
    compiled = lower(function, "sm_90a", {"M": 1024, "N": 1024, "K": 1024}, schedule=chosen)
    (kernel,) = k.kernels(compiled.plan.steps)
    whole, part = (walk_of(kernel, {}, compiled.target.coalescing, roughly=rough).run() for rough in (False, True))
    assert part.products == whole.products
    assert part.sums["issued"] == pytest.approx(whole.sums["issued"], rel=0.1)


def test_what_saves() -> None:
    compiled = made(TEXTS["a transpose"])
    plan, wide = compiled.plan, compiled.plan.wide
    assert wide is not None and saves(wide, plan, compiled.target)
    assert not saves(plan, plan, compiled.target) and not saves(plan, wide, compiled.target) and SHARE < 1


def attention() -> Compiled:
    function = load(FOLDER.parent / "bench" / "problems" / "attention_bf16.te")["attention"]
    return lower(function, "sm_90a", {"H": 4, "L": 512, "D": 128}, schedule="auto")


def test_work_of_the_first_warp_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors leave one warp of four all the work, and keep it in shared memory: a lane of another warp saves by that."""
    seen = list[tuple[k.Plan, k.Plan]]()

    def watched(one: k.Plan, other: k.Plan, target: Target) -> bool:
        seen.append((one, other))
        return saves(one, other, target)

    monkeypatch.setattr(driver, "saves", watched)
    compiled = attention()
    ((wide, plain),) = seen
    assert compiled.plan.wide is None
    assert cost(wide, compiled.target).us > SHARE * cost(plain, compiled.target).us


def test_a_size_that_nobody_gave_says_nothing_of_how_full_a_machine_is() -> None:
    """At 4096 elements a launch of whole vectors has fewer blocks than there are multiprocessors."""
    compiled = made("fn f(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = max(x[i], 0.0) } return y }")
    assert compiled.plan.wide is not None


def test_where_nothing_is_known_of_machines_instructions_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = made(TEXTS["a transpose"])
    plan, wide = compiled.plan, compiled.plan.wide
    monkeypatch.setattr(gain, "DEVICES", {})
    assert wide is not None and saves(wide, plan, compiled.target) and not saves(plan, wide, compiled.target)
    found = cost(plan, compiled.target)
    assert found.us == found.issued
