"""What an artifact says of the rounding of its sums, and that it says no more than its plans do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.schedule.test_mma import product

import texpr
from texpr import artifact

from .forging import forged, refusal, swap

TEXT = product(where="K % 16 == 0, N % 16 == 0")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp("rounding") / "out"
    texpr.build(texpr.parse(TEXT)["f"], "sm_80", directory)
    return directory


def test_the_manifest_names_the_bound(built: Path) -> None:
    (function,) = json.loads((built / "manifest.json").read_text(encoding="utf-8"))["functions"]
    bound = {"aligned": 24, "products": 8, "kept": 23, "nearest": False}
    assert function["rounding"] == {"sm_80": {"C": [{"instruction": "mma_m16n8k16_f32_bf16", "bound": bound}]}}
    assert artifact.verify(built) is not None


def test_other_functions_have_none(tmp_path: Path) -> None:
    texpr.build(texpr.parse(product("f32"))["f"], "cpu", tmp_path / "out")
    (function,) = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["functions"]
    assert "rounding" not in function


EDITS = {
    "the manifest alone": (("manifest.json", '"aligned": 24', '"aligned": 25'),),
    "the plan alone": (("proof/sm_80/*.plan", "aligned 24", "aligned 25"),),
    "the plan and the manifest": (
        ("proof/sm_80/*.plan", "aligned 24", "aligned 25"), ("manifest.json", '"aligned": 24', '"aligned": 25'),
    ),
    "all texts": (
        ("proof/sm_80/*.plan", "aligned 24", "aligned 25"), ("proof/sm_80/*.te", "aligned 24", "aligned 25"),
        ("manifest.json", '"aligned": 24', '"aligned": 25'),
    ),
    "one of two plans": (("proof/sm_80/f.plan", "aligned 24", "aligned 25"),),
    "the other of two plans": (("proof/sm_80/f.wide.plan", "aligned 24", "aligned 25"),),
    "no rounding": (("proof/sm_80/*.plan", '    rounding "aligned 24, products 8, truncated 23"\n', ""),),
    "a mark that the schedule did not keep to": (
        ("proof/sm_80/*written.te", "reduce(C)", "reduce(C) #ieee"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_what_is_edited_is_refused(built: Path, tmp_path: Path, name: str) -> None:
    def edit(out: Path) -> None:
        for pattern, old, new in EDITS[name]:
            for path in (each for each in out.glob(pattern) if old in each.read_text(encoding="utf-8")):
                swap(out, str(path.relative_to(out)), old, new, -1)

    said = refusal(forged(built, tmp_path / "out", edit))
    why = {"a mark that the schedule did not keep to": "not rounded as it was written", "all texts": "does not round like that"}
    assert any(why.get(name, "") in each for each in said)
