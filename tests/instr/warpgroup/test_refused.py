"""What is wrong with a product by a warpgroup, or with a use of one, is said: its code, its reason and a help."""

from __future__ import annotations

import pytest
from tests.instr.warpgroup.texts import GROUPS, LENT, TILED, UNITS, WRITTEN

from texpr.checks import check
from texpr.driver import lower
from texpr.frontend import parse
from texpr.support.diagnostic import Diagnostic, Limitation, TexprError

A, D = "descriptor (8,8) : (1@0,1@1)", "((4,8,4),(2,2,8)) : ((2@1,1@0,16@0),(1@1,8@0,8@1))"
STAGED = "stage(A, at=ko, in=shared, via=tma, swizzle=128B)"
EFFECT = "    effect joins wgmma group;\n"


def said(text: str, schedule: int = 0) -> tuple[Diagnostic, ...]:
    """All that is said of a text, its checks included, and of lowering its function by one of its schedules."""
    try:
        functions = parse(text, "wrong.te").functions
        found = tuple(each for function in functions for each in check(function))
        if not found:
            lower(functions[-1], "sm_90a", schedule=[*functions[-1].schedules, None][schedule])
    except (TexprError, Limitation) as wrong:
        return wrong.diagnostics
    return found


TURNED = """\
instr turn(inout a: bf16[64, 16], b: bf16[16, 64], inout d: f32[64, 64]) {
    fragment a: descriptor (8,8) : (1@0,1@1);
    fragment b: descriptor (8,8) : (1@1,1@0);
    fragment d: ((4,8,4),(2,2,8)) : ((2@1,1@0,16@0),(1@1,8@0,8@1));
    asm "sm_90a": "turn {d}, {a}, {b};";
    effect joins wgmma group;
    meaning { par 64 |i| { par 16 |k| { a[i, k] = b[k, i] } } }
}

fn use(inout x: bf16[64, 16], y: bf16[16, 64], inout z: f32[64, 64]) { turn(x, y, z) }
"""


WRONG: dict[str, tuple[str, str, str, str, str]] = {
    "core matrices of 4 rows": (TILED, A, "descriptor (4,8) : (1@0,1@1)", "E0328", "4 rows of 16 bytes, and 8 of 16 are meant"),
    "rows of 8 bytes": (TILED, A, "descriptor (8,4) : (1@0,1@1)", "E0328", "8 rows of 8 bytes, and 8 of 16 are meant"),
    "rows along one dimension": (TILED, A, "descriptor (8,8) : (1@0,8@0)", "E0328", "rows along one dimension"),
    "a row too far": (TILED, A, "descriptor (8,8) : (2@0,1@1)", "E0328", "is no fragment of `a`"),
    "no layout": (TILED, A, "descriptor (8,8", "E0328", "is no fragment of `a`"),
    "no whole number of core matrices": (TILED, "a: bf16[64, 16]", "a: bf16[60, 16]", "E0328", "no whole number of core"),
    "a matrix that is written": (TURNED, "", "", "E0328", "`a` is in shared memory, and is written"),
    "no effect": (TILED, EFFECT, "", "E0330", "no effect says how that is waited for"),
    "another effect": (TILED, EFFECT, "    effect joins bulk group;\n", "E0330", "no effect says how that is waited for"),
    "sums of a warp": (TILED, D, "((4,8),(4,2,2,8)) : ((2@1,1@0),(16@0,1@1,8@0,8@1))", "E0330", "of what 128 lanes do"),
    "half of a warpgroup": (TILED, "fully par 128", "fully par 64", "E0421", "is done by 128 lanes together"),
    "a part for each lane": (
        TILED, "A[64 * bi : +64, 64 * ko + 16 * kk", "A[64 * bi : +64, 64 * ko + 16 * (t % 4)", "E0421", "for each lane",
    ),
    "a part for each warp": (GROUPS, "(t / 128)", "(t / 64)", "E0421", "for each lane"),
    "some lanes": (WRITTEN, "seq 4 |kk| {", "seq t % 4 |kk| {", "E0421", "is not the same for all of them"),
    "global memory": (TILED, f"    {STAGED} -> As\n", "", "E0541", "and `A` is not there"),
    "rows of 128 bytes without a swizzle": (
        TILED, STAGED, "stage(A, at=ko, in=shared, via=tma)", "E0541", "no descriptor says where elements of `a`",
    ),
    "rows that threads copy": (TILED, "via=tma, swizzle=128B) -> As", "via=cp_async) -> As", "E0541", "no descriptor says"),
    "registers of other warps": (
        LENT, "fragment a: ((4,8,4),(2,2,2)):((2@1,1@0,16@0)", "fragment a: ((4,8,2,2),(2,2,2)):((2@1,1@0,32@0,16@0)",
        "E0541", "from registers that lanes of other warps have",
    ),
    "a template of another target": (TILED, 'asm "sm_90a"', 'asm "sm_100a"', "E0541", "has no template for sm_90a"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_it_is_said(name: str) -> None:
    text, old, new, code, message = WRONG[name]
    assert old in text
    found = said(text.replace(old, new))
    assert [each.code for each in found] == [code], found
    assert message in found[0].message and (found[0].help or code == "E0328"), found[0].message


def test_what_is_not_wrong_is_not_said() -> None:
    assert not said(TILED) and not said(WRITTEN) and not said(GROUPS) and not said(LENT)


def test_copies_that_threads_start_are_not_read_yet() -> None:
    (found,) = said(UNITS, 2)
    assert found.code == "E0541" and "which no asynchronous copy of threads brings yet" in found.message and found.help
