"""Rows that go through two products of a warpgroup: what the first one leaves in registers, the second one reads there."""

from __future__ import annotations

import re
from functools import cache

import pytest
from bench.common.attention import online
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.proofs import undecided
from tests.schedule.linked import by_warpgroups, exact
from tests.schedule.rows import differences, open_of
from tests.schedule.test_linked import Case

from texpr.driver import Compiled, lower, parse
from texpr.ir.kernel.text import plan_text
from texpr.support.diagnostic import TexprError

WIDE = " align(16)"
EXACT = exact(64, 64, WIDE)
SUM, READ = "            par 64 |jl| reduce(l) { l += s[jl] }\n", "Vp[h, 64 * kb + jv, dv] } }\n"
BEHIND = EXACT.replace(SUM, "").replace(READ, f"{READ}            par 64 |jl| reduce(l) {{ l += f32(p[jl]) }}\n")
"""The row of what is multiplied is summed up behind the product that reads it, from the same registers."""

LENGTHS = (0, 1, 63, 64, 65, 130)

CASES = {
    "whole numbers": Case(EXACT + by_warpgroups(last="r_9")),
    "two warpgroups": Case(EXACT + by_warpgroups(last="r_9", rows=128)),
    "rows of two boxes": Case(exact(128, 64, WIDE) + by_warpgroups(128, last="r_9")),
    "summed up behind": Case(BEHIND + by_warpgroups(last="r_8")),
    "a ring that lags": Case(EXACT + by_warpgroups(last="r_9", more="pipeline(kb, stages=3, lag=1)")),
    "no ring": Case(EXACT + by_warpgroups(last="r_9", more="")),
    "in another order, by way of memory": Case(
        EXACT.replace("p[jp] = bf16(s[jp])", "p[63 - jp] = bf16(s[jp])") + by_warpgroups(last="r_9")
    ),
    "online": Case(online(d=64, keys=64, align=WIDE) + by_warpgroups(), apart=2**-7),
    "online, of f16": Case(online("f16", 64, 128, align=WIDE) + by_warpgroups(keys=128, of="f16"), apart=2**-10),
    "causal": Case(online(d=64, keys=64, causal=True, align=WIDE) + by_warpgroups(), apart=2**-7),
    "causal, two warpgroups": Case(
        online(d=128, keys=64, causal=True, align=WIDE, block=128) + by_warpgroups(128, rows=128), apart=2**-7
    ),
}


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    case, made = CASES[name], compiled(name)
    for length in LENGTHS:
        assert differences(made, parse(case.text)["f"], {"L": length}, case.apart) == []


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    made = compiled(name)
    assert open_of(made) == []


@pytest.mark.parametrize("sizes", [{"H": 2, "L": 4096}, {"L": 4096}, {"H": 2, "L": 100}], ids=str)
def test_of_sizes_that_a_build_fixes(sizes: dict[str, int]) -> None:
    """Of whole blocks of keys, rows of all matrices are rows of one; the last turn of the ring copies none."""
    function = parse(CASES["online"].text)["f"]
    made = lower(function, "sm_90a", sizes, schedule=function.schedules[0])
    assert list(undecided(made.function, made.plan)) == []


def test_rows_stay_on_registers() -> None:
    text = plan_text(compiled("whole numbers").plan)
    assert text.count("array shared") == 6  # Q, K and V, and a barrier for each
    assert "start instr wgmma_m64n64k16_f32_bf16_ar_bn" in text and "p[8 * jv_o] 8 read, Vs[" in text
    before, turns = text.split("    for kb in ")
    assert before.count("tensor load Qs") == 1 and "Qs = " not in turns and "load Qs" not in turns


def test_a_lane_reads_what_it_lent_behind_a_wait() -> None:
    text = plan_text(compiled("summed up behind").plan)
    assert re.search(r"wait_warpgroup 0 holds p\[0\] 32 read covers RAR p from \d+ to \d+\n", text)


REFUSED = {
    "from shared memory": (
        (EXACT + by_warpgroups(last="r_9")).replace("_ar_bn", "_bn"),
        "reads `a` from shared memory, and `p` is not there",
    ),
    "along the other dimension": (
        (EXACT + by_warpgroups(last="r_9")).replace("_ar_bn", "_ar"),
        "no descriptor says where elements of `b` of `wgmma_m64n64k16_f32_bf16_ar` lie in `Vs`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, reason = REFUSED[name]
    function = parse(text)["f"]
    with pytest.raises(TexprError) as caught:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert reason in caught.value.diagnostics[0].message


MADE = [("two warpgroups", 64, 64), ("rows of two boxes", 64, 128), ("causal", 64, 64)]
"""Columns of both products."""


@pytest.mark.parametrize(("name", "keys", "wide"), MADE, ids=[name for name, _, _ in MADE])
def test_machine_code(name: str, keys: int, wide: int) -> None:
    """Each fence is followed by one group, nothing is between; what lanes lend is in registers, and nothing spills.

    ptxas waits behind each product, and says so (C7510 and others), where something else touches its registers.
    """
    code = code_of(made := built(compiled(name).source))
    assert spills_nothing(made) and not serialised(made)
    lines = re.findall(r"(HGMMA\.[^;]*|WARPGROUP\.ARRIVE|WARPGROUP\.DEPBAR)", code)
    kinds = [
        line.split(".")[1][0] if "GMMA" not in line else "L" if re.search(r"R\d+, R\d+, gdesc", line) else "S" for line in lines
    ]
    shared = [line for line, kind in zip(lines, kinds, strict=True) if kind == "S"]
    lent = [line for line, kind in zip(lines, kinds, strict=True) if kind == "L"]
    assert re.fullmatch(r"D*AS{4,8}D+AL{4}D+", "".join(kinds)), kinds
    assert all(line.startswith(f"HGMMA.64x{keys}x16.F32.BF16") for line in shared)
    assert all(line.startswith(f"HGMMA.64x{wide}x16.F32.BF16") and "tnspB" in line for line in lent)
