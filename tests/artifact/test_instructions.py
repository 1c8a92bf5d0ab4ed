"""Instructions of lanes in artifacts: built, verified; what is edited in them is refused, the hashes made to fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.instr.texts import CASES

import texpr
from texpr import artifact
from texpr.support.diagnostic import TexprError

from .forging import mend

TEXT = CASES["registers"].text


@pytest.fixture(scope="module", params=["sm_80", "sm_90a"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp(f"instr_{request.param}") / "out"
    texpr.build(texpr.parse(TEXT)["product"], request.param, directory)
    return directory


def test_it_is_verified(built: Path) -> None:
    assert artifact.verify(built) is not None


EDITS = {
    "template": (".f32.bf16.bf16.f32 {", ".f32.f16.f16.f32 {"),
    "operands of a template": ("{c}, {a}, {b}, {c}", "{c}, {b}, {a}, {c}"),
    "fragment": ("((4,8),(2,2)) : ((2@0,1@1),(1@0,8@0))", "((4,8),(2,2)) : ((2@0,1@1),(8@0,1@0))"),
    "meaning": ("f32", "f64"),
}


# The CUDA source has registers where plan and program have operands, and no fragments.
PLACES = [(name, kind) for kind in (".plan", ".te") for name in EDITS] + [("template", ".cu"), ("meaning", ".cu")]


@pytest.mark.parametrize(("name", "kind"), PLACES)
def test_what_is_edited_in_one_text_is_refused(built: Path, name: str, kind: str) -> None:
    old, new = EDITS[name]
    path = next(each for each in built.rglob(f"*{kind}") if "emulator" not in each.parts)
    text = path.read_text(encoding="utf-8")
    assert old in text
    try:
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(TexprError):
            artifact.verify(mend(built))
    finally:
        path.write_text(text, encoding="utf-8")
        mend(built)
    assert artifact.verify(built) is not None


def test_who_has_the_source_sees_another_template(built: Path) -> None:
    """Plan, program and source say one thing; only who knows what was written can say that it is another one."""
    other = TEXT.replace(".f32.bf16.bf16.f32 {", ".f32.f16.f16.f32 {")
    with pytest.raises(TexprError):
        artifact.verify(built, source=lambda name, sizes: texpr.parse(other)[name])
    assert artifact.verify(built, source=lambda name, sizes: texpr.parse(TEXT)[name]) is not None
