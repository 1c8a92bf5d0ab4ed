"""Layouts as CuTe prints them, with the numbers that are known when it is compiled, `_8`."""

from __future__ import annotations

import pytest

from texpr.layout.slices import ALL
from texpr.layout.text import parse_composed, parse_layout, parse_slice


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        ("(_8,_4):(_1,_8)", "(8,4):(1,8)"),
        ("((_2,_4),n):((_1@0,_4@1),_2@1)", "((2,4),n):((1@0,4@1),2@1)"),
        ("(_128,k):(k,_1)", "(128,k):(k,1)"),
        ("(_3,_1):(_0,_12)", "(3,1):(0,12)"),
        ("(_a,_8b):(_1,_a)", "(_a,_8b):(1,_a)"),
    ],
)
def test_static_integers(printed: str, plain: str) -> None:
    assert parse_layout(printed) == parse_layout(plain)
    assert str(parse_layout(printed)) == plain


def test_static_integers_beside_open_coordinates() -> None:
    assert parse_slice("((_,_1),_2)") == ((ALL, parse_slice("1")), parse_slice("2"))
    assert parse_composed("Sw<3,4,3> o _0 o (_8,_64):(_64,_1)") == parse_composed("Sw<3,4,3> o 0 o (8,64):(64,1)")
