"""The format of texts: what it makes of them, that it makes nothing else of them, and what it leaves to the writer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from tests.editor.layouts import scrambled, with_comments
from tests.frontend import trees
from tests.frontend.corpus import ROOT, SCHEDULES, right
from tests.properties.generate import Generator
from tests.steps import growth, pairs

from texpr.editor import formatting
from texpr.editor.formatting import WIDTH, format_text
from texpr.frontend import parse_text
from texpr.frontend import tree as t
from texpr.frontend.printer import print_tree
from texpr.frontend.tokens import tokenize
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.span import Source

SHIPPED = sorted((*(ROOT / "examples").rglob("*.te"), *(ROOT / "bench").rglob("*.te")))
OTHERS = sorted((ROOT / "tests").rglob("*.te"))
TEXTS = right() | {"schedules": SCHEDULES} | {path.stem: path.read_text(encoding="utf-8") for path in (*SHIPPED, *OTHERS)}
COMMENT = re.compile(r"--[^\n]*")


def comments(text: str) -> list[tuple[int, str]]:
    """Each comment, and how many tokens stand before it; found without the formatter."""
    tokens = tokenize(Source("<text>", text))
    found: list[tuple[int, str]] = []
    last = 0
    for at, start in enumerate([*tokens.starts[:-1], len(text)]):
        found += [(at, said.group().rstrip()) for said in COMMENT.finditer(text[last:start])]
        last = tokens.ends[at]
    return found


def check(text: str) -> str:
    """The formatted text: the same program, with the same comments at the same tokens, that stays as it is."""
    made = format_text(text)
    assert parse_text(made) == parse_text(text)
    assert comments(made) == comments(text)
    assert format_text(made) == made
    made = made.replace("\r\n", "\n")
    lines = made.split("\n")
    assert all(line == line.rstrip() for line in lines)
    assert "\n\n\n" not in made
    assert "\t" not in COMMENT.sub("", re.sub(r'"[^"\n]*"', "", made))
    return made


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_shipped_program_is_in_the_format(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


@pytest.mark.parametrize("name", TEXTS)
def test_every_program(name: str) -> None:
    made = check(TEXTS[name])
    check(scrambled(TEXTS[name], Random(1)))
    assert all(len(COMMENT.sub("", line)) <= WIDTH or '"' in line for line in made.split("\n"))


@pytest.mark.parametrize("name", ["conv2d.te", "language 17", "schedules", "scan"])
def test_layouts_of_all_kinds(name: str) -> None:
    for seed in range(10):
        check(scrambled(TEXTS[name], Random(seed)))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees.TREES)
def test_random_trees(tree: t.Tree) -> None:
    check(print_tree(tree))


@pytest.mark.long
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(trees.TREES)
def test_many_random_trees(tree: t.Tree) -> None:
    printed = print_tree(tree)
    check(printed)
    check(scrambled(printed, Random(len(printed))))


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    text = Generator(seed).program()
    made = check(text)
    assert check(scrambled(text, Random(seed))).split() != [] and parse_text(made) == parse_text(text)


def check_comments(text: str) -> None:
    made = with_comments(text)
    assert len(made) > 100
    for each in made[:-1]:
        assert comments(format_text(each)) == comments(each)
    check(made[-1])


@pytest.mark.parametrize("name", ["prefix_sum", "figure_not_strong"])
def test_a_comment_at_every_token(name: str) -> None:
    check_comments(TEXTS[name])


def test_a_comment_at_every_token_of_an_instruction() -> None:
    text = (ROOT / "examples" / "hopper" / "matmul.te").read_text(encoding="utf-8")
    check_comments(text[: text.index("fn ")])


@pytest.mark.long
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_comment_at_every_token_of_every_program(path: Path) -> None:
    check_comments(path.read_text(encoding="utf-8"))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_random_comments(seed: int) -> None:
    check_comments(Generator(seed).program())


STYLE = {
    "spaces": (
        "fn   f ( x:f32 [ n,2*m ] ,inout y : f32 ):( f32,f32 ) { return x , - y-1 }",
        "fn f(x: f32[n, 2 * m], inout y: f32): (f32, f32) { return x, -y - 1 }\n",
    ),
    "a block of several lines": (
        "fn f() {par n |i| { a = 1\nb = 2 }}",
        "fn f() {\n    par n |i| {\n        a = 1\n        b = 2\n    }\n}\n",
    ),
    "blocks that share lines": (
        "fn f() {\npar n |i| { par m |j| {\na = 1\n}\n}\n}",
        "fn f() {\n    par n |i| { par m |j| {\n        a = 1\n    } }\n}\n",
    ),
    "blocks that do not": (
        "fn f() {\npar n |i| {\npar m |j| {\na = 1\n} } }",
        "fn f() {\n    par n |i| {\n        par m |j| {\n            a = 1\n        }\n    }\n}\n",
    ),
    "a brace after promises": (
        "fn f(x: f32[n])\nwhere n>=1 ,\n n < 9 assume x in -1 .. n {\nanchor x[0]\n}",
        "fn f(x: f32[n])\n    where n >= 1,\n          n < 9 assume x in -1..n\n{\n    anchor x[0]\n}\n",
    ),
    "a brace on its own line": ("fn f()\n{\n}", "fn f() {}\n"),
    "an else": (
        "fn f() {\nif a {\nb = 1\n}\nelse if c\n{\nb = 2\n} else {\nb = 3\n}\n}",
        "fn f() {\n    if a {\n        b = 1\n    }\n    else if c {\n        b = 2\n    } else {\n        b = 3\n    }\n}\n",
    ),
    "blank lines": (
        "\n\n-- a\n\n\n\nfn f() {\n\n\na = 1\n\n\n\nb = 2\n\n}\nfn g() {}\n\n\n",
        "-- a\n\nfn f() {\n    a = 1\n\n    b = 2\n}\n\nfn g() {}\n",
    ),
    "comments": (
        "fn f() {--a \n--b\na = 1 --c\nlonger = 2-- d\n    --e\n}\n--f",
        "fn f() {  --a\n    --b\n    a = 1  --c\n    longer = 2  -- d\n    --e\n}\n--f\n",
    ),
    "comments in a column": (
        "fn f() {\na=1        -- one\nb[ i ]=1   -- two\n           -- three\n}\n",
        "fn f() {\n    a = 1      -- one\n    b[i] = 1   -- two\n               -- three\n}\n",
    ),
    "directives": (
        'schedule  f "x"for cuda { split( i ,128 )->( a,b ) bind(a,grid . x)\nroles(k,copy : 1  warp,n= - 3) }',
        'schedule f "x" for cuda {\n    split(i, 128) -> (a, b)  bind(a, grid.x)\n    roles(k, copy: 1 warp, n=-3)\n}\n',
    ),
    "loops": (
        "fn f() { fully  par 32|i|#align( 32 )#block{ a max = - 1 } seq n k 'rows reduce( a ) { (a,b)max= (c , d) } }",
        "fn f() { fully par 32 |i| #align(32) #block { a max= -1 }  seq n k 'rows reduce(a) { (a, b) max= (c, d) } }\n",
    ),
    "slices": ("fn f() { let a = b [ :,1:+n,i : ,: 3] }", "fn f() { let a = b[:, 1 : +n, i :, : 3] }\n"),
    "operators": (
        "fn f() { let a = - -x**-2 and not(a)and(b or c)  static for d in(1)..2{} }",
        "fn f() { let a = - -x ** -2 and not (a) and (b or c)  static for d in (1)..2 {} }\n",
    ),
    "instructions": (
        'instr i(a:f32 [4]) {\nfragment a:(4,8) :(1@0,  1@1) ;asm "x":"y" ;effect   joins  g; meaning{anchor a[0]} }',
        'instr i(a: f32[4]) {\n    fragment a: (4,8) :(1@0, 1@1); asm "x": "y"; effect joins g; meaning { anchor a[0] }\n}\n',
    ),
    "a const": (
        "fn f(const a :i32=2,x: f32[n]stride( s,1 )align(16)) {}",
        "fn f(const a: i32 = 2, x: f32[n] stride(s, 1) align(16)) {}\n",
    ),
    "arguments": (
        "fn f() {\ng(\na,\nb + \nc)\nh(a,\nb)\n}",
        "fn f() {\n    g(\n        a,\n        b +\n            c\n    )\n    h(a,\n      b)\n}\n",
    ),
    "items on one line": ("fn f() {} fn g() {}", "fn f() {}\n\nfn g() {}\n"),
    "nothing": ("", ""),
    "white space": (" \n\t\n", ""),
    "a comment alone": ("  -- a", "-- a\n"),
}


@pytest.mark.parametrize("name", STYLE)
def test_style(name: str) -> None:
    text, wanted = STYLE[name]
    assert check(text) == wanted


def test_long_lines() -> None:
    many = ", ".join(f"parameter{k}: f32[n]" for k in range(9))
    text = f"fn f({many}): f32[n] {{ return parameter0 }}"
    made = check(text)
    assert made.startswith("fn f(\n    parameter0: f32[n],\n    parameter1: f32[n],\n")
    assert made.endswith("\n): f32[n] {\n    return parameter0\n}\n")
    value = " + ".join(f"value[{k}]" for k in range(9))
    made = check(f"fn f() {{ par n |i| {{ par m |j| {{ a = {value}  b = {value} }} }} }}")
    assert made == (f"fn f() {{\n    par n |i| {{ par m |j| {{\n        a = {value}\n        b = {value}\n    }} }}\n}}\n")
    made = check(f"fn f() {{ longer = call({value}, call({value}, {value})) }}")
    assert max(map(len, made.split("\n"))) <= WIDTH
    bare = " + ".join(f"value{k}" for k in range(40))
    assert f"    a = {bare}\n" in check(f"fn f() {{ a = {bare} }}")  # there is no place to break it


def test_line_ends_are_those_of_the_first_line() -> None:
    text = "fn f() {\n    a = 1\n}\n"
    assert format_text(text.replace("\n", "\r\n")) == text.replace("\n", "\r\n")
    assert format_text("fn f() {\r\n  a = 1\n}") == text.replace("\n", "\r\n")
    assert format_text("\ufefffn f() {\n a = 1 \r\n} \r\n") == text
    assert format_text("fn f() { -- a\r b\r\n}") == "fn f() {  -- a\r b\r\n}\r\n"


def test_errors_are_those_of_the_parser() -> None:
    for text in ("fn f() { a = }", "fn f() {\n    x === 1\n}\nfn g( {", 'fn f() { asm("x }', "€"):
        with pytest.raises(TexprError) as wanted:
            parse_text(text)
        with pytest.raises(TexprError) as found:
            format_text(text)
        told = [
            [(each.code, each.message, each.span and each.span.start) for each in raised.value.diagnostics]
            for raised in (wanted, found)
        ]
        assert told[0] == told[1]


def statements(count: int) -> str:
    return "fn f(inout x: f32[n]) {\n" + "".join(f"  x[{k}] =   x[{k}+1]*2.0 -- {k}\n" for k in range(count)) + "}\n"


def work(kind: str, count: int) -> None:
    """Formats a text of `count` statements."""
    if kind == "planted":
        pairs(count, 20)
    match kind:
        case "one line":
            text = "fn f() { " + " ".join(f"a[{k}] = {k}" for k in range(count)) + " }"
        case "long lines":
            text = "fn f() {\n" + f"call({', '.join(['argument'] * 40)})\n" * count + "}"
        case "items":
            text = "-- a\nfn f(x: f32) { let b = x }\n" * count
        case "instructions":
            text = "instr f(x: f32[4]) { fragment x: 4 : 1@0; effect e; meaning { anchor x[0] } }\n" * count
        case _:
            text = statements(count)
    format_text(text)


@pytest.mark.parametrize("kind", ["statements", "one line", "long lines", "items", "instructions"])
def test_work_is_linear(kind: str) -> None:
    assert growth(work, kind, length=80, times=3) < 3.3


def test_quadratic_work_is_found() -> None:
    assert growth(work, "planted", length=80, times=3) > 3.3


@pytest.mark.long
def test_ten_thousand_statements() -> None:
    made = format_text(statements(10_000))
    assert made.count("\n") == 10_002
    assert format_text(made) == made


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("spaces", lambda tokens, marks: [0] * len(tokens.kinds), "other tokens"),
        ("joined", lambda rows: "".join(f"{row.code}\n" for row in rows if row.code), "other comments"),
        (
            "settle",
            lambda tokens, marks, between, width: [
                gap.ends_line or kind == "(" for gap, kind in zip(between, tokens.kinds, strict=True)
            ],
            "another program",
        ),
    ],
)
def test_a_fault_of_the_formatter_is_found(
    name: str, wrong: Callable[..., object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formatting, name, wrong)
    with pytest.raises(CompilerBug, match=told):
        format_text("-- a\nfn f(x: f32) { let b = g (x) }\n")
