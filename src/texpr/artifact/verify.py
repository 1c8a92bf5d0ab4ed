"""`texpr verify DIR`: is every file of an artifact the one that was built, and are its plans proved again?"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, cast

from texpr import __version__
from texpr.artifact.manifest import FORMAT
from texpr.artifact.place import MANIFEST, SUMS, listed
from texpr.artifact.recheck import recheck
from texpr.artifact.tools import Share, in_turn
from texpr.support.diagnostic import Note, error


def verify(directory: Path, share: Share = in_turn) -> dict[str, Any]:
    """The manifest of an artifact whose files are those that SHA256SUMS lists, and whose plans are proved as they were.

    `share` says who proves. Raises `TexprError`: not an artifact (E0820), or files that are missing, changed or added, or a
    proof that fails (E0821).
    """
    try:
        known = listed(directory)
        read: object = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        raise error("E0820", None, f"{directory} is not an artifact: it has no readable {SUMS} and {MANIFEST}") from reason
    manifest = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    builder = manifest.get("texpr")
    if manifest.get("format") != FORMAT:
        said = f"{directory} has a manifest of the format {manifest.get('format')!r}, not {FORMAT!r}"
        other = "build it again" if builder is None else f"build it again, or verify it with texpr {builder}, which built it"
        raise error("E0820", None, said, help=other)
    there = {str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir()} - {SUMS}
    wrong = [Note(f"missing: {path}") for path in sorted(known.keys() - there)]
    wrong += [Note(f"not listed: {path}") for path in sorted(there - known.keys())]
    for path in sorted(known.keys() & there):
        if hashlib.sha256((directory / path).read_bytes()).hexdigest() != known[path]:
            wrong.append(Note(f"changed: {path}"))
    if not wrong:
        wrong = [Note(found) for found in recheck(directory, share)]
        if wrong and builder != __version__:
            wrong.append(Note(f"texpr {builder} built it; this is {__version__}, to which its tags may mean something else"))
    if wrong:
        raise error("E0821", None, f"{directory} is not as it was built", *wrong, help="build it again")
    return manifest
