"""Roundings that NumPy lacks: tf32, one rounding from f64 to a narrow type, and the fused multiply-add.

Rounding first to a wider type and then to a narrow one is right if the first rounding is "to odd": an inexact result takes
the neighbour whose last bit is 1, so that the second rounding still sees on which side of a tie the number lies. The wider
type needs two more bits (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
rounding to odd", IEEE Trans. Computers 57, 2008, theorem 1).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from texpr.interp.dtypes import Array

_TF32_DROPPED = 13  # f32 keeps 23 explicit bits of the significand, tf32 10


def round_tf32(x: Array) -> Array:
    """f32 values rounded to nearest even with 10 explicit significand bits, stored as f32."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    half = np.uint32((1 << (_TF32_DROPPED - 1)) - 1)
    odd = (bits >> np.uint32(_TF32_DROPPED)) & np.uint32(1)
    kept = ~np.uint32((1 << _TF32_DROPPED) - 1)
    rounded = np.asarray((bits + half + odd) & kept).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), np.where(np.isinf(x), x, rounded))


def to_odd_f32(x: Array) -> Array:
    """f64 values rounded to odd in f32."""
    nearest = np.asarray(x, np.float32)
    even = (nearest.view(np.uint32) & np.uint32(1)) == 0
    away = np.where(x > nearest, np.float32(np.inf), np.float32(-np.inf))
    return np.where((nearest != x) & even & ~np.isnan(x), np.nextafter(nearest, away), nearest)


def integer_to_f64(x: Array) -> Array:
    """Integers as f64 such that a later rounding to f32 or narrower is the only one: a sticky bit replaces the low bits of
    large ones."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    negative = x < 0
    magnitude = np.where(negative, -x, x).astype(np.uint64)  # the least i64 wraps to itself, whose bits are its magnitude
    sticky = (magnitude >> np.uint64(12)) | ((magnitude & np.uint64(0xFFF)) != 0)
    large = magnitude >= np.uint64(1 << 52)
    value = np.where(large, sticky.astype(np.float64) * 4096.0, magnitude.astype(np.float64))
    return np.where(negative, -value, value)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """a · b + c on f32 values, rounded once: the product is exact in f64, the sum is rounded to odd there."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)  # Knuth's TwoSum: the exact error of `total`
    even = (np.asarray(total).view(np.uint64) & np.uint64(1)) == 0
    adjust = np.isfinite(total) & (lost != 0) & even
    odd = np.where(adjust, np.nextafter(total, np.where(lost > 0, np.inf, -np.inf)), total)
    return odd.astype(np.float32)


def _fma(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """a · b + c on f64 values, rounded once, by exact rational arithmetic one element at a time."""
    return np.asarray(np.frompyfunc(_fma, 3, 1)(a, b, c)).astype(np.float64)
