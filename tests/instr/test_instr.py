"""Instructions of lanes from text to numbers: checked, interpreted, lowered, emulated, proved, printed and read back."""

from __future__ import annotations

import numpy as np
import pytest
from tests.instr.texts import CASES
from tests.ir.steps_text import check as made_of_steps
from tests.lowering.emulated import run_plan
from tests.proofs import undecided

from texpr.checks import check
from texpr.driver import Compiled, lower
from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function
from texpr.ir.program.text import print_program
from texpr.ir.program.verify import verify
from texpr.ir.value.structure import same


def function_of(name: str) -> Function:
    return parse(CASES[name].text, "case.te")[CASES[name].name]


def compiled(name: str, target: str = "") -> Compiled:
    return lower(function_of(name), target or CASES[name].target, schedule=None)


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str) -> None:
    function, (arguments, out, wanted) = function_of(name), CASES[name].arguments()
    assert not check(function), check(function)[0]
    np.testing.assert_array_equal(run(function, arguments)[out], wanted)


@pytest.mark.parametrize("name", CASES)
def test_emulated_on_registers(name: str) -> None:
    made, (arguments, out, wanted) = compiled(name), CASES[name].arguments()
    for seed in (None, LOCKSTEP, 1):
        found = run_plan(made.function, made.plan, arguments, seed=seed)
        assert not found.reports, found.reports[0]
        np.testing.assert_array_equal(found.arrays[out], wanted)


@pytest.mark.parametrize("target", ["", "sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_proved(name: str, target: str) -> None:
    """For the first target that has its instructions, and a later one."""
    made = compiled(name, target)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("name", CASES)
def test_texts_read_back(name: str) -> None:
    program = parse(CASES[name].text, "case.te")
    verify(program)
    text = print_program(program)
    again = parse(text, "again.te")
    assert same(program, again) and print_program(again) == text
    found = compiled(name)
    plan = found.plan
    made_of_steps(plan, found.notes)
    assert same(parse_plan(plan_text(plan)), plan)
    made = lower(again[CASES[name].name], CASES[name].target, schedule=None)
    assert same(made.plan, plan)


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_later_targets_have_it(target: str) -> None:
    assert "mma.sync.aligned.m16n8k16" in compiled("registers", target).source


def test_registers_are_packed_in_pairs_and_named_in_order() -> None:
    """What is written comes first, and is a variable of its own; `%` of a template is doubled, as inline assembler asks."""
    source = compiled("registers").source
    assert '"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0' in source
    assert ': "+f"(c_0), "+f"(c_1), "+f"(c_2), "+f"(c_3)' in source
    pairs = [
        f'"r"(tx_packed<uint32_t>({name}[{name}_at + {at}], {name}[{name}_at + {at + 1}]))' for name in "ab" for at in (0, 2)
    ]
    assert [source.index(pair) for pair in pairs] == sorted(source.index(pair) for pair in pairs)
    assert "tx_instr_mma_m16n8k16(0xffffffffu, a, 0, b, 0, c, 0);" in source
    text = CASES["registers"].text.replace("mma.sync", "mov.b32 %dummy, %laneid; mma.sync")
    assert "mov.b32 %%dummy, %%laneid; mma.sync" in lower(parse(text)["product"], "sm_80", schedule=None).source


def test_layouts_as_cute_prints_them() -> None:
    plain = CASES["registers"].text
    printed = plain.replace("((4,8),(2,2)) : ((2@1,1@0),(1@1,8@0))", "((_4,_8),(_2,_2)):((_2@1,_1@0),(_1@1,_8@0))")
    assert printed != plain
    one, other = (parse(text)["product"] for text in (plain, printed))
    assert [str(stmt) for stmt in (one.params, one.results)] == [str(stmt) for stmt in (other.params, other.results)]
    assert print_program(parse(plain)).partition("fn ")[2] == print_program(parse(printed)).partition("fn ")[2]
