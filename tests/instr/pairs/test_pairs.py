"""Products of pairs of blocks from text to numbers: lowered, emulated, proved, read back, and refused."""

from __future__ import annotations

import re
from typing import TypeGuard

import pytest
from tests.instr.pairs.texts import CASES, compiled
from tests.instr.reads_back import reads_back
from tests.instr.tensor_memory.test_records import fields
from tests.lowering.emulated import require_right
from tests.proofs import undecided

from texpr.artifact.certificate import said
from texpr.driver import lower
from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.schedule.joint.records import called
from texpr.support.diagnostic import TexprError

PAIRS = [name for name in INSTRUCTIONS if name.startswith("tcgen05_pair_")]


def emulated(name: str, sizes: tuple[int, int, int], seed: int | None) -> None:
    made, (arguments, wanted) = compiled(name), CASES[name].arguments(sizes)
    require_right(made, arguments, wanted, seed=seed)


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    deep = 5 * 128 // CASES[name].arguments((8, 8, 8))[0]["A"].itemsize
    for seed in (1,) if CASES[name].columns > 64 else (None, LOCKSTEP, 1):
        emulated(name, (256, CASES[name].columns, deep), seed)


@pytest.mark.parametrize("sizes", [(136, 72, 200), (264, 8, 72), (8, 8, 8), (130, 128, 0), (0, 8, 8), (8, 0, 8)])
def test_ragged_sizes_and_none(sizes: tuple[int, int, int]) -> None:
    """Pairs of which the second block has no rows, or some, tiles of which some columns exist, and no turns."""
    emulated("late", sizes, 3)


def test_ragged_halves_of_columns() -> None:
    """The second half of the last tile has no columns, or some."""
    emulated("turned", (264, 136, 72), 2)
    emulated("turned", (8, 232, 200), 3)


@pytest.mark.parametrize("seed", range(4, 10))
def test_orders(seed: int) -> None:
    emulated("late", (256, 64, 520), seed)
    emulated("ring", (256, 64, 264), seed)


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("name", CASES)
def test_texts_read_back(name: str) -> None:
    assert reads_back(CASES[name].text, compiled(name))


@pytest.mark.parametrize("name", ["late", "turned"])
def test_programs_read_back_as_they_are_shipped(name: str) -> None:
    """With the instruction, its halves and its effect among it."""
    text, again = said(compiled(name).function)
    assert "descriptor 2@1 (8,8):" in text and "effect joins tcgen05 commit of a pair;" in text
    (instr,) = {use.instr.name: use.instr for use in ir.walk(again.body) if _is_pair(use) and use.instr}.values()
    known = called(instr.name)
    assert known is not None and known.alike(instr)


def _is_pair(use: ir.Stmt) -> TypeGuard[ir.Instruction]:
    return isinstance(use, ir.Instruction) and use.instr is not None and use.instr.is_pair


def test_each_block_has_half_of_the_columns() -> None:
    """A tile of 64 columns is 32 in each block; the first one counts the bytes of both, and is who waits for them; both meet
    once ahead of the turns, and once a turn, in which nobody has to see what others stored."""
    (kernel,) = k.kernels(compiled("late").plan.steps)
    arrays = {array.buffer.name: array for array in kernel.arrays}
    assert arrays["B_s"].halved == 1 and [e.constant for e in arrays["B_s"].buffer.shape] == [4, 32, 8, 8]
    assert arrays["A_s"].halved is None and [e.constant for e in arrays["A_s"].buffer.shape] == [4, 128, 8, 8]
    (expect,) = (stmt for stmt in k.walk(kernel.body) if isinstance(stmt, k.BarrierExpect))
    assert expect.bytes == 2 * (128 + 32) * 128
    copies = [stmt for stmt in k.walk(kernel.body) if isinstance(stmt, k.CopyTensor)]
    assert [copy.led for copy in copies] == [True, True]
    (loop,) = (stmt for stmt in kernel.body if isinstance(stmt, k.For) and stmt.sym.name == "k_o")
    outside = [stmt.relaxed for stmt in kernel.body if isinstance(stmt, k.Barrier) and stmt.level is k.Level.CLUSTER]
    inside = [(stmt.level, stmt.relaxed) for stmt in k.walk(loop.body) if isinstance(stmt, k.Barrier)]
    assert outside == [False] * 3 and inside == [(k.Level.CLUSTER, True)]


@pytest.mark.parametrize("name", PAIRS)
def test_records_are_those_of_one_block_but_for_the_pair(name: str) -> None:
    """PTX ISA 9.0, 9.7.16.10.9.1: `.cta_group::2`; 9.7.16.10.5: 256 rows, 128 in each block (layout A), half of the columns of
    b in each. The instruction descriptor has all rows, and all columns."""
    pair, one = INSTRUCTIONS[name], INSTRUCTIONS[name.replace("pair_", "")]
    _, columns = pair.operands[2].shape
    assert [(o.name, o.dtype, o.shape) for o in pair.operands] == [(o.name, o.dtype, o.shape) for o in one.operands]
    assert pair.meaning == one.meaning and pair.rounding == one.rounding
    for target in ("sm_100a", "sm_103a"):
        told, other = pair.template(resolve(target)), one.template(resolve(target))
        assert told is not None and other is not None
        bits, alone = (fields(int(re.findall(r"0x[0-9a-f]+", text)[0], 16)) for text in (told, other))
        assert bits == {**alone, "m": 256 // 16} and alone["m"] == 128 // 16 and bits["n"] == columns // 8
        assert re.sub("0x[0-9a-f]+", "", told) == re.sub("0x[0-9a-f]+", "", other).replace("cta_group::1", "cta_group::2")
    instr = called(name)
    assert instr is not None and instr.is_pair and instr.is_alone
    assert [operand.halved for operand in instr.operands] == [None, 1, None]
    assert {each.fragment.replace("2@1 ", "") for each in pair.operands} == {each.fragment for each in one.operands}
    assert instr.operands[1].part == (instr.operands[1].memory.shape[0].constant, columns // 2)


REFUSED = {
    "no cluster": ("    cluster(i_b, 2)\n", "", "E0918"),
    "a cluster of four": ("cluster(i_b, 2)", "cluster(i_b, 4)", "E0918"),
    "a tile that each block copies": (", multicast=i_b", "", "each of both would have all of it"),
    "a tile of another width": ("split(j, 64)", "split(j, 128)", "has no such halves"),
    "copies of threads": ("in=shared, via=tma, swizzle=128B, multicast=i_b", "in=shared", "no descriptor says"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    old, new, told = REFUSED[name]
    text = CASES["late"].text
    assert old in text
    function = parse(text.replace(old, new), "case.te")["product"]
    with pytest.raises(TexprError, match=told):
        lower(function, "sm_100a", schedule=function.schedules[0])
