"""Records of products by a warpgroup: fragments against the figures, descriptors against the layouts that CuTe writes down.

PTX ISA 8.5, 9.7.15.5.1: the figures of D, "WGMMA .m64nNk16 register fragment layout for accumulator matrix D" and those of
other depths, which are the same. CuTe, include/cute/atom/mma_traits_sm90_gmma.hpp, `make_gmma_desc`: canonical layouts of
K-major and of MN-major operands, in units of 16 bytes, as (sizes):(strides).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product as every

import pytest
from tests.proofs import undecided

from texpr.affine.expr import expr
from texpr.driver import lower
from texpr.frontend import elaborate, parse_text
from texpr.ir.instr import Instr, Operand, stays_in_warps
from texpr.ir.instr.descriptor import Descriptor, along, is_summed, offset
from texpr.ir.program import Instruction, walk
from texpr.isa.instructions.wgmma import product
from texpr.isa.registry import INSTRUCTIONS, library

Units = tuple[tuple[int, ...], tuple[int, ...]]

NAMES = [name for name in INSTRUCTIONS if name.startswith("wgmma_")]


def instr_of(name: str) -> Instr:
    """The record that a use of a shipped instruction has."""
    shipped = INSTRUCTIONS[name]
    a, b, d = shipped.operands
    params = ", ".join(operand.text for operand in shipped.operands)
    uses = f"fn use({params}) {{ fully par 128 |t| {{ {name}(a, b, d) }} }}"
    program = elaborate(parse_text(uses), library=parse_text(library()))
    found = next(stmt.instr for stmt in walk(program["use"].body) if isinstance(stmt, Instruction) and stmt.instr is not None)
    assert [operand.name for operand in found.operands] == [a.name, b.name, d.name]
    return found


@pytest.mark.parametrize("name", ["wgmma_m64n8k16_f32_bf16", "wgmma_m64n96k8_f32_tf32", "wgmma_m64n256k32_i32_u8"])
def test_the_sum_is_held_as_the_figure_says(name: str) -> None:
    *_, found = instr_of(name).operands
    columns = found.fragment.shape[1]
    for lane, i in every(range(128), range(columns // 2)):
        group, thread = (lane % 32) >> 2, lane % 4
        row = 16 * (lane // 32) + group + (0 if i % 4 < 2 else 8)
        column = 8 * (i // 4) + thread * 2 + (i & 1)
        place = tuple(e.constant for e in found.fragment.element(expr(lane), expr(i)))
        assert place == (row, column)


def held(of: str, lane: int, i: int) -> tuple[int, int]:
    """The row and column of a's element i of a lane: PTX ISA 8.5, figures "WGMMA .m64n*k16 register fragment layout for matrix
    A", and those of k8 and k32."""
    group, thread = (lane % 32) >> 2, lane % 4
    if of == "tf32":
        below, column = i in (1, 3), thread + (4 if i >= 2 else 0)
    elif of in ("f16", "bf16"):
        below, column = not (i < 2 or 4 <= i < 6), thread * 2 + (i & 1) + (8 if i >= 4 else 0)
    else:
        below, column = not (i < 4 or 8 <= i < 12), thread * 4 + (i & 3) + (16 if i >= 8 else 0)
    return 16 * (lane // 32) + group + 8 * below, column


@pytest.mark.parametrize("of", ["bf16", "f16", "tf32", "f8e4m3", "i8"])
def test_what_lanes_lend_is_held_as_the_figure_says(of: str) -> None:
    record = product(64, of, "i32" if of == "i8" else "f32", in_registers=True)
    (instr,) = elaborate(parse_text(record.text)).instrs
    a, b, d = instr.operands
    assert (a.access, b.is_described, d.access, instr.lanes) == ("read", True, "update", 128)
    for lane, i in every(range(128), range(a.fragment.registers)):
        place = tuple(e.constant for e in a.fragment.element(expr(lane), expr(i)))
        assert place == held(of, lane, i)
    assert stays_in_warps(instr, 32)


@pytest.mark.parametrize("of", ["bf16", "f16"])
def test_a_sum_is_what_the_next_product_reads(of: str) -> None:
    """Element by element: 16 columns of what one product leaves are a left operand of the next, once they are rounded."""
    *_, left = instr_of(f"wgmma_m64n64k16_f32_{of}").operands
    right = instr_of(f"wgmma_m64n64k16_f32_{of}_ar_bn").operands[0]
    for lane, i, part in every(range(128), range(8), range(4)):
        row, column = left.fragment.element(expr(lane), expr(8 * part + i))
        assert right.fragment.element(expr(lane), expr(i)) == (row, column - 16 * part)


def at(units: Units, index: int) -> int:
    """What a layout of one dimension gives for a number, its first mode fastest."""
    total = 0
    for size, stride in zip(*units, strict=True):
        total, index = total + index % size * stride, index // size
    return total


def canonical(swizzle: int, leading: int, stride: int, *, summed: bool) -> tuple[Units, Units]:
    """CuTe's layouts of rows and columns in units of 16 bytes: of MN or K across, then of units along; distances in units."""
    big = 1 << 20
    if summed:  # K-major: ((8, n), 2)
        rows = {0: (8, 1), 32: (8, 2), 64: (8, 4), 128: (8, 8)}[swizzle]
        return ((rows[0], big), (rows[1], stride)), ((2, big), (leading if not swizzle else 1, 0))
    wide = {0: 1, 32: 2, 64: 4, 128: 8}[swizzle]
    if swizzle:  # MN-major: ((wide, n), (8, k)) : ((1, LBO), (wide, SBO))
        return ((8, big), (wide, stride)), ((wide, big), (1, leading))
    return ((8, big), (1, leading)), ((1, big), (0, stride))  # ((1, n), (8, k)) : ((X, SBO), (1, LBO))


def elements(operand: Operand) -> Iterator[tuple[int, int]]:
    rows, columns = (e.constant for e in operand.memory.shape)
    yield from every(range(rows), range(columns))


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("name", ["wgmma_m64n64k16_f32_bf16", "wgmma_m64n128k16_f32_f16_am_bn", "wgmma_m64n64k32_f32_f8e4m3",
                                  "wgmma_m64n8k8_f32_tf32"])  # fmt: skip
def test_descriptors_mean_what_cute_writes_down(name: str, swizzle: int) -> None:
    instr, how = instr_of(name), Descriptor(swizzle, 48 * 16, 112 * 16)
    for operand in instr.operands[:2]:
        unit, size = along(operand), operand.dtype.bytes
        rows, units = canonical(swizzle, 48, 112, summed=is_summed(instr, operand, unit))
        assert is_summed(instr, operand, unit) == (not name.endswith("_am_bn"))
        for index in elements(operand):
            across, column = index[1 - unit], index[unit]
            wanted = 16 * (at(rows, across) + at(units, column * size // 16)) + column * size % 16
            assert offset(instr, operand, how, [expr(n) for n in index]).constant == wanted, (operand.name, index)


def test_which_records_there_are() -> None:
    """Types, depths and majors: 16-bit types alone may be consecutive along rows, or columns, of the product."""
    depths = {"bf16": 16, "f16": 16, "tf32": 8, "f8e4m3": 32, "f8e5m2": 32, "i8": 32, "u8": 32}
    for name in NAMES:
        shape, into, of, *turned = name.removeprefix("wgmma_m64n").split("_")
        columns, depth = map(int, shape.split("k"))
        assert depth == depths[of] and columns % 8 == 0 and 8 <= columns <= 256
        assert into == ("i32" if of in ("i8", "u8") else "f32") and (not turned or of in ("bf16", "f16"))
        assert into == "f32" or columns in (8, 16, 24) or columns % 16 == 0
        assert (INSTRUCTIONS[name].asm[0][0] == "sm_90a" and "wgmma" in INSTRUCTIONS[name].source.lower()) or "m64" in name
    assert {f"wgmma_m64n{n}k16_f32_bf16" for n in (8, 64, 128, 256)} <= {*NAMES}


def core_matrices(operand: Operand, name: str) -> tuple[Sequence[int], str]:
    """A shared array of core matrices of an operand, and the view of it that the operand is."""
    unit, each = along(operand), 16 // operand.dtype.bytes
    shape = [e.constant for e in operand.memory.shape]
    view = f"reshape(transpose({name}, (1, 0, 2)), ({shape[1 - unit]}, {shape[unit]}))"
    return (shape[unit] // each, shape[1 - unit], each), view if unit else f"transpose({view})"


@pytest.mark.parametrize("name", ["wgmma_m64n8k16_f32_bf16", "wgmma_m64n64k16_f32_f16_am_bn", "wgmma_m64n64k8_f32_tf32"])
def test_shipped_records_are_lowered_and_proved(name: str) -> None:
    """On core matrices that threads write, without a swizzle."""
    shipped, instr = INSTRUCTIONS[name], instr_of(name)
    params = ", ".join(operand.text for operand in shipped.operands)
    news, fills, given = "", "", list[str]()
    for operand in instr.operands[:2]:
        shape, view = core_matrices(operand, f"{operand.name}_s")
        unit, each = along(operand), shape[2]
        index = ["r", f"{each} * u + e"] if unit else [f"{each} * u + e", "r"]
        news += f"new {operand.name}_s: {operand.dtype}[{', '.join(map(str, shape))}]\n"
        loops = f"par {shape[0]}, {shape[1]}, {shape[2]} |u, r, e|"
        fills += f"{loops} {{ {operand.name}_s[u, r, e] = {operand.name}[{', '.join(index)}] }}\n"
        given.append(view)
    use = f"fully par 128 |t| {{ {name}({', '.join(given)}, d) }}"
    text = f"fn use({params}) {{ par 1 |block| {{\n{news}{fills}{use}\n}} }}"
    function = elaborate(parse_text(text), library=parse_text(library()))["use"]
    made = lower(function, "sm_90a", schedule=None)
    assert not list(undecided(made.function, made.plan))


def test_others_are_made_alike() -> None:
    assert product(24, "i8", "i32").name == "wgmma_m64n24k32_i32_i8"
    assert product(64, "bf16", in_registers=True).operands[0].fragment.startswith("((4,8,4)")
    assert "{b}, 1, 1, 1, 1;" in product(64, "bf16", by_n=True, in_registers=True).asm[0][1]
    assert "{b}, 1, 1, 1;" in product(64, "f8e4m3", in_registers=True).asm[0][1]
    assert "{b}, 1;" in product(64, "i8", "i32", in_registers=True).asm[0][1]
    assert product(64, "bf16").text == INSTRUCTIONS["wgmma_m64n64k16_f32_bf16"].text
