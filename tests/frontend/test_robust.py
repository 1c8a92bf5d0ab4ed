"""Whatever the text, the frontend gives a program or diagnostics, soon."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.frontend.corpus import SCHEDULES, right, wrong
from tests.frontend.test_grammar import mutate
from tests.steps import growth, pairs

from texpr.frontend import elaborate, parse, parse_text
from texpr.frontend.printer import print_tree
from texpr.ir.program.text import print_program
from texpr.support.codes import TITLES
from texpr.support.diagnostic import TexprError


def codes(text: str) -> set[str]:
    """The codes of what is said of a program; every place lies in the text."""
    try:
        program = parse(text)
    except TexprError as raised:
        assert raised.diagnostics
        for found in raised.diagnostics:
            assert found.span is not None and 0 <= found.span.start <= found.span.end <= len(text)
            assert found.code in TITLES and found.message
        return {found.code for found in raised.diagnostics}
    print_program(program)
    return set()


WRAPPERS = {
    "parentheses": ("(", "x[0]", ")"),
    "minus": ("- ", "x[0]", ""),
    "calls": ("abs(", "x[0]", ")"),
    "indices": ("x[", "0", "]"),
    "selects": ("select(k > 0, 1.0, ", "x[0]", ")"),
    "powers": ("2.0 ** ", "x[0]", ""),
    "sums to the right": ("1.0 + (", "x[0]", ")"),
    "sums": ("", "x[0]", " + 1.0"),
    "products": ("", "x[0]", " * x[1]"),
    "subscripts": ("", "x", "[0 : 5]"),
}
BLOCKS = {
    "pars": ("par 2 |i{}| {{ ", "y[0] = 1.0", " }}"),
    "ifs": ("if x[0] > 0.0 {{ ", "y[0] = 1.0", " }}"),
    "else ifs": ("if x[0] > {}.0 {{ y[0] = 2.0 }} else ", "if k > 0 { y[0] = 1.0 }", ""),
    "static fors": ("static for d{} in 0..1 {{ ", "y[0] = 1.0", " }}"),
    "instructions": ("instr go{}(y[0]) {{ ", "y[0] = 1.0", " }}"),
}
DEPTHS = (1, 20, 40, 47, 48, 60, 99, 100, 101, 500, 4_000)


@pytest.mark.parametrize("kind", WRAPPERS)
def test_deep_expressions(kind: str) -> None:
    before, inside, after = WRAPPERS[kind]
    for depth in DEPTHS:
        for statement in ("y[0] = {}", "anchor {} > 0.0", "let t = {}"):
            text = before * depth + inside + after * depth
            found = codes(f"fn f(x: f32[n], k: i32, inout y: f32[n]) {{ {statement.format(text)} }}")
            assert depth < 500 or found & {"E0105", "E0317"}
            if depth <= 20 and kind not in ("indices", "subscripts"):
                assert not found


@pytest.mark.parametrize("kind", BLOCKS)
def test_deep_blocks(kind: str) -> None:
    before, inside, after = BLOCKS[kind]
    for depth in DEPTHS:
        heads = "".join(before.format(k) for k in range(depth))
        text = f"fn f(x: f32[n], k: i32, inout y: f32[n]) {{ {heads}{inside}{after.format() * depth} }}"
        found = codes(text)
        assert depth > 20 or not found
        assert depth < 500 or "E0105" in found


def test_deep_elsewhere() -> None:
    for opened, closed in ("()", "[]", "{}"):
        codes("fn f" + opened * 20_000 + closed * 20_000)
        codes(f"schedule f {{ a{opened * 20_000}{closed * 20_000} }}")
    assert codes(f"fn f() {{ }} schedule f {{ a{'(' * 40}{')' * 40} }}") == set()
    codes("fn f() " * 20_000)
    codes("{" * 20_000)
    codes("fn f() {" * 5_000)


def test_deepest_of_everything() -> None:
    """The deepest that the parser takes elaborates too, inside calls and blocks."""
    depth = 40
    sums = "x[0]" + " + x[0]" * 98
    heads = "".join(f"par 2 |i{k}| {{ " for k in range(depth))
    leaf = f"fn g0(x: f32[n], inout y: f32[n]) {{ {heads} y[0] = {sums} {'}' * depth} }}"
    calls = [f"fn g{k}(x: f32[n], inout y: f32[n]) {{ par 2 |i| {{ g{k - 1}(x, y) }} }}" for k in range(1, 60)]
    assert codes(leaf) == set()
    assert codes("\n".join([leaf, *calls[:5]])) == set()
    assert codes("\n".join([leaf, *calls])) == {"E0317"}
    assert codes("\n".join([*reversed(calls), leaf])) == {"E0317"}


def test_deep_values_through_calls_and_lets() -> None:
    step = "fn g{}(x: f32): f32 {{ return g{}(x) + 1.0 }}"
    chain = "\n".join(step.format(k, k - 1) for k in range(1, 80))
    assert codes(f"fn g0(x: f32): f32 {{ return x }}\n{chain}") == {"E0317"}
    twice = "\n".join(f"fn g{k}(x: f32): f32 {{ return g{k - 1}(g{k - 1}(x)) }}" for k in range(1, 40))
    assert codes(f"fn g0(x: f32): f32 {{ return x * x }}\n{twice}") == {"E0317"}
    lets = " ".join(f"let a{k} = a{k - 1} + 0.5" for k in range(1, 500))
    assert codes(f"fn f(inout y: f32[1]) {{ let a0 = 1.5 {lets} y[0] = a499 }}") == {"E0317"}
    lets = " ".join(f"let a{k} = a{k - 1} + x[0]" for k in range(1, 1000))
    assert codes(f"fn f(x: f32[n], inout y: f32[1]) {{ let a0 = x[0] {lets} y[0] = a999 }}") == set()
    lets = " ".join(f"let a{k} = a{k - 1} + 1" for k in range(1, 1000))
    assert codes(f"fn f(p: i32[n], inout y: f32[n]) {{ let a0 = p[0] {lets} y[a999] = 1.0 }}") == set()
    lets = " ".join(f"let a{k} = a{k - 1} * a{k - 1}" for k in range(1, 100))
    assert codes(f"fn f(inout y: f32[n]) {{ let a0 = n + 1 {lets} y[a99] = 1.0 }}") == {"E0317"}
    assert codes(f"fn f(inout y: f32[n]) {{ let a0 = 3 {lets} y[a99] = 1.0 }}") == {"E0317"}


def test_many_calls() -> None:
    doubling = "\n".join(f"fn g{k}(inout y: f32[n]) {{ g{k - 1}(y) g{k - 1}(y) }}" for k in range(1, 40))
    assert codes(f"fn g0(inout y: f32[n]) {{ y[0] = 1.0 }}\n{doubling}") == {"E0317"}


@settings(max_examples=150)
@given(st.text(st.sampled_from("fn par(){}[]|:,.=+-*/%<>!&^~?#'\"\\;@é\x00\t\n\r 01xf"), max_size=60))
def test_any_text(text: str) -> None:
    codes(text)


def test_mutated_programs() -> None:
    """Programs with a few tokens changed: a program, or diagnostics."""
    random = Random(9)
    texts = [*right().values(), *wrong().values(), SCHEDULES]
    accepted = sum(not codes(mutate(random.choice(texts), random)) for _ in range(500))
    assert accepted > 25


@pytest.mark.long
def test_many_mutated_programs() -> None:
    random = Random(10)
    texts = [*right().values(), *wrong().values(), SCHEDULES]
    for _ in range(10_000):
        codes(mutate(random.choice(texts), random))


def many_functions(count: int) -> str:
    """A file of `count` functions."""
    return "\n".join(
        f"""fn g{k}(A: f32[M, K], B: f32[K, N], bias: f32[N]): f32[M, N] {{
            new C: f32[M, N]
            par M |i| {{ par N |j| {{
                C[i, j] = bias[j]
                seq K |k| reduce(C) {{ C[i, j] += A[i, k] * B[k, j] }}
                if i > 0 and j < N - 1 {{
                    C[i, j] = max(C[i, j], 0.0)
                }}
            }} }}
            return C
        }}"""
        for k in range(count)
    )


def parsed(count: int) -> None:
    parse(many_functions(count))


def comparing(count: int) -> None:
    """As if each function were compared with each other."""
    parsed(count)
    pairs(count, 2_000)


TWICE = 2.1


def test_a_file_twice_as_long_takes_twice_the_steps() -> None:
    """`bench/parts.py` measures how long sixty lines take."""
    assert many_functions(6).count("\n") == 65
    assert growth(parsed, length=12) < TWICE


def test_what_compares_each_function_with_each_other_is_found() -> None:
    assert growth(comparing, length=12) > TWICE


def test_large_files() -> None:
    body = "y[0] = x[1] + 2.0\n" * 4_000
    assert codes(f"fn f(x: f32[n], inout y: f32[n]) {{ {body} }}") == set()
    assert codes("-- " + "x" * 1_000_000 + "\nfn f() { }") == set()
    assert "E0104" in codes(f"fn f(inout y: f32[n]) {{ y[0] = {'9' * 100_000} }}")
    assert codes(f"fn f(inout y: f32[n]) {{ y[0] = {'x' * 100_000} }}") == {"E0201"}
    many = codes("fn f(inout y: f32[n]) { " + "y[q] = 1.0\n" * 5_000 + "}")
    assert many == {"E0201"}


def test_starts_without_slow_imports() -> None:
    program = (
        "import sys, texpr.frontend; print([m for m in ('numpy', 'lark', 'islpy', 'rich', 'ml_dtypes') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_line_ends_and_marks() -> None:
    text = "fn f(inout y: f32[n]) {\n    y[0] = 1.0\n    y[1] = q\n}\n"
    for changed in (text.replace("\n", "\r\n"), "\ufeff" + text, text.rstrip()):
        with pytest.raises(TexprError) as raised:
            parse(changed)
        (found,) = raised.value.diagnostics
        assert found.span is not None and found.span.source.position(found.span.start) == (3, 12)


def test_library() -> None:
    """Instructions, combiners and functions of a library may be used, and are not part of the program."""
    library = parse_text(
        """
        instr twice(inout a: f32[4]) { meaning { par 4 |i| { a[i] *= 2.0 } } }
        combine plus(a: f32, b: f32): f32 identity 0.0 { return a + b }
        fn helper(x: f32): f32 { return x }
        """
    )
    text = "fn f(inout y: f32[n]) { twice(y[0 : +4]) y[0] plus= helper(1.0) }"
    program = elaborate(parse_text(text), library=library)
    assert [f.name for f in program.functions] == ["f"]
    assert "instr twice(y[0])" in print_program(program)
    own = "fn helper(x: f32): f32 { return x + x }\n" + text
    assert "1.0 + 1.0" in print_program(elaborate(parse_text(own), library=library))
    assert print_tree(library).count("meaning") == 1


def test_consts_are_fixed_by_the_build() -> None:
    text = "fn f(x: f32[n], const k: i32 = 2, const m: i32): f32[k + m] { new y: f32[k + m] = 1.0 return y }"
    assert [str(s) for s, _ in parse(text)["f"].consts] == ["m"]
    assert parse(text, consts={"m": 3})["f"].consts == ()
    assert str(parse(text, consts={"m": 3, "k": -1})["f"].results[0].shape[0]) == "2"
