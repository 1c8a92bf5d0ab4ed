"""Programs that random schedules laid out, and what of them is proved, or goes wrong in the interpreter."""

from __future__ import annotations

from tests.schedule.trials import Trial, draw, same_results

from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.proof import Proof, Verdict
from texpr.proof.schedule import faithful
from texpr.schedule.apply import laid_out
from texpr.support.diagnostic import TexprError


def drawn(seed: int, target: str = "sm_90a") -> tuple[Trial, ir.Function]:
    """A trial, and its program as it is laid out."""
    trial = draw(seed, target)
    return trial, laid_out(trial.state()).function


def proof(trial: Trial, laid: ir.Function) -> Proof:
    """What is shown of it."""
    return faithful(trial.subject.function, laid)


def is_proved(found: Proof) -> bool:
    """Whether all is."""
    return not found.of(Verdict.REFUSED) and not found.of(Verdict.UNDECIDED)


def goes_wrong(trial: Trial, laid: ir.Function) -> bool:
    """Whether it gives other results at some sizes of the trial. What the checks of a program refuse is no other result."""
    for run in trial.subject.runs:
        want = interpret(trial.subject.function, run.arrays, run.sizes)
        try:
            got = interpret(laid, run.arrays, run.sizes)
        except TexprError:
            return False
        if same_results(trial, got, want, "") is not None:
            return True
    return False
