"""Barriers of a part of a block: where a dependence stays among some warps, the others need not wait."""

from __future__ import annotations

import re

import pytest
from tests.schedule.laid import Laid, binary, in_shared, integers, lowered, wrong

from texpr.frontend import parse
from texpr.ir import kernel as k

TURNED = """
fn turned(x: f32[n, m, TEAM]): f32[n, m, TEAM] {
    new y: f32[n, m, TEAM]
    par n |b| #bind(grid.x) {
        new s: f32[TEAM]
        seq m |r| {
            par TEAM |t| #bind(block.x) { s[t] = x[b, r, t] }
            par TEAM |t| #bind(block.x) { y[b, r, t] = s[t / PART * PART + PART - 1 - t % PART] }
        }
    }
    return y
}"""
"""Rows in which each PART elements are turned round."""

BOTH = """
fn both(x: f32[n, 256]): f32[n, 256] {
    new y: f32[n, 256]
    par n |b| #bind(grid.x) {
        new s: f32[256]
        new u: f32[256]
        new v: f32[256]
        par 256 |t| #bind(block.x) { s[t] = x[b, t] }
        par 256 |t| #bind(block.x) { u[t] = s[t / 64 * 64 + 63 - t % 64] }
        par 256 |t| #bind(block.x) { v[t] = u[t / 128 * 128 + 127 - t % 128] }
        par 256 |t| #bind(block.x) { y[b, t] = v[255 - t] }
    }
    return y
}"""
"""Threads meet in fours, in halves, and all of them."""


def made(text: str) -> Laid:
    (function,) = parse(text, "t.te").functions
    return lowered(function, function)


def turned(team: int, part: int) -> Laid:
    return made(TURNED.replace("TEAM", str(team)).replace("PART", str(part)))


def parts(laid: Laid) -> list[int]:
    return [s.part for s in laid.statements if isinstance(s, k.Barrier)]


@pytest.mark.parametrize(
    ("team", "part", "met"),
    [(256, 64, 64), (256, 128, 128), (256, 256, 0), (512, 64, 64), (1024, 64, 128), (192, 96, 96), (192, 64, 0), (128, 64, 64)],
)
def test_threads_meet_in_the_least_part_that_has_a_barrier(team: int, part: int, met: int) -> None:
    laid = turned(team, part)
    assert parts(laid) == [met, met]
    for n, m in ((0, 3), (2, 0), (1, 1), (3, 4)):
        assert wrong(laid, {"x": integers(n, m, team)}) is None


def test_a_warp_needs_no_more() -> None:
    (function,) = parse(TURNED.replace("TEAM", "256").replace("PART", "32"), "t.te").functions
    laid = lowered(function, in_shared(function))
    assert {s.level for s in laid.statements if isinstance(s, k.Barrier)} == {k.Level.WARP}
    assert wrong(laid, {"x": integers(2, 3, 256)}) is None


def test_parts_of_several_sizes() -> None:
    laid = made(BOTH)
    assert parts(laid) == [64, 128, 0]
    assert "tx_bar_sync(tx_part(4, 64), 64);" in laid.text and "tx_bar_sync(tx_part(2, 128), 128);" in laid.text
    assert wrong(laid, {"x": integers(3, 256)}) is None
    for target in ("sm_80", "sm_90a", "sm_100a"):
        binary(laid, target)


PLANTED = {
    "no_barrier": (r"tx_bar_sync\(.*\);", ""),
    "narrower": (r"tx_bar_sync\(tx_part\(4, 64\), 64\);", "tx_bar_sync(tx_part(8, 32), 32);"),
    "a_warp": (r"tx_bar_sync\(.*\);", "__syncwarp(0xffffffffu);"),
    "one_barrier_for_all_parts": (r"tx_part\(4, 64\)", "1"),
    "too_many_threads": (r", 64\);", ", 96);"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_seen(name: str) -> None:
    laid = turned(256, 64)
    text = re.sub(*PLANTED[name], laid.text)
    assert text != laid.text
    assert wrong(laid, {"x": integers(2, 3, 256)}, orders=(None, 0, 1, 2, 3), text=text) is not None
