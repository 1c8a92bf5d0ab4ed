"""Artifacts of running values are proved again by what they say of chunks, and by nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.artifact.forging import mend

from texpr import artifact, delivery, driver
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain

from .test_again import NoCompilers

TEXT = """
combine larger(a: i32, b: i32): i32 identity 0 { return select(abs(a) > abs(b), a, select(abs(b) > abs(a), b, max(a, b))) }

fn rows(X: i32[M, N]): i32[M, N] {
    new Y: i32[M, N]
    par M |i| {
        new top: i32 = 0
        seq N |j| scan(top) {
            top larger= X[i, j]
            Y[i, j] = top
        }
    }
    return Y
}
"""


@pytest.fixture(scope="module")
def built(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of rows of running values."""
    folder = tmp_path_factory.mktemp("scans") / "out"
    parts = delivery.parts(driver.parse(TEXT).functions, ("sm_90a",), None, "auto")
    artifact.build(NoCompilers(tools), "scans", parts, folder)
    return folder


def test_it_is_verified(built: Path) -> None:
    found = artifact.verify(built)
    assert not artifact.open_plans(found.proofs)


@pytest.mark.parametrize("other", ["j, 2816, 22,", "i, 2816, 11,"])
def test_another_claim_is_refused(built: Path, tmp_path: Path, other: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(built, out)
    (file,) = out.rglob("proof/sm_90a/rows.te")
    text = file.read_text(encoding="utf-8")
    assert "#scanned(j, 2816, 11," in text
    file.write_text(text.replace("#scanned(j, 2816, 11,", f"#scanned({other}"), encoding="utf-8")
    mend(out)
    with pytest.raises(TexprError) as refused:
        artifact.verify(out)
    assert any("not proved to be as it was written" in note.text for note in refused.value.diagnostics[0].notes)
