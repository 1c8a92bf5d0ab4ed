"""`#ieee`: which units may have a sum, what the planner and `mma` say of it, and that the mark outlives every rewrite."""

from __future__ import annotations

import numpy as np
import pytest
from tests.instr.texts import MMA_16816
from tests.schedule.test_mma import product, tiled

from texpr.delivery import parts
from texpr.driver import Compiled, lower, parse
from texpr.explain.planned import planned as planned_data
from texpr.interp import run
from texpr.ir import program as ir
from texpr.ir.kernel import kernels, rounding
from texpr.ir.program.instances import numbered
from texpr.ir.program.rounded import given_away
from texpr.ir.program.text import print_function
from texpr.ir.program.verify import verify_function
from texpr.ir.value.structure import same
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace

MARKED = "reduce(C) #ieee"
WIDE = "K % 16 == 0, N % 16 == 0"

BYTES = """
fn f(A: f8e4m3[M, K] align(16), B: f8e4m3[N, K] align(16)): f32[M, N] where K % 16 == 0 {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[j, k] }
    } }
    return C
}
"""
CHAIN = """
fn f(Q: bf16[H, L, 64], K: bf16[H, L, 64], V: bf16[H, L, 64]): bf16[H, L, 64] where L % 64 == 0 {
    new O: bf16[H, L, 64]
    par H |h| { par L |i| {
        new s: f32[64]
        par 64 |j| { s[j] = 0.0  seq 64 |d| reduce(s) { s[j] += Q[h, i, d] * K[h, j, d] } }
        new o: f32[64]
        par 64 |d| { o[d] = 0.0 }
        par 64 |d| { seq 64 |j| reduce(o) { o[d] += bf16(s[j]) * V[h, j, d] } }
        par 64 |d| { O[h, i, d] = bf16(o[d]) }
    } }
    return O
}
"""


def marked(text: str) -> str:
    """Every sum of a text, marked."""
    return "".join(
        line.replace("reduce(C)", MARKED).replace("reduce(s)", "reduce(s) #ieee").replace("reduce(o)", "reduce(o) #ieee")
        for line in text.splitlines(keepends=True)
    )


def instructions(made: Compiled) -> set[str]:
    """Those of all kernels."""
    return {instr.name for each in made.plan.versions for kernel in kernels(each.steps) for instr in kernel.instrs}


def planned(text: str, target: str) -> Compiled:
    """With the automatic schedule."""
    return lower(parse(text).functions[-1], target, schedule="auto")


def followed(function: ir.Function, target: str = "sm_80") -> Compiled:
    """With the schedule of the text."""
    return lower(function, target, schedule=function.schedules[0])


def laid(text: str) -> Compiled:
    """The last function of a text, with its schedule."""
    return followed(parse(text).functions[-1])


def told(made: Compiled) -> list[str]:
    """What was not tried, and why, as `explain` has it."""
    found = planned_data(made)
    return [] if found is None else [each for nest in found["nests"] for each in nest["refused"]]


TAKEN = {
    "bf16": (product(where=WIDE), "sm_80", "mma_m16n8k16_f32_bf16"),
    "f16 into f16": (product("f16", "f16", where=WIDE), "sm_80", "mma_m16n8k16_f32_f16"),
    "tf32": (product("tf32", where=WIDE), "sm_80", "mma_m16n8k8_f32_tf32"),
    "a warpgroup": (
        product(where=WIDE).replace("K]", "K] align(16)", 1).replace("[K, N]", "[K, N] align(16)"),
        "sm_90a", "wgmma_m64n8k16_f32_bf16",
    ),
    "8-bit floats": (BYTES, "sm_90a", "wgmma_m64n8k32_f32_f8e4m3"),
    "rows": (CHAIN, "sm_80", "mma_m16n8k16_f32_bf16"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_a_marked_sum_is_left_to_other_units_and_that_is_told(name: str) -> None:
    text, target, instr = TAKEN[name]
    plain, kept = planned(text, target), planned(marked(text), target)
    assert instructions(plain) and rounding(plain.plan)
    assert not any(each.sums for each in (i for v in kept.plan.versions for kernel in kernels(v.steps) for i in kernel.instrs))
    assert not rounding(kept.plan)
    assert f"{instr} rounds sums in its own way, and the text marks this sum `#ieee`" in told(kept)
    assert not any("#ieee" in each for each in told(plain))


@pytest.mark.parametrize(
    ("of", "into", "value"), [("f64", "f64", "A[i, k] * B[k, j]"), ("i8", "i32", "i32(A[i, k]) * i32(B[k, j])")]
)
def test_what_every_unit_rounds_alike_is_taken(of: str, into: str, value: str) -> None:
    made = planned(product(of, into, value, where=WIDE, clause=MARKED), "sm_80")
    assert instructions(made) and not rounding(made.plan)
    assert "#ieee" not in "".join(told(made))


def test_a_cpu_makes_the_same_of_it() -> None:
    assert planned(product(clause=MARKED), "cpu").source == planned(product(), "cpu").source.replace("reduce(C)", MARKED)


def test_the_directive_is_refused_and_its_help_helps() -> None:
    text = product(clause=MARKED) + tiled()
    with pytest.raises(TexprError) as raised:
        laid(text)
    (found,) = raised.value.diagnostics
    assert (found.code, found.help) == ("E0921", "leave `#ieee` out")
    assert "aligned 24, products 8, truncated 23" in found.message
    assert found.span is not None and found.span.text == "mma(ii, jj, ki)"
    assert "mma_m16n8k16_f32_bf16" in instructions(laid(text.replace(" #ieee", "")))


def test_an_instruction_of_the_text_says_so_itself() -> None:
    named = tiled(mma="mma(ii, jj, ki, mma_m16n8k16)")
    with pytest.raises(TexprError, match="rounds in an arithmetic of its own"):
        laid(MMA_16816 + product(clause=MARKED) + named)
    exact = MMA_16816.replace("reduce(c)", "reduce(c) #ieee")
    made = laid(exact + product(clause=MARKED) + named)
    assert instructions(made) == {"mma_m16n8k16"} | {name for name in instructions(made) if name.startswith("ldmatrix")}
    assert not rounding(made.plan)
    unknown = laid(MMA_16816 + product() + named)
    assert [(each.name, each.rounding) for each in rounding(unknown.plan)["C"]] == [("mma_m16n8k16", None)]


def test_a_use_in_the_text_is_refused_in_a_marked_loop_alone() -> None:
    use = """
fn f(A: bf16[p, 16, 16], B: bf16[p, 16, 8]): f32[16, 8] {
    new C: f32[16, 8] = 0.0
    seq p |k| reduce(C)MARK { mma_m16n8k16(A[k, :, :], B[k, :, :], C) }
    return C
}
"""
    parse(MMA_16816 + use.replace("MARK", ""))
    parse(MMA_16816.replace("reduce(c)", "reduce(c) #ieee") + use.replace("MARK", " #ieee"))
    with pytest.raises(TexprError, match="sums up in an arithmetic of its own"):
        parse(MMA_16816 + use.replace("MARK", " #ieee"))


INLINED = """
fn row(a: f32[K], b: f32[K], inout c: f32[1]) { seq K |k| reduce(c) { c[0] += a[k] * b[k] } }
fn f(A: f32[M, K], b: f32[K]): f32[1] {
    new y: f32[1] = 0.0
    seq M |i| reduce(y) #ieee { row(A[i, :], b, y) }
    return y
}
"""


def marks(function: ir.Function) -> list[bool]:
    """Of the loops that free a sum."""
    return [stmt.ieee for stmt in ir.walk(function.body) if isinstance(stmt, ir.Par | ir.Seq) and stmt.reduce]


def test_the_mark_holds_inside_and_is_printed_and_read() -> None:
    function = parse(INLINED)["f"]
    assert marks(function) == [True, True]
    text = print_function(function)
    assert text.count("reduce(y) #ieee") == 2
    assert same(parse(text)["f"].body, function.body)
    both = parse("fn g(x: f32[n, m], inout y: f32[1]) { par n, m |i, j| reduce(y) #ieee { y[0] += x[i, j] } }")["g"]
    assert marks(both) == [True, True]


def test_the_mark_outlives_directives() -> None:
    schedule = """
schedule f for cuda {
    split(k, 32) -> (ko, ki)  split(i, 8) -> (io, ii)  split(j, 32) -> (jo, ji)
    reorder(io, jo, ko, ii, ji, ki)
    bind(ji, block.x)  bind(ii, block.y)
    stage(C, at=jo, in=registers) -> sums
    stage(A, at=ko, in=shared) -> As
    pipeline(ko, stages=2)
    unroll(ki)
}
"""
    made = laid(product(where="K % 32 == 0", clause=MARKED) + schedule)
    assert len(marks(made.function)) >= 2 and all(marks(made.function))
    assert all(marks(parse(print_function(made.function)).functions[0]))
    nest = "seq 4 |k0| reduce(y) #ieee { seq 4 |k1| reduce(y) { y[0] += x[k0, k1] } }"
    function = parse(f"fn f(x: f32[4, 4], inout y: f32[1]) {{ {nest} }}\nschedule f {{ merge(k0, k1) -> k }}")["f"]
    assert marks(followed(function, "cpu").function) == [True]
    (outer,) = function.body
    assert isinstance(outer, ir.Seq)
    (inner,) = outer.body
    assert isinstance(inner, ir.Seq)
    other = replace(function, body=(replace(outer, body=(replace(inner, ieee=False),)),))
    with pytest.raises(TexprError, match=r"`k0` is a `seq reduce\(y\) #ieee` and `k1` is a `seq reduce\(y\)`"):
        followed(other, "cpu")


def test_what_is_given_away_is_found() -> None:
    """A rewrite that loses the mark: the program after it was made of a text without."""
    text = product(where=WIDE)
    made = planned(text, "sm_80")
    assert made.written is not None
    assert not [*given_away(made.written, made.function)]
    kept = numbered(parse(marked(text)).functions[0])
    (wrong,) = {*given_away(kept, made.function)}
    assert "rounds in its own way what line 5 sums up, which is marked `#ieee`" in wrong


def test_a_marked_loop_around_such_an_instruction_is_a_fault() -> None:
    function = planned(product(where=WIDE), "sm_80").function

    def mark(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.Par | ir.Seq):
                stmt = replace(stmt, body=mark(stmt.body), ieee=bool(stmt.reduce))
            found.append(stmt)
        return tuple(found)

    verify_function(function)
    with pytest.raises(CompilerBug, match="marked_sums_are_rounded_so"):
        verify_function(replace(function, body=mark(function.body)))


def test_it_computes_what_it_did() -> None:
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((5, 7)).astype(np.float32), rng.standard_normal(7).astype(np.float32)
    function = parse(INLINED)["f"]
    plain = parse(INLINED.replace(" #ieee", ""))["f"]
    arguments = {"A": x, "b": b}
    assert run(function, arguments)["y"] == run(plain, arguments)["y"]
    assert parts([function], ["cpu"])


BY_PARTS = """
fn f(A: f8e4m3[M, 128 * K] align(16), B: f8e4m3[N, 128 * K] align(16)): f32[M, N] {
    new C: f32[M, N]
    par M, N |i, j| {
        C[i, j] = 0.0
        seq K |p| reduce(C) {
            new part: f32 = 0.0
            seq 128 |k| reduce(part) { part += A[i, 128 * p + k] * B[j, 128 * p + k] }
            C[i, j] += part
        }
    }
    return C
}
"""


def test_parts_of_a_sum_are_given_to_a_unit_and_proved() -> None:
    """What adds the parts of a warpgroup's product up is shared out as its tile is."""
    function = parse(BY_PARTS).functions[0]
    assert instructions(planned(BY_PARTS, "sm_90a")) == {"wgmma_m64n128k32_f32_f8e4m3"}
    assert parts([function], ["sm_90a"])
