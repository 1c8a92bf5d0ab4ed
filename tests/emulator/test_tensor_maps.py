"""The emulator's driver encodes what the rules of `texpr.tma` allow, and names the rule that anything else breaks."""

from __future__ import annotations

import ctypes
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.emulator.tensors import encode

from texpr.affine.expr import expr
from texpr.affine.facts import Known
from texpr.emulator import build_core
from texpr.tma.descriptor import Interleave, TensorMap, Tiled, exprs
from texpr.tma.elements import ELEMENTS, Fill
from texpr.tma.rules import findings
from texpr.tma.swizzle import Swizzle

RIGHT: dict[str, Any] = {
    "element": 7, "base": 4096, "sizes": [64, 9, 5], "strides": [256, 4096], "box": [32, 4, 2], "steps": [1, 2, 1],
    "interleave": 0, "swizzle": 3, "promotion": 2, "fill": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def library(work: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(build_core(work)))
    assert found.cuInit(0) == 0
    return found


def test_a_right_map_is_encoded(library: ctypes.CDLL) -> None:
    assert isinstance(encode(library, **RIGHT), np.void)
    for field, value in (
        ("sizes", [1 << 32, 1, 1]),
        ("strides", [(1 << 40) - 16, 0]),
        ("box", [4, 256, 1]),
        ("steps", [1, 8, 8]),
    ):
        assert isinstance(encode(library, **{**RIGHT, field: value}), np.void), field


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"element": 13}, "element: one of the types"),
        ({"rank": 0}, "rank: 1 to 5"),
        ({"rank": 6}, "rank: 1 to 5"),
        ({"rank": 2, "interleave": 1}, "rank: 1 to 5, 3 to 5 if interleaved"),
        ({"base": 0}, "base: a multiple of 16"),
        ({"base": 4104}, "base: a multiple of 16"),
        ({"base": 4112, "interleave": 2, "swizzle": 1}, "base: a multiple of 32"),
        ({"sizes": [64, 0, 5]}, "size 1: 1 to 2^32"),
        ({"sizes": [64, 9, (1 << 32) + 1]}, "size 2: 1 to 2^32"),
        ({"strides": [256, 4104]}, "stride 2: a multiple of 16"),
        ({"strides": [1 << 40, 4096]}, "stride 1: less than 2^40"),
        ({"box": [32, 257, 2]}, "box 1: 1 to 256"),
        ({"box": [32, 0, 2]}, "box 1: 1 to 256"),
        ({"box": [33, 4, 2]}, "box 0: a multiple of 16 bytes"),
        ({"box": [36, 4, 2]}, "box 0: at most as many bytes as the swizzle"),
        ({"steps": [1, 9, 1]}, "step 1: 1 to 8"),
        ({"steps": [2, 1, 1]}, "step 0: 1 if not interleaved"),
        ({"interleave": 3}, "interleave: none, 16 or 32 bytes"),
        ({"interleave": 2, "swizzle": 3}, "swizzle: of 32 bytes where slices have 32"),
        ({"swizzle": 4}, "swizzle: none, 32, 64 or 128 bytes"),
        ({"promotion": 4}, "promotion: none, 64, 128 or 256 bytes"),
        ({"fill": 2}, "fill: zero or nan"),
        ({"element": 2}, "fill: nan for floating-point elements alone"),
    ],
)
def test_a_broken_rule_is_named(library: ctypes.CDLL, changes: dict[str, Any], rule: str) -> None:
    found = encode(library, **{**RIGHT, **changes})
    assert isinstance(found, str) and found.startswith(rule)


def test_a_map_lies_at_a_multiple_of_64(library: ctypes.CDLL) -> None:
    room = ctypes.create_string_buffer(256)
    place = ctypes.addressof(room) + -ctypes.addressof(room) % 64 + 16
    numbers = (ctypes.c_uint64 * 5)(*[16] * 5)
    assert (
        library.cuTensorMapEncodeTiled(
            ctypes.c_void_p(place), 7, 1, ctypes.c_void_p(4096), numbers, numbers, numbers, numbers, 0, 0, 0, 0
        )
        == 1
    )


def test_the_driver_and_the_table_of_rules_agree(library: ctypes.CDLL) -> None:
    """On random maps, most of which break some rule: two tables of the same rules, which share no code."""
    verdicts: list[bool] = []
    for seed in range(400):
        random = Random(seed)
        rank = random.randint(1, 5)
        element, interleave = random.choice(list(ELEMENTS.values())), random.choice([*Interleave, *[Interleave.NONE] * 4])
        swizzle, fill = random.choice(list(Swizzle)), random.choice(list(Fill))
        base, align = 16 * random.randint(1, 64), random.choice([16, 16, 32, 32, 8])
        sizes = [random.choice([0, 1, 7, 64, 1 << 32] if random.random() < 0.1 else [1, 7, 64]) for _ in range(rank)]
        strides = [
            random.choice([align * random.randint(0, 99), 1 << 40] if random.random() < 0.1 else [align]) for _ in sizes[1:]
        ]
        box = [random.choice([16, 32, 4, 256, 300]) if random.random() < 0.2 else 16 for _ in sizes]
        steps = [1, *(random.choice([1, 2, 8, 9]) if random.random() < 0.2 else 1 for _ in sizes[1:])]
        found = encode(
            library, list(ELEMENTS).index(element.name), base, sizes, strides, box, steps,
            list(Interleave).index(interleave), list(Swizzle).index(swizzle), 0, list(Fill).index(fill),
        )  # fmt: skip
        map = TensorMap(
            element,
            expr(base),
            exprs(*sizes),
            exprs(*strides),
            Tiled(exprs(*box)),
            exprs(*steps),
            interleave,
            swizzle,
            fill=fill,
        )
        judged = findings(map, Known({}))
        assert not judged.checked
        assert isinstance(found, str) == bool(judged.violated), (found, [str(each) for each in judged.violated])
        verdicts.append(not judged.violated)
    assert 40 < sum(verdicts) < 360
