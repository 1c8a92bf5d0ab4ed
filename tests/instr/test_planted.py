"""Bugs put into kernels with instructions of lanes: none is proved, and what changes results is shown by the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from tests.instr.texts import CASES
from tests.lowering.emulated import run_plan
from tests.planted import open_of

from texpr.backends.cuda import print_kernels
from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record

A, B = 'fragment "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1))"', 'fragment "((4,8),(2,2)) : ((2@0,1@1),(1@0,8@0))"'
C = 'fragment "((4,8),(2,2)) : ((2@1,1@0),(1@1,8@0))"'
MMA = "        instr mma_m16n8k16 [i, j, k] a[0] 8 read, b[0] 4 read, c[0] 4 update\n"
ADDRESS = "S[8 * ((thread / 8) % 2) + (thread % 8), 8 * (thread / 16)] 8 address"
STORED = "S[8 * ((thread / 8) % 2) + (thread % 8), 8 * (thread / 16)] 8 stored"
SIDE = "8 * ((thread / 8) % 2)"


class Planted(Record):
    """`old` becomes `new` in the plan of a case. `shown`: the numbers are others then, or the emulator finds a fault."""

    case: str
    old: str
    new: str
    shown: bool = True


BUGS = {
    # what lanes bring to registers
    "rows of a in the wrong lanes": Planted("registers", "(lane'2 / 4), 16 * ki", "(lane'2 % 8), 16 * ki"),
    "columns of a in the wrong lanes": Planted("registers", "2 * (lane'2 % 4) + (r % 2)", "2 * (lane'2 / 8) + (r % 2)"),
    "registers of a swapped": Planted("registers", "8 * ((r / 2) % 2)", "8 * (r / 4)"),
    "halves of a register swapped": Planted("registers", "(lane'2 % 4) + (r % 2)", "(lane'2 % 4) + (-r + 1) % 2"),
    "columns of b in the wrong lanes": Planted("registers", "8 * bj + (lane'2 / 4)", "8 * bj + (lane'2 % 8)"),
    "registers of b swapped": Planted("registers", "8 * (r'1 / 2)", "-8 * (r'1 / 2) + 8"),
    "the first slice twice": Planted("registers", "b[r'1] = B[16 * ki +", "b[r'1] = B[0 * ki +"),
    "a slice late": Planted("registers", "a[r] = A[16 * bi + 8 * ((r / 2) % 2) + (lane'2 / 4), 16 * ki +",
                            "a[r] = A[16 * bi + 8 * ((r / 2) % 2) + (lane'2 / 4), 16 * max(ki - 1, 0) +"),
    "a register never brought": Planted("registers", "for r in 0..8 unroll", "for r in 0..7 unroll"),
    "half of b": Planted("registers", "for r'1 in 0..4 unroll", "for r'1 in 0..2 unroll"),
    "a behind the product": Planted("registers", MMA, "", True),
    "rows of another block": Planted("registers", "a[r] = A[16 * bi +", "a[r] = A[16 * bi_base +", True),
    # the accumulator
    "accumulator not begun": Planted("registers", "c[c_0] = 0.0:f32", "b[c_0] = 0.0:bf16"),
    "accumulator begun in part": Planted("registers", "for c_0 in 0..4 unroll", "for c_0 in 0..3 unroll"),
    "accumulator begun with another number": Planted("registers", "c[c_0] = 0.0:f32", "c[c_0] = 1.0:f32"),
    "accumulator begun in each turn": Planted("registers", "    for ki in 0..p uniform {  -- line 18\n",
                                              "    for ki in 0..p uniform {\n        c[0] = 0.0:f32\n"),
    # the instruction
    "a slice never": Planted("registers", "for ki in 0..p uniform", "for ki in 1..p uniform"),
    "a slice too few": Planted("registers", "for ki in 0..p uniform", "for ki in 0..p - 1 uniform"),
    "a slice in two": Planted("registers", "for ki in 0..p uniform", "for ki in 0..p by 2 uniform"),
    "twice": Planted("registers", MMA, MMA + MMA),
    "a and b in the wrong order": Planted("m16n8k8 bf16", "a[0] 4 read, b[0] 2 read", "b[0] 2 read, a[0] 4 read"),
    "by half of the lanes": Planted("registers", MMA, f"        if (i32(thread) < i32(16)) {{\n{MMA}        }}\n"),
    "by the lanes of a positive element": Planted("registers", MMA, f"        if (c[0] >= 0.0:f32) {{\n{MMA}        }}\n"),
    "as often as its lane says": Planted("registers", MMA, f"        for t in 0..thread {{\n{MMA}        }}\n"),
    "by other warps, in other loops": Planted("some warps", "first 32", "first 64", False),
    "in other loops": Planted("registers", "[i, j, k]", "[i, j]", False),
    "of another name": Planted("registers", "instr mma_m16n8k16 [i", "instr mma [i", False),
    # the record
    "fragment of a with rows and columns changed": Planted(
        "registers", A, 'fragment "((4,8),(2,2,2)) : ((2@0,1@1),(1@0,8@1,8@0))"'
    ),
    "fragment of a with its registers swapped": Planted(
        "registers", A, 'fragment "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@1,8@0))"'
    ),
    "fragment of b with its lanes permuted": Planted("registers", B, 'fragment "((4,8),(2,2)) : ((4@0,1@1),(1@0,2@0))"'),
    "fragment of c with its lanes permuted": Planted("registers", C, 'fragment "((2,2,8),(2,2)) : ((4@1,2@1,1@0),(1@1,8@0))"'),
    "fragment of c with its rows far apart": Planted("registers", C, 'fragment "((4,8),(2,2)) : ((2@1,2@0),(1@1,1@0))"'),
    "meaning with a transposed": Planted("registers", "(a[i, k] as f32)", "(a[k, i] as f32)"),
    "meaning with a difference": Planted("registers", "c[i, j] add =", "c[i, j] sub ="),
    "meaning with a value": Planted("registers", "c[i, j] add =", "c[i, j] ="),
    "meaning of a part": Planted("registers", "for k < 16 free", "for k < 15 free"),
    "meaning in order": Planted("registers", "for k < 16 free (c)", "for k < 16", False),
    "another template": Planted("registers", ".f32.bf16.bf16.f32 {c}, {a}, {b}", ".f32.f16.f16.f32 {c}, {a}, {b}", False),
    "operands of a template in another order": Planted("registers", "{c}, {a}, {b}, {c}", "{c}, {b}, {a}, {c}", False),
    "an effect less": Planted("turned", '        effect "moves between lanes"\n', "", False),
    # results
    "results stored from other registers": Planted("registers", "= c[r'2]", "= c[-r'2 + 3]"),
    "results in other rows": Planted("registers", "C[16 * bi + (lane'3 / 4)", "C[16 * bi + (lane'3 % 8)"),
    "results of one register": Planted("registers", "for r'2 in 0..4 unroll", "for r'2 in 0..1 unroll"),
    "results of half of the lanes": Planted("registers", "    for r'2 in 0..4 unroll {", "    for r'2 in (lane'3 / 16)..4 {"),
    # groups of lanes
    "rows of another warp": Planted("warps", "16 * (t'2 / 32), 16 * ki", "16 * (t'2 / 64), 16 * ki"),
    "results of another warp": Planted("warps", "(r'2 / 2) + 16 * (t'3 / 32), (r'2", "(r'2 / 2) + 48 - 16 * (t'3 / 32), (r'2"),
    # copies
    "a copy that another lane has": Planted("scaled", "s'1[0] = s[b]", "s'1[0] = s[max(b + lane'2 - 3, 0)]"),
    # addresses
    "rows read before they are there": Planted("ldmatrix", "        barrier warp covers RAW S from 25 to 27\n", ""),
    "rows written before they are read": Planted(
        "ldmatrix", "        barrier warp covers WAR S from 27 to 25 carried ki\n", ""
    ),
    "addresses of rows in another order": Planted(
        "ldmatrix", ADDRESS, f"S[8 * (thread / 16) + (thread % 8), {SIDE}] 8 address"
    ),
    "addresses of the first rows": Planted("ldmatrix", ADDRESS, "S[(thread % 8), 8 * (thread / 16)] 8 address"),
    "addresses between rows": Planted("ldmatrix", ADDRESS, ADDRESS.replace("8 * (thread / 16)]", "4 * (thread / 16)]")),
    # addresses at which results are stored
    "rows of results read before they are there": Planted(
        "stmatrix", "        barrier warp covers WAW S from 30 to 30 carried bj, RAW S from 30 to 31\n", ""
    ),
    "rows of results stored before others are read": Planted(
        "stmatrix", "        barrier warp covers WAW S from 30 to 30 carried bj, WAR S from 31 to 30 carried bj\n", ""
    ),
    "results at rows in another order": Planted("stmatrix", STORED, f"S[8 * (thread / 16) + (thread % 8), {SIDE}] 8 stored"),
    "results at the first rows": Planted("stmatrix", STORED, "S[(thread % 8), 8 * (thread / 16)] 8 stored"),
    "results between rows": Planted("stmatrix", STORED, STORED.replace("8 * (thread / 16)]", "4 * (thread / 16)]")),
    "results never stored": Planted("stmatrix", f"        instr stmatrix_x4 [i'2, j'2] d[0] 8 read, {STORED}\n", ""),
    "results of half of the lanes stored": Planted(
        "stmatrix", f"        instr stmatrix_x4 [i'2, j'2] d[0] 8 read, {STORED}\n",
        f"        if (i32(thread) < i32(16)) {{\n        instr stmatrix_x4 [i'2, j'2] d[0] 8 read, {STORED}\n        }}\n",
    ),
    "results stored from a fragment with its registers swapped": Planted(
        "stmatrix", 'read fragment "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1))"\n        operand p',
        'read fragment "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@1,8@0))"\n        operand p',
    ),
    "results stored by columns": Planted(
        "stmatrix", 'read fragment "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1))"\n        operand p',
        'read fragment "((4,8),(2,2,2)) : ((2@0,1@1),(1@0,8@0,8@1))"\n        operand p',
    ),
    "rows that are stored said to be read": Planted("stmatrix", "8 stored", "8 address", False),
    "two matrices at one's rows": Planted("few matrices", "S[8 * ((thread / 8) % 2) + (thread % 8), 0] 8 stored",
                                          "S[(thread % 8), 0] 8 stored"),
    "a matrix loaded before it is stored": Planted("few matrices", "    barrier warp covers RAW S from 24 to 25\n", ""),
    "a matrix of other rows": Planted("few matrices", "S[(thread % 8) + 8, 0] 8 address", "S[(thread % 8), 0] 8 address"),
}  # fmt: skip


@cache
def compiled(case: str) -> Compiled:
    return lower(parse(CASES[case].text, "case.te")[CASES[case].name], CASES[case].target, schedule=None)


def planted(bug: Planted) -> k.Plan:
    text = plan_text(compiled(bug.case).plan)
    lines: Sequence[str] = [line.split("  -- ")[0] for line in text.splitlines()]
    plain, old = "\n".join(lines) + "\n", "\n".join(line.split("  -- ")[0] for line in bug.old.split("\n"))
    assert plain.count(old) >= 1, (bug.old, plain)
    return parse_plan(plain.replace(old, bug.new))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert open_of(compiled(bug.case), planted(bug))


@pytest.mark.planted
@pytest.mark.parametrize("name", [name for name, bug in BUGS.items() if bug.shown])
def test_the_emulator_shows_it(name: str) -> None:
    bug = BUGS[name]
    arguments, out, wanted = CASES[bug.case].arguments()
    try:
        runs = [run_plan(compiled(bug.case).function, planted(bug), arguments, seed=seed) for seed in (None, 1, 2)]
    except CompilerBug:
        return  # it cannot even be printed
    assert any(run.reports or not np.array_equal(run.arrays[out], wanted) for run in runs)


def test_what_is_right_is_proved() -> None:
    for case in {bug.case for bug in BUGS.values()}:
        assert not open_of(compiled(case), compiled(case).plan)


def test_there_are_many() -> None:
    assert len(BUGS) >= 40


TWO_KERNELS = (
    CASES["registers"].text
    + """
fn twice(A: bf16[16, 16], B: bf16[16, 8]): (f32[16, 8], f32[16, 8]) {
    new C: f32[16, 8] = 0.0
    fully par 32 |lane| { mma_m16n8k16(A, B, C) }
    new D: f32[16, 8] = 0.0
    fully par 32 |lane| { mma_m16n8k16(A, B, D) }
    return C, D
}
"""
)


@pytest.mark.planted
def test_each_kernel_s_instruction_is_the_program_s() -> None:
    """A record of one kernel does not stand for that of another one which is called so."""
    made = lower(parse(TWO_KERNELS, "case.te")["twice"], "sm_80", schedule=None)
    text = plan_text(made.plan)
    assert text.count(".f32.bf16.bf16.f32 {") == 2 and not open_of(made, parse_plan(text))
    for number in (0, 1):
        parts = text.split(".f32.bf16.bf16.f32 {")
        parts[number] += ".f32.f16.f16.f32 {"
        other = ".f32.bf16.bf16.f32 {".join([*parts[:number], parts[number] + parts[number + 1], *parts[number + 2 :]])
        plan = parse_plan(other)
        assert any("same instruction" in each for each in open_of(made, plan))
        with pytest.raises(CompilerBug):
            print_kernels(plan)
