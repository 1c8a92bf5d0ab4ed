"""What a proof leaves open."""

from texpr.driver import Compiled
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.plan import Proof, Verdict
from texpr.proof.search import proved


def open_of(proof: Proof) -> list[object]:
    """What is refused, and what is undecided."""
    return [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)]


def is_proved(proof: Proof) -> bool:
    """Whether nothing is open."""
    return not open_of(proof)


def is_held_to(made: Compiled, right: str, wrong: str) -> bool:
    """Whether the plan is proved as it is, and no longer where its text says something else."""
    text = plan_text(made.plan)
    assert right in text, text
    as_it_is, altered = (proved(made.function, parse_plan(each)) for each in (text, text.replace(right, wrong)))
    return is_proved(as_it_is) and not is_proved(altered)
