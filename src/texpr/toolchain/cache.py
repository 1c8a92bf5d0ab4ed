"""A cache of built files, by content: the same sources, flags and compiler give the same files without another build.

An entry is a folder, written beside its final path and renamed, so that readers see all of it or nothing and concurrent
writers are safe. Each entry lists the hashes of its files; a damaged one is rebuilt.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from texpr.support.record import Record

INDEX = "index.json"
LIMIT = 2 << 30
"""The size limit in bytes; least recently used entries are evicted first."""


SHARDS = 1 << 8
"""Folders of entries, by the first two digits of their names: hashes, so that each has about as many bytes as any other."""


class Entry(Record):
    """The files of one build: contents by name, and the folder of the cache (None if nothing can be cached)."""

    files: Mapping[str, bytes]
    folder: Path | None


def key(parts: Iterable[str | bytes]) -> str:
    """The name of an entry: a hash of its parts, each prefixed by its length, so that the encoding is injective."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class Cache(Record):
    """Entries below `root`, which is created on first use. An unwritable root disables the cache, without an error."""

    root: Path
    limit: int = LIMIT

    def get(self, name: str) -> Entry | None:
        """The entry `name`, or None if it is missing or damaged."""
        folder = self._place(name)
        try:
            index = json.loads((folder / INDEX).read_text())
            files = {file: (folder / file).read_bytes() for file in index}
            os.utime(folder)
        except (OSError, ValueError):
            return None
        if any(hashlib.sha256(data).hexdigest() != index[file] for file, data in files.items()):
            return None
        return Entry(files, folder)

    def put(self, name: str, files: Mapping[str, bytes]) -> Entry:
        """Stores `files` as the entry `name`, replacing a damaged one. Returns the stored entry."""
        place = self._place(name)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            beside = Path(tempfile.mkdtemp(prefix=f".{name[:8]}-", dir=place.parent))
        except OSError:
            return Entry(dict(files), None)
        try:
            for file, data in files.items():
                (beside / file).write_bytes(data)
            index = {file: hashlib.sha256(data).hexdigest() for file, data in sorted(files.items())}
            (beside / INDEX).write_text(json.dumps(index))
            try:
                beside.rename(place)
            except OSError:
                if self.get(name) is None:
                    _replace(place, beside)
        except OSError:
            pass  # a full or read-only disk: the build is still good
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        found = self.get(name)
        if found is None:
            return Entry(dict(files), None)
        if SHARDS * sum(size for _, size, _ in _entries(self.root, name[:2])) > self.limit // 2:
            self.prune()  # all entries are looked at only where those of one folder say that there may be too many
        return found

    def through(self, name: str, build: Callable[[], Mapping[str, bytes]]) -> Entry:
        """The entry `name`, built if it is missing."""
        return self.get(name) or self.put(name, build())

    def prune(self) -> None:
        """Evicts the least recently used entries until the rest are below the limit."""
        entries = sorted(_entries(self.root), key=lambda entry: entry[0], reverse=True)
        total = 0
        for _, size, folder in entries:
            total += size
            if total > self.limit:
                shutil.rmtree(folder, ignore_errors=True)

    def _place(self, name: str) -> Path:
        return self.root / name[:2] / name


def _replace(place: Path, beside: Path) -> None:
    """Replaces a damaged entry by the folder `beside`, moving the former away first."""
    grave = Path(tempfile.mkdtemp(prefix=".old-", dir=place.parent))
    try:
        place.rename(grave / "entry")
        beside.rename(place)
    finally:
        shutil.rmtree(grave, ignore_errors=True)


def _entries(root: Path, shard: str = "??") -> list[tuple[float, int, Path]]:
    """Time of last use, bytes, and folder of each entry; entries that vanish meanwhile are skipped."""
    found: list[tuple[float, int, Path]] = []
    for index in root.glob(f"{shard}/*/{INDEX}"):
        folder = index.parent
        try:
            size = sum(file.stat().st_size for file in folder.iterdir())
            found.append((folder.stat().st_mtime, size, folder))
        except OSError:
            continue
    return found
