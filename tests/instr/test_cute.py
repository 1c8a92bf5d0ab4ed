"""Fragments of records, and where elements of an operand in shared memory lie, against what CuTe DSL itself says of them.

`cute.json` is what `bench/peers/check_cute.py` writes, in the environment of `make peers`; nobody edits it. Tensor maps as CuTe
DSL encodes them are in `test_cute_maps.py`, products in tensor memory in `test_cute_columns.py`.
"""

from __future__ import annotations

import json
import re
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from tests.instr.warpgroup.test_records import instr_of

from texpr.affine.expr import expr
from texpr.backends.cuda.headers import headers
from texpr.driver import lower, parse
from texpr.ir.instr import Instr
from texpr.ir.instr.descriptor import Descriptor, offset
from texpr.ir.instr.fragment import fragment
from texpr.ir.kernel.text import plan_text
from texpr.ir.operation.tensor_map import element
from texpr.ir.value.types import DTYPES
from texpr.isa.registry import INSTRUCTIONS
from texpr.support.diagnostic import CompilerBug
from texpr.tma.swizzle import Swizzle
from texpr.toolchain import Toolchain, this_machine

SAID: dict[str, Any] = json.loads(Path(__file__).with_name("cute.json").read_text(encoding="utf-8"))
ATOM = re.compile(r"S<(\d),4,3> o 0 o \((\d+),(\d+)\):\((\d+),(\d+)\)")

Tree = int | tuple["Tree", ...]


def tree(text: str) -> Tree:
    """`((4,8),2)` as numbers."""
    found = json.loads(text.replace("(", "[").replace(")", "]"))

    def of(node: Any) -> Tree:
        return int(node) if isinstance(node, int) else tuple(map(of, node))

    return of(found)


def modes(text: str) -> tuple[Tree, ...]:
    """The modes of `((8,32),(64,1))`."""
    found = tree(text)
    assert isinstance(found, tuple)
    return found


def flat(node: Tree) -> list[int]:
    return [node] if isinstance(node, int) else [leaf for each in node for leaf in flat(each)]


def value(shape: list[int], stride: list[int], at: int) -> int:
    """What a layout gives for a number, its first mode fastest."""
    total = 0
    for size, step in zip(shape, stride, strict=True):
        total, at = total + at % size * step, at // size
    return total


def held(text: str) -> dict[tuple[int, int], int]:
    """The number of the element of each lane and register."""
    shape, stride = map(tree, text.split(":"))
    assert isinstance(shape, tuple) and isinstance(stride, tuple)
    (lanes, registers), (of_lane, of_register) = map(flat, shape), map(flat, stride)
    places = product(range(prod(lanes)), range(prod(registers)))
    return {(lane, slot): value(lanes, of_lane, lane) + value(registers, of_register, slot) for lane, slot in places}


@pytest.mark.parametrize("name", SAID["fragments"])
def test_lanes_hold_what_they_hold_in_cute(name: str) -> None:
    """CuTe counts elements of a, b and c down their rows, and has b as columns by depth."""
    record, compared = INSTRUCTIONS[name], 0
    for operand, said in zip(record.operands, SAID["fragments"][name], strict=True):
        if operand.fragment.startswith("descriptor"):
            assert said.startswith("(128,") and ":(0," in said, "CuTe has it in shared memory, too"
            continue
        ours, theirs = fragment(operand.fragment, operand.shape), held(said)
        turned = operand.name == "b"
        rows = operand.shape[1 if turned else 0]
        for (lane, slot), number in theirs.items():
            index = [e.constant for e in ours.element(expr(lane), expr(slot))]
            row, column = reversed(index) if turned else index
            assert row + rows * column == number, (operand.name, lane, slot)
        assert len(theirs) == ours.lanes * ours.registers
        compared += 1
    assert compared


def test_every_type_depth_and_width_is_compared() -> None:
    """But for products of f64, of integers and of 8-bit floats by warps, and of tf32 by warpgroups, which CuTe DSL has not, and
    the narrow ones of a left operand in registers, whose fragments are those of the wider ones."""
    left = {name for name in INSTRUCTIONS if "mma_" in name} - SAID["fragments"].keys()
    others = re.compile(r"mma_m\d+n8k\d+_(f64|i32|f32_f8)|wgmma_m64n(\d+k8_f32_tf32|\d+k16_f32_b?f16_ar)$")
    assert [name for name in left if not others.match(name)] == []


def address(mask: int, byte: int) -> int:
    """`Swizzle<mask, 4, 3>` of CuTe, include/cute/swizzle.hpp: bits from 7 on, XORed to those from 4 on."""
    return byte ^ ((byte >> 7 & (1 << mask) - 1) << 4)


SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1}
SPANS = {"INTER": 0, "SW32": 32, "SW64": 64, "SW128": 128}


def operand_of(kind: str, of: str) -> str:
    """The record whose left operand lies so; 16-bit types alone may go along rows."""
    into, depth = "i32" if of in ("i8", "u8") else "f32", 32 // SIZES[of]
    return f"wgmma_m64n64k{depth}_{into}_{of}{'' if kind == 'K' else '_am'}"


LAID_OUT = [name for name in SAID["layouts"] if name.startswith("K") or SIZES[name.split()[1]] == 2]


@pytest.mark.parametrize("name", LAID_OUT)
def test_elements_lie_where_they_do_in_cute(name: str) -> None:
    """Each element of an atom: what a descriptor means, and what the copy engine's swizzle makes of it."""
    words, of = name.split()
    kind, mode = words.split("_")
    found = ATOM.fullmatch(SAID["layouts"][name])
    assert found is not None
    mask, rows, columns, down, along = map(int, found.groups())
    assert SPANS[mode] == (16 << mask if mask else 0)
    instr, swizzle = instr_of(operand_of(kind, of)), Swizzle(SPANS[mode])
    how = Descriptor(SPANS[mode], 16 * 1024, 16 * 1024)
    for row, column in product(range(rows), range(columns)):
        byte = offset(instr, instr.operands[0], how, [expr(row), expr(column)]).constant
        assert swizzle(byte) == address(mask, (row * down + column * along) * SIZES[of]), (row, column)


WHOLE = re.compile(r"S<(\d),4,3> o 0 o (\(.*\)):(\(.*\))")


def fields(bits: int) -> Descriptor:
    """PTX ISA 8.5, "Matrix descriptor layout": chunks of 16 bytes in bits 16 to 29 and 32 to 45, the swizzle in 62 and 63."""
    assert bits & ~(0x3FFF << 16 | 0x3FFF << 32 | 3 << 62) == 0
    return Descriptor((0, 128, 64, 32)[bits >> 62], 16 * (bits >> 16 & 0x3FFF), 16 * (bits >> 32 & 0x3FFF))


def multiplied(name: str) -> Instr:
    """The record of the product whose descriptors CuTe printed."""
    kind, of = name.split()
    into, depth = "i32" if of in ("i8", "u8") else "f32", 32 // SIZES[of]
    return instr_of(f"wgmma_m64n256k{depth}_{into}_{of}{'' if kind.startswith('K') else '_am_bn'}")


@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("name", SAID["descriptors"])
def test_descriptors_of_cute_say_where_elements_lie(name: str, operand: str) -> None:
    """What our reading makes of the bits that CuTe puts into a descriptor is where CuTe's layout has each element."""
    layout, bits = SAID["descriptors"][name][operand]
    found, instr, of = WHOLE.fullmatch(layout), multiplied(name), SIZES[name.split()[1]]
    assert found is not None
    (rows, columns), (down, along) = ([flat(mode) for mode in modes(found[at])] for at in (2, 3))
    ours, how = next(each for each in instr.operands if each.name == operand), fields(int(bits, 16))
    assert SPANS[name.split()[0].split("_")[1]] == how.swizzle == (16 << int(found[1]) if found[1] != "0" else 0)
    shape = [e.constant for e in ours.memory.shape]
    first, second = shape if operand == "a" else shape[::-1]
    for row, column in product(range(0, first, 3 if first <= 64 else 11), range(second)):
        wanted = value(rows, down, row) + value(columns, along, column)
        index = [row, column] if operand == "a" else [column, row]
        assert offset(instr, ours, how, [expr(at) for at in index]).constant == wanted * of, (row, column)


def test_bits_are_those_of_cute() -> None:
    """As CUDA code makes them of a descriptor, checked when this is compiled."""
    every = sorted({bits for said in SAID["descriptors"].values() for _, bits in said.values()})
    lines = (f"static_assert(tx_matrix<{str(fields(int(bits, 16)))[1:-1]}>::bits == {bits}u);" for bits in every)
    text = "\n".join(("#include <cstdint>", "#define TX_FN static inline", '#include "texpr_warpgroup.h"', *lines, ""))
    files = {"texpr_warpgroup.h": headers()["texpr_warpgroup.h"]}
    assert len(every) == 11 and Toolchain(this_machine()).loadable("bits", {"bits.cpp": text}, files).exists()
    wrong = text.replace("tx_matrix<128, 16, 1024>", "tx_matrix<128, 16, 512>")
    with pytest.raises(CompilerBug, match="static assertion"):
        Toolchain(this_machine()).loadable("bits", {"bits.cpp": wrong}, files)


def test_a_wrong_descriptor_is_seen() -> None:
    """Distances in each other's place, and another swizzle."""
    layout, bits = SAID["descriptors"]["MN_SW128 bf16"]["b"]
    how, (instr, found) = fields(int(bits, 16)), (multiplied("MN_SW128 bf16"), WHOLE.fullmatch(layout))
    assert found is not None and how.leading != how.stride
    for wrong in (Descriptor(how.swizzle, how.stride, how.leading), Descriptor(64, how.leading, how.stride)):
        far = offset(instr, instr.operands[1], wrong, [expr(15), expr(255)]).constant
        assert far != offset(instr, instr.operands[1], how, [expr(15), expr(255)]).constant


def test_every_type_major_and_swizzle_has_a_descriptor() -> None:
    """But for tf32, of which CuTe DSL has no product by a warpgroup: `warpgroup/test_records.py` has layouts of its tables."""
    spans, words = ("INTER", "SW32", "SW64", "SW128"), ("f16", "bf16")
    wanted = {f"K_{span} {of}" for span in spans for of in SIZES if of != "tf32"} | {
        f"MN_{s} {of}" for s in spans for of in words
    }
    assert SAID["descriptors"].keys() == wanted
    assert SAID["maps"].keys() == wanted | {f"K_{span} tf32" for span in spans}


FORMATS = {"F16_RN": "float16", "BF16_RN": "bfloat16", "F32_RN": "float32", "U8": "uint8"}
"""CuTe's names of types, and ours of the driver's `CUtensorMapDataType`."""


@pytest.mark.parametrize("name", SAID["maps"])
def test_boxes_and_types_of_maps_are_those_of_cute(name: str) -> None:
    """A tile that lies so is brought by copies of such boxes, the innermost dimension first."""
    (kind, mode), of, (basis, told, _) = name.split()[0].split("_"), name.split()[1], SAID["maps"][name]
    (inner, outer), directions = modes(basis.split(":")[0]), basis.split(":")[1]
    assert directions == ("(1@1,1@0)" if kind == "K" else "(1@0,1@1)") and isinstance(outer, int)
    swizzle = f", swizzle={SPANS[mode]}B" if SPANS[mode] else ""
    function = parse(COPIED.format(of=of, inner=inner, outer=outer, swizzle=swizzle))["f"]
    made = lower(function, "sm_90a", schedule=function.schedules[0])
    (line,) = [line for line in plan_text(made.plan).splitlines() if line.strip().startswith("map x_map")]
    assert f"box [{inner}, {outer}]" in line
    assert f"swizzle {SPANS[mode]}" in line if SPANS[mode] else "swizzle" not in line
    assert FORMATS[told] == element(DTYPES[of]).name


COPIED = """
fn f(x: {of}[1024, 512] align(16)): {of}[1024, 512] align(16) {{
    new y: {of}[1024, 512]
    par 1024 |i| {{ par 512 |j| {{ y[i, j] = x[i, j] }} }}
    return y
}}

schedule f for sm_90a {{
    split(i, {outer}) -> (bi, ti)
    split(j, {inner}) -> (bj, tj)
    reorder(bi, bj, ti, tj)
    bind(bi, grid.y)
    bind(bj, grid.x)
    stage(x, at=bj, in=shared, via=tma{swizzle}) -> xs
}}
"""


def test_a_wrong_fragment_is_seen() -> None:
    ours = fragment("((4,8),(2,2)):((2@1,1@0),(8@0,1@1))", (16, 8))
    theirs = held(SAID["fragments"]["mma_m16n8k16_f32_f16"][2])
    made = {at: [e.constant for e in ours.element(expr(at[0]), expr(at[1]))] for at in theirs}
    assert any(row + 16 * column != theirs[at] for at, (row, column) in made.items())
