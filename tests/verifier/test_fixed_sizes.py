"""Programs of the gallery at sizes that are known: small, odd and zero ones, at which loops of one turn are none."""

import pytest
from tests.verifier.verdicts import open_of

from references import BY_NAME
from texpr import driver
from texpr.witness import proved


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
