"""The obligations of a plan's proof, and their verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from texpr.support.diagnostic import CompilerBug, limitation
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span

FORMAT = "texpr proof 1"


UNPROVED = "unproved"
"""The pragma of a function that may be built with undecided obligations."""


class Verdict(Enum):
    """The verdict on an obligation."""

    PROVED = "proved"
    RUN = "checked at run time"
    UNDECIDED = "undecided"
    REFUSED = "refused"


class Obligation(NamedTuple):
    """A claim to be proved. `what`: its kind; `about`: the statements and memory concerned; `how`: the reason for the
    verdict."""

    kernel: str
    what: str
    about: str
    verdict: Verdict
    how: str
    span: Span = NOWHERE


class Proof(Record):
    """The obligations of one plan, in order, and the premises of the proof."""

    plan: str
    premises: tuple[str, ...]
    obligations: tuple[Obligation, ...]

    @property
    def counts(self) -> dict[str, int]:
        """The number of obligations with each verdict."""
        found = Counter(each.verdict for each in self.obligations)
        return {verdict.value: found[verdict] for verdict in Verdict}

    def of(self, verdict: Verdict) -> tuple[Obligation, ...]:
        """The obligations with that verdict."""
        return tuple(each for each in self.obligations if each.verdict is verdict)

    @property
    def data(self) -> dict[str, Any]:
        """The proof as JSON data, for an artifact."""
        listed = [
            {
                "kernel": o.kernel,
                "what": o.what,
                "about": o.about,
                "verdict": o.verdict.value,
                "how": o.how,
                "line": o.span.line,
            }
            for o in self.obligations
        ]
        return {"function": self.plan, "premises": list(self.premises), "counts": self.counts, "obligations": listed}

    def require(self, unproved: bool = False) -> None:
        """Raises CompilerBug if an obligation is refused, and Limitation if one is undecided, unless `unproved`."""
        for each in self.of(Verdict.REFUSED):
            raise CompilerBug(f"{_kernel(each)} is not what the program says: {each.what}, {each.about}: {each.how}")
        for each in () if unproved else self.of(Verdict.UNDECIDED):
            reason = f"cannot prove that {_kernel(each)} does what `{self.plan}` says: {each.what}, {each.about}: {each.how}"
            help = f"your program may be right: give it another schedule, or write `#{UNPROVED}` behind its results"
            raise limitation("E0508", each.span, reason, help=help)


def _kernel(obligation: Obligation) -> str:
    return f"kernel `{obligation.kernel}`" if obligation.kernel else "what is launched"


def proof_text(proofs: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """The text of `proof.json`: the data of an artifact's proofs, by target."""
    data = {"format": FORMAT, "targets": {target: [*each] for target, each in sorted(proofs.items())}}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
