"""Bounds: what decides, what is shared out unevenly, what is not known; and turns of loops that wait or do not."""

from __future__ import annotations

import pytest

from texpr.isa.registry import DEVICES, resolve
from texpr.model.bound import Least, bound, ratio
from texpr.model.code.program import program
from texpr.model.code.steady import Steady, steady
from texpr.model.code.text import Code, Control, Instruction
from texpr.model.code.walk import Counts
from texpr.model.machine import residence
from texpr.model.work import Shape, Work

TARGET, DEVICE = resolve("sm_90a"), DEVICES["sm_90a"]
CLOCK = 1.98e9


def test_the_busiest_unit_decides() -> None:
    work = Work(issued=132 * 4e6, units={"fma": 132 * 1e6, "special": 132 * 1e6}, products={})
    found = bound(work, Shape(132, 128), TARGET, DEVICE)
    assert found.deciding == "special" and found.us == pytest.approx(1e6 * 32 / 16 / CLOCK * 1e6)
    assert found.of("issue") == pytest.approx(1e6 / CLOCK * 1e6)
    assert found.of("fma") == pytest.approx(1e6 * 32 / 128 / CLOCK * 1e6)
    assert found.of("fp64") == 0.0 and found.unknown == ()


@pytest.mark.parametrize(("blocks", "loss"), [(132, 1.0), (133, 2 * 132 / 133), (1, 132.0), (264, 1.0), (10**6, 1.0)])
def test_the_multiprocessor_with_most_blocks_sets_the_pace(blocks: int, loss: float) -> None:
    work = Work(issued=1e6, units={}, products={}, dram=1e6)
    found, even = (bound(work, Shape(n, 128), TARGET, DEVICE) for n in (blocks, 132))
    assert found.of("issue") == pytest.approx(loss * even.of("issue"), rel=1e-3)
    assert found.of("dram") == even.of("dram"), "all share it"


@pytest.mark.parametrize(
    ("shape", "blocks", "by"),
    [
        (Shape(1000, 256, 32, 0), 8, "threads"),
        (Shape(1000, 256, 128, 0), 2, "registers"),
        (Shape(1000, 256, 126, 0), 2, "registers"),
        (Shape(1000, 64, 168, 0), 6, "registers"),
        (Shape(1000, 32, 16, 0), 32, "blocks"),
        (Shape(1000, 128, 32, 100 * 1024), 2, "shared memory"),
        (Shape(1000, 128, 32, 227 * 1024), 1, "shared memory"),
        (Shape(1000, 1024, 64, 0), 1, "registers"),
    ],
)
def test_blocks_that_a_multiprocessor_holds(shape: Shape, blocks: int, by: str) -> None:
    """As the occupancy calculator has it."""
    found = residence(shape, TARGET, DEVICE)
    assert (found.blocks, found.by) == (blocks, by)
    assert found.waves == -(-1000 // (132 * blocks))


def test_what_is_not_published_is_not_known() -> None:
    found = bound(Work(1e6, {"lsu": 1e6}, {"bf16 sync": 1e9}, l2=1e6), Shape(148, 128), resolve("sm_100a"), DEVICES["sm_100a"])
    assert set(found.unknown) == {"lsu", "matrix", "l2"} and found.deciding == "issue"


def test_a_launch_of_nothing() -> None:
    assert bound(Work(0.0, {}, {}), Shape(0, 128), TARGET, DEVICE).us == 0.0
    assert ratio(1.0, Least(0.0, 0.0)) is None and ratio(3.0, Least(1.0, 1.5)) == 2.0


def loop(*rows: tuple[str, Control]) -> tuple[Code, Counts]:
    """A loop that runs a thousand times: rows of opcodes, each with what the scheduler is told, and the jump back."""
    made = [Instruction(16 * at, name, (), "", None, None, control) for at, (name, control) in enumerate(rows)]
    back = Instruction(16 * len(made), "BRA", ("`(x)",), "P0", 0, None, Control(5, None, None, 0))
    code = Code("k", (*made, back, Instruction(16 * len(made) + 16, "EXIT", ())))
    issued = (*([1000.0] * (len(made) + 1)), 1.0)
    return code, Counts(issued, issued, (), False)


def turn(rows: list[tuple[str, Control]], warps: int) -> Steady:
    code, counts = loop(*rows)
    found = steady(program(code), counts, warps, 1, TARGET, DEVICE)
    assert found is not None
    return found


PLAIN = Control(1, None, None, 0)
SUM = Control(4, None, None, 7)
CHAIN = [("LDS", Control(1, 0, None, waits)) for waits in (0, 1, 1)] + [("FADD", SUM)]
APART = [("LDS", Control(1, board, None, 0)) for board in (0, 1, 2)] + [("FADD", SUM)]


def test_a_serialised_loop_is_told_from_an_overlapped_one() -> None:
    """Three loads of shared memory, of which each waits for the one before, or the sum for all: the bound is the same."""
    chain, apart = turn(CHAIN, 4), turn(APART, 4)
    assert chain.least == apart.least and chain.unit == apart.unit
    assert chain.clocks > 3 * 29 > apart.clocks > 29


def test_more_warps_hide_what_one_waits_for() -> None:
    few, many = turn(CHAIN, 4), turn(CHAIN, 64)
    assert few.clocks >= 8 * few.least and many.clocks < 1.6 * many.least


def test_a_turn_is_never_shorter_than_its_busiest_unit() -> None:
    for rows in (CHAIN, APART, [("MUFU", PLAIN)] * 5, [("FFMA", PLAIN)] * 20, [("IMAD", PLAIN)] * 7):
        for warps in (1, 4, 12, 64):
            found = turn(rows, warps)
            assert found.clocks >= 0.999 * found.least, (rows, warps)


def test_a_barrier_waits_for_the_block() -> None:
    without = [("MUFU", Control(1, 0, None, 0)), ("FADD", Control(4, None, None, 1))]
    assert turn([*without, ("BAR", PLAIN)], 16).clocks > turn(without, 16).clocks + 10


def test_without_what_the_scheduler_is_told_nothing_is_said() -> None:
    code, counts = loop(("FADD", PLAIN))
    bare = Code(
        "k", tuple(Instruction(one.address, one.opcode, one.operands, one.guard, one.target) for one in code.instructions)
    )
    assert steady(program(bare), counts, 4, 1, TARGET, DEVICE) is None
