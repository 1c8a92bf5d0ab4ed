"""Fragments of records, and where elements of an operand in shared memory lie, against what CuTe DSL itself says of them.

`cute.json` is what `bench/peers/check_cute.py` writes, in the environment of `make peers`; nobody edits it.
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
from texpr.ir.instr.descriptor import Descriptor, offset
from texpr.ir.instr.fragment import fragment
from texpr.isa.registry import INSTRUCTIONS
from texpr.tma.swizzle import Swizzle

SAID: dict[str, Any] = json.loads(Path(__file__).with_name("cute.json").read_text(encoding="utf-8"))
ATOM = re.compile(r"S<(\d),4,3> o 0 o \((\d+),(\d+)\):\((\d+),(\d+)\)")

Tree = int | tuple["Tree", ...]


def tree(text: str) -> Tree:
    """`((4,8),2)` as numbers."""
    found = json.loads(text.replace("(", "[").replace(")", "]"))

    def of(node: Any) -> Tree:
        return int(node) if isinstance(node, int) else tuple(map(of, node))

    return of(found)


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
    """But for products of f64, of integers and of 8-bit floats by warps, and of tf32 by warpgroups, which CuTe DSL has not."""
    left = {name for name in INSTRUCTIONS if "mma_" in name} - SAID["fragments"].keys()
    others = re.compile(r"mma_m\d+n8k\d+_(f64|i32|f32_f8)|wgmma_m64n\d+k8_f32_tf32$")
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


def test_a_wrong_fragment_is_seen() -> None:
    ours = fragment("((4,8),(2,2)):((2@1,1@0),(8@0,1@1))", (16, 8))
    theirs = held(SAID["fragments"]["mma_m16n8k16_f32_f16"][2])
    made = {at: [e.constant for e in ours.element(expr(at[0]), expr(at[1]))] for at in theirs}
    assert any(row + 16 * column != theirs[at] for at, (row, column) in made.items())
