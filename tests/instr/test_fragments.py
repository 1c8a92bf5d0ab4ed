"""Fragments: what a layout says of lanes and registers, against the figures, and turned round."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.instr.figures import FIGURES, piece_of_ldmatrix, row_of_ldmatrix
from tests.instr.texts import LDMATRIX, SHAPES, of_shape
from tests.proofs import undecided

from texpr.affine.expr import expr
from texpr.driver import lower
from texpr.frontend import elaborate, parse, parse_text
from texpr.ir.instr import Instr
from texpr.ir.instr.fragment import Fragment, Misfit, fragment
from texpr.ir.instr.registers import Packing, packing
from texpr.ir.program import Instruction, walk
from texpr.ir.value.types import DTYPES
from texpr.isa.registry import INSTRUCTIONS, library


def held(found: Fragment) -> dict[tuple[int, int], tuple[int, ...]]:
    """The element of each lane and register."""
    return {
        (lane, slot): tuple(e.constant for e in found.element(expr(lane), expr(slot)))
        for lane in range(found.lanes)
        for slot in range(found.registers)
    }


def instr_of(text: str, name: str) -> Instr:
    """The record of an instruction that a text uses."""
    uses = (stmt for function in parse(text).functions for stmt in walk(function.body) if isinstance(stmt, Instruction))
    return next(use.instr for use in uses if use.instr is not None and use.name == name)


@pytest.mark.parametrize("name", SHAPES)
def test_fragments_are_those_of_the_figures(name: str) -> None:
    record = instr_of(of_shape(name), "mma")
    for operand, (count, place) in zip(record.operands, FIGURES[name], strict=True):
        wanted = {(lane, i): place(lane >> 2, lane % 4, i) for lane in range(32) for i in range(count)}
        assert held(operand.fragment) == wanted, operand.name


def test_rows_of_ldmatrix_are_where_lanes_say() -> None:
    """Matrix q of ldmatrix.x4 goes to register q of each lane, two elements of it; tiles of `a` are in that order."""
    rows, pieces = (operand.fragment for operand in instr_of(LDMATRIX, "ldmatrix_x4").operands)
    corners = [(0, 0), (8, 0), (0, 8), (8, 8)]
    for matrix, (top, left) in enumerate(corners):
        for row in range(8):
            assert held(rows)[row_of_ldmatrix(matrix, row), 0] == (top + row, left)
        for lane in range(32):
            row, columns = piece_of_ldmatrix(lane)
            assert [held(pieces)[lane, 2 * matrix + each] for each in (0, 1)] == [(top + row, left + c) for c in columns]


def nested(modes: list[list[str]]) -> str:
    """A tree of modes as text."""
    return f"({','.join('(' + ','.join(mode) + ',)' for mode in modes)})"


SHIPPED = {
    "mma_m16n8k16_f32_f16": "m16n8k16 f16", "mma_m16n8k16_f32_bf16": "m16n8k16 bf16", "mma_m16n8k16_f16_f16": "m16n8k16 f16",
    "mma_m16n8k8_f32_f16": "m16n8k8 bf16", "mma_m16n8k8_f32_bf16": "m16n8k8 bf16", "mma_m16n8k8_f32_tf32": "m16n8k8 tf32",
    "mma_m16n8k32_i32_i8": "m16n8k32 i8", "mma_m16n8k32_i32_u8": "m16n8k32 i8", "mma_m8n8k4_f64_f64": "m8n8k4 f64",
    "mma_m16n8k4_f64_f64": "m16n8k4 f64", "mma_m16n8k8_f64_f64": "m16n8k8 f64", "mma_m16n8k16_f64_f64": "m16n8k16 f64",
    "mma_m16n8k32_f32_f8e4m3": "m16n8k32 i8", "mma_m16n8k32_f32_f8e5m2": "m16n8k32 i8",
}  # fmt: skip


def test_shipped_fragments_are_those_of_the_figures() -> None:
    bits = {"mma_m16n8k64_i32_i4", "mma_m16n8k64_i32_u4"}  # of which two are in a byte: `test_packed.py`
    assert {name for name in INSTRUCTIONS if name.startswith("mma_")} == SHIPPED.keys() | bits
    for name, figure in SHIPPED.items():
        for operand, (count, place) in zip(INSTRUCTIONS[name].operands, FIGURES[figure], strict=True):
            wanted = {(lane, i): place(lane >> 2, lane % 4, i) for lane in range(32) for i in range(count)}
            assert held(fragment(operand.fragment, operand.shape)) == wanted, (name, operand.name)


def matrices_of(name: str) -> tuple[bool, list[tuple[int, int]]]:
    """Whether a lane has what is in a column, and where matrices are, in rows and columns of matrices, by the name of a record:
    as the text of a call is written, matrix after matrix."""
    count, along = int(name.split("_x")[1][0]), "_along" in name
    corners = [(0, 0), (0, 1), (1, 0), (1, 1)] if along else [(0, 0), (1, 0), (0, 1), (1, 1)]
    return "_trans" in name, corners[:count]


MOVES = [name for name in INSTRUCTIONS if "matrix_x" in name]


@pytest.mark.parametrize("name", MOVES)
def test_shipped_moves_are_those_of_the_figures(name: str) -> None:
    """Lanes 8 · n to 8 · n + 7 address the rows of matrix n, others repeat; a lane has 4 bytes of a row, or two elements of a
    column."""
    source, target = sorted(INSTRUCTIONS[name].operands, key=lambda operand: "shared" not in operand.fragment)
    of = {"f16": 2, "bf16": 2, "tf32": 4, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1}[source.dtype]
    turned, matrices = matrices_of(name)
    width, per = 16 // of, 4 // of
    addressed = held(fragment(source.fragment.removeprefix("shared "), source.shape))
    got = held(fragment(target.fragment, target.shape))
    assert len(got) == 32 * per * len(matrices) and len(addressed) == 32 * width
    for number, (down, along) in enumerate(matrices):
        for row in range(8):
            lane = row_of_ldmatrix(number, row)
            assert [addressed[lane, i] for i in range(width)] == [(8 * down + row, width * along + i) for i in range(width)]
        for lane in range(32):
            row, columns = lane // 4, range(per * (lane % 4), per * (lane % 4) + per)
            if of == 2:
                assert (row, tuple(columns)) == piece_of_ldmatrix(lane)
            places = [(column, row) if turned else (row, column) for column in columns]
            assert [got[lane, per * number + i] for i in range(per)] == [(8 * down + r, width * along + c) for r, c in places]


def test_all_moves_are_there() -> None:
    """Counts, orders, and for 16 bits both directions; stores of 16 bits alone."""
    orders = ["x4", "x4_along", "x2", "x2_along", "x1"]
    turned = [f"{each[:2]}_trans{each[2:]}" for each in orders]
    wanted = {
        f"{verb}_{each}_{of}" for verb in ("ldmatrix", "stmatrix") for each in (*orders, *turned) for of in ("f16", "bf16")
    }
    wanted |= {f"ldmatrix_{each}_{of}" for each in orders for of in ("tf32", "i8", "u8", "f8e4m3", "f8e5m2")}
    assert {*MOVES} == wanted


def shipped_use(name: str) -> str:
    """A function that uses a shipped instruction on parts of arrays; rows of shared memory are copied there, or from there."""
    shipped = INSTRUCTIONS[name]
    params = ", ".join(operand.text for operand in shipped.operands)
    views = ", ".join(operand.name for operand in shipped.operands)
    copied = {o.name: o for o in shipped.operands if o.fragment.startswith("shared")}
    shapes = {each: ", ".join(map(str, o.shape)) for each, o in copied.items()}
    news = "".join(f"new {each}_s: {o.dtype}[{shapes[each]}]\n" for each, o in copied.items())
    fills = "".join(
        f"par {shapes[each]} |i, j| {{ {each}_s[i, j] = {each}[i, j] }}\n" for each, o in copied.items() if not o.inout
    )
    ends = "".join(f"par {shapes[each]} |i, j| {{ {each}[i, j] = {each}_s[i, j] }}\n" for each, o in copied.items() if o.inout)
    given = ", ".join(f"{each}_s" if each in copied else each for each in views.split(", "))
    return f"fn use({params}) {{ par 1 |block| {{\n{news}{fills}fully par 32 |lane| {{ {name}({given}) }}\n{ends}}} }}"


OF_WARPS = [
    each.name
    for each in INSTRUCTIONS.values()
    if each.operands and each.operands[0].fragment and not each.name.startswith(("wgmma_", "tcgen05_", "vdp", "vpdp"))
]
"""Those of a core have no lanes; those of warpgroups, and in tensor memory, have tests of their own (`warpgroup`,
`tensor_memory`: `test_records.py`)."""


@pytest.mark.parametrize("name", OF_WARPS)
def test_shipped_instructions_are_records_of_the_same_form(name: str) -> None:
    """One becomes what a user's does, and is lowered and proved as that."""
    program = elaborate(parse_text(shipped_use(name)), library=parse_text(library()))
    uses = [stmt for stmt in walk(program["use"].body) if isinstance(stmt, Instruction)]
    assert [use.instr is not None and use.instr.name for use in uses] == [name]
    made = lower(
        program["use"], "sm_90a" if "_f64_f64" in name or "_f8" in name or "stmatrix" in name else "sm_80", schedule=None
    )
    assert not list(undecided(made.function, made.plan))


MOST = 256
"""Elements of a fragment that a test goes through one by one."""


@st.composite
def layouts(draw: st.DrawFn) -> tuple[str, tuple[int, ...]]:
    """Layouts that are fragments: digits of each dimension dealt out to lanes and registers, some with copies."""
    rank = draw(st.integers(1, 3))
    digits: list[tuple[int, str]] = []
    shape: list[int] = []
    for dim in range(rank):
        extent = 1
        for size in draw(st.lists(st.sampled_from([2, 3, 4]), max_size=3)):
            digits.append((size, f"{extent}@{dim}"))
            extent *= size
        shape.append(extent)
    digits += [(size, "0") for size in draw(st.lists(st.sampled_from([2, 3]), max_size=1))]
    assume(prod(shape) <= MOST)
    order = draw(st.permutations(digits))
    cut = draw(st.integers(0, len(order)))
    modes = [[*order[:cut], (1, "0")], [*order[cut:], (1, "0")]]
    sizes, strides = (nested([[str(digit[at]) for digit in mode] for mode in modes]) for at in (0, 1))
    return f"{sizes}:{strides}", tuple(shape)


@settings(max_examples=150, deadline=None)
@given(layouts())
def test_lanes_and_registers_are_the_inverse(case: tuple[str, tuple[int, ...]]) -> None:
    text, shape = case
    found = fragment(text, shape)
    places = held(found)
    assert len(set(places.values())) * found.copied == len(places)
    for place, element in places.items():
        index = tuple(map(expr, element))
        owners = [(found.lane(index, copy).constant, found.register(index, copy).constant) for copy in range(found.copied)]
        assert place in owners and len(set(owners)) == found.copied
        assert all(places[owner] == element for owner in owners)


WRONG = {
    "lane missing": ("((4,4),(2,2)):((2@1,1@0),(1@1,8@0))", (16, 8), "element 4 along dimension 0 is held by no lane"),
    "two in one place": (
        "((4,8),(2,2)):((1@1,1@0),(1@1,8@0))",
        (16, 8),
        "two places hold one element: strides along dimension 1",
    ),
    "gap": ("((4,8),(2,2)):((4@1,1@0),(1@1,8@0))", (16, 16), "element 2 along dimension 1 is held by no lane"),
    "too short": ("((4,8),2):((2@1,1@0),1@1)", (16, 8), "element 8 along dimension 0 is held by no lane"),
    "too long": ("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", (8, 8), "16 elements along dimension 0 are held, and there are 8"),
    "three modes": ("(4,8,2):(2@1,1@0,1@1)", (8, 8), "it has 3 modes"),
    "no dimension": ("(4,2):(2@2,1@0)", (2, 8), "the stride 2@2 is along none of the operand's 2 dimensions"),
    "no basis": ("(4,2):(2,1)", (2, 4), "the stride 2 is along none of the operand's 2 dimensions"),
    "back": ("(4,2):(-1@0,4@0)", (8,), "the stride -1 goes back"),
    "not known": ("(n,2):(1@0,4@0)", (8,), "`n:1@0` is of a size that is not known"),
    "no layout": ("((4,8):(1@0", (8,), "expected"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_fragment(name: str) -> None:
    text, shape, why = WRONG[name]
    with pytest.raises(Misfit) as caught:
        fragment(text, shape)
    assert why in str(caught.value) or name == "no layout"


PACKED = {
    ("bf16", 8): Packing("r", 4, 2), ("f16", 2): Packing("r", 1, 2), ("f16", 1): Packing("h", 1, 1),
    ("i8", 16): Packing("r", 4, 4), ("f8e4m3", 4): Packing("r", 1, 4), ("f32", 4): Packing("f", 4, 1),
    ("f64", 2): Packing("d", 2, 1), ("i32", 4): Packing("r", 4, 1), ("tf32", 4): Packing("r", 4, 1),
    ("u64", 1): Packing("l", 1, 1), ("u16", 3): Packing("h", 3, 1),
}  # fmt: skip


@pytest.mark.parametrize(("name", "count"), PACKED)
def test_packing(name: str, count: int) -> None:
    assert packing(DTYPES[name], count) == PACKED[name, count]


@pytest.mark.parametrize(("name", "count"), [("bool", 4), ("i8", 2), ("u8", 3), ("f8e5m2", 1)])
def test_what_fills_no_register(name: str, count: int) -> None:
    with pytest.raises(Misfit):
        packing(DTYPES[name], count)
