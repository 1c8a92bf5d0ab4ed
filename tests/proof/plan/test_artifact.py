"""An artifact carries its proof, and `verify` makes it again: even where the hashes were made to fit."""

import shutil
from pathlib import Path

import pytest
from tests.artifact.forging import forged, swap

import texpr
from texpr import artifact
from texpr.support.diagnostic import Limitation, TexprError

TEXT = "fn twice(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = x[i] + x[i] } return y }"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("artifact") / "out"
    texpr.build(texpr.parse(TEXT)["twice"], "cpu", directory)
    return directory


def changed(built: Path, to: Path, file: str, old: str, new: str) -> Path:
    """A copy with one text changed in one file, the hashes renewed."""
    return forged(built, to / "out", lambda directory: swap(directory, file, old, new))


def test_the_proof_is_made_again(built: Path) -> None:
    assert artifact.verify(built).name == "twice"
    assert '"refused": 0' in (built / "proof.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new", "found"),
    [
        ("proof/cpu/twice.plan", "(x[i] + x[i])", "(x[i] - x[i])", "not what follows from its plans"),
        ("proof/cpu/twice.te", "x[i] + x[i]", "x[i] * x[i]", "not proved as it was"),
        ("proof/cpu/twice.plan", "i_block + 4096, n)", "i_block + 4095, n)", "not what follows from its plans"),
        ("proof.json", '"undecided": 0', '"undecided": 1', "not proved as it was"),
        ("proof/cpu/twice.plan", "kernel", "colonel", "cannot be read"),
    ],
)
def test_a_change_is_found_though_the_hashes_fit(
    built: Path, tmp_path: Path, file: str, old: str, new: str, found: str
) -> None:
    with pytest.raises(TexprError) as refused:
        artifact.verify(changed(built, tmp_path / "out", file, old, new))
    assert any(found in note.text for note in refused.value.diagnostics[0].notes)


def test_a_source_that_is_not_the_print_of_the_plan_is_found(built: Path, tmp_path: Path) -> None:
    source = next(str(p.relative_to(built)) for p in (built / "src").glob("twice*.c*"))
    with pytest.raises(TexprError) as refused:
        artifact.verify(changed(built, tmp_path / "out", source, "x[i] + x[i];", "x[i] - x[i];"))
    assert any("not what follows from its plans: src/twice.cpp" in note.text for note in refused.value.diagnostics[0].notes)


def test_any_flipped_byte_of_any_file_is_found(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "out"
    shutil.copytree(built, copy)
    assert artifact.verify(copy).name == "twice"
    for file in sorted(p for p in copy.rglob("*") if p.is_file()):
        data = file.read_bytes()
        for at in sorted({0, len(data) // 3, len(data) // 2, len(data) - 1}) if data else ():
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises((TexprError, Limitation)):
                artifact.verify(copy)
        file.write_bytes(data)
    assert artifact.verify(copy).name == "twice"
