"""Elements that stay in a register for some loops: in what iterations their copies are, and of what elements."""

from __future__ import annotations

from functools import cache

import pytest
from tests.proof.plan.verdicts import is_proved
from tests.schedule.laid import Laid, laid

from texpr.affine.expr import Expr, expr
from texpr.ir.proof.tags import Moved
from texpr.ir.value import Ref
from texpr.presburger.questions import Point
from texpr.proof.plan import question
from texpr.proof.plan.copies import copied, untouched
from texpr.proof.plan.flow import Flow
from texpr.proof.search import proved, search
from texpr.support.record import replace

TEXT = """
fn rows(x: f32[m, n], z: f32[m, n]): f32[m]
{
    new y: f32[m]
    par m |i| { y[i] = 0.0 }
    par m |i| { seq n |k| { y[i] += x[i, k] } seq n |k| { y[i] += z[i, k] } }
    return y
}"""


@cache
def made() -> Laid:
    """A thread a row, whose sum stays in registers through both loops, which may have no turn."""
    return laid(TEXT, "")


def strayed(element: str, besides: str = "") -> Point | None:
    """Where the store of the sums, taken for a copy of `element` in iteration `i`, does not keep to its iterations.

    `besides`: the element of another copy in that iteration.
    """
    asked = question(made().function, made().plan)
    event, tag = asked.reading.events[-1], search(asked).events[-1]
    assert isinstance(tag, Moved)
    assert isinstance(event.value, Ref)
    (m,) = (expr(size) for size in made().plan.sizes if size.name == "m")
    rows: dict[str, Expr] = {
        "i": tag.element[0],
        "0": expr(0),
        "m - 1 - i": m - 1 - tag.element[0],
        "m": m,
        "m + i": m + tag.element[0],
    }
    flow = Flow(asked.program, asked.reading, asked.premises)
    found = [replace(copied(event, event.value, tag, flow)[1], meant=(rows[each],)) for each in (element, besides) if each]
    return untouched(found[0], flow, found)


def test_rows_without_elements_are_proved() -> None:
    assert is_proved(proved(made().function, made().plan))


@pytest.mark.parametrize(
    ("element", "besides"),
    [
        ("m - 1 - i", ""),  # the program's, of another iteration
        ("0", ""),
        ("m", ""),  # nobody else's, but all iterations copy it
        ("m + i", "m"),  # no iteration copies it twice, but another copy is there
    ],
)
def test_what_is_accessed_in_other_iterations_is_no_copy_of_this_one(element: str, besides: str) -> None:
    assert strayed(element, besides) is not None


@pytest.mark.parametrize(("element", "besides"), [("i", ""), ("i", "m + i"), ("m + i", ""), ("m + i", "i")])
def test_what_is_accessed_in_one_iteration_alone_may_be_copied_there(element: str, besides: str) -> None:
    assert strayed(element, besides) is None
