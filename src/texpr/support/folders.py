"""Folders that are written beside their place, and renamed."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def beside(folder: Path, files: Mapping[str, bytes]) -> Generator[Path]:
    """A folder with these files, by their paths, on the disk of `folder`, for a caller who renames it. Raises OSError.

    It is in a folder of its own, where the caller may put what was there before; at the end that is removed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    around = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        made = around / "new"
        for path, data in files.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_bytes(data)
        yield made
    finally:
        shutil.rmtree(around, ignore_errors=True)
