"""Groups of warps that take the tiles of a block in turn: while one is at the ring of slots, the other one stores results.

The oracle is the interpreter; the emulator runs threads in adversarial orders. Plans are proved for all sizes.
"""

from __future__ import annotations

import re

import pytest
from tests.ir.steps_text import check
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import open_of as left_of
from tests.planted import plain
from tests.schedule.alternating import CASES, compiled, rings
from tests.schedule.rows import differences, open_of

from texpr.driver import lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.program import text
from texpr.support.diagnostic import Limitation, TexprError

SIZES = (
    {"M": 40, "N": 264, "K": 128},
    {"M": 64, "N": 136, "K": 0},
    {"M": 3, "N": 8, "K": 72},
    {"M": 130, "N": 200, "K": 192},
    {"M": 64, "N": 640, "K": 448},
    {"M": 64, "N": 72, "K": 320},
)
"""Of a block: odd and even numbers of tiles, one and none; of a tile: fewer turns than slots, none, as many, and more."""

SHORT = "stored"


def only(name: str) -> pytest.MarkDecorator | tuple[()]:
    return () if name == SHORT else pytest.mark.long


@pytest.mark.parametrize("name", [pytest.param(name, marks=only(name)) for name in CASES])
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []
    assert not left_of(compiled(name), parse_plan(plain(compiled(name).plan)))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", [pytest.param(name, marks=only(name)) for name in CASES])
def test_right_in_any_order(name: str, sizes: dict[str, int]) -> None:
    even = {"N": -(-sizes["N"] // 128) * 128} if name == "clusters" else {}
    assert differences(compiled(name), parse(CASES[name])["f"], {**sizes, **even}, 0) == []


@pytest.mark.parametrize("name", [pytest.param(name, marks=only(name)) for name in CASES])
def test_a_kernel_is_made_of_the_text_of_its_steps_alone(name: str) -> None:
    check(compiled(name).plan, compiled(name).notes)


def test_each_group_has_memory_of_its_own() -> None:
    printed = text.print_function(compiled("stored").function)
    assert "#alternate(2)" in printed and "new C_s: bf16[2, 64, 8, 8]" in printed and "C_s[j_t % 2, " in printed
    assert "A_s: bf16[3, 64, 8, 8]" in printed  # the ring is of both


def test_the_loop_is_handed_over_before_results_are_stored() -> None:
    """The next group may begin when the last products are started: behind that come the wait for these, and the results."""
    pattern = r"(mbarrier wait j_t_order|mbarrier release j_t_order|commit_warpgroup|wait_warpgroup 0|tensor store)"
    assert re.findall(pattern, plain(compiled("stored").plan)) == [
        "mbarrier wait j_t_order", "commit_warpgroup", "mbarrier release j_t_order", "wait_warpgroup 0", "tensor store",
    ]  # fmt: skip


def test_a_group_is_asked_for_once_a_tile() -> None:
    """In the source the test of the group whose turn it is stands around all that it does for a tile."""
    assert compiled("stored").source.count("== j_t % 2") == 1


@pytest.mark.parametrize("name", [pytest.param(name, marks=only(name)) for name in ("stored", "two rows", "clusters")])
def test_machine_code(name: str) -> None:
    """Products are started one behind the other, and nothing is spilled."""
    code = code_of(binary := built(compiled(name).source))
    assert len(binary.kernels) == 1 and spills_nothing(binary) and not serialised(binary)
    assert len(re.findall("USETMAXREG", code)) == (2 if name == "two rows" else 0)


REFUSED = {
    "alternate(k_o)": "`k_o` is no loop over the tiles of a block",
    "alternate(j_t, groups=1)": "takes an integer of 2 or more here, not 1",
    "alternate(j_t, groups=9)": "lets at most 4 groups take turns, not 9",
    "alternate(j_t, 2)": "takes 1 argument without a key, not 2",
    "alternate(j_t)  alternate(j_t)": "groups take the iterations of `j_t` in turn already",
}
"""What is said of other directives."""


@pytest.mark.parametrize("said", REFUSED)
def test_what_does_not_fit_is_refused(said: str) -> None:
    function = parse(CASES["late"].replace("alternate(j_t, groups=2)", said))["f"]
    with pytest.raises(TexprError) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert REFUSED[said] in str(raised.value)


KNOWN = (
    CASES["late"]
    .replace("[M, K]", "[M, 128]")
    .replace("[N, K]", "[N, 128]")
    .replace("seq K", "seq 128")
    .replace("K % 8 == 0, ", "")
)
A, ROWS = (
    "stage(A, at=k_o, via=tma, in=shared, swizzle=128B)",
    "stage(A, at=j_c, via=tma, in=shared, swizzle=128B, box=(64, 64))",
)
MORE = "        new t: f32[1]\n        t[0] = total\n        C[i, j] = t[0]"

LIMITED = {
    "no roles": (CASES["late"].replace("  roles(k_o, copy=1, compute=2)", ""), "no warps of their own copy for the groups"),
    "one group": (CASES["late"].replace("compute=2", "compute=1"), "256 threads of a block compute, and 4 warps are asked for"),
    "for all tiles": (KNOWN.replace(A, ROWS), "something is done for all of them beside these"),
    "not by `stage`": (CASES["late"].replace("        C[i, j] = total", MORE), "`t` is in memory that all groups share"),
}
"""What is said of other schedules, and of locals in shared memory."""


@pytest.mark.parametrize("name", LIMITED)
def test_what_is_not_lowered_is_told(name: str) -> None:
    text, said = LIMITED[name]
    function = parse(text)["f"]
    with pytest.raises(Limitation) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert said in str(raised.value) and raised.value.diagnostics[0].code == "E0920"


def test_registers_of_three_groups_are_as_many_as_there_are() -> None:
    """240 registers for each of three warpgroups that compute would wait for ever."""
    asked = rings(3, 1, 3).replace("copy=1, compute=3", "copy=4, compute=3, registers=(24, 240)")
    function = parse(CASES["late"].replace(rings(3, 1), asked))["f"]
    with pytest.raises(TexprError, match="leaves at most 160 registers to each thread that computes"):
        lower(function, "sm_90a", schedule=function.schedules[0])
