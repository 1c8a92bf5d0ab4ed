"""Pictures of fragments: every cell against the figures of the PTX ISA and the layouts of CuTe, and what they say goes on."""

from __future__ import annotations

from itertools import product

import pytest
from tests.draw.graphs import texts
from tests.instr.figures import FIGURES
from tests.instr.test_fragments import SHIPPED
from tests.instr.warpgroup.test_records import at, canonical

from texpr.draw.fragment import Part, Use, axes, cells, descriptor, draw_fragments, part
from texpr.ir.instr import Instr, Operand
from texpr.ir.instr.descriptor import Descriptor, along, is_summed
from texpr.isa.registry import INSTRUCTIONS
from texpr.schedule.joint.records import called

Holder = tuple[int, int]


def instr_of(name: str) -> Instr:
    found = called(name)
    assert found is not None
    return found


def shown(operand: Operand, use: Use) -> dict[tuple[int, ...], Holder]:
    """The lane and the register of each element of the picture, as its cells say."""
    found: dict[tuple[int, ...], Holder] = {}
    for row, line in enumerate(cells(operand, use)):
        for column, cell in enumerate(line):
            *warp, lane, register = cell.text.split()
            number = 32 * int(warp[0].removeprefix("W")) if warp else 0
            found[row, column] = number + int(lane.removeprefix("T")), int(register.lstrip("R+"))
    return found


def followed(index: tuple[int, ...], shape: Part, first: dict[tuple[int, ...], Holder]) -> Holder:
    """The holder of an element, by the part that is shown and by what is said of the rest."""
    rest, lane, register = list(index), 0, 0
    for each in shape.more:
        turns, rest[each.dim] = divmod(rest[each.dim], each.step)
        lane, register = lane + turns * each.lanes, register + turns * each.registers
    base = first[tuple(rest)]
    return base[0] + lane, base[1] + register


@pytest.mark.parametrize("name", SHIPPED)
def test_cells_are_those_of_the_figures(name: str) -> None:
    instr = instr_of(name)
    for operand, (count, place) in zip(instr.operands, FIGURES[SHIPPED[name]], strict=True):
        first, whole = shown(operand, Use(instr, {})), part(operand)
        wanted = {place(lane >> 2, lane % 4, i): (lane, i) for lane in range(32) for i in range(count)}
        assert {index: followed(index, whole, first) for index in wanted} == wanted, operand.name


SUMS = ["wgmma_m64n8k16_f32_bf16", "wgmma_m64n256k32_i32_u8", "wgmma_m64n96k8_f32_tf32"]


@pytest.mark.parametrize("name", SUMS)
def test_the_sum_of_a_warpgroup_is_that_of_the_figure(name: str) -> None:
    """PTX ISA, "WGMMA .m64nNk16 register fragment layout for accumulator matrix D"."""
    instr = instr_of(name)
    operand = instr.operands[-1]
    first, whole = shown(operand, Use(instr, {})), part(operand)
    columns = operand.memory.shape[1].constant
    assert max(whole.shape) <= 16 and axes(operand, instr) == ("i", "j")
    for lane, i in product(range(128), range(columns // 2)):
        row = 16 * (lane // 32) + lane % 32 // 4 + (0 if i % 4 < 2 else 8)
        column = 8 * (i // 4) + lane % 4 * 2 + (i & 1)
        assert followed((row, column), whole, first) == (lane, i)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("name", ["wgmma_m64n64k16_f32_bf16", "wgmma_m64n128k16_f32_f16_am_bn", "wgmma_m64n64k32_f32_f8e4m3",
                                  "wgmma_m64n8k8_f32_tf32"])  # fmt: skip
def test_chunks_lie_where_cute_says(name: str, swizzle: int) -> None:
    """Layouts of `make_gmma_desc`, then CuTe's Swizzle<B, 4, 3> of the address."""
    instr, how = instr_of(name), Descriptor(swizzle, 48 * 16, 112 * 16)
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    for operand in instr.operands[:2]:
        unit, each = along(operand), 16 // operand.dtype.bytes
        rows, units = canonical(swizzle, 48, 112, summed=is_summed(instr, operand, unit))
        for row, line in enumerate(cells(operand, Use(instr, {operand.name: how}))):
            for column, cell in enumerate(line):
                across, number = (row, column) if unit else (column, row)
                place = 16 * (at(rows, across) + at(units, number))
                assert int(cell.text) == place ^ ((place >> 7 & bits) << 4), (operand.name, row, column)
        assert descriptor(operand, Use(instr, {})).swizzle == 128 and part(operand).shape[unit] % each == 0


@pytest.mark.parametrize("name", ["ldmatrix_x4_bf16", "ldmatrix_x4_trans_along_f16", "ldmatrix_x4_i8"])
def test_rows_are_shown_by_the_lane_that_gives_their_address(name: str) -> None:
    instr = instr_of(name)
    address = instr.operands[0]
    first = shown(address, Use(instr, {}))
    for index, (lane, number) in first.items():
        assert index[1] % address.fragment.registers == number and 8 * (lane // 8) <= lane < 32
    svg = draw_fragments(name, (Use(instr, {}),))
    assert any("gives the address of" in text for text in texts(svg))


def test_every_shipped_instruction_is_drawn_and_small() -> None:
    drawn = [name for name, each in INSTRUCTIONS.items() if each.operands and each.operands[0].fragment]
    for name in drawn if len(drawn) < 20 else drawn[::9]:
        svg = draw_fragments(name, (Use(instr_of(name), {}),))
        assert len(svg) < 120_000 and all("…" not in text for text in texts(svg)), name
