"""What proving costs: processor time beside that of the compile, and lines that have to be believed."""

import gc
from pathlib import Path
from time import process_time

import pytest

import texpr.verifier
from texpr import driver
from texpr.witness import proved

EXAMPLES = Path(__file__).parents[2] / "examples"

LINES = 2140
"""The most lines of the verifier: 1,500 would be good."""


def test_the_verifier_does_not_grow() -> None:
    files = Path(texpr.verifier.__file__).parent.glob("*.py")
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= LINES


def costs(names: tuple[str, ...], schedule: str | None, target: str = "sm_90a") -> tuple[float, float]:
    """Seconds to compile programs of the gallery, and to prove them."""
    compiling = proving = 0.0
    gc.collect()
    gc.freeze()  # what other tests left is no cost of a compile or a proof
    for name in names:
        for function in driver.load(EXAMPLES / f"{name}.te").functions:
            started = process_time()
            compiled = driver.lower(function, target, schedule="auto" if schedule else None)
            between = process_time()
            proof = proved(compiled.function, compiled.plan)
            compiling, proving = compiling + between - started, proving + process_time() - between
            assert not proof.counts["refused"] and not proof.counts["undecided"]
    gc.unfreeze()
    return compiling, proving


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_large_kernels_are_proved_in_less_time_than_they_are_made(target: str) -> None:
    costs(("saxpy",), None)  # what is loaded once
    compiling, proving = costs(("conv2d", "matmul", "jacobi"), "auto", target)
    assert proving < compiling
