"""Reading an untrusted folder: plain files only, within the limits of artifacts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from texpr.support.diagnostic import Note, TexprError, error
from texpr.support.record import Record, field

MOST_FILES = 20_000
"""The most files and folders of an artifact."""

LARGEST_FILE = 256 << 20
"""The most bytes of a file."""

LARGEST = 1 << 30
"""The most bytes of all files."""


class Folder(Record):
    """The contents of a folder: the bytes of each file, by path; its folders; and entries that are neither, described."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    folders: set[str] = field(default_factory=set[str])
    strange: list[str] = field(default_factory=list[str])


def read_folder(directory: Path) -> Folder:
    """Everything in `directory`. Links are not followed, and nothing but plain files is opened.

    Raises `TexprError`: it cannot be read (E0820); it exceeds the limits (E0822).
    """
    found, left = Folder(), LARGEST
    try:
        for entry, path in _entries(directory, ""):
            if len(found.files) + len(found.folders) >= MOST_FILES:
                raise too_much(directory, f"it has more than {MOST_FILES} files")
            if entry.is_dir(follow_symlinks=False):
                found.folders.add(path)
            elif entry.is_file(follow_symlinks=False):
                data = _bytes(entry.path, min(left, LARGEST_FILE))
                if data is None:
                    most = LARGEST if left < LARGEST_FILE else LARGEST_FILE
                    raise too_much(directory, f"{printable(path)} makes it larger than {most >> 20} MiB")
                found.files[path] = data
                left -= len(data)
            else:
                found.strange.append(f"{_kind(entry)}: {printable(path)}")
    except OSError as reason:
        told = f"{directory} is not an artifact: {reason.strerror or reason}"
        raise error("E0820", None, told) from reason
    return found


def too_much(directory: Path, why: str) -> TexprError:
    """The error for a folder that exceeds a limit."""
    return error("E0822", None, f"{directory} is more than an artifact is: {why}", help="no build makes such a folder")


def printable(path: str) -> str:
    """A path as printable text: file names need not be UTF-8."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")


def notes(found: list[str]) -> list[Note]:
    """The errors as notes, of which the first few are shown."""
    most = 50
    more = [Note(f"and {len(found) - most} more")] if len(found) > most else []
    return [*map(Note, found[:most]), *more]


def _entries(directory: Path | str, below: str, depth: int = 0) -> Iterator[tuple[os.DirEntry[str], str]]:
    if depth > 32:
        raise OSError(0, "folders lie too deep in each other")
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = f"{below}{entry.name}"
            yield entry, path
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path, f"{path}/", depth + 1)


def _bytes(path: str, most: int) -> bytes | None:
    """The bytes of a plain file, None if there are too many. Raises OSError, also if it is no plain file any more."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(0, "what was a file is none")
        if state.st_size > most:
            return None
        data = file.read(most + 1)
    return data if len(data) <= most else None


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "a link"
    mode = entry.stat(follow_symlinks=False).st_mode
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a device"), (stat.S_ISCHR, "a device"))
    return next((kind for matches, kind in kinds if matches(mode)), "no file")
