"""The compiler's own instructions by name: a text uses them without a definition, and one of its own comes before."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.proofs import undecided

from texpr.driver import lower, parse
from texpr.interp import run
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.text import print_program
from texpr.support.diagnostic import TexprError

TURNED = """
fn f(x: bf16[8 * n, 8]): bf16[8 * n, 8] {
    new y: bf16[8 * n, 8]
    par n |b| { fully par 32 |lane| {
        reg a: bf16[2]
        reg d: bf16[2]
        seq 2 |r| { a[r] = x[8 * b + lane / 4, 2 * (lane % 4) + r] }
        movmatrix_bf16(a, d)
        seq 2 |r| { y[8 * b + lane / 4, 2 * (lane % 4) + r] = d[r] }
    } }
    return y
}
"""


def test_a_matrix_is_turned() -> None:
    function = parse(TURNED)["f"]
    made = lower(function, "sm_80", schedule=None)
    assert "instr movmatrix_bf16 [" in plan_text(made.plan) and not [*undecided(made.function, made.plan)]
    x = np.arange(128).reshape(16, 8).astype(ml_dtypes.bfloat16)
    wanted = np.concatenate([x[:8].T, x[8:].T])
    np.testing.assert_array_equal(run(function, {"x": x})["y"], wanted)
    ran = run_plan(made.function, made.plan, {"x": x}, seed=1)
    assert not ran.reports
    np.testing.assert_array_equal(ran.arrays["y"], wanted)


def test_texts_read_back() -> None:
    text = print_program(parse(TURNED))
    assert print_program(parse(text)) == text and text.startswith("instr movmatrix_bf16(")


OWN = """
instr movmatrix_bf16(a: bf16[8, 8], inout d: bf16[8, 8]) {
    fragment a: ((4,8),2) : ((2@1,1@0),1@1);
    fragment d: ((4,8),2) : ((2@1,1@0),1@1);
    asm "sm_80": "mov.b32 {d}, {a};";
    meaning { par 8 |i| { par 8 |j| { d[i, j] = a[i, j] } } }
}
"""


def test_a_definition_of_the_text_comes_before() -> None:
    function = parse(OWN + TURNED)["f"]
    x = np.arange(128).reshape(16, 8).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run(function, {"x": x})["y"], x)
    assert "mov.b32" in lower(function, "sm_80", schedule=None).source


UPDATED = """
fn f(x: f32[n], at: i32[n], inout y: f32[m])
    assume at in 0..m
{
    par n |i| reduce(y) #atomic(WORDS) { USE }
}
"""


def updated(words: str, use: str) -> str:
    return UPDATED.replace("WORDS", words).replace("USE", use)


@pytest.mark.parametrize(
    ("words", "name", "ptx"),
    [
        ("grid, relaxed", "red_add_f32_relaxed_gpu", "atomicAdd("),
        ("release", "red_add_f32_release_gpu", "red.release.gpu.add.f32"),
    ],
)
def test_an_update_as_one_step_is_that_update(words: str, name: str, ptx: str) -> None:
    """The plan is that of the plain text, and the numbers are."""
    named, plain = (parse(updated(words, use))["f"] for use in (f"{name}(x[i], y[at[i]])", "y[at[i]] += x[i]"))
    one, other = (lower(function, "sm_80", schedule=None) for function in (named, plain))
    assert ptx in one.source and "atomic y[" in plan_text(one.plan) and not [*undecided(one.function, one.plan)]
    given = {"x": np.arange(9, dtype=np.float32), "at": np.arange(9, dtype=np.int32) % 4, "y": np.ones(4, np.float32)}
    wanted = run(plain, {key: each.copy() for key, each in given.items()})["y"]
    np.testing.assert_array_equal(run(named, {key: each.copy() for key, each in given.items()})["y"], wanted)
    for made in (one, other):
        ran = run_plan(made.function, made.plan, {key: each.copy() for key, each in given.items()}, seed=1)
        assert not ran.reports
        np.testing.assert_array_equal(ran.arrays["y"], wanted)


OTHER = "inout z: f32[n]"
WRONG = {
    "another order": updated("release", "red_add_f32_relaxed_gpu(x[i], y[at[i]])"),
    "another scope": updated("grid", "red_add_f32_relaxed_cta(x[i], y[at[i]])"),
    "a cluster": updated("grid", "red_add_f32_relaxed_cluster(x[i], y[at[i]])"),
    "no mark": updated("grid", "red_add_f32_relaxed_gpu(x[i], y[at[i]])").replace(" #atomic(grid)", ""),
    "of another array": updated("grid", "red_add_f32_relaxed_gpu(x[i], z[i])").replace("y: f32[m]", f"y: f32[m], {OTHER}"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_loop_says_the_same(name: str) -> None:
    with pytest.raises(TexprError) as caught:
        parse(WRONG[name])
    (found,) = caught.value.diagnostics
    assert found.code == "E0335" and "no loop around has that" in found.message
    assert found.span is not None and found.span.text.startswith("red_add_f32_")
    assert (found.help is None) == (name == "a cluster")


@pytest.mark.parametrize("name", ["another order", "no mark"])
def test_the_help_helps(name: str) -> None:
    with pytest.raises(TexprError) as caught:
        parse(WRONG[name])
    help = caught.value.diagnostics[0].help
    assert help is not None and "#atomic(grid, relaxed)" in help
    parse(updated("grid, relaxed", "red_add_f32_relaxed_gpu(x[i], y[at[i]])"))


def test_what_gives_back_the_old_value_is_refused() -> None:
    """`atom` reads in a loop in which a `reduce` lets buffers be updated alone."""
    text = updated("grid, relaxed", "atom_add_f32_relaxed_gpu(x[i], y[at[i]], z[i])").replace(
        "y: f32[m]", f"y: f32[m], {OTHER}"
    )
    with pytest.raises(TexprError) as caught:
        lower(parse(text)["f"], "sm_80", schedule=None)
    assert caught.value.diagnostics[0].code == "E0413"


def test_a_name_alone_is_no_use() -> None:
    """Only what is called is looked up: as much text is read as there are names."""
    new = "new movmatrix_bf16: f32[n]\n par n |i| { movmatrix_bf16[i] = x[i] }\n return movmatrix_bf16"
    assert not parse(f"fn f(x: f32[n]): f32[n] {{ {new} }}")["f"].instrs
