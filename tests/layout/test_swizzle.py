"""Swizzles, composed layouts, recasts."""

from __future__ import annotations

from itertools import product

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, layouts, numbers

from texpr.affine.expr import Sym, sym
from texpr.layout import ALL, ComposedLayout, Layout, LayoutError, Swizzle
from texpr.layout.algebra.coalesce import coalesce
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.divide import zipped_divide
from texpr.layout.algebra.recast import downcast, recast, upcast
from texpr.layout.inttuple import Int, tidy

SWIZZLES = [Swizzle(b, m, s) for b, m, s in product(range(4), range(5), range(-4, 5)) if abs(s) >= b]


def crossed(b: int, m: int, s: int, x: int) -> int:
    """Bit by bit: bit m + k (or, for s < 0, m + |s| + k) takes part of the bit |s| places from it."""
    bits = [x >> k & 1 for k in range(24)]
    new = list(bits)
    for k in range(b):
        high, low = m + abs(s) + k, m + k
        target, source = (low, high) if s >= 0 else (high, low)
        new[target] = bits[target] ^ bits[source]
    return sum(bit << k for k, bit in enumerate(new))


def number(value: Int, at: int) -> int:
    return value if isinstance(value, int) else value.evaluate({Sym("x"): at})


def test_swizzles_bit_by_bit() -> None:
    for swizzle in SWIZZLES:
        symbolic = swizzle(sym("x"))
        for x in range(0, 1 << 11, 3):
            wanted = crossed(swizzle.bits, swizzle.base, swizzle.shift, x)
            assert swizzle(x) == wanted
            assert swizzle(wanted) == x
            if x < 300:
                assert number(symbolic, x) == wanted


def test_a_swizzle_permutes_each_block() -> None:
    for swizzle in SWIZZLES:
        size = swizzle.block
        for start in (0, size, 5 * size):
            assert sorted(map(swizzle, range(start, start + size))) == list(range(start, start + size))


def test_the_128_byte_swizzle() -> None:
    """Rows of 64 halves: the eight vectors of 16 bytes of row r stand in the order r ⊕ k."""
    shared = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    for r, c in product(range(8), range(64)):
        assert shared((r, c)) == 64 * r + ((c // 8) ^ r) * 8 + c % 8
    in_bytes = ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 128), (128, 1)))
    assert in_bytes.recast(8, 16) == shared
    assert shared.recast(16, 8) == in_bytes


def test_composed_layouts() -> None:
    inner = Layout((8, (4, 2)), (8, (1, 4)))
    whole = ComposedLayout(Swizzle(2, 1, 3), 64, inner)
    assert sorted(whole(i) for i in range(64)) == list(range(64, 128))
    for i in range(64):
        assert whole.coordinate(whole(i)) == i
        assert whole.on_coordinates(coalesce)(i) == whole(i)
    tiled = whole.on_coordinates(lambda a: zipped_divide(a, (2, 4)))
    for i, j, p, q in product(range(2), range(4), range(4), range(2)):
        assert tiled(((i, j), (p, q))) == whole((2 * p + i, 4 * q + j))
    for r in range(8):
        row = whole.slice((r, ALL))
        assert [row(c) for c in range(8)] == [whole((r, c)) for c in range(8)]
    every_other = whole.on_coordinates(lambda a: composition(a, Layout(32, 2)))
    assert [every_other(i) for i in range(32)] == [whole(2 * i) for i in range(32)]
    assert whole.size == 64


def test_recasts_keep_the_bytes() -> None:
    """Each byte of an element of either width, at every small layout and width."""
    answered = 0
    for a in layouts(8, 2, (0, 1, 2, 4, 8), least=2):
        for old, new in product((1, 2, 3, 4, 8), repeat=2):
            r = answer(recast, a, old, new)
            if r is not None:
                answered += 1
                bytes_of = [
                    sorted(width * v + k for v in numbers(x) for k in range(width)) for x, width in ((a, old), (r, new))
                ]
                assert bytes_of[0] == bytes_of[1], (a, old, new)
    assert answered > 400


def test_upcasts_and_downcasts() -> None:
    answered = 0
    for a in layouts(8, 3, (0, 1, 2, 3, 4), least=2):
        for n in (1, 2, 3, 4, 6):
            if (u := answer(upcast, a, n)) is not None:
                answered += 1
                assert laws.widens(a, n, u), (a, n, u)
            if (d := answer(downcast, a, n)) is not None:
                answered += 1
                assert laws.widens(d, n, a), (a, n, d)
                assert upcast(d, n).shape == a.shape
    assert answered > 400
    assert upcast(Layout((4, 8), (1, 4)), 2) == Layout((2, 8), (1, 2))
    assert downcast(Layout((4, 8), (8, 1)), 4) == Layout((4, 32), (32, 1))
    assert upcast(Layout((8, 8), (8, 1)), 16) == Layout((4, 1), (1, 0))


@pytest.mark.parametrize(("bits", "base", "shift"), [(3, 4, 2), (1, 0, 0), (-1, 0, 3), (1, -1, 3)])
def test_swizzles_that_are_none(bits: int, base: int, shift: int) -> None:
    with pytest.raises(LayoutError):
        Swizzle(bits, base, shift)


def test_a_symbolic_swizzled_offset() -> None:
    n = sym("x")
    whole = ComposedLayout(Swizzle(2, 1, 3), tidy(n * 64), Layout((8, 8), (8, 1)))
    for at in (0, 3):
        for i in range(64):
            assert number(whole(i), at) == ComposedLayout(whole.swizzle, 64 * at, whole.layout)(i)
    assert str(whole.recast(8, 16)) == "Sw<2,0,3> o 32 * x o (8,4):(4,1)"
