"""Every way in which a file can be wrong has its code, and nothing is left half written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import IO

import pytest

from texpr import sources
from texpr.cli.files import output_folder, write_whole
from texpr.sources import read_source
from texpr.support.diagnostic import TexprError


def code_of(fault: TexprError) -> str:
    return fault.diagnostics[0].code


def test_a_program_is_read_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.te"
    path.write_bytes("\ufefffn f() {} -- é\n".encode())
    assert read_source(path).text == "fn f() {} -- é\n"
    assert read_source(path).name == str(path)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(TexprError) as caught:
        read_source(tmp_path / "none.te")
    assert code_of(caught.value) == "E0850"


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(TexprError) as caught:
        read_source(tmp_path)
    assert code_of(caught.value) == "E0851"


@pytest.mark.parametrize("name", ["x/y.te", "nul\0.te", "n" * 300])
def test_unreadable(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("a file, not a folder", encoding="utf-8")
    with pytest.raises(TexprError) as caught:
        read_source(tmp_path / name)
    assert code_of(caught.value) == "E0852"


def test_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TexprError) as caught:
        read_source(tmp_path / "a.te")
    assert code_of(caught.value) == "E0852"
    assert "Permission denied" in caught.value.diagnostics[0].message


def test_not_utf8_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.te"
    path.write_bytes(b"fn f() {}\n-- caf\xe9\n")
    with pytest.raises(TexprError) as caught:
        read_source(path)
    found = caught.value.diagnostics[0]
    assert (found.code, found.message) == ("E0853", "byte 16 (0xe9) is not UTF-8")
    assert str(found.span).endswith("a.te:2:7")


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGEST_SOURCE", 100)
    path = tmp_path / "a.te"
    path.write_bytes(b"-" * 100)
    assert len(read_source(path).text) == 100
    path.write_bytes(b"-" * 101)
    with pytest.raises(TexprError) as caught:
        read_source(path)
    assert code_of(caught.value) == "E0854"


def test_output_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("", encoding="utf-8")
    with pytest.raises(TexprError) as caught:
        output_folder(tmp_path / "x" / "y")
    assert code_of(caught.value) == "E0855"


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    path.write_bytes(b"before")

    def write(file: IO[bytes]) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(TexprError) as caught:
        write_whole(path, write)
    assert code_of(caught.value) == "E0855"
    assert "nothing is left half written" in caught.value.diagnostics[0].message
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_whole_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    path.write_bytes(b"before")
    write_whole(path, lambda file: file.write(b"after"))
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_permissions_that_the_user_chose(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", lambda file: file.write(b""))
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
