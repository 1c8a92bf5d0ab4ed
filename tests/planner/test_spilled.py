"""What ptxas spills, or serialises, sends the planner to its next candidate, if that is about as good."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from texpr import driver
from texpr.delivery import examined
from texpr.driver import Compiled, Way, lower, parse
from texpr.ir.kernel import kernels
from texpr.ir.kernel.text import plan_text
from texpr.model.gain import bound_us
from texpr.spilled import MOST, WORSE, kept_in_registers
from texpr.support.diagnostic import TexprError
from texpr.support.record import field, replace
from texpr.toolchain import CudaBinary, Resources, Toolchain, this_machine

TEXT = """
fn product(A: bf16[M, K], B: bf16[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += f32(A[i, k]) * f32(B[k, j]) }
    } }
    return C
}
"""
SIZES = {"M": 1024, "N": 1024, "K": 512}
FUNCTION = parse(TEXT)["product"]


def way_of(way: Way = driver.BY_ITSELF) -> Compiled:
    return lower(FUNCTION, "sm_90a", SIZES, schedule="auto", way=way)


def report(bad: Callable[[str], bool], serialised: int = 0) -> Callable[[str], Sequence[Resources]]:
    """A compiler that spills 8 bytes of the kernels of sources that are `bad`, or waits for their products."""

    def said(text: str) -> list[Resources]:
        spilled = 8 * (bad(text) and not serialised)
        names = [name for name in ("product_C", "product_C_wide") if f"TX_EXPORT({name})" in text]
        return [Resources(name, 90, spilled, 0, spilled, 0, 1, serialised * bad(text)) for name in names]

    return said


def test_a_plan_that_keeps_its_registers_stays() -> None:
    compiled = way_of()
    assert kept_in_registers(compiled, way_of, report(lambda text: False)) is compiled


@pytest.mark.parametrize("serialised", [0, 1])
def test_the_next_candidate_is_taken_and_the_reason_told(serialised: int) -> None:
    compiled = way_of()
    found = kept_in_registers(compiled, way_of, report(lambda text: text == compiled.source, serialised))
    assert found.source != compiled.source and found.planned is not None and compiled.planned is not None
    assert bound_us(found.plan, found.target) <= WORSE * bound_us(compiled.plan, compiled.target)
    (said,) = found.planned.nests[0].refused[-1:]
    assert said == ("ptxas waits behind each product of it" if serialised else "ptxas spills 8 bytes of registers of it")


def test_where_all_spill_the_first_stays() -> None:
    compiled, asked = way_of(), list[Way]()

    def again(way: Way) -> Compiled:
        asked.append(way)
        return compiled

    found = kept_in_registers(compiled, again, report(lambda text: True))
    assert found.source == compiled.source and found.planned is not None
    assert found.planned.nests[0].refused[-1].endswith("it stays")
    assert len(asked) == 2 * MOST, "of the plan for all callers, and of the wide one"


def test_a_candidate_that_is_worse_is_not_taken() -> None:
    compiled = way_of()
    slow = lower(FUNCTION, "sm_90a", SIZES, schedule=None)
    assert bound_us(slow.plan, slow.target) > WORSE * bound_us(compiled.plan, compiled.target)
    found = kept_in_registers(compiled, lambda way: slow, report(lambda text: text == compiled.source))
    assert found.source == compiled.source


def test_a_candidate_that_cannot_be_followed_is_passed_over() -> None:
    compiled = way_of()
    wanted = way_of(Way(picks={"nest.4": 2}))

    def again(way: Way) -> Compiled:
        if way.picks["nest.4"] == 1:
            raise TexprError(())
        return wanted

    found = kept_in_registers(compiled, again, report(lambda text: text == compiled.source))
    assert found.source == wanted.source


def test_no_such_candidate_is_a_limitation() -> None:
    with pytest.raises(TexprError, match="E0914"):
        way_of(Way(picks={"nest.4": 999}))


def test_a_wide_plan_has_a_candidate_of_its_own() -> None:
    compiled = way_of()
    assert compiled.wide is not None
    wide = next(kernels(compiled.wide.plan.steps)).name

    def said(text: str) -> list[Resources]:
        return [Resources(wide, 90, 8 * (text == compiled.source), 0, 0, 0, 1)]

    found = kept_in_registers(compiled, way_of, said)
    assert found.wide is not None and compiled.schedule == found.schedule and compiled.wide.schedule != found.wide.schedule
    assert found.wide.planned is not None and found.wide.planned.nests[0].refused[-1].startswith("ptxas spills 8 bytes")


class Tools(Toolchain):
    """Compilers that spill the first source that they are given."""

    seen: list[str] = field(default_factory=list[str])

    def device(self, text: str, headers: Mapping[str, str], target: str) -> CudaBinary:
        self.seen.append(text)
        return CudaBinary(target, b"", b"", tuple(report(lambda text: text == self.seen[0])(text)))


def test_what_is_shown_and_proved_is_the_plan_that_is_taken() -> None:
    tools = Tools(this_machine())
    compiled, shown = examined(FUNCTION, "sm_90a", SIZES, "auto", tools)
    assert compiled.source != tools.seen[0] and compiled.source in tools.seen
    assert shown.plan == plan_text(compiled.plan) and not shown.proof["counts"]["undecided"]


def test_without_a_compiler_the_first_is_taken(tmp_path: Path) -> None:
    bare = replace(this_machine(), environment={"PATH": str(tmp_path)}, packages=(), toolkits=(), cache=tmp_path)
    compiled, _ = examined(FUNCTION, "sm_90a", SIZES, "auto", Toolchain(bare))
    assert compiled.source == way_of().source
