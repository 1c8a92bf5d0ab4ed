"""Pictures of kernels: who touches what, and when."""

from __future__ import annotations

import pytest
from tests.draw.graphs import texts

from texpr.draw.mapping import draw_mapping
from texpr.draw.owners import owners
from texpr.draw.timeline.statements import draw_timeline, moments
from texpr.driver import lower, parse
from texpr.ir.kernel import Kernel, kernels
from texpr.isa.memories import COALESCING

COPY = "fn copy(x: f32[1000]): f32[1000] { new y: f32[1000]\n par 1000 |i| { y[i] = x[999 - i] }\n return y }"
SHARED = """
fn rows(x: f32[8, 64]): f32[8, 64] {
    new y: f32[8, 64]
    par 8 |i| {
        new s: f32[64]
        par 64 |j| { s[j] = x[i, j] }
        par 64 |j| { y[i, j] = s[63 - j] }
    }
    return y
}"""


def kernel_of(text: str) -> Kernel:
    return next(kernels(lower(parse(text).functions[0], "sm_80").plan.steps))


def test_owners_are_the_threads_that_touch() -> None:
    kernel = kernel_of(COPY)
    found = owners(kernel, {})
    x, y = sorted(found.of, key=lambda b: b.name)
    assert found.whole and len(found.of[y]) >= kernel.threads
    for (at,), owner in found.of[y].items():
        assert owner.writes and found.of[x][999 - at,].thread == owner.thread
    assert {owner.thread for owner in found.of[y].values()} == set(range(kernel.threads))


def test_a_kernel_that_is_long_is_followed_in_part() -> None:
    text = (
        "fn f(x: f32[64, 9999999]): f32[64] { new y: f32[64]\n"
        " par 64 |i| { y[i] = 0.0\n seq 9999999 |k| reduce(y) { y[i] += x[i, k] } }\n return y }"
    )
    assert not owners(kernel_of(text), {}).whole


def test_requests_are_shown_in_sectors_and_banks() -> None:
    words = texts(draw_mapping("rows", (kernel_of(SHARED),), {}, COALESCING))
    assert any("store of y" in word and "sectors" in word for word in words)
    assert any("load of s" in word and "in banks" in word for word in words)


def test_a_lane_is_counted_once_in_each_sector_that_it_meets() -> None:
    """Elements 999 down to 968: 32 lanes of 4 bytes, from byte 3872 on, which is the first of a sector."""
    words = texts(draw_mapping("copy", (kernel_of(COPY),), {}, COALESCING))
    at = next(n for n, word in enumerate(words) if "warp 0's load of x" in word)
    assert "4 sectors" in words[at]
    assert [word for word in words[at:] if word == "8"][:8] == ["8"] * 8  # four sectors read, four written


def test_time_runs_down_and_barriers_say_why() -> None:
    kernel = kernel_of(SHARED)
    found = list(moments(kernel.body))
    waits = [moment for moment in found if moment.waits]
    assert waits and all("RAW" in each.words or "WAR" in each.words for each in waits)
    svg = draw_timeline("rows", (kernel,))
    assert {"s (shared)", "x (global)", "y (global)"} <= set(texts(svg))


@pytest.mark.parametrize("text", [COPY, SHARED])
def test_pictures_are_the_same_each_time(text: str) -> None:
    kernel = (kernel_of(text),)
    assert draw_mapping("f", kernel, {}, COALESCING) == draw_mapping("f", kernel, {}, COALESCING)
    assert draw_timeline("f", kernel) == draw_timeline("f", kernel)
