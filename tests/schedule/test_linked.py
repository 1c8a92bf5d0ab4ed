"""Rows that go through several products, on registers of lanes: numbers, proofs, what is refused, and planted bugs."""

from __future__ import annotations

from functools import cache
from itertools import chain

import pytest
from bench.common.attention import online
from tests.machine_code import built, spills_nothing
from tests.planted import is_proved, plain
from tests.schedule.linked import CHAIN, EXACT, by_hand
from tests.schedule.rows import OPEN, differences, open_of

from texpr.driver import Compiled, lower, parse
from texpr.frontend import parse as parsed
from texpr.ir import program as ir
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.text import print_program
from texpr.ir.proof import Proof
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace

LENGTHS = (0, 1, 31, 33, 70)


MIDDLE = "            par 32 |jp| { p[jp] = bf16(s[jp]) }\n"


class Case(Record):
    """A program, with a schedule or for the planner, its size that is open, and how far numbers may be apart.

    What rounds to 16 bits may be one unit apart, as sums come in another order: 2⁻⁷ of a value, in bf16.
    """

    text: str
    size: str = "L"
    apart: float = 0.0


CASES = {
    "whole numbers": Case(EXACT + by_hand(last="r_9")),
    "whole numbers, found": Case(EXACT),
    "in another order, by way of memory": Case(
        EXACT.replace(MIDDLE, MIDDLE.replace("p[jp]", "p[31 - jp]")) + by_hand(last="r_9")
    ),
    "online": Case(online() + by_hand(), apart=2**-7),
    "online, of f16": Case(online("f16", 32, 32) + by_hand(64), apart=2**-10),
    "causal": Case(online(causal=True) + by_hand(), apart=2**-7),
    "causal, by larger blocks": Case(online(causal=True, block=64) + by_hand(64), apart=2**-7),
    "causal, found": Case(online(keys=64, causal=True, align=" align(16)"), apart=2**-7),
    "a chain": Case(CHAIN, "B"),
}


@cache
def compiled(name: str, target: str = "sm_80") -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, target, schedule=function.schedules[0] if function.schedules else "auto")


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    case, made = CASES[name], compiled(name)
    assert made.schedule is not None and any(each.name == "mma" for each in made.schedule.directives)
    for length in LENGTHS:
        assert differences(made, parse(case.text)["f"], {case.size: length}, case.apart) == []


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert open_of(made) == []


@pytest.mark.parametrize("length", [64, 72])
def test_of_a_length_that_a_build_fixes(length: int) -> None:
    """Where there are no holes, nothing fills them, and what a view pads with is never chosen."""
    made = lower(parse(EXACT)["f"], "sm_80", {"H": 1, "L": length}, schedule="auto")
    assert made.schedule is not None and made.written is not None
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in OPEN))] == []


def test_what_rows_keep_is_in_registers() -> None:
    text = plan_text(compiled("whole numbers").plan)
    assert text.count("array shared") == 3  # Q, K and V
    assert "array lanes p: bf16[16]" in text and "array lanes m: f32[2]" in text
    assert "p[8 * jv_o] 8 read" in text  # of which the second product reads as the first one left it


KEYS = "Kp[h, 32 * kb + js, ds]"
REFUSED = {
    "zeros where copies bring elements": (
        EXACT.replace(KEYS, "select(32 * kb + js + 1 < L, K[h, 32 * kb + js, ds], 0.0)"),
        "are not what an instruction of sm_80 means",
    ),
    "ones where copies fill with zeros": (
        EXACT.replace(KEYS, "select(32 * kb + js < L, K[h, 32 * kb + js, ds], 1.0)"),
        "are not what an instruction of sm_80 means",
    ),
    "several elements": (
        EXACT.replace(MIDDLE, "            par 32 |jp| { p[jp] = bf16(s[jp] + s[31 - jp]) }\n"),
        "touch several elements of `s` in one iteration",
    ),
    "a sum in order": (
        EXACT.replace("par 32 |jl| reduce(l) { l += s[jl] }", "seq 32 |jl| { l += s[jl] }"),
        "`l` is given one value by several lanes",
    ),
    "a difference": (
        EXACT.replace("reduce(l) { l += s[jl] }", "reduce(l) { l -= s[jl] }"), "`l` is given one value by several lanes"
    ),
    "rows of a caller": (
        EXACT.replace("        m = 0.0\n", "        m = start[i]\n").replace("most: f32)", "most: f32, start: f32[L])"),
        "may lie outside of `start`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, reason = REFUSED[name]
    function = parse(text + by_hand(last="r_9"))["f"]
    with pytest.raises(TexprError) as caught:
        lower(function, "sm_80", schedule=function.schedules[0])
    assert reason in caught.value.diagnostics[0].message


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_has_another_plan(name: str) -> None:
    """The planner falls back."""
    assert lower(parse(REFUSED[name][0])["f"], "sm_80", schedule="auto").plan.steps


class Planted(Record):
    """`old` becomes `new` in the plan of the whole numbers."""

    old: str
    new: str


BUGS = {
    # lanes that hold a row together
    "a lane of four left out": Planted("for q in 0..4 unroll", "for q in 0..3 unroll"),
    "a lane's own part alone": Planted("m_own[r_25] lane lane_7 + q", "m_own[r_25] lane lane_7"),
    "lanes of other rows": Planted("m_own[r_25] lane lane_7 + q", "m_own[r_25] lane lane_7 + 4 * q"),
    "the other row": Planted("shuffle m_own_got = m_own[r_25]", "shuffle m_own_got = m_own[-r_25 + 1]"),
    "a sum twice": Planted("for q_1 in 0..4 unroll", "for q_1 in 0..8 unroll"),
    "joined by the second lane": Planted("(i64((lane_7 % 4)) == 0:i64)", "(i64((lane_7 % 4)) == 1:i64)"),
    "rows not asked for": Planted("m[r_37] lane lane_13 - (lane_13 % 4)", "m[r_37] lane lane_13"),
    "rows of other lanes": Planted("m[r_37] lane lane_13 - (lane_13 % 4)", "m[r_37] lane lane_13 - (lane_13 % 8)"),
    "a part that goes on": Planted("l_own[r_29] = 0:f32", "l_own[r_29] = l_own[r_29]"),
    "a part that starts at one": Planted("l_own[r_29] = 0:f32", "l_own[r_29] = 1:f32"),
    "a column left out": Planted("for r_26 in 0..4 unroll", "for r_26 in 0..3 unroll"),
    # phases
    "no rescaling": Planted("* 0.5:f32) + m_1[0, r_35])", "* 1.0:f32) + m_1[0, r_35])"),
    "rescaled by the other row": Planted("m_1[0, r_35])", "m_1[0, -r_35 + 1])"),
    "rescaled before the maximum is there": Planted("shuffle m_got = m[r_37]", "shuffle m_got = m_own[r_37]"),
    "a mask that is off by one": Planted("(lane_4_1 % 4) - 32) < i64(L))", "(lane_4_1 % 4) - 32) <= i64(L))"),
    "a mask of the keys before": Planted("select((i64(32 * kb + 8 * r_18", "select((i64(32 * kb - 32 + 8 * r_18"),
    "registers of p swapped": Planted("p[4 * r_31 + 2 * r_32 + r_33] =", "p[4 * r_31 + 2 * r_33 + r_32] ="),
    "slices of p swapped": Planted("p[8 * jv_o] 8 read", "p[-8 * jv_o + 8] 8 read"),
    "a slice of p left out": Planted("for jv_o in 0..2 unroll", "for jv_o in 1..2 unroll"),
    "lanes of a fragment permuted": Planted(
        'update fragment "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"', 'update fragment "((8,4),(2,2)):((1@0,2@1),(1@1,8@0))"'
    ),
    # tiles, and their ring
    "the last tile left out": Planted("for kb in 0..((L + 31) / 32) + 1", "for kb in 0..((L + 31) / 32)"),
    "the first tile left out": Planted("(i64(kb) >= i64(1))", "(i64(kb) >= i64(2))"),
    "the other slot": Planted("Vs[((kb + 1) % 2), 0, 16", "Vs[(kb % 2), 0, 16"),
    "no barrier in the ring": Planted("        barrier block\n", ""),
    "a fill that is none": Planted("Ks_2] = 0:bf16", "Ks_2] = 1:bf16"),
    # results
    "a result of a row by all lanes that hold it": Planted(
        "tops[h, 32 * bi + 8 * r_43 + ((lane_17 / 4) % 8)", "tops[h, 32 * bi + 8 * r_43 + (lane_17 % 8)"
    ),
    "rows that there are not": Planted("8 * r_39 + ((lane_14 / 4) % 8) + 16 * (lane_14 / 32)) < i64(L))", "lane_14) < i64(L))"),
}  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug, made = BUGS[name], compiled("whole numbers")
    text = plain(made.plan)
    assert bug.old in text
    assert not is_proved(made, lambda: parse_plan(text.replace(bug.old, bug.new)))


LAID = {
    "a lane of four left out": Planted("seq 4 |q| reduce(m)", "seq 3 |q| reduce(m)"),
    "a part is joined twice": Planted("seq 4 |q_1| reduce(l) {", "seq 8 |q_1| reduce(l) {"),
    "another row's part": Planted("m_own[lane_7 + q,", "m_own[lane_7 + 4 * q,"),
    "rows of other lanes": Planted("m[lane_13 - lane_13 % 4", "m[lane_13 - lane_13 % 8"),
    "a part starts at zero": Planted("= -inf", "= 0.0"),
    "a mask that is off by one": Planted("2 * (lane_4 % 4) - 32 < L", "2 * (lane_4 % 4) - 32 <= L"),
    "a fill that is none": Planted("Ks_2] = 0\n", "Ks_2] = 1\n"),
    "keys beyond the last are no fill": Planted("if Ks_1 + 32 * kb < L {", "if Ks_1 + 32 * kb < L + 1 {"),
    "rescaled by the other row": Planted("+ m_1[lane_12, r_35]", "+ m_1[lane_12, 1 - r_35]"),
    "rescaled by the turn before": Planted("m_1[lane_13, r_37] = m[lane_13 - lane_13 % 4, r_37]", "m_1[lane_13, r_37] = 0.0"),
    "slices of p swapped": Planted("4 * (i_4 % 8), 8 * jv_o", "4 * (i_4 % 8), 8 - 8 * jv_o"),
"the last tile left out": Planted("seq (L + 31) / 32 + 1 |kb|", "seq (L + 31) / 32 |kb|"),
    "the sum of another row": Planted("= l[lane_16, r_42]", "= l[lane_16, 1 - r_42]"),
}  # fmt: skip


@cache
def laid() -> tuple[ir.Function, str, str]:
    """The whole numbers as they were written; laid out, as text; and the notes of that."""
    made = compiled("whole numbers")
    assert made.written is not None
    text = print_program(ir.Program((replace(made.function, schedules=()),)))
    return made.written, text, notes_text(made.function)


def proof_of(old: str = "", new: str = "") -> Proof:
    written, text, notes = laid()
    assert old in text
    return faithful(written, noted(parsed(text.replace(old, new)).functions[0], notes))


def test_what_is_laid_out_is_proved_from_its_text() -> None:
    assert [*chain(*(proof_of().of(verdict) for verdict in OPEN))] == []


@pytest.mark.planted
@pytest.mark.parametrize("name", LAID)
def test_no_other_layout_is_proved(name: str) -> None:
    found = proof_of(LAID[name].old, LAID[name].new)
    assert [*chain(*(found.of(verdict) for verdict in OPEN))]


WIDE = " align(16)"


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("d", [64, 128])
def test_nothing_spills(d: int, target: str) -> None:
    made = lower(parse(online("bf16", d, 64, align=WIDE))["f"], target, schedule="auto")
    assert made.schedule is not None
    assert spills_nothing(built(made.source, target))
