"""What a proof leaves open."""

from texpr.proof.plan import Proof, Verdict


def open_of(proof: Proof) -> list[object]:
    """What is refused, and what is undecided."""
    return [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)]


def is_proved(proof: Proof) -> bool:
    """Whether nothing is open."""
    return not open_of(proof)
