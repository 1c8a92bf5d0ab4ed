"""Programs of the gallery at sizes that are known: small, odd and zero ones, at which loops of one turn are none."""

import pytest
from tests.proof.plan.verdicts import open_of

from references import BY_NAME
from texpr import driver
from texpr.backends.cpu.printer import print_cpu
from texpr.ir.kernel import kernels
from texpr.proof.search import proved


@pytest.mark.parametrize("schedule", ["auto", None], ids=["found", "none"])
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_known_sizes_are_proved(name: str, target: str, schedule: driver.Selected) -> None:
    example = BY_NAME[name]
    for sizes in example.small:
        consts, rest = example.split(sizes)
        function = driver.load(example.path, consts)[example.function]
        compiled = driver.lower(function, target, rest, schedule=schedule)
        assert open_of(proved(compiled.function, compiled.plan)) == [], sizes


def test_no_array_of_nothing_is_declared() -> None:
    """ISO C++ has none; a panel of a sum over nothing is one."""
    example = BY_NAME["matmul"]
    consts, rest = example.split({"M": 2, "N": 3, "K": 0})
    plan = driver.lower(driver.load(example.path, consts)[example.function], "cpu", rest, schedule="auto").plan
    empty = [a for each in kernels(plan.steps) for a in each.arrays if any(e.constant == 0 for e in a.buffer.shape)]
    source = print_cpu(plan)
    assert empty and all(f"{array.buffer.name}_[1];" in source for array in empty)
