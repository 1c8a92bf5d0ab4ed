"""What cannot be proved of a schedule: refused, believed where the text says so, done without where the compiler chose it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.planner import test_going

import texpr
from texpr import artifact, delivery, driver
from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.kernel import Plan
from texpr.ir.program.marks import Roles
from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.isa.target import Target
from texpr.lowering.notes import Notes
from texpr.proof.schedule import prove
from texpr.support.diagnostic import CompilerBug, Limitation, limitation

TEXT = """
fn twice(x: f32[n]): f32[n] {mark} {{
    new y: f32[n]
    par n |i| {{ y[i] = 2.0 * x[i] }}
    return y
}}
schedule twice {{ split(i, parts=n + 1) -> (io, ii)  split(ii, parts=n + 2) -> (iii, iij) }}
"""

MATMUL = Path(__file__).parents[3] / "examples" / "matmul.te"


def kernel(mark: str) -> texpr.Kernel:
    function = texpr.parse(TEXT.format(mark=mark))["twice"]
    return texpr.compile(function, target="sm_90a", emulate=True, schedule=function.schedules[0])


@pytest.mark.unproved("splits by sizes")
def test_it_is_refused() -> None:
    with pytest.raises(Limitation) as found:
        kernel("")
    (said,) = found.value.diagnostics
    assert said.code == "E0509"
    assert said.help is not None and "#unproved" in said.help
    assert said.span is not None and said.span.line == 4


@pytest.mark.unproved("splits by sizes")
def test_where_the_text_says_so_it_is_believed(tmp_path: Path) -> None:
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(kernel("#unproved")(x), 2 * x)
    function = texpr.parse(TEXT.format(mark="#unproved"))["twice"]
    made = texpr.build(function, "cpu", tmp_path / "out", schedule=function.schedules[0])
    assert artifact.verify(made.directory).name == "twice"
    ((name, left),) = artifact.believed_schedules(made.proofs)
    assert name == "cpu/twice" and left


def doubted(verdict: Verdict) -> Proof:
    return Proof("matmul", (), (Obligation("", "in order", "C and C", verdict, "not at i = 0"),))


def test_what_the_compiler_chose_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "faithful", lambda *_: doubted(Verdict.UNDECIDED))
    found = texpr.compile(texpr.load(MATMUL)["matmul"], target="sm_90a", emulate=True)
    ones = np.ones((5, 5), ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found(ones, ones), np.full((5, 5), 5, np.float32))


def test_where_roles_are_not_decided_all_warps_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a schedule, and of a wide plan."""
    product = texpr.parse(test_going.REAL["few terms"].text)["f"]
    whole = delivery.lowered(product, "sm_90a", None, "auto")
    real = delivery.faithful

    def doubting(written: ir.Function, function: ir.Function) -> Proof:
        roles = any(isinstance(mark, Roles) for loop in _loops(function) for mark in loop.directives)
        return doubted(Verdict.UNDECIDED) if roles else real(written, function)

    monkeypatch.setattr(delivery, "faithful", doubting)
    plain = delivery.lowered(product, "sm_90a", None, "auto")
    assert "roles" in _names(whole) and _names(plain) and "roles" not in _names(plain)
    open_rows = texpr.parse(test_going.REAL["with a bias"].text.replace("align(16)", ""))["f"]
    wide = delivery.lowered(open_rows, "sm_90a", None, "auto").wide
    assert wide is not None and _names(wide) and "roles" not in _names(wide)


@pytest.mark.parametrize("code, name", [("E0920", "mma"), ("E0902", "")])
def test_where_roles_cannot_be_lowered_all_warps_do_the_same(monkeypatch: pytest.MonkeyPatch, code: str, name: str) -> None:
    """A nest is planned again without them; of what else is refused there it gets no schedule."""
    real = driver.lower_function

    def refusing(
        function: ir.Function, target: Target, fixed: Mapping[Sym, int], ending: str = ""
    ) -> tuple[Plan, tuple[Notes, ...]]:
        for loop in _loops(function):
            if any(isinstance(mark, Roles) for mark in loop.directives):
                raise limitation(code, loop.span, "no roles here")
        return real(function, target, fixed, ending)

    monkeypatch.setattr(driver, "lower_function", refusing)
    made = driver.lower(texpr.parse(test_going.REAL["few terms"].text)["f"], "sm_90a", schedule="auto")
    assert (name in _names(made) if name else not _names(made)) and "roles" not in _names(made)


def _loops(function: ir.Function) -> Iterator[ir.Loop]:
    return (stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par | ir.Seq))


def _names(made: driver.Compiled) -> set[str]:
    return set() if made.schedule is None else {each.name for each in made.schedule.directives}


def test_what_is_wrong_is_the_compilers_fault() -> None:
    with pytest.raises(CompilerBug, match="made another program of `matmul`: in order, C and C: not at i = 0"):
        prove.require_kept(doubted(Verdict.REFUSED), unproved=True)
