"""Atomic replacement of a folder."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping
from pathlib import Path

from texpr.support.diagnostic import TexprError, error
from texpr.support.folders import beside

SUMS = "SHA256SUMS"
"""Hash and path of every other file, as `sha256sum -c` reads them."""

MANIFEST = "manifest.json"

BOM = "sbom.cdx.json"
"""The bill of materials: the tools that made the artifact, and the hashes of its files."""

TUNED = "tune.json"
"""What a search found, if a build was given it."""

SIGNATURE = "SHA256SUMS.sig"
"""The signature of SHA256SUMS, if the artifact is signed."""


def sums(files: Mapping[str, bytes]) -> bytes:
    """The text of SHA256SUMS."""
    lines = (f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(files.items()))
    return "".join(lines).encode()


def listed(directory: Path) -> dict[str, str]:
    """Hash by path, from SHA256SUMS in `directory`. Raises OSError, ValueError."""
    return hashes((directory / SUMS).read_bytes())


def hashes(data: bytes) -> dict[str, str]:
    """Hash by path, from the text of a SHA256SUMS. Raises ValueError."""
    *lines, rest = data.decode("utf-8").split("\n")
    if rest:
        raise ValueError(f"{SUMS} does not end with a line")
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def publish(directory: Path, files: Mapping[str, bytes]) -> None:
    """Makes `directory` contain exactly `files` or, on an error, what it contained before.

    Replaces an artifact (a folder whose every file its SHA256SUMS lists) or an empty folder. Raises `TexprError`: something
    else is there (E0810), it cannot be written (E0811), the disk is full (E0812).
    """
    directory = Path(directory)
    refuse_foreign(directory)
    try:
        with beside(directory, files) as new:
            _swap(directory, new, new.parent / "old")
    except OSError as reason:
        raise unwritable(directory, reason) from reason


def refuse_foreign(directory: Path) -> None:
    """Raises `TexprError` E0810 where `directory` contains files that no build wrote. Deletes nothing."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        raise error("E0810", None, f"{directory} is there, and is not a folder", help="choose another folder")
    try:
        there = {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()}
        known = {SUMS, SIGNATURE, *listed(directory)} if there else set[str]()
    except (OSError, ValueError):
        told = f"{directory} is there, and is not an artifact"
        raise error("E0810", None, told, help="choose another folder, or empty this one") from None
    strange = sorted(there - known)
    if strange:
        told = f"{directory} holds what no build put there: {', '.join(strange[:3])}{', …' if len(strange) > 3 else ''}"
        raise error("E0810", None, told, help="move it away, or choose another folder")


def unwritable(directory: Path, reason: OSError) -> TexprError:
    """The error for a folder that cannot be written."""
    if reason.errno in (errno.ENOSPC, errno.EDQUOT):
        return error(
            "E0812", None, f"the disk is full: {directory} was not written", help="free space; nothing was left behind"
        )
    told = f"{directory} cannot be written: {reason.strerror}"
    return error("E0811", None, told, help="choose a folder in which you may write")


def _swap(directory: Path, new: Path, old: Path) -> None:
    """Renames `new` to `directory`, and the previous `directory`, if any, to `old`."""
    if not directory.exists():
        new.rename(directory)
        return
    directory.rename(old)
    try:
        new.rename(directory)
    except OSError:
        old.rename(directory)
        raise
