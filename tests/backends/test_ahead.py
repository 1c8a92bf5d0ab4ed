"""Which reads code for a CPU fetches ahead: those of lanes that read a row group after group, and no others."""

from __future__ import annotations

import re

import pytest

from texpr.driver import lower, parse

SUM = "fn f(x: f32[{shape}]): f32 {{ new s: f32\n s = 0.0\n par n |i| reduce(s) {{ s += {term} }}\n return s }}"
DOT = """
fn f(x: f32[n], y: f32[m, n], at: i32[m]): f32[m]
    assume at in 0..m
{
    new s: f32[m]
    par m |j| {
        s[j] = 0.0
        par n |i| reduce(s) { s[j] += x[i] * y[at[j], i] * y[j, i] }
    }
    return s
}"""
PRODUCT = """
fn f(A: f32[m, k], B: f32[k, n]): f32[m, n] {
    new C: f32[m, n]
    par m |i| { par n |j| {
        C[i, j] = 0.0
        seq k |l| reduce(C) { C[i, j] += A[i, l] * B[l, j] }
    } }
    return C
}"""


def streams(row: str) -> list[str]:
    """The reads of four streams side by side, and of the one that takes what they leave."""
    first = [f"{row}16 * i_group + 16384 * i_stretch{at}]" for at in ("", " + 4096", " + 8192", " + 12288")]
    return [*first, f"{row}16 * i_group_1]"]


PARTS = ["s_parts[32 * i_part_group]"]
"""Sums of blocks are too few for stretches of several streams."""

BOTH = [each for pair in zip(streams("x["), streams("y[(long long)j * n + "), strict=True) for each in pair]
CASES = {
    SUM.format(shape="n", term="x[i]"): [*streams("x[65536 * i_block + "), *PARTS],
    SUM.format(shape="n, 4", term="x[i, 1]"): PARTS,
    SUM.format(shape="n", term="x[n - 1 - i]"): PARTS,
    SUM.format(shape="n", term="exp(x[i])"): ["x[65536 * i_block + 32 * i_group]", *PARTS],
    DOT: BOTH,
    PRODUCT: [],
    "fn f(x: f32[n]): f32[n] { new y: f32[n]\n par n |i| { y[i] = x[i] }\n return y }": [],
}


@pytest.mark.parametrize("text", CASES)
def test_rows_are_fetched_ahead(text: str) -> None:
    source = lower(parse(text).functions[0], "cpu").source
    assert re.findall(r"tx_fetch_ahead<\d+>\(&(.*)\);", source) == CASES[text]
