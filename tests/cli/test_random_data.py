"""`--arg x=random` for programs that take roots and powers, and what a comparison says where results are nan."""

from __future__ import annotations

from pathlib import Path

import pytest

from texpr.cli import main
from texpr.cli.arrays import positive
from texpr.frontend import parse

ROPE = """
fn rope(x: f32[n, d], base: f32): f32[n, d] {
    new y: f32[n, d]
    par n |i| { par d |j| { let b = base  y[i, j] = x[i, j] * cos(f32(i) * pow(b, f32(j) / f32(d))) } }
    return y
}
"""
ROOTS = """
fn roots(x: f32[n], z: f32[n], w: f16[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = log(x[i] + 2.0 * f32(w[i])) / sqrt(x[i]) + rsqrt(x[i]) - z[i] }
    return y
}
"""
SOME = "fn some(x: f32[n], z: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = sqrt(x[i] - z[i]) } return y }"
NONE = "fn none(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = sqrt(0.0 - x[i] * x[i] - 1.0) } return y }"


def run(text: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / "f.te").write_text(text, encoding="utf-8")
    assert main(["run", str(folder / "f.te"), *words.split(), "--against", "interp"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("seed", range(4))
def test_roots_and_powers_are_of_positive_numbers(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"--seed {seed} --arg x=random"
    for text, more in ((ROPE, "--arg base=random --size n=8 --size d=8"), (ROOTS, "--arg z=random --arg w=random --size n=40")):
        assert "nan" not in run(text, f"{words} {more}", tmp_path, capsys)


def test_which_are_positive() -> None:
    names = {text: {b.name for b in positive(parse(text).functions[0])} for text in (ROPE, ROOTS, SOME)}
    assert names == {ROPE: {"base"}, ROOTS: {"x", "w"}, SOME: set()}


def test_nan_in_both_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "elements, which are nan in both: not compared" in run(
        SOME, "--arg x=random --arg z=random --size n=40", tmp_path, capsys
    )
    assert "y: nothing was compared: all of 40 elements are nan in both" in run(
        NONE, "--arg x=random --size n=40", tmp_path, capsys
    )
