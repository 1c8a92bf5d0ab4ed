"""Artifacts that somebody made anew who has all of this: all follows from a plan, but that, or the program, is wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import texpr
from texpr import artifact
from texpr.artifact.certificate import PROOF, proofs_text
from texpr.artifact.check.derived import derived, read_parts
from texpr.artifact.check.folder import read_folder
from texpr.artifact.check.recheck import recheck
from texpr.artifact.place import MANIFEST
from texpr.artifact.record import load_json, read_record

from .forging import mend, put, refusal

TEXT = """
fn blend(x: f32[n], y: f32[n], a: f32): f32[n]
    where n % 4 == 0
{
    new z: f32[n]
    par n |i| { z[i] = a * x[i] - y[i] }
    return z
}
"""
SECOND = "fn f(inout x: f32[n]) { par n |i| { x[i] = 0.0 } }\n"
PLAN = "proof/sm_90a/blend.plan"
PROGRAM = "proof/sm_90a/blend.te"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp("consistent") / "out"
    texpr.build(texpr.parse(TEXT)["blend"], "sm_90a", directory, schedule="none")  # one plan; of two: test_wide.py
    return directory


def remade(built: Path, to: Path, change: Callable[[Path], None]) -> Path:
    """A copy in which something is changed, and all that follows from it derived again, as a build does it."""
    shutil.copytree(built, to)
    change(to)
    folder = read_folder(to)
    record = read_record(load_json(folder.files[MANIFEST]))  # pyright: ignore[reportArgumentType]
    parts, _ = read_parts(folder, record)
    if all(part.plans for part in parts) and parts:
        expected, _ = derived(folder, record, parts)
        put(to, {**expected, PROOF: proofs_text(recheck(parts)[1])})
    return mend(to)


def change(path: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        text = (directory / path).read_text(encoding="utf-8")
        assert old in text
        (directory / path).write_text(text.replace(old, new), encoding="utf-8")

    return edit


def both(*edits: Callable[[Path], None]) -> Callable[[Path], None]:
    def edit(directory: Path) -> None:
        for each in edits:
            each(directory)

    return edit


WRONG = {
    "another function": (change(PLAN, "- y[i]", "+ y[i]"), "not proved"),
    "parameters in another order": (
        change(PLAN, "    param x: f32[n]\n    param y: f32[n]\n", "    param y: f32[n]\n    param x: f32[n]\n"),
        "same interface",
    ),
    "what is promised is not checked": (change(PLAN, "    require (n % 4) == 0\n", ""), "same interface"),
    "an input is written": (change(PLAN, "        z[i] =", "        x[i] ="), "cannot be read"),
    "an input is written, and said to be": (
        both(change(PLAN, "        z[i] =", "        x[i] ="), change(PLAN, "writes z", "writes x, z")),
        "x is written, but is an input",
    ),
    "an input that is called another thing": (
        both(
            change(PLAN, "    buffer x: f32[n]\n", "    buffer x: f32[n] role inout\n"),
            change(PLAN, "writes z", "writes x, z"),
        ),
        "cannot be read",
    ),
    "a scalar by its address": (change(PLAN, "scalar a: f32[]", "buffer a: f32[]"), "a has no address"),
    "a kernel with a name of CUDA's": (change(PLAN, "blend_z", "threadIdx"), "a kernel cannot be called"),
    "a program that reads outside": (
        both(change(PLAN, "y[i])", "y[i + 4])"), change(PROGRAM, "- y[i]", "- y[i + 4]")),
        "the program is not legal",
    ),
    "a program of another name": (change(PROGRAM, "fn blend", "fn blind"), "is of `blind`"),
    "two programs": (change(PROGRAM, "return z\n}\n", f"return z\n}}\n{SECOND}"), "not as it is written"),
    "a comment": (change(PROGRAM, "{\n", "{ -- proved by hand\n"), "not as it is written"),
    "a comment in the plan": (change(PLAN, "\n{\n    launch", "\n{ -- proved by hand\n    launch"), "not as it is written"),
    "another library": (change(MANIFEST, '"pthread"', '"evil"'), "needs the libraries"),
    "a name that leaves the folder": (lambda out: _manifest(out, name="../blend"), "no artifact is called"),
    "no function": (lambda out: _manifest(out, functions=[]), "for no function"),
    "a mixture": (lambda out: _manifest(out, targets=["sm_90a", "cpu"]), "mixture"),
    "lines that no source shows": (change(MANIFEST, '"lines": {', '"lines": {"1": "Trust me.",'), "not what follows"),
}  # fmt: skip


def _manifest(out: Path, **fields: object) -> None:
    data = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    (out / MANIFEST).write_text(json.dumps({**data, **fields}), encoding="utf-8")


@pytest.mark.parametrize("what", WRONG)
def test_what_follows_from_something_wrong_is_refused(built: Path, tmp_path: Path, what: str) -> None:
    edit, said = WRONG[what]
    out = tmp_path / "out"
    if what == "lines that no source shows":  # it would be left out of what is derived
        shutil.copytree(built, out)
        edit(out)
        mend(out)
    else:
        try:
            remade(built, out, edit)
        except ValueError:
            mend(out)
    found = refusal(out)
    assert any(said in each for each in found), found


def test_what_follows_from_the_same_is_the_same(built: Path, tmp_path: Path) -> None:
    assert artifact.verify(remade(built, tmp_path / "out", lambda out: None)) == artifact.verify(built)


def test_parameters_of_a_kernel_in_another_order_are_so_wherever_it_is_launched(built: Path, tmp_path: Path) -> None:
    """That is another program for the device, and a right one: arguments are found by what they are."""
    swapped = change(PLAN, "    buffer x: f32[n]\n    buffer y: f32[n]\n", "    buffer y: f32[n]\n    buffer x: f32[n]\n")
    out = remade(built, tmp_path / "out", swapped)
    artifact.verify(out)
    assert re.search(r"blend_z\(.* y, .* x, .* z, ", (out / "src/blend.cu").read_text())
    assert "{(void *)&a, (void *)&y, (void *)&x, (void *)&z, (void *)&n}" in (out / "src/blend.c").read_text()
