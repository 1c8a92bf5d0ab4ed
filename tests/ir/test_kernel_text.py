"""The kernel form as text and back."""

from __future__ import annotations

import re

import pytest
from tests.ir.forms import Forms

from texpr.affine.expr import ONE, ZERO, Sym, expr, sym
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_kernel, parse_plan
from texpr.ir.kernel.text import kernel_text, plan_text, stmt_text
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref
from texpr.ir.value.structure import same
from texpr.ir.value.types import BOOL, F32, I32, I64
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

ROW_SUM = """\
plan row_sum
    param x: f32[m, n] align 16
    param i: i32[n]
    result z: f32[m]
    size m, n
    fix k = 4
    workspace w: f32[(n / 2)] strides [2]
    require (n % 4) == 0
    require m < 65536
    assume i in 0..m
    assume injective(i)
{
    launch row_sum_0
    loop t < n {
        if t > 0 and t < m {
            launch row_sum_0
        }
    }
}

kernel row_sum_0
    buffer x: f32[m, n] align 16
    buffer i: i32[n]
    buffer z: f32[m] role result
    scalar a: f32[]
    size m, n, b0
    writes z
    blocks 2
    axis grid.x b < m base b0
    axis block.x t < 256
    array shared warps: f32[8] "met by all warps"
    array local own: f32[4]
    array shared tile: f32[4, 4]
    array lanes kept: f32[2]
{
    copy tile[t, 0] = x[b, 4 * t] when (i32(4 * t) < i32(n)) count 4
    copy tile[t, 0] = x[b, 4 * t] count 4
    commit
    wait 1
    wait 0 covers RAW tile carried j
    vector p, q = tile[0, 2]
    vector tile[1, 0] = p, (q + 1.0:f32)
    vector fused tile[1, 0] = (p + (q * p)), (q - (q * q))
    for u in 0..n unroll 4 {
        vector r = x[b, u]
    }
    let acc: f32 = 0.0:f32
    for j in t..n by 256 uniform {
        fused acc = (acc + (a[] * x[b, j]))
    }
    for u in 0..4 unroll {
        own[u] = (i32(t + u) as f32)
    }
    for v in 0..4 simd reduce(acc add) {
        acc = (acc + own[v])
    }
    exchange other = acc ^ 16
    exchange more = other ^ 4 width 8
    shuffle from_next = kept[1] lane t + 1
    acc = fma(acc, other, more)
    if (i32((t % 32)) == 0:i32) {
        warps[(t / 32)] = acc
    } else {
        atomic z[s; s = i[b]] add= acc
        atomic warps[0] max= -inf:f32 at block
    }
    barrier block covers RAW warps, WAR warps carried j
    barrier warp lanes 16
    barrier block part 64 covers RAW warps
    let small: bool = select((acc < 0.5:f32), isnan(acc), (not(isinf(acc)) and (acc != -0.0:f32)))
    if small uniform {
        z[b] = add:f32(acc:f64, +nan:f64)
    }
}
"""


PLACES = re.compile("  -- line [0-9]+(, column 1)?$| from [0-9]+ to [0-9]+(?=,|  --| carried)", re.MULTILINE)


def test_text_is_what_it_reads() -> None:
    text = plan_text(parse_plan(ROW_SUM))
    assert PLACES.sub("", text) == ROW_SUM


def test_statements_say_where_they_come_from() -> None:
    """Each line that does so was line N of the text that was read."""
    lines = ROW_SUM.splitlines()
    for line in plan_text(parse_plan(ROW_SUM)).splitlines():
        written, _, number = line.partition("  -- line ")
        assert not number or lines[int(number.split(",")[0]) - 1] == PLACES.sub("", f"{written}  --").removesuffix("  --")


def test_parsed_form_is_the_one_written() -> None:
    x, z = Buffer("x", F32, (sym("n"),), "input"), Buffer("z", F32, (sym("n"),), "result")
    i, acc = sym("i"), Ref(Sym("acc"), F32)
    body = (
        k.Declare(Sym("acc"), F32, Literal(1.0, F32)),
        k.For(Sym("i"), ZERO, sym("n"), (k.Store(Load(z, (i,)), Op("mul", (acc, Load(x, (i - 1,))), F32)),), ONE),
    )
    axes = (k.Axis(Sym("c"), k.Level.CORE, expr(1)),)
    built = k.Kernel("scale", axes, (x, z), (), (Sym("n"),), (), body, frozenset({"z"}))
    text = """
    kernel scale  buffer x: f32[n]  buffer z: f32[n] role result  size n  writes z  axis core c < 1
    { let acc: f32 = 1.0:f32  for i in 0..n { z[i] = (acc * x[i - 1]) } }
    """
    assert same(parse_kernel(text), built)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_parse_after_print_is_identity(first: int) -> None:
    for seed in range(first, first + 50):
        plan = Forms(seed).plan()
        text = plan_text(plan)
        again = parse_plan(text)
        assert same(again, plan), text
        launched = list(k.kernels(again.steps))
        assert len(set(launched)) == len({kernel.name for kernel in launched}), "one object for each kernel"


def test_random_forms_are_not_trivial() -> None:
    """The generator reaches every kind of statement and value, deeply enough."""
    text = "".join(plan_text(Forms(seed).plan()) for seed in range(100))
    words = ("for ", "if ", "else", "let ", "atomic", "barrier", "exchange", "shuffle")
    for word in (*words, " as ", "select", "min(", "; ", "+inf", "nan"):
        assert word in text, word


def _changes(kernel: k.Kernel) -> list[k.Kernel]:
    """The kernel with one small thing changed."""
    axis, loop = kernel.axes[0], kernel.body[1]
    assert isinstance(loop, k.For)
    store = loop.body[0]
    assert isinstance(store, k.Store)
    numbers = [1, 1.0, -0.0, 0.0]
    loops = [
        replace(loop, hi=loop.hi + 1), replace(loop, step=expr(2)), replace(loop, kind="unroll"), replace(loop, uniform=True),
        replace(loop, reductions=((Sym("acc"), "add"),)), replace(loop, body=(*loop.body, *loop.body)),
        *(replace(loop, body=(replace(store, value=Literal(number, F32)),)) for number in numbers),
    ]  # fmt: skip
    return [
        replace(kernel, name="other"), replace(kernel, axes=()), replace(kernel, axes=(replace(axis, dim="y"),)),
        replace(kernel, axes=(replace(axis, level=k.Level.GRID),)), replace(kernel, axes=(replace(axis, base=Sym("b")),)),
        replace(kernel, written=frozenset()), replace(kernel, sizes=()),
        *(replace(kernel, body=(kernel.body[0], each)) for each in loops),
    ]  # fmt: skip


def test_every_change_shows() -> None:
    """No two different kernels share a text, and `same` tells them apart."""
    kernel = parse_kernel(
        "kernel a buffer z: f32[n] size n writes z axis core c < 1 { let a: f32 = 0:f32 for i in 0..n { z[i] = a } }"
    )
    every = [kernel, *_changes(kernel)]
    texts = [kernel_text(each) for each in every]
    assert len(set(texts)) == len(every)
    for at, one in enumerate(every):
        assert [same(one, other) for other in every] == [at == other for other in range(len(every))]
        assert same(parse_kernel(texts[at]), one)


def test_same_follows_the_use_of_buffers() -> None:
    """x and y alike in all but name must not be taken for each other."""
    crossed = "kernel a buffer x: f32[] buffer y: f32[] {{ x[] = {}[] y[] = {}[] }}"
    kernels = [parse_kernel(crossed.format(a, b)) for a in "xy" for b in "xy"]
    assert [[same(a, b) for b in kernels] for a in kernels] == [[a is b for b in kernels] for a in kernels]


def test_natural_types_are_left_out() -> None:
    two, ref = Literal(2, I32), Ref(Sym("v"), I64)
    body = (
        k.Declare(Sym("v"), I64, Cast(two, I64)),
        k.Assign(Sym("v"), Op("add", (ref, Index(sym("i"), I64)), I64)),
        k.If(Op("lt", (ref, ref), BOOL), (k.Assign(Sym("v"), Op("select", (Literal(1, BOOL), ref, ref), I64)),)),
    )
    text = stmt_text(k.If(Literal(0, BOOL), body))
    assert text.splitlines()[1:4] == ["    let v: i64 = (2:i32 as i64)", "    v = (v + i64(i))", "    if (v < v) {"]
    assert "v = select(1:bool, v, v)" in text


WRONG = [
    ("kernel a { § }", "no token starts with `§`", 1),
    ("kernel a {\n  x = 1:f32 y }", "`y` begins no statement", 2),
    ("kernel a {", "the text ends too early", 1),
    ("kernel a { } }", "expected the end of the text, found `}`", 1),
    ("kernel a { x[0] = 1:f32 }", "no buffer `x` was declared", 1),
    ("kernel a { x = y }", "no variable `y` was declared", 1),
    ("kernel a { x = 1:f33 }", "expected a scalar type, found `f33`", 1),
    ("kernel a { x = (1:f32 ? 2:f32) }", "no token starts with `?`", 1),
    ("kernel a { x = (1:f32, 2:f32) }", "expected an operator or `as`, found `,`", 1),
    ("kernel a axis planet p < 3 { }", "`planet` is no level", 1),
    ("kernel a array attic p: f32[] { }", "`attic` is no space", 1),
    ("kernel a\n colour red { }", "`colour` begins no clause of a kernel", 2),
    ("kernel a { for i in 0, 1 { } }", "expected `..`, found `,`", 1),
    ("kernel a { barrier block lanes many }", "expected an integer, found `many`", 1),
    ("kernel a { for i in ; }", "expected an index expression, found `;`", 1),
]


@pytest.mark.parametrize(("text", "message", "line"), WRONG)
def test_wrong_text_is_refused_where_it_is_wrong(text: str, message: str, line: int) -> None:
    with pytest.raises(TexprError) as caught:
        parse_kernel(text)
    (found,) = caught.value.diagnostics
    assert found.code == "E0581" and found.span is not None and found.span.line == line
    assert found.message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plan a { launch b }", "there is no kernel `b`"),
        ("plan a { jump }", "`jump` begins no step"),
        ("plan a require n { }", "expected a comparison, found `{`"),
        ("plan a colour { }", "`colour` begins no clause of a plan"),
        ("plan a { } kernel b { } kernel b { }", "kernel `b` is there already"),
    ],
)
def test_wrong_plan_is_refused(text: str, message: str) -> None:
    with pytest.raises(TexprError) as caught:
        parse_plan(text)
    assert [(d.code, d.message) for d in caught.value.diagnostics] == [("E0581", message)]
