"""What somebody does to an artifact who can edit every file of it: hashes are made to fit again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from texpr import artifact
from texpr.artifact.place import BOM, SIGNATURE, SUMS, sums
from texpr.artifact.texts.bom import serial
from texpr.support.diagnostic import TexprError

Edit = Callable[[Path], None]


def files_of(directory: Path) -> dict[str, bytes]:
    """Every plain file but the hashes and their signature, by path."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found if path.name not in (SUMS, SIGNATURE)}


def mend(directory: Path) -> Path:
    """Hashes of what is there now; in the bill of materials, too, unless that was edited itself."""
    with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
        path = directory / BOM
        bill = json.loads(path.read_bytes())
        others = [each for each in bill["components"] if each["type"] != "file"]
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files_of(directory).items() if name != BOM}
        listed = [_file(name, digest) for name, digest in sorted(hashes.items())]
        if not path.is_symlink() and path.read_text(encoding="utf-8") == serial(bill):
            path.write_text(serial(bill | {"components": others + listed}), encoding="utf-8")
    (directory / SUMS).write_bytes(sums(files_of(directory)))
    return directory


def _file(name: str, digest: str) -> dict[str, object]:
    hashes = [{"alg": "SHA-256", "content": digest}]
    return {"type": "file", "bom-ref": f"file:{name}", "name": name, "hashes": hashes}


def forged(built: Path, to: Path, edit: Edit) -> Path:
    """A copy that was edited, with hashes that fit."""
    shutil.copytree(built, to, symlinks=True)
    edit(to)
    return mend(to)


def put(directory: Path, texts: Mapping[str, str | bytes | None]) -> Path:
    """Files by path, written or deleted, the hashes made to fit."""
    for path, text in texts.items():
        file = directory / path
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
    return mend(directory)


def swap(directory: Path, file: str, old: str, new: str, count: int = 1) -> None:
    """One text for another in one file."""
    path = directory / file
    text = path.read_text(encoding="utf-8")
    assert old in text, (file, old)
    path.write_text(text.replace(old, new, count), encoding="utf-8")


def refusal(directory: Path, code: str = "E0821", **how: object) -> list[str]:
    """What `verify` says is wrong."""
    with pytest.raises(TexprError) as refused:
        artifact.verify(directory, **how)  # pyright: ignore[reportArgumentType]
    (found,) = refused.value.diagnostics
    assert found.code == code, found
    return [note.text for note in found.notes]


def edits(path: str, data: bytes) -> Iterator[tuple[str, Edit]]:
    """Edits of one file, each of another kind."""

    def write(new: bytes) -> Edit:
        return lambda directory: (directory / path).write_bytes(new) and None

    middle = len(data) // 2
    yield "a bit", write(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    yield "cut short", write(data[:middle])
    yield "a byte more", write(data + b"\n")
    yield "deleted", lambda directory: (directory / path).unlink()
    yield "a link", lambda directory: link(directory, path)
    beside = Path(path).with_name(f"decoy_{Path(path).name}")
    yield "another beside it", lambda directory: (directory / beside).write_bytes(data) and None
    lines = data.split(b"\n")
    if len(lines) > 3:
        at = len(lines) // 2
        yield "a line removed", write(b"\n".join([*lines[:at], *lines[at + 1 :]]))
        yield "a line doubled", write(b"\n".join([*lines[:at], lines[at], *lines[at:]]))
        pair = next((i for i in [*range(at, len(lines) - 1), *range(at)] if lines[i] != lines[i + 1]), None)
        if pair is not None:
            yield "lines swapped", write(b"\n".join([*lines[:pair], lines[pair + 1], lines[pair], *lines[pair + 2 :]]))


def link(directory: Path, path: str) -> None:
    """The file, elsewhere, and a link to it."""
    away = directory.parent / f"away_{Path(path).name}"
    away.write_bytes((directory / path).read_bytes())
    (directory / path).unlink()
    os.symlink(away, directory / path)
