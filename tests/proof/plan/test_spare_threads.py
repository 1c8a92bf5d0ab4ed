"""Sums that all threads of a block make alike, each for itself, of which one is taken; and bugs put into that."""

from __future__ import annotations

from functools import cache

import pytest
from tests.schedule.laid import Laid, laid

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.search import proved

TEXT = """
fn alike(r: i32[n], y: i32[n]): i32[n] {
    new q: i32[n]
    new s: i32
    s = 0
    par n |i| reduce(s) { s += r[i] * y[i] }
    par n |j| { q[j] = s }
    return q
}"""
STORE = "    if (i32(thread) == 0:i32) {"
LEAF = "        s_block = "


@cache
def made() -> Laid:
    """A block stages an element for each turn, so that all threads run the loop and sum the same."""
    return laid(TEXT, "stage(r, at=i, in=shared, via=cp_async) -> held")


def is_proved(old: str, new: str) -> bool:
    """Whether the plan is proved with something of its text changed where it stands first."""
    text = plan_text(made().plan)
    assert old in text, text
    counts = proved(made().function, parse_plan(text.replace(old, new, 1))).counts
    return not counts["refused"] and not counts["undecided"]


def test_what_one_thread_stores_of_sums_that_are_alike_is_proved() -> None:
    assert is_proved(STORE, STORE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STORE, "    if (i32(thread) == 32:i32) {"),
        (STORE, "    if (i32(thread) < 2:i32) {"),
        (STORE, "    if (i32(thread) >= 0:i32) {"),
        (LEAF, "        if (i32(thread) == 1:i32)"),
        (LEAF, "        if (i32(thread) >= 1:i32)"),
        ("(s_block + (held", "(s_block - (held"),
    ],
)
def test_a_sum_of_another_thread_is_not_proved(old: str, new: str) -> None:
    if old == LEAF:
        old = next(line for line in plan_text(made().plan).splitlines() if line.startswith(LEAF))
        new = f"{new} {{\n    {old}\n        }}"
    assert not is_proved(old, new)


@pytest.mark.parametrize("taken", ["== 0", "== 1", "< 2"])
def test_parts_that_all_threads_take_alike_are_not_proved(taken: str) -> None:
    """The launch behind takes each part in all of its threads: what takes parts does no statement, and parts are taken once."""
    text = plan_text(made().plan)
    loop, last = text.index("    for i_part in"), text.rindex(STORE, 0, text.index("s[] = (s[] + s_own_all)"))
    alike = "    for i_part in 0..((n + 4095) / 4096) {\n        s_own = (s_own + s_parts[i_part])\n    }\n"
    end = text[last:].replace("s_own_all", "s_own").replace(STORE, STORE.replace("== 0", taken), 1)
    kept = [line for line in text[:loop].splitlines() if "s_own_warps" not in line]
    plan = parse_plan("\n".join((*kept, alike, end)))
    counts = proved(made().function, plan).counts
    assert counts["refused"] or counts["undecided"]
