"""The bill of materials: what the standard asks of it, what it says of an artifact, and that nothing else is accepted."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.artifact.forging import files_of, forged, put, refusal

import texpr
from texpr import __version__, artifact
from texpr.artifact.place import BOM, SUMS, sums
from texpr.artifact.texts.bom import serial

TEXT = "fn twice(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = 2.0 * x[i] } return y }"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cpu") / "out"
    texpr.build(texpr.parse(TEXT)["twice"], "cpu", directory)
    return directory


def bill(directory: Path) -> dict[str, Any]:
    return json.loads((directory / BOM).read_text(encoding="utf-8"))


def test_it_is_of_the_standard_s_form(built: Path) -> None:
    """What bom-1.6.schema.json asks of the parts that there are."""
    found = bill(built)
    assert found["bomFormat"] == "CycloneDX" and found["specVersion"] == "1.6" and found["version"] == 1
    assert re.fullmatch("urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", found["serialNumber"])
    assert found.keys() == {"bomFormat", "specVersion", "version", "serialNumber", "metadata", "components", "dependencies"}
    main, components = found["metadata"]["component"], found["components"]
    refs = [each["bom-ref"] for each in (main, *components)]
    assert len(set(refs)) == len(refs) and {ref for each in found["dependencies"] for ref in each["dependsOn"]} <= set(refs)
    for each in (main, *components, *found["metadata"]["tools"]["components"]):
        assert each["type"] in ("application", "library", "file") and each["name"]
        for digest in each.get("hashes", ()):
            assert digest["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", digest["content"])


def test_it_says_what_went_in(built: Path) -> None:
    found, manifest = bill(built), json.loads((built / "manifest.json").read_text(encoding="utf-8"))
    tools = {each["name"]: each["version"] for each in found["metadata"]["tools"]["components"]}
    assert tools == {"texpr": __version__, "host": manifest["tools"]["host"].splitlines()[0]}
    assert found["metadata"]["component"]["name"] == "texpr_twice"
    libraries = [each["name"] for each in found["components"] if each["type"] == "library"]
    assert libraries == manifest["libraries"]


def test_every_other_file_is_in_it_with_its_hash(built: Path) -> None:
    """By the bytes that lie there."""
    listed = {each["name"]: each["hashes"][0]["content"] for each in bill(built)["components"] if each["type"] == "file"}
    there = {path: hashlib.sha256(data).hexdigest() for path, data in files_of(built).items() if path != BOM}
    assert listed == there and len(there) > 20


def test_another_content_has_another_number(built: Path) -> None:
    found = bill(built)
    other = json.loads(serial(found | {"version": 2}))
    assert other["serialNumber"] != found["serialNumber"]
    assert serial(found).encode() == (built / BOM).read_bytes()


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a hash": lambda found: found["components"][-1]["hashes"][0].update(content="0" * 64),
    "a file less": lambda found: found["components"].pop(),
    "another version": lambda found: found["metadata"]["tools"]["components"][0].update(version="9.9"),
    "a library more": lambda found: found["components"].insert(0, {"type": "library", "bom-ref": "x", "name": "x"}),
    "another number": lambda found: found.update(serialNumber="urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_bill_is_refused(built: Path, tmp_path: Path, name: str) -> None:
    """With hashes that fit."""
    copy = tmp_path / "copy"
    shutil.copytree(built, copy)
    found = bill(copy)
    EDITS[name](found)
    (copy / BOM).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (copy / SUMS).write_bytes(sums(files_of(copy)))
    assert refusal(copy) == [f"not what follows from its plans: {BOM}"]


def test_an_artifact_without_a_bill_is_refused(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(built, copy)
    assert refusal(put(copy, {BOM: None})) == [f"missing: {BOM}"]


def test_a_binary_that_is_not_in_the_bill_is_refused(built: Path, tmp_path: Path) -> None:
    """Whoever changes a library has to change the bill, too: then only the compilers can tell."""
    copy, path = tmp_path / "copy", "lib/libtexpr_twice.a"
    shutil.copytree(built, copy)
    (copy / path).write_bytes(b"another")
    (copy / SUMS).write_bytes(sums(files_of(copy)))
    assert refusal(copy) == [f"not what follows from its plans: {BOM}"]

    def edit(directory: Path) -> None:
        (directory / path).write_bytes(b"another")

    assert path in artifact.verify(forged(built, tmp_path / "forged", edit)).not_proved
