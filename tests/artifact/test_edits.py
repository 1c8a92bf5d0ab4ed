"""Every file of an artifact, edited in many ways, the hashes made to fit each time: `verify` takes none for what was built.

What only compilers could tell is named by `verify` as not proved; where they are run again, it is found, too.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import texpr
from texpr import artifact
from texpr.artifact.check.verify import CLAIMS
from texpr.artifact.record import RESOURCES
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain

from .forging import edits, files_of, mend

TEXT = """
fn scaled(x: f32[n, 40]): f32[n, 40] {
    new y: f32[n, 40]
    par n |i| { par 40 |j| { y[i, j] = 2.0 * x[i, 39 - j] } }
    return y
}
schedule scaled {
    split(i, 4) -> (io, ii)
    reorder(io, j, ii)
}
"""


@pytest.fixture(scope="module", params=["cpu", "sm_90a"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp(f"edited_{request.param}") / "out"
    function = texpr.parse(TEXT)["scaled"]
    texpr.build(function, request.param, directory, schedule=function.schedules[0])
    return directory


def accepted(directory: Path, tools: Toolchain | None = None) -> artifact.Verified | None:
    """What `verify` finds, None where it refuses."""
    try:
        return artifact.verify(directory, rebuild=tools)
    except TexprError as why:
        assert {found.code for found in why.diagnostics} <= {"E0820", "E0821"}
        return None


def test_no_edit_is_taken_for_what_was_built(built: Path, tmp_path: Path) -> None:
    found = accepted(built)
    assert found is not None
    unproved = {*found.not_proved}
    told: Counter[bool] = Counter()
    for at, (path, data) in enumerate(files_of(built).items()):
        kinds = [*edits(path, data)]
        for kind, edit in kinds[at % 3 :: 3] if path.startswith("src/emulator/") else kinds:
            edit(built)
            taken = accepted(mend(built))
            told[taken is not None] += 1
            assert taken is None or path in unproved or (path == "manifest.json" and is_claim(data, built)), (path, kind)
            for stray in (path, str(Path(path).with_name(f"decoy_{Path(path).name}"))):
                (built / stray).unlink(missing_ok=True)
            (built / path).write_bytes(data)
    assert told[False] > 200 and told[True] < 60, told
    assert accepted(mend(built)) == found


def is_claim(data: bytes, directory: Path) -> bool:
    """Whether an edited manifest differs in what compilers said alone, which is told as not proved."""

    def bare(text: bytes) -> object:
        manifest = json.loads(text)
        kernels = [k for f in manifest["functions"] for each in f["targets"].values() for k in each]
        for each, names in ((manifest, ("tools", "flags", "consts")), *((kernel, RESOURCES) for kernel in kernels)):
            for name in names:
                each.pop(name, None)
        return manifest

    return bare(data) == bare((directory / "manifest.json").read_bytes())


def test_what_compilers_made_is_found_where_they_are_run(built: Path, tools: Toolchain) -> None:
    found = accepted(built, tools)
    assert found is not None and found.not_proved == ()
    first = accepted(built)
    assert first is not None
    for path in (each for each in first.not_proved if each != CLAIMS):
        data = (built / path).read_bytes()
        (built / path).write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
        assert accepted(mend(built), tools) is None, path
        (built / path).write_bytes(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [("-O3", "-O1"), ("g++ ", "g-- "), ('"registers": ', '"registers": 1'), ('"fatbin": true', '"fatbin": false')],
)
def test_what_compilers_said_is_found_where_they_are_run(built: Path, tools: Toolchain, old: str, new: str) -> None:
    manifest = built / "manifest.json"
    text = manifest.read_text(encoding="utf-8")
    if old not in text:
        assert "registers" in old or "fatbin" in old
        return
    manifest.write_text(text.replace(old, new, 1), encoding="utf-8")
    if "fatbin" in old:
        assert accepted(mend(built)) is None
    assert accepted(mend(built), tools) is None
    manifest.write_text(text, encoding="utf-8")
    mend(built)
