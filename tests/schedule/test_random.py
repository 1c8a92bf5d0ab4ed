"""Random schedules change no result: not the interpreter's, not the emitted CUDA's in any order, not the CPU's."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from tests.lowering import native
from tests.schedule.trials import (
    Made,
    Trial,
    counted,
    draw,
    fails_alone,
    findings,
    in_cuda,
    in_meaning,
    kernels_of,
    make,
    on_cpu,
    reread,
    shrunk,
)  # fmt: skip

from texpr.ir.proof import Verdict
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError

SHORT = 30
SHARD = 25
LONG = 1500
PROVED = 10
"""Of so many trials with engines the plan of one is also proved."""


def wrong(trial: Trial, fails: Callable[[Trial], str | None], said: str) -> AssertionError:
    """The error that shows a failure with the least schedule that has it."""
    if fails(trial) is None:
        return AssertionError(f"only together with others: {said}\n{trial.text}")
    least, shown = shrunk(trial, fails)
    return AssertionError(f"{shown}\n{least.text}")


def meant(made: Made) -> str | None:
    """What the checks or the interpreter find wrong in a scheduled function."""
    try:
        return "; ".join(findings(made)) or in_meaning(made)
    except TexprError as problem:
        return str(problem)


def refuted(made: Made) -> str | None:
    """What the verifier says is wrong in the plan of a trial; what it cannot decide is nothing."""
    if made.plan is None:
        return None
    refused = proved(made.function, made.plan).of(Verdict.REFUSED)
    return "; ".join(f"{each.what}, {each.about}: {each.how}" for each in refused) or None


def _refuted_alone(trial: Trial) -> str | None:
    return refuted(make(trial))


def compare(seeds: range, target: str = "sm_90a", engines: bool = False, sums: bool = False) -> Counter[str]:
    """Every trial of `seeds` in every way; what they had in them."""
    found: list[Made] = []
    for seed in seeds:
        made = make(draw(seed, target, engines, sums))
        said = meant(made)
        if said:
            raise wrong(made.trial, fails_alone, said)
        said = refuted(made) if (engines or sums) and seed % PROVED == 0 else None
        if said:
            raise wrong(made.trial, _refuted_alone, said)
        found.append(made)
    if target == "cpu":
        _native([made for made in found if made.plan is not None])
    else:
        _emulated([made for made in found if made.plan is not None])
    return counted(found)


def _emulated(found: Sequence[Made]) -> None:
    for at in range(0, len(found), SHARD // 2):
        again = reread(found[at : at + SHARD // 2])
        text = kernels_of(again)
        for made in again:
            said = in_cuda(made, text)
            if said:
                raise wrong(made.trial, fails_alone, said)


def _native(found: Sequence[Made]) -> None:
    again = reread(found)
    loaded = native.library([made.plan for made in again if made.plan is not None])
    for made in again:
        said = on_cpu(made, loaded)
        if said:
            raise wrong(made.trial, _on_cpu_alone, said)


def _on_cpu_alone(trial: Trial) -> str | None:
    (made,) = reread([make(trial)])
    assert made.plan is not None
    return on_cpu(made, native.library([made.plan]))


def require_variety(total: Counter[str], trials: int) -> None:
    """That the trials were not trivial: every directive was followed and refused often enough, and kernels are real ones."""
    shown = "\n".join(f"{name}: {count}" for name, count in sorted(total.items()))
    sys.stdout.write(f"\n{shown}\n")
    usual = ("split", "merge", "reorder", "bind", "stage", "partition")
    assert all(total[f"applied {name}"] >= trials // 15 for name in usual), shown
    rare = ("resize", "swizzle", "distribute", "place", "unroll", "launch_bounds")
    assert all(total[f"applied {name}"] >= trials // 60 for name in rare), shown
    assert all(total[f"refused {code}"] >= trials // 60 for code in ("E0905", "E0906", "E0909", "E0912")), shown
    assert sum(total[f"transforms {n}"] for n in range(3, 7)) >= trials // 5, shown
    assert total["kernels with shared memory"] >= trials // 5, shown
    assert total["kernels with barriers"] >= trials // 5, shown
    assert total["not lowered wholly"] <= trials // 20, shown


def test_schedules_change_no_result() -> None:
    require_variety(compare(range(SHORT)), SHORT)


def test_schedules_change_no_result_on_a_cpu() -> None:
    total = compare(range(10), "cpu")
    assert total["applied split"] >= 5
    assert total["applied reorder"] >= 2


@pytest.mark.long
@pytest.mark.parametrize("start", range(SHORT, SHORT + LONG, SHARD))
def test_many_schedules_change_no_result(start: int) -> None:
    compare(range(start, start + SHARD))


@pytest.mark.long
@pytest.mark.parametrize("start", range(10, 10 + 200, SHARD))
def test_many_schedules_change_no_result_on_a_cpu(start: int) -> None:
    compare(range(start, start + SHARD), "cpu")


def require_engines(total: Counter[str], trials: int) -> None:
    """That engines copied, rings were made and clusters."""
    shown = "\n".join(f"{name}: {count}" for name, count in sorted(total.items()))
    sys.stdout.write(f"\n{shown}\n")
    for name in ("via tma", "via bulk", "via cp_async", "applied pipeline", "applied cluster", "applied unguard"):
        assert total[name] >= trials // 10, f"{name}: {shown}"


def test_schedules_with_engines_change_no_result() -> None:
    require_engines(compare(range(40, 60), engines=True), 20)


@pytest.mark.long
@pytest.mark.parametrize("start", range(40, 5040, SHARD))
def test_many_schedules_with_engines_change_no_result(start: int) -> None:
    compare(range(start, start + SHARD), engines=True)


def require_sums(total: Counter[str], trials: int) -> None:
    """That sums were in parts, ahead of guards, and in chunks."""
    shown = "\n".join(f"{name}: {count}" for name, count in sorted(total.items()))
    sys.stdout.write(f"\n{shown}\n")
    for name, share in (("partial", 6), ("hoist", 30), ("scan", 12), ("skip", 40)):
        assert total[f"applied {name}"] >= trials // share, f"{name}: {shown}"


def test_schedules_of_sums_change_no_result() -> None:
    require_sums(compare(range(30), sums=True), 30)


@pytest.mark.long
@pytest.mark.parametrize("start", range(30, 1030, SHARD))
def test_many_schedules_of_sums_change_no_result(start: int) -> None:
    compare(range(start, start + SHARD), sums=True)


@pytest.mark.long
@pytest.mark.parametrize("start", range(10, 210, SHARD))
def test_many_schedules_of_sums_change_no_result_on_a_cpu(start: int) -> None:
    compare(range(start, start + SHARD), "cpu", sums=True)
