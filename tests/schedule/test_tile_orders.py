"""Orders in which blocks go through tiles of two loops: which tile comes when, beside a list that is counted by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.planted import open_of as left_of
from tests.schedule.rows import open_of

from texpr.affine.expr import Sym
from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import program as ir
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.schedule.builder import Schedule
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

ROWS, COLUMNS = 12, 5
TEXT = f"""
fn f(x: f32[{ROWS}, {COLUMNS}]): f32[{ROWS}, {COLUMNS}] {{
    new y: f32[{ROWS}, {COLUMNS}]
    par {ROWS} |i| {{ par {COLUMNS} |j| {{ y[i, j] = 2 * x[i, j] }} }}
    return y
}}
"""

ORDERS = {
    "": [(i, j) for i in range(ROWS) for j in range(COLUMNS)],
    "order=rows": [(i, j) for i in range(ROWS) for j in range(COLUMNS)],
    "order=columns": [(i, j) for j in range(COLUMNS) for i in range(ROWS)],
    "order=(grouped, 4)": [(4 * g + i, j) for g in range(3) for j in range(COLUMNS) for i in range(4)],
    "order=(grouped, 1)": [(i, j) for i in range(ROWS) for j in range(COLUMNS)],
    "order=(grouped, 12)": [(i, j) for j in range(COLUMNS) for i in range(ROWS)],
}
"""The tiles, in order."""


def schedule(order: str, blocks: int = 7) -> str:
    more = f", {order}" if order else ""
    return f"schedule f for sm_90a {{ persistent(i, j, blocks={blocks}{more}) -> (block, turn)  bind(block, grid.x) }}"


def compiled(order: str, blocks: int = 7) -> Compiled:
    function = parse(TEXT + schedule(order, blocks))["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


def places(function: ir.Function, blocks: int) -> Mapping[int, tuple[int, int]]:
    """The tile of each number: that of its block and turn, by the statement of the program as it is laid out."""
    loops = [stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par | ir.Seq)]
    (bind,) = (stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Bind))
    found: dict[int, tuple[int, int]] = {}
    for block in range(blocks):
        at: dict[Sym, int] = {loops[0].sym: block}
        for turn in range(loops[1].extent.evaluate(at)):
            i, j = (each.evaluate({**at, loops[1].sym: turn}) for each in bind.targets[0].index)
            found[block + blocks * turn] = i, j
    return found


@pytest.mark.parametrize("blocks", [1, 7, 64])
@pytest.mark.parametrize("order", ORDERS)
def test_tiles_come_in_order(order: str, blocks: int) -> None:
    found = places(compiled(order, blocks).function, blocks)
    assert [found[n] for n in range(ROWS * COLUMNS)] == ORDERS[order] and len(found) == ROWS * COLUMNS


@pytest.mark.parametrize("order", ORDERS)
def test_each_tile_comes_once(order: str) -> None:
    made = compiled(order)
    assert open_of(made) == []
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    assert np.array_equal(run(made.function, {"x": x})["y"], 2 * x)


def changed(function: ir.Function, to: str) -> ir.Function:
    """A program in which other tiles come."""
    loop = next(stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par))
    (turns,) = loop.body
    assert isinstance(turns, ir.Seq)
    inner = replace(turns, extent=turns.extent - 1) if to == "fewer turns" else turns
    if to == "the next row":
        (bind,) = inner.body
        assert isinstance(bind, ir.Bind)
        (target,) = bind.targets
        i, j = target.index
        inner = replace(inner, body=(replace(bind, targets=(replace(target, index=((i + 1) % ROWS, j)),)),))
    return replace(function, body=tuple(replace(s, body=(inner,)) if s is loop else s for s in function.body))


@pytest.mark.planted
@pytest.mark.parametrize("bug", ["fewer turns", "the next row"])
@pytest.mark.parametrize("order", ["order=columns", "order=(grouped, 4)"])
def test_a_schedule_that_is_no_bijection_is_not_proved(order: str, bug: str) -> None:
    made = compiled(order)
    assert made.written is not None
    proof = faithful(made.written, changed(made.function, bug))
    assert proof.of(Verdict.REFUSED) or proof.of(Verdict.UNDECIDED)


@pytest.mark.planted
@pytest.mark.parametrize(("order", "old", "new"), [
    ("order=(grouped, 4)", "% 4", "% 3"), ("order=(grouped, 4)", "/ 20", "/ 19"), ("order=columns", "/ 12", "/ 11"),
])  # fmt: skip
def test_a_plan_of_other_tiles_is_not_proved(order: str, old: str, new: str) -> None:
    made = compiled(order)
    text = plan_text(made.plan)
    assert old in text
    assert left_of(made, parse_plan(text.replace(old, new)))


REFUSED = {
    "order=(grouped, 5)": ("groups of 5 rows are not whole: `i` has 12", "ask for `order=(grouped, 4)`"),
    "order=(grouped, 0)": ("takes an integer of 1 or more here, not 0", ""),
    "order=grouped": ("takes `rows`, `columns` or `(grouped, N)`", ""),
    "order=(rows, 2)": ("takes `rows`, `columns` or `(grouped, N)`", ""),
    "order=diagonal": ("takes one of `rows`, `columns`, `grouped` here, not `diagonal`", ""),
    "order=hilbert": ("no order along a curve", ""),
}
"""What is said of other orders, and what would help."""


@pytest.mark.parametrize("order", REFUSED)
def test_other_orders_are_refused(order: str) -> None:
    function = parse(TEXT + schedule(order))["f"]
    with pytest.raises(TexprError) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    told, help = REFUSED[order]
    assert told in str(raised.value) and help in (raised.value.diagnostics[0].help or "")


def test_one_loop_has_no_order() -> None:
    function = parse(TEXT + "schedule f for sm_90a { persistent(i, blocks=2, order=columns) }")["f"]
    with pytest.raises(TexprError) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert "only tiles of several loops have an order" in str(raised.value)
    assert raised.value.diagnostics[0].help == "leave `order=` out"


def test_from_python() -> None:
    function = parse(TEXT)["f"]
    made = Schedule(function, "sm_90a").persistent("i", "j", blocks=7, order=("grouped", 4), names=("block", "turn"))
    assert "persistent(i, j, blocks=7, order=(grouped, 4)) -> (block, turn)" in str(made.bind("block", "grid.x"))
