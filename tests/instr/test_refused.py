"""What is wrong with an instruction of lanes, or with a use of one, is said: its code, its place, its reason and a help."""

from __future__ import annotations

import pytest
from tests.instr.texts import LDMATRIX, MMA_16816, REGISTERS, ROTATED, SCALED, SEED, STMATRIX, TILE

from texpr.checks import check
from texpr.driver import lower
from texpr.frontend import parse
from texpr.support.diagnostic import Diagnostic, Limitation, TexprError


def said(text: str, target: str = "sm_80") -> tuple[Diagnostic, ...]:
    """All that is said of a text, its checks included, and of lowering its last function."""
    try:
        functions = parse(text, "wrong.te").functions
        found = tuple(each for function in functions for each in check(function))
        if not found:
            lower(functions[-1], target, schedule=None)
    except (TexprError, Limitation) as wrong:
        return wrong.diagnostics
    return found


A = "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1))"
C = "((4,8),(2,2)) : ((2@1,1@0),(1@1,8@0))"
CALL = "mma_m16n8k16(a, b, c)"

WRONG: dict[str, tuple[str, str, str, str, str]] = {
    # a fragment
    "lanes permuted onto each other": (
        REGISTERS,
        A,
        A.replace("1@0", "2@0", 1),
        "E0328",
        "is no fragment of `a`: element 1 along dimension 0 is held by no lane",
    ),
    "a lane missing": (
        REGISTERS,
        C,
        "((4,7),(2,2)) : ((2@1,1@0),(1@1,8@0))",
        "E0328",
        "element 7 along dimension 0 is held by no lane",
    ),
    "a register missing": (
        REGISTERS,
        A,
        "((4,8),(2,2)) : ((2@1,1@0),(1@1,8@0))",
        "E0328",
        "element 8 along dimension 1 is held by no lane",
    ),
    "a register too many": (
        REGISTERS,
        C,
        "((4,8),(2,2,2)) : ((2@1,1@0),(1@1,8@0,8@1))",
        "E0328",
        "16 elements along dimension 1 are held",
    ),
    "other lanes": (
        ROTATED,
        "fragment c: 4 : 1@0;",
        "fragment c: (2,2) : (2@0,1@0);",
        "E0328",
        "different numbers of lanes: `a` of 4 lanes, `c` of 2 lanes",
    ),
    "copies that are written": (
        SCALED,
        "fragment c: (4,2) : (2@0,1@0);",
        "fragment c: (4,(2,2)) : (2@0,(1@0,0));",
        "E0328",
        "several lanes hold one element of `c`, which is written",
    ),
    "no fragment": (REGISTERS, f"    fragment c: {C};\n", "", "E0328", "`c` has no fragment, and other operands have"),
    "no layout": (REGISTERS, C, "((4,8),(2,2)", "E0328", "is no fragment of `c`"),
    "runs that are none": (
        LDMATRIX,
        "shared ((8,2,2),8) : ((1@0,8@0,8@1),1@1)",
        "shared ((8,2,2),8) : ((1@1,8@0,8@1),1@0)",
        "E0328",
        "what a lane says the address of is 16 bytes",
    ),
    "rows that are too long": (
        LDMATRIX,
        "shared ((8,2,2),8) : ((1@0,8@0,8@1),1@1)",
        "shared ((8,2,2),16) : ((1@0,8@0,0),1@1)",
        "E0328",
        "what a lane says the address of is 32 bytes",
    ),
    "rows that are added to": (
        STMATRIX,
        "p[i, j] = d[i, j]",
        "p[i, j] += d[i, j]",
        "E0328",
        "`p` is in shared memory, and is read and written, or a part of it is written",
    ),
    "rows stored in part": (
        STMATRIX,
        "par 16 |j| { p[i, j] = d[i, j] }",
        "par 8 |j| { p[i, j] = d[i, j] }",
        "E0328",
        "`p` is in shared memory, and is read and written, or a part of it is written",
    ),
    "rows stored later": (
        STMATRIX,
        "    meaning { par 16 |i| { par 16 |j| { p",
        "    effect joins wgmma group;\n    meaning { par 16 |i| { par 16 |j| { p",
        "E0330",
        "is the effect of what 128 lanes do",
    ),
    # a template
    "operand left out": (REGISTERS, "{c}, {a}, {b}, {c}", "{c}, {a}, {c}, {c}", "E0329", "the template does not name `{b}`"),
    "register left out": (
        REGISTERS,
        "{c}, {a}, {b}, {c}",
        "{c}, {a}, {{b0}}, {c}",
        "E0329",
        "the template does not name `{b1}`",
    ),
    "no such operand": (
        REGISTERS,
        "{c}, {a}, {b}, {c}",
        "{c}, {a}, {b}, {d}",
        "E0329",
        "the template names `{d}`, which is no operand",
    ),
    "no such register": (REGISTERS, "{c}, {a}, {b}, {c}", "{c}, {a}, {{b0}, {b2}}, {c}", "E0329", "`b` has 2 registers a lane"),
    "no such target": (REGISTERS, '"sm_80"', '"sm80"', "E0329", "there is no such target"),
    "half a register": (ROTATED.replace("f32", "i8"), "", "", "E0329", "which fill no registers of 32"),
    "bools": (
        ROTATED.replace("f32", "bool").replace("+=", "or=").replace("0.0", "false"),
        "",
        "",
        "E0329",
        "no register holds a bool",
    ),
    # a meaning
    "a sum in order": (REGISTERS, " reduce(c)", "", "E0330", "the loop over `k` sums up `c` in order"),
    "read after it is written": (
        ROTATED,
        "c[i] += a[(i + 1) % 4]",
        "c[i] = c[(i + 1) % 4]",
        "E0330",
        "another element of it is read",
    ),
    "neither loop nor bind": (
        REGISTERS,
        "{ c[i, j] += a[i, k] * b[k, j] }",
        "{ if i > k { c[i, j] += a[i, k] * b[k, j] } }",
        "E0330",
        "loops around binds",
    ),
    "a sum of copies": (SCALED, "c[i] = a[i] * s[0]", "c[i] += a[i] * s[0]", "E0330", "lanes hold copies of an operand"),
    "no meaning": (
        SEED,
        'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", ra',
        'mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", ra',
        "E0331",
        "no instruction has this template",
    ),
    # a use
    "in a loop of each lane": (
        REGISTERS,
        CALL,
        f"seq lane |t| {{ {CALL} }}",
        "E0421",
        "this loop is not the same for all of them",
    ),
    "in a branch of some lanes": (
        REGISTERS,
        CALL,
        f"if lane < 16 {{ {CALL} }}",
        "E0421",
        "this `if` is not the same for all of them",
    ),
    "in a branch of what a lane has": (
        REGISTERS,
        CALL,
        f"if c[0] > 0.0 {{ {CALL} }}",
        "E0421",
        "this `if` is not the same for all of them",
    ),
    "in a par": (REGISTERS, CALL, f"par 2 |t| {{ {CALL} }}", "E0421", "its iterations need not run together"),
    "too few lanes": (
        REGISTERS,
        "fully par 32 |lane| #align(32)",
        "fully par 16 |lane| #align(16)",
        "E0421",
        "is done by 32 lanes together, and the `fully par` around it has 16",
    ),
    "no whole groups": (REGISTERS, "fully par 32 |lane| #align(32)", "fully par 48 |lane| #align(16)", "E0421", "has 48"),
    "a part for each lane": (
        MMA_16816
        + "fn f(A: bf16[64, 16], B: bf16[16, 8], inout C: f32[16, 8]) {\n"
        + "    fully par 32 |t| { mma_m16n8k16(A[t : +16, :], B, C) }\n}\n",
        "",
        "",
        "E0421",
        "is another part of `A` for each lane",
    ),
    "another type": (
        MMA_16816
        + "fn f(A: bf16[16, 16], B: f16[16, 8], inout C: f32[16, 8]) {\n    fully par 32 |t| { mma_m16n8k16(A, B, C) }\n}\n",
        "",
        "",
        "E0311",
        "`b` is an array of bf16, and this is one of f16",
    ),
    "another number of registers": (
        REGISTERS,
        "new a: bf16[8]",
        "new a: bf16[6]",
        "E0311",
        "or the 8 registers that a lane holds of it, and this is [6]",
    ),
    "written to an input": (
        MMA_16816
        + "fn f(A: bf16[16, 16], B: bf16[16, 8], C: f32[16, 8]) {\n    fully par 32 |t| { mma_m16n8k16(A, B, C) }\n}\n",
        "",
        "",
        "E0313",
        "the parameter `C` is only read",
    ),
    "sums of several groups": (
        MMA_16816
        + "fn f(A: bf16[16, 16], B: bf16[16, 8], inout C: f32[16, 8]) {\n"
        + "    fully par 64 |t| { mma_m16n8k16(A, B, C) }\n}\n",
        "",
        "",
        "E0402",
        "",
    ),
    "too many lanes at once": (
        MMA_16816
        + "fn f(A: bf16[1024, 16], B: bf16[16, 8], inout C: f32[1024, 8]) {\n"
        + "    fully par 2048 |t| { mma_m16n8k16(A[16 * (t / 32) : +16, :], B, C[16 * (t / 32) : +16, :]) }\n}\n",
        "",
        "",
        "E0910",
        "runs 2048 iterations at once, and a block of sm_80 has 1024 threads at most",
    ),
    "registers by a loop's index": (
        TILE,
        "static for t in 0..4",
        "seq 4 |t|",
        "E0316",
        "which registers of `c` are meant is not known when it is built",
    ),
    "blocks of a cluster": (
        REGISTERS,
        "#align(32) #block",
        "#cluster",
        "E0421",
        "iterations of this `fully par` are blocks of a cluster",
    ),
    "a register kept by `let`": (
        REGISTERS,
        CALL,
        f"let kept = c[0] * 2.0\n                {CALL}\n                c[0] = kept",
        "E0541",
        "is read by each lane before an instruction",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    text, old, new, code, message = WRONG[name]
    assert old in text, "the text has it"
    found = said(text.replace(old, new))
    assert found and found[0].code == code, found
    assert message in found[0].message, found[0].message
    assert found[0].span is not None


def test_targets_that_lack_it() -> None:
    """Templates are by the first target that knows them; a CPU has no lanes that run together."""
    late = REGISTERS.replace('"sm_80"', '"sm_90"')
    (found,) = said(late, "sm_89")
    assert (found.code, found.message) == ("E0541", "`mma_m16n8k16` has no template for sm_89: there are those for sm_90")
    assert found.help == 'a template of its own, `asm "sm_89": "…";`, would say how it is done there'
    own = REGISTERS.replace('"sm_80"', '"sm_90a"')
    assert not said(own, "sm_90a") and said(own, "sm_90")[0].code == "E0541" and said(own, "sm_100a")[0].code == "E0541"
    (cpu,) = said(REGISTERS, "cpu")
    assert (cpu.code, cpu.message) == ("E0541", "`mma_m16n8k16` is done by lanes of a warp, and cpu has none")
    none = REGISTERS.replace("    asm", "    -- asm")
    assert said(none)[0].message.endswith("there are those for none")


@pytest.mark.parametrize("lanes", [3, 64, 128])
def test_lanes_are_of_one_warp(lanes: int) -> None:
    """A warpgroup does nothing together yet."""
    text = ROTATED.replace("f32[4]", f"f32[{lanes}]").replace("par 4 ", f"par {lanes} ").replace("% 4", f"% {lanes}")
    text = text.replace("((2,2),1) : ((2@0,1@0),0)", f"{lanes} : 1@0").replace("fragment c: 4", f"fragment c: {lanes}")
    text = text.replace("f32[4 * n]", f"f32[{lanes} * n]").replace("[4 * b : +4]", f"[{lanes} * b : +{lanes}]")
    (found,) = said(text)
    told = f"`turn_and_add` is done by {lanes} lanes together, and warps of sm_80 are 32"
    assert (found.code, found.message) == ("E0541", told)


def test_what_is_addressed_is_in_shared_memory() -> None:
    text = LDMATRIX.replace("ldmatrix_x4(S, a)", "ldmatrix_x4(A[16 * bi : +16, 16 * ki : +16], a)")
    (found,) = said(text)
    assert (found.code, found.message) == (
        "E0541", "lanes give addresses of `A` in shared memory to `ldmatrix_x4`, and it is not there",
    )  # fmt: skip
