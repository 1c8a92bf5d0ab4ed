"""Products in tensor memory against what CuTe DSL itself says of them: descriptors of instructions and of matrices, bit by bit.

`cute_columns.json` is what `bench/peers/check_cute_columns.py` writes, in the environment of `make peers`; nobody edits it.
`tensor_memory/test_records.py` has the same fields by the tables of the PTX ISA, without CuTe.
"""

from __future__ import annotations

import ctypes
import json
import re
from itertools import product as every
from math import prod
from pathlib import Path
from typing import Any

import pytest
from tests.instr.tensor_memory.test_records import PROGRAM
from tests.instr.test_cute import SIZES, SPANS, WHOLE, flat, modes, value

from texpr.affine.expr import expr
from texpr.backends.cuda.headers import headers
from texpr.frontend import elaborate, parse_text
from texpr.ir.instr import Instr
from texpr.ir.instr.descriptor import Descriptor, offset
from texpr.ir.instr.fragment import fragment
from texpr.isa.instruction import Instruction
from texpr.isa.instructions.tcgen05 import product
from texpr.isa.registry import INSTRUCTIONS
from texpr.schedule.joint.records import called
from texpr.toolchain import Toolchain, this_machine

SAID: dict[str, Any] = json.loads(Path(__file__).with_name("cute_columns.json").read_text(encoding="utf-8"))
NAME = re.compile(r"tcgen05_m128n(\d+)k\d+_(\w\d+)_([a-z0-9]+?)(_am)?(_bn)?")

SATURATES = 1 << 3
"""PTX ISA 9.0, "Instruction descriptor": bit 3, of integers. CuTe DSL has it; sums of the language wrap, and ours has not."""


def record(name: str) -> Instruction:
    """The record of that name: a shipped one, or one that a text may have."""
    found = NAME.fullmatch(name)
    assert found is not None
    columns, into, of, by_m, by_n = found.groups()
    made = product(int(columns), of, into, by_m=bool(by_m), by_n=bool(by_n))
    assert made.name == name and INSTRUCTIONS.get(name, made).text == made.text
    return made


@pytest.mark.parametrize("name", SAID["instructions"])
def test_the_instruction_has_the_descriptor_of_cute(name: str) -> None:
    kind, bits = SAID["instructions"][name]
    found = re.fullmatch(r"tcgen05\.mma\.cta_group::1\.kind::(\w+) .* (0x[0-9a-f]+), 1;", record(name).asm[0][1])
    assert found is not None and found[1] == kind
    assert int(found[2], 16) == int(bits, 16) & ~SATURATES
    assert bool(int(bits, 16) & SATURATES) == (kind == "i8")


PAIRS = [name for name in INSTRUCTIONS if name.startswith("tcgen05_pair_")]


def test_every_pair_is_compared() -> None:
    assert {*PAIRS} == {*SAID["pairs"]}


@pytest.mark.parametrize("name", PAIRS)
def test_the_instruction_of_a_pair_has_the_descriptor_of_cute(name: str) -> None:
    kind, bits, blocks = SAID["pairs"][name]
    found = re.fullmatch(r"tcgen05\.mma\.cta_group::(\d)\.kind::(\w+) .* (0x[0-9a-f]+), 1;", INSTRUCTIONS[name].asm[0][1])
    assert found is not None and (int(found[1]), found[2], int(found[3], 16)) == (blocks, kind, int(bits, 16)) and blocks == 2


@pytest.mark.parametrize("name", [name for name in PAIRS if "_f32_bf16" in name or "_f8e4m3" in name or "_tf32" in name])
def test_blocks_of_a_pair_have_what_they_have_in_cute(name: str) -> None:
    """CuTe: (block, (row, column)) → row + rows · column of the whole operand, of 256 rows. Ours: each block has 128 rows of a
    and of the sum, and that half of b's columns."""
    instr = called(name)
    assert instr is not None
    a, b, d = instr.operands
    (rows, depth), (_, columns) = ([e.constant for e in each.memory.shape] for each in (a, d))
    halves = [pair_of(each) for each in SAID["halves"][f"{columns} {depth}"]]
    assert [(blocks, first, apart) for blocks, apart, first, _ in halves] == [
        (2, rows, rows),
        (2, columns // 2, columns // 2),
        (2, rows, rows),
    ]
    assert b.halved == 1 and b.part == (depth, columns // 2) and (a.halved, d.halved) == (None, None)
    assert [across for *_, across in halves] == [2 * rows, columns, 2 * rows]


def pair_of(layout: str) -> tuple[int, int, int, int]:
    """How many blocks, how far apart what they have begins, how many rows each has, and how far apart columns are."""
    (blocks, first, _), (apart, one, across) = (flat(modes(each)) for each in layout.split(":"))
    assert one == 1
    return blocks, apart, first, across


PLAIN = {name for name in INSTRUCTIONS if name.startswith("tcgen05_m") and "_mx_" not in name}
"""But for products with scales, whose fields are in `tensor_memory/test_scaled_records.py`."""


def test_every_product_is_compared() -> None:
    assert {name.replace("_at", "") for name in PLAIN} <= SAID["instructions"].keys()


@pytest.mark.parametrize("name", sorted(name for name in PLAIN if "_at" in name))
def test_where_the_first_operand_lies_is_no_bit(name: str) -> None:
    """In tensor memory, or in shared memory: that is in the operand, and not in the descriptor of the instruction."""
    there, here = (
        [text.replace("[{a}]", "{a}") for _, text in INSTRUCTIONS[each].asm] for each in (name, name.replace("_at", ""))
    )
    assert there == here


def places(layout: str, columns: int, said: str) -> set[bool]:
    """Whether elements of a sum are at the addresses that CuTe says: a lane in the upper 16 bits, a column in the lower."""
    shape, stride = (modes(each) for each in said.split(":"))
    ours, (sizes, steps) = fragment(layout, (128, columns)), (flat(shape[0]), flat(stride[0]))
    held = every(range(ours.lanes), range(ours.registers))
    at = {(lane << 16 | slot): [e.constant for e in ours.element(expr(lane), expr(slot))] for lane, slot in held}
    assert len(at) == prod(sizes)
    return {value(sizes, steps, row + 128 * column) == address for address, (row, column) in at.items()}


@pytest.mark.parametrize("columns", SAID["sums"])
def test_sums_are_where_they_are_in_cute(columns: str) -> None:
    layout = product(int(columns), "bf16").operands[2].fragment.removeprefix("tensor ")
    assert places(layout, int(columns), SAID["sums"][columns]) == {True}


def test_a_wrong_place_of_a_sum_is_seen() -> None:
    assert places("((64,2),(32,2)):((2@0,1@0),(1@1,32@1))", 64, SAID["sums"]["64"]) == {True, False}


def fields(bits: int) -> Descriptor:
    """PTX ISA 9.0, "Shared memory descriptor": chunks of 16 bytes in bits 16 to 29 and 32 to 45, the constant 1 in 46 to 48,
    the swizzle in 61 to 63."""
    assert bits & ~(0x3FFF << 16 | 0x3FFF << 32 | 7 << 46 | 7 << 61) == 0 and bits >> 46 & 7 == 1
    swizzle = {0: 0, 2: 128, 4: 64, 6: 32}[bits >> 61]
    return Descriptor(swizzle, 16 * (bits >> 16 & 0x3FFF), 16 * (bits >> 32 & 0x3FFF))


def multiplied(name: str) -> Instr:
    """The record of the product whose descriptors CuTe printed."""
    kind, of = name.split()
    by_m = not kind.startswith("K")
    made = product(256, of, "i32" if of in ("i8", "u8") else "f32", by_m=by_m, by_n=by_m)
    (instr,) = elaborate(parse_text(made.text)).instrs
    return instr


def lie(instr: Instr, operand: str, how: Descriptor, layout: str, size: int) -> bool:
    """Whether elements lie where a layout of CuTe has them, of the first instruction of a tile."""
    found = WHOLE.fullmatch(layout)
    assert found is not None
    (shape, *_), (stride, *_) = (modes(found[at]) for at in (2, 3))
    assert isinstance(shape, tuple) and isinstance(stride, tuple)
    (rows, columns), (down, along) = (list(map(flat, each)) for each in (shape, stride))
    ours = next(each for each in instr.operands if each.name == operand)
    extents = [e.constant for e in ours.memory.shape]
    first, second = extents if operand == "a" else extents[::-1]
    assert (first, second) == (prod(rows), prod(columns))
    for row, column in every(range(0, first, 7), range(second)):
        index = [row, column] if operand == "a" else [column, row]
        wanted = (value(rows, down, row) + value(columns, along, column)) * size
        if offset(instr, ours, how, [expr(at) for at in index]).constant != wanted:
            return False
    return True


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("name", SAID["descriptors"])
def test_descriptors_of_cute_say_where_elements_lie(name: str, operand: str) -> None:
    """What our reading makes of the bits that CuTe puts into a descriptor is where CuTe's layout has each element."""
    (kind, of), (layout, bits) = name.split(), SAID["descriptors"][name][operand]
    how = fields(int(bits, 16))
    assert how.swizzle == SPANS[kind.split("_")[1]]
    assert lie(multiplied(name), operand, how, layout, SIZES[of])


def test_a_wrong_descriptor_is_seen() -> None:
    """Distances in each other's place, another swizzle, and bits without the constant."""
    layout, bits = SAID["descriptors"]["MN_SW128 bf16"]["b"]
    how, instr = fields(int(bits, 16)), multiplied("MN_SW128 bf16")
    for wrong in (Descriptor(how.swizzle, how.stride, how.leading), Descriptor(64, how.leading, how.stride)):
        assert not lie(instr, "b", wrong, layout, 2)
    with pytest.raises(AssertionError):
        fields(int(bits, 16) & ~(1 << 46))


def test_every_type_major_and_swizzle_has_a_descriptor() -> None:
    """But for tf32 along rows, which needs a swizzle that moves 32 bytes."""
    spans, turned = ("INTER", "SW32", "SW64", "SW128"), [of for of in SIZES if of != "tf32"]
    wanted = {f"K_{span} {of}" for span in spans for of in SIZES} | {f"MN_{span} {of}" for span in spans for of in turned}
    assert SAID["descriptors"].keys() == wanted


def test_bits_are_those_of_cute() -> None:
    """As CUDA code makes them, of a matrix that begins where shared memory does."""
    every_one = sorted({bits for said in SAID["descriptors"].values() for _, bits in said.values()})
    made = ", ".join(f"tx_described_columns(array, 0, tx_matrix<{str(fields(int(bits, 16)))[1:-1]}>())" for bits in every_one)
    head = PROGRAM.partition('extern "C"')[0].replace("return 0x7000400;", "return 0x7000000;")
    text = f"""{head}
extern "C" __attribute__((visibility("default"))) uint64_t described(int how) {{
    auto array = (uint16_t const *)nullptr;
    uint64_t const every[] = {{{made}}};
    return every[how];
}}
"""
    files = {"texpr_columns.h": headers()["texpr_columns.h"]}
    found = ctypes.CDLL(str(Toolchain(this_machine()).loadable("bits", {"bits.cpp": text}, files)))
    found.described.restype, found.described.argtypes = ctypes.c_uint64, (ctypes.c_int,)
    assert [f"{found.described(at):#018x}" for at in range(len(every_one))] == every_one
