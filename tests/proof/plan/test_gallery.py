"""Every program of the gallery is proved: nothing refused, nothing left undecided."""

from pathlib import Path

import pytest

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.program import Schedule
from texpr.isa.registry import resolve
from texpr.proof.plan import Proof, Verdict
from texpr.proof.search import proved

EXAMPLES = Path(__file__).parents[3] / "examples"
TARGETS = ("cpu", "sm_90a")

PROVED = (
    "argmax", "attention", "cholesky", "conv2d", "gather", "histogram", "jacobi", "layernorm", "matmul", "matmul_flat",
    "permute5d", "prefix_sum", "rmsnorm", "saxpy", "softmax", "sum", "transpose",
)  # fmt: skip
"""The programs that are proved with no schedule."""


SCHEDULED = ("conv2d", "matmul", "matmul_ring", "permute5d", "rmsnorm", "saxpy", "softmax", "sum", "transpose")
"""Those that are proved with each of their schedules, or with all but those for a fixed size."""

TENSORS = tuple(sorted(file.stem for file in (EXAMPLES / "tma").glob("*.te")))
"""The programs whose tiles the tensor memory accelerator copies."""


def lowered(file: Path, target: str, name: str | None = None) -> list[tuple[driver.Compiled, Proof]]:
    """The functions of a file for a target, by the schedule `name` or none, with their proofs."""
    found: list[tuple[driver.Compiled, Proof]] = []
    for function in driver.load(file).functions:
        fitting: list[Schedule | None] = [s for s in function.schedules if s.target in (None, target, resolve(target).family)]
        for schedule in fitting if name is not None else [None]:
            compiled = driver.lower(function, target, schedule=schedule)
            found.append((compiled, proved(compiled.function, compiled.plan)))
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROVED)
def test_all_of_it_is_proved(name: str, target: str) -> None:
    for compiled, proof in lowered(EXAMPLES / f"{name}.te", target):
        left = [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)]
        assert not left, compiled.function.name
        assert proof.obligations


@pytest.mark.parametrize("name", SCHEDULED)
def test_schedules_are_proved_too(name: str) -> None:
    found = 0
    for function in driver.load(EXAMPLES / "scheduled" / f"{name}.te").functions:
        for schedule in function.schedules:
            sizes = {"N": 2048} if schedule.name == "kept" else {}
            if schedule.name == "swizzled":
                continue  # half a minute of lowering; `wide` has a swizzle as well
            compiled = driver.lower(function, "sm_90a", sizes, schedule=schedule)
            proof = proved(compiled.function, compiled.plan)
            assert not proof.of(Verdict.REFUSED) and not proof.of(Verdict.UNDECIDED), schedule.name
            found += 1
    assert found


@pytest.mark.long
def test_the_slow_ones_are_proved() -> None:
    for compiled, proof in lowered(EXAMPLES / "scheduled" / "jacobi.te", "sm_90a", "all"):
        assert not proof.of(Verdict.REFUSED) and not proof.of(Verdict.UNDECIDED), compiled.function.name


@pytest.mark.parametrize("name", TENSORS)
def test_copies_of_tiles_are_proved(name: str) -> None:
    for compiled, proof in lowered(EXAMPLES / "tma" / f"{name}.te", "sm_90a", "all"):
        assert not proof.of(Verdict.REFUSED) and not proof.of(Verdict.UNDECIDED), compiled.function.name
        waits = any(isinstance(s, k.BarrierWait) for kernel in k.kernels(compiled.plan.steps) for s in k.walk(kernel.body))
        assert waits is ("parity" in {each.what for each in proof.obligations})
