"""Records of devices: each number has its source, and those that are published in another form agree with it."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path

import pytest

import texpr
from texpr.isa.registry import DEVICES, KNOWN, TARGETS, device_of
from texpr.isa.speed import UNKNOWN, Device

ROOM = Path(texpr.__file__).parent / "model"

# What data sheets tell, in operations a second, a multiply-add being two (NVIDIA A100 and H100 data sheets).
TOLD = {
    ("sm_80", "f16"): 312e12,
    ("sm_80", "tf32"): 156e12,
    ("sm_80", "i8"): 624e12,
    ("sm_80", "f64"): 19.5e12,
    ("sm_80", "fma"): 19.5e12,
    ("sm_80", "fp64"): 9.7e12,
    ("sm_90a", "f16"): 989.4e12,
    ("sm_90a", "tf32"): 494.7e12,
    ("sm_90a", "f8"): 1978.9e12,
    ("sm_90a", "fma"): 66.9e12,
    ("sm_90a", "fp64"): 33.5e12,
    ("sm_100a", "f16"): 2250e12,
    ("sm_100a", "f8"): 4500e12,
}


@pytest.mark.parametrize(("target", "unit"), TOLD, ids="-".join)
def test_rates_are_those_of_data_sheets(target: str, unit: str) -> None:
    device = DEVICES[target]
    matrix = device.matrix.rate(unit)
    rate, clock = (device.rates, device.clock) if matrix is UNKNOWN else (device.matrix, device.matrix.clock)
    each = getattr(rate, unit).value if rate is device.rates else matrix.value
    made = 2 * (device.multiprocessors.value or 0) * each * (clock.value or 0) * 1e6
    assert made == pytest.approx(TOLD[target, unit], rel=0.005)


def test_a_card_has_its_device() -> None:
    assert device_of("sm_90a", "NVIDIA H200") is not device_of("sm_90a", "NVIDIA H100 80GB HBM3") is DEVICES["sm_90a"]
    assert device_of("sm_90a", "another") is DEVICES["sm_90a"] and device_of("sm_86", "another") is None


@pytest.mark.parametrize("device", KNOWN, ids=lambda device: device.name)
def test_each_number_has_a_source(device: Device) -> None:
    assert set(device.targets) <= set(TARGETS)
    for name, figure in device.figures():
        assert figure.source, name
        assert (figure.value is None) == (figure.source == "not published"), name


def test_what_is_not_published_of_one_is_not_taken_from_another() -> None:
    assert DEVICES["sm_100a"].latency.dram is DEVICES["sm_100a"].bandwidth.l2 is UNKNOWN
    assert "sm_86" not in DEVICES and "cpu" not in DEVICES


SMALL = 16
ALLOWED = {
    "code/text.py": ({41, 63}, "bits of an instruction's encoding"),
    "code/integers.py": ({32, 255, 31}, "bits of a register, and of a byte"),
    "code/walk.py": ({800_000}, "steps of a walk"),
    "code/steady.py": ({500}, "instructions of a long loop"),
    "code/operand.py": ({32, 0xFFFFFFFF}, "bits of a register"),
    "code/program.py": ({32}, "bits of a register"),
    "code/classes.py": ({32, 64, 128, 256}, "widths and shapes by their names"),
    "plan/walk.py": ({60}, "instructions of a short loop"),
    "plan/operations.py": ({17, 19, 20, 21, 23, 39}, "instructions counted"),
    "least.py": ({64}, "points"),
    "bound.py": ({1_000_000}, "of a second"),
}
"""Numbers that are no machine's, and what they are."""


def numbers(text: str) -> set[float]:
    """Those of a text's code."""
    found = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    return {value for value in found if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > SMALL}


def test_no_number_of_a_machine_stands_in_the_model() -> None:
    for path in sorted(ROOM.rglob("*.py")):
        name = path.relative_to(ROOM).as_posix()
        with tokenize.open(path) as file:
            found = numbers(file.read())
        assert found <= ALLOWED.get(name, (set(), ""))[0], f"{name}: numbers of machines stand in `isa`"


def test_planted_numbers_are_found() -> None:
    assert numbers("MULTIPROCESSORS = 132\nCLOCK = 1.83e9\nsmall = 4, True") == {132, 1.83e9}
