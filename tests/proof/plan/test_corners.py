"""Where copies of boxes begin: within 16 bytes of a row, and for stores before the tensor, hardware has no such instruction."""

from __future__ import annotations

import re

import pytest
from tests.lowering.test_runs import RAGGED, TILES
from tests.lowering.tiled import BLUR, BLURRING
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import Laid, laid, refusal

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.tma import rules


def begun(made: Laid, earlier: int) -> list[object]:
    """What is left open of `BLUR` where its box begins `earlier` columns earlier, and all that reads it with it."""
    text = plan_text(made.plan).replace("x_map[32 * bj - 4,", f"x_map[32 * bj - {4 + earlier},")
    text = re.sub(r"(xs\[[^\],]+, tj \+ )(\d)\]", lambda m: f"{m[1]}{int(m[2]) + earlier}]", text)
    assert (text == plan_text(made.plan)) is (earlier == 0)
    return open_of(proved(made.function, parse_plan(text)))


@pytest.mark.parametrize("earlier", range(-3, 3))
def test_a_load_begins_at_a_multiple_of_16_bytes(earlier: int) -> None:
    """A column earlier or later the tile holds the same numbers at other places; the instruction is illegal."""
    found = begun(laid(BLUR, BLURRING), earlier)
    assert (found == []) is (earlier == 0), found


ONE_MORE = """
fn g(x: f32[n] align(16)): f32[n]
    where n % 4 == 0
{
    new y: f32[n]
    par n |i| { y[i] = x[i] + 1.0 }
    return y
}"""
STORED = "split(p, 64) -> (b, t)  bind(b, grid.x)  stage(y, at=b, in=shared, via=tma) -> ys"


@pytest.mark.planted
def test_a_store_begins_nowhere_before_the_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The box of the first block lies before the tensor, where the engine would write nothing; the instruction is illegal."""
    early = f"resize(i, 64, 0) -> p  {STORED}"
    assert "coordinate 0: a store begins at coordinates that are not negative" in refusal(ONE_MORE, early)
    others = tuple(rule for rule in rules.USE_RULES if rule.name != "store coordinate")
    assert len(others) == len(rules.USE_RULES) - 1
    monkeypatch.setattr(rules, "USE_RULES", others)  # as if nobody asked before the proof does
    made = laid(ONE_MORE, early)
    assert open_of(proved(made.function, made.plan)) != []
    late = laid(ONE_MORE, STORED.replace("split(p", "split(i"))
    assert open_of(proved(late.function, late.plan)) == []


SHIFT = """
fn shift(x: f32[n]): f32[n + 4]
    where n % 4 == 0
{
    new y: f32[n + 4] = 0.0
    par n |i| { y[i + 1] = x[i] }
    return y
}"""


def test_a_store_begins_at_a_multiple_of_16_bytes() -> None:
    reason = "coordinate 0: a copy begins at a multiple of 16 bytes in the innermost dimension"
    assert reason in refusal(SHIFT, STORED.replace("split(p", "split(i"))


def test_a_run_is_not_empty() -> None:
    """A block more than there are columns for: it waits for no bytes, and starts copies of none, which is no copy."""
    made = laid(RAGGED, TILES)
    text = plan_text(made.plan)
    edited = text.replace("bk < ((K + 31) / 32)", "bk < ((K + 32) / 32)")
    assert edited != text and open_of(proved(made.function, made.plan)) == []
    assert [each.what for each in proved(made.function, parse_plan(edited)).of(Verdict.REFUSED)] == ["can be moved"]
