"""The references themselves: that they can tell a wrong result from a right one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from references import EXAMPLES, Example, distance


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_distance_counts_units_of_the_last_place(dtype: type) -> None:
    one = np.array([1.0, -3.0], dtype)
    unit = float(ml_dtypes.finfo(dtype).eps)
    assert distance(one, one) == 0
    assert distance(np.array([1.0 + unit, -3.0], dtype), one) == 1
    assert distance(np.array([1.0, -3.0 + 4 * unit], dtype), one) == 2
    assert distance(np.array([1.0 + 8 * unit, -3.0], dtype), one, floor=8.0) == 1


def test_distance_of_what_is_no_number() -> None:
    nan, number = np.array([np.nan], np.float32), np.array([1.0], np.float32)
    infinity = np.array([np.inf], np.float32)
    assert distance(nan, nan) == 0
    assert distance(infinity, infinity) == 0
    assert distance(number, nan) == distance(nan, number) == distance(-infinity, infinity) == np.inf
    assert distance(np.array([1]), np.array([2])) == np.inf
    with pytest.raises(ValueError, match="float32"):
        distance(number, np.array([1.0]))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_sizes_are_zero_one_odd_and_large(example: Example) -> None:
    free = [{name: size for name, size in sizes.items() if name not in example.consts} for sizes in example.small]
    assert any(0 in sizes.values() for sizes in free), "no empty size"
    assert any(1 in sizes.values() for sizes in free), "no size of 1"
    assert any(size % 2 and size > 2 for sizes in free for size in sizes.values()), "no odd size"
    assert example.large
    assert (example.ulp == 0) == (example.inexact == ())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_inputs_are_exact_and_outputs_finite(example: Example) -> None:
    sizes = example.small[-1]
    arrays = example.make(np.random.default_rng(0), sizes)
    for name, value in example.reference(arrays, sizes).items():
        assert np.isfinite(value.astype(np.float64)).all(), name
        if example.ulp == 0:
            assert np.array_equal(value.astype(np.float64), np.round(value.astype(np.float64))), name
    again = example.make(np.random.default_rng(0), sizes)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
