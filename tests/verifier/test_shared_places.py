"""A place that holds one thing of the program for another: refused where anything reads it by then."""

import pytest

from texpr import driver
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.witness import proved

TWO = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        new a: i32
        new b: i32
        a = x[i]
        a = a + 3
        b = x[i] * 2
        b = b + 5
        y[i] = FIRST + SECOND
    }
    return y
}"""

BODY = """        let a: i32 = x[i]
        a = (a + 3:i32)
        a = (x[i] * 2:i32)
        a = (a + 5:i32)
        y[i] = (a + a)
    }
}
"""


@pytest.mark.parametrize(
    ("meant", "right"),
    [
        (("a", "b"), False),  # of two registers one is left
        (("b", "b"), True),  # what the first kept, nobody wants any more
    ],
)
def test_one_register_for_two(meant: tuple[str, str], right: bool) -> None:
    made = driver.lower(driver.parse(TWO.replace("FIRST", meant[0]).replace("SECOND", meant[1]))["f"], "sm_90a")
    text = plan_text(made.plan)
    counts = proved(made.function, parse_plan(text[: text.index("        let a")] + BODY)).counts
    assert bool(counts["refused"] or counts["undecided"]) is not right
