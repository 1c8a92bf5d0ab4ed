"""Elements of 4 bits, two in a byte, and matrices that lanes turn: fragments, numbers, machine code, and bugs in them.

PTX ISA 8.5, 9.7.14.5.11 "Matrix Fragments for mma.m16n8k64", by elements of 4 bits, of which a register has eight, the first
one lowest; 9.7.14.5.17 "movmatrix": a lane has two elements of row %laneid / 4.
"""

from __future__ import annotations

from functools import cache
from itertools import product as every
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.instr.test_fragments import held, shipped_use
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import is_proved, open_of, plain
from tests.proofs import undecided
from tests.schedule.test_mma import product, tiled

from texpr.driver import Compiled, lower, parse
from texpr.frontend import elaborate, parse_text
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.instr.fragment import fragment
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.isa.registry import INSTRUCTIONS, library
from texpr.support.diagnostic import CompilerBug

NIBBLES = ("mma_m16n8k64_i32_i4", "mma_m16n8k64_i32_u4")
TURNED = ("movmatrix_f16", "movmatrix_bf16")


def place(operand: str, group: int, thread: int, i: int) -> tuple[int, int]:
    """The row and the column of element i of 4 bits that a lane holds, as the section on m16n8k64 has it."""
    if operand == "a":
        row = group if 0 <= i < 8 or 16 <= i < 24 else group + 8
        return row, thread * 8 + (i & 7) + (0 if i < 16 else 32)
    return thread * 8 + (i & 7) + (0 if i < 8 else 32), group


@pytest.mark.parametrize("name", NIBBLES)
def test_nibbles_are_where_the_section_has_them(name: str) -> None:
    a, b, c = INSTRUCTIONS[name].operands
    for operand, count in ((a, 32), (b, 16)):
        found = held(fragment(operand.fragment, operand.shape))
        assert len(found) == 32 * count // 2
        for lane, i in every(range(32), range(count)):
            row, column = found[lane, i // 2]
            twice = (row, 2 * column + i % 2) if operand is a else (2 * row + i % 2, column)
            assert twice == place(operand.name, lane >> 2, lane % 4, i)
    sums = held(fragment(c.fragment, c.shape))
    for lane, i in every(range(32), range(4)):
        assert sums[lane, i] == ((lane >> 2) + 8 * (i >= 2), 2 * (lane % 4) + i % 2)


@pytest.mark.parametrize("name", TURNED)
def test_lanes_have_two_elements_of_a_row_before_and_after(name: str) -> None:
    for operand in INSTRUCTIONS[name].operands:
        found = held(fragment(operand.fragment, operand.shape))
        for lane, i in every(range(32), range(2)):
            assert found[lane, i] == (lane // 4, 2 * (lane % 4) + i)


def unpacked(array: NDArray[Any], axis: int) -> NDArray[np.int64]:
    """Elements of 4 bits along an axis, the lower ones of a byte first; with a sign if the bytes have one."""
    bits = array.view(np.uint8).astype(np.int64)
    both = np.stack([bits % 16, bits // 16], axis=axis + 1)
    both = both.reshape([2 * n if at == axis else n for at, n in enumerate(array.shape)])
    return (both + 8) % 16 - 8 if array.dtype == np.int8 else both


def case(name: str) -> tuple[str, dict[str, NDArray[Any]], str, NDArray[Any]]:
    """Arguments, which of them is written, and what it is then."""
    rng = np.random.default_rng(8)
    if name in NIBBLES:
        of: Any = np.int8 if name.endswith("i4") else np.uint8
        a, b = (rng.integers(0, 256, shape).astype(np.uint8).view(of) for shape in ((16, 32), (32, 8)))
        c = rng.integers(-9, 9, (16, 8)).astype(np.int32)
        wanted = (c + unpacked(a, 1) @ unpacked(b, 0)).astype(np.int32)
        return "use", {"a": a, "b": b, "c": c}, "c", wanted
    kind: Any = np.float16 if name.endswith("_f16") else ml_dtypes.bfloat16
    a = rng.integers(-9, 9, (8, 8)).astype(kind)
    return "use", {"a": a, "d": np.zeros((8, 8), kind)}, "d", a.T.copy()


@cache
def compiled(name: str, target: str = "sm_80") -> Compiled:
    program = elaborate(parse_text(shipped_use(name)), library=parse_text(library()))
    return lower(program["use"], target, schedule=None)


@pytest.mark.parametrize("name", [*NIBBLES, *TURNED])
def test_numbers(name: str) -> None:
    """Interpreted, and emulated on the registers that lanes have."""
    made, (_, given, out, wanted) = compiled(name), case(name)
    np.testing.assert_array_equal(run(made.function, {key: each.copy() for key, each in given.items()})[out], wanted)
    for seed in (None, 1):
        ran = run_plan(made.function, made.plan, {key: each.copy() for key, each in given.items()}, seed=seed)
        assert not ran.reports, ran.reports[0]
        np.testing.assert_array_equal(ran.arrays[out], wanted)
    assert not [*undecided(made.function, made.plan)]


CODE = [
    ("mma_m16n8k64_i32_i4", "sm_80", "IMMA.16864.S4.S4"),
    ("mma_m16n8k64_i32_u4", "sm_89", "IMMA.16864.U4.U4"),
    ("mma_m16n8k64_i32_u4", "sm_90a", "IMMA.16832.U8.U8"),  # tensor cores have it no more: nvcc makes products of bytes of it
    ("movmatrix_bf16", "sm_80", "MOVM.16.MT88"),
    ("movmatrix_f16", "sm_120a", "MOVM.16.MT88"),
]


@pytest.mark.parametrize(("name", "target", "word"), CODE)
def test_machine_code(name: str, target: str, word: str) -> None:
    binary = built(compiled(name, target).source, target)
    assert word in code_of(binary) and spills_nothing(binary)


LOW = "((i32({0}) + 8) % 16 - 8)"
SIGNED = f"{LOW.format('A[i, k]')} * {LOW.format('B[k, j]')} + (i32(A[i, k]) / 16) * (i32(B[k, j]) / 16)"
TEXT = product("i8", "i32", SIGNED) + tiled(depth=32, mma="mma(ii, jj, ki, mma_m16n8k64_i32_i4)")


def test_a_text_of_packed_elements_is_a_product_by_name() -> None:
    """Who writes what the instruction means may give it to that; a product of bytes is no such product."""
    function = parse(TEXT)["f"]
    made = lower(function, "sm_80", schedule=function.schedules[0])
    assert "instr mma_m16n8k64_i32_i4 [" in plan_text(made.plan) and not [*undecided(made.function, made.plan)]
    rng = np.random.default_rng(3)
    for rows, columns, deep in ((33, 17, 35), (1, 1, 1), (3, 5, 0)):
        given = {"A": rng.integers(-128, 128, (rows, deep)), "B": rng.integers(-128, 128, (deep, columns))}
        given = {key: each.astype(np.int8) for key, each in given.items()}
        ran = run_plan(made.function, made.plan, given, seed=1)
        assert not ran.reports
        wanted = unpacked(given["A"], 1) @ unpacked(given["B"], 0)
        np.testing.assert_array_equal(ran.arrays["C"], wanted)


A_BYTES = '"((4,8),(4,2,2)):((4@1,1@0),(1@1,8@0,16@1))"'
BUGS = {
    "rows in each other's place": ("mma_m16n8k64_i32_i4", A_BYTES, '"((4,8),(4,2,2)):((4@1,1@0),(1@1,16@1,8@0))"'),
    "lanes permuted": ("mma_m16n8k64_i32_u4", A_BYTES, '"((8,4),(4,2,2)):((1@0,4@1),(1@1,8@0,16@1))"'),
    "bits without a sign": ("mma_m16n8k64_i32_i4", "+ 8:i32", "+ 16:i32"),
    "not turned": ("movmatrix_bf16", "d[i, j] = a[j, i]", "d[i, j] = a[i, j]"),
    "lanes of what is turned permuted": (
        "movmatrix_f16",
        'operand d: f16[8, 8] write fragment "((4,8),2):((2@1,1@0),1@1)"',
        'operand d: f16[8, 8] write fragment "((8,4),2):((1@0,2@1),1@1)"',
    ),
    "registers of the sum": ("mma_m16n8k64_i32_i4", "((2@1,1@0),(1@1,8@0))", "((1@1,1@0),(4@1,8@0))"),
}
"""A record, and what becomes what in a kernel that uses it."""


def planted(bug: str) -> k.Plan:
    name, old, new = BUGS[bug]
    text = plain(compiled(name).plan)
    assert old in text, text
    return parse_plan(text.replace(old, new))


@pytest.mark.planted
@pytest.mark.parametrize("bug", BUGS)
def test_none_is_proved_and_each_is_shown(bug: str) -> None:
    made, (_, given, out, wanted) = compiled(BUGS[bug][0]), case(BUGS[bug][0])
    assert open_of(made, made.plan) == [] and not is_proved(made, lambda: planted(bug))
    try:
        ran = run_plan(made.function, planted(bug), {key: each.copy() for key, each in given.items()}, seed=1)
    except (CompilerBug, RuntimeError, AssertionError):
        return
    assert ran.reports or not np.array_equal(ran.arrays[out], wanted)
