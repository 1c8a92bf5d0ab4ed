"""Plans that are wrong and once were proved, each with what it was that nobody asked. Random alterations found them."""

import pytest
from tests.verifier.verdicts import is_proved

from texpr import driver
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.witness import proved

TESTED = """
fn f(x: i32[n]): (i32[n], i32[n]) {
    new y: i32[n]
    new z: i32[n]
    par n |i| {
        y[i] = 3
        if x[i] > 0 { y[i] = y[i] * 2 }
        z[i] = y[i]
    }
    return (y, z)
}"""
SUMMED = """
fn f(x: i32[n, n]): i32[n, n] {
    new y: i32[n, n]
    par n |i| { par n |j| {
        y[i, j] = 0
        seq i + 1 |k| { y[i, j] = y[i, j] + x[i, k] * x[k, j] }
    } }
    return y
}"""
GUARDED = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 0
        if i + 2 < n { y[i] = x[i + 2] }
    }
    return y
}"""


def is_right(program: str, *changes: tuple[str, str]) -> bool:
    """Whether what is lowered of `program`, with changes to its text, is proved."""
    made = driver.lower(driver.parse(program)["f"], "sm_90a")
    text = plan_text(made.plan)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return is_proved(proved(made.function, parse_plan(text)))


OWN = ("        y[i] = 3:i32", "        let own: i32 = 0:i32\n        y[i] = 3:i32")
DOUBLED = (
    "            y[i] = (y[i] * 2:i32)",
    "            own = y[i]\n            own = (own * 2:i32)\n            y[i] = own",
)


EARLY = ("if (i64(i + 2)", "let e: i32 = x[i + 2]\n        if (i64(i + 2)"), ("y[i] = x[i + 2]", "y[i] = e")


@pytest.mark.parametrize(
    ("program", "changes"),
    [
        # a copy under a test of data was taken for one that is always made
        (TESTED, (OWN, DOUBLED, ("z[i] = y[i]", "z[i] = own"))),
        # of a result that no statement touches nothing was asked
        (SUMMED, (("        y[i, j] = y_own", ""), ("    writes y\n", ""))),
        # what is read before the guard under which alone it is wanted, was asked about under the guard alone
        (GUARDED, EARLY),
        # and what is wanted nowhere, nowhere
        (GUARDED, (("        y[i] = 0:i32", "        let e: i32 = x[i + 2]\n        y[i] = 0:i32"),)),
        (GUARDED, (("        y[i] = 0:i32", "        if (x[i + 2] > 0:i32) {\n        }\n        y[i] = 0:i32"),)),
    ],
    ids=["tested", "unwritten", "before its guard", "unwanted", "unwanted test"],
)  # fmt: skip
def test_what_once_passed_is_refused(program: str, changes: tuple[tuple[str, str], ...]) -> None:
    assert is_right(program)
    assert not is_right(program, *changes)


def test_what_is_read_early_may_be_right() -> None:
    early = ("        y[i] = 0:i32", "        let e: i32 = x[i]\n        y[i] = 0:i32")
    assert is_right(GUARDED, early)
    assert is_right(GUARDED, ("        y[i] = 0:i32", "        if (x[i] > 0:i32) {\n        }\n        y[i] = 0:i32"))
