"""Every program of the gallery is proved: nothing refused, nothing left undecided."""

from pathlib import Path

import pytest

from texpr import driver
from texpr.ir.program import Schedule
from texpr.isa.registry import resolve
from texpr.verifier import Proof, Verdict, prove

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = ("cpu", "sm_90a")

PROVED = (
    "argmax", "attention", "cholesky", "conv2d", "gather", "histogram", "jacobi", "layernorm", "matmul", "matmul_flat",
    "permute5d", "prefix_sum", "rmsnorm", "saxpy", "softmax", "sum", "transpose",
)  # fmt: skip
"""The programs that are proved with no schedule."""


def lowered(file: Path, target: str, name: str | None = None) -> list[tuple[driver.Compiled, Proof]]:
    """The functions of a file for a target, by the schedule `name` or none, with their proofs."""
    found: list[tuple[driver.Compiled, Proof]] = []
    for function in driver.load(file).functions:
        fitting: list[Schedule | None] = [s for s in function.schedules if s.target in (None, target, resolve(target).family)]
        for schedule in fitting if name is not None else [None]:
            compiled = driver.lower(function, target, schedule=schedule)
            found.append((compiled, prove(compiled.function, compiled.plan)))
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROVED)
def test_all_of_it_is_proved(name: str, target: str) -> None:
    for compiled, proof in lowered(EXAMPLES / f"{name}.te", target):
        left = [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)]
        assert not left, compiled.function.name
        assert proof.obligations
