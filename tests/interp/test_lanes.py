"""Swizzled indices on lanes: Python's own XOR, whatever the sign and however large."""

from __future__ import annotations

import numpy as np
import pytest

from texpr.affine.expr import Sym, sym, xor
from texpr.interp.lanes import Lanes, evaluate
from texpr.support.diagnostic import TexprError

V, M = sym("v"), sym("m")
VALUES, MASKS = np.arange(-40, 40), np.arange(80) * 7 - 200


def on(values: object, masks: object) -> Lanes:
    return Lanes(80, {Sym("v"): values, Sym("m"): masks})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("bits", [1, 3, 5])
def test_every_lane_swizzles_its_value(bits: int) -> None:
    found = evaluate(3 * xor(V, M, bits) + 1, on(VALUES, MASKS))
    assert list(np.asarray(found)) == [
        3 * (v ^ (m % 2**bits)) + 1 for v, m in zip(VALUES.tolist(), MASKS.tolist(), strict=True)
    ]


def test_what_all_lanes_share_is_swizzled_once() -> None:
    assert evaluate(xor(V, M, 3), on(-9, 29)) == -9 ^ 5
    assert list(np.asarray(evaluate(xor(V, M, 3), on(-9, MASKS)))) == [-9 ^ (m % 8) for m in MASKS.tolist()]


def test_more_than_64_bits_on_the_way_are_exact_and_in_the_end_are_refused() -> None:
    far = 2**61
    assert list(np.asarray(evaluate(xor(8 * V, M, 4) - 8 * V, on(VALUES + far, MASKS)))) == [
        ((8 * v) ^ (m % 16)) - 8 * v for v, m in zip((VALUES + far).tolist(), MASKS.tolist(), strict=True)
    ]
    with pytest.raises(TexprError, match="64 bits"):
        evaluate(xor(8 * V, M, 4), on(VALUES + far, MASKS))
