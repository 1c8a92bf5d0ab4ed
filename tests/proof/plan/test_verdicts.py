"""What a build says of a proof that is none: a fault of the compiler, or what it cannot decide."""

import pytest

from texpr import driver
from texpr.artifact import Part, shipped, show
from texpr.artifact.proofs import proof_files
from texpr.proof.plan import Obligation, Proof, Verdict
from texpr.support.diagnostic import CompilerBug, Limitation

TEXT = """
fn shift(x: f32[n]): f32[n] %s {
    new y: f32[n]
    par n |i| { y[i] = x[i] + 1.0 }
    return y
}
"""


def obligation(verdict: Verdict) -> Obligation:
    return Obligation("shift_y", "in order", "y[i] and y[i]", verdict, "not at i◁ = 0, i▷ = 1")


def test_a_refusal_is_our_fault() -> None:
    with pytest.raises(
        CompilerBug, match=r"kernel `shift_y` is not what the program says: in order, y\[i\] and y\[i\]: not at"
    ):
        Proof("shift", (), (obligation(Verdict.UNDECIDED), obligation(Verdict.REFUSED))).require(unproved=True)


def test_what_is_undecided_is_a_limitation() -> None:
    with pytest.raises(Limitation) as caught:
        Proof("shift", (), (obligation(Verdict.PROVED), obligation(Verdict.UNDECIDED))).require()
    (found,) = caught.value.diagnostics
    assert found.code == "E0508"
    assert "`shift_y` does what `shift` says" in found.message and "#unproved" in str(found.help)


def test_the_text_may_assume_it() -> None:
    Proof("shift", (), (obligation(Verdict.UNDECIDED),)).require(unproved=True)


def part(pragma: str) -> Part:
    """The function for a GPU."""
    compiled = driver.lower(driver.parse(TEXT % pragma)["shift"], "sm_90a")
    return shipped("sm_90a", [show(compiled.function, compiled.plan)])


def test_a_build_goes_on_where_all_is_proved() -> None:
    assert "proof.json" in proof_files([part("")])
    assert "proof.json" in proof_files([part("#unproved")])
