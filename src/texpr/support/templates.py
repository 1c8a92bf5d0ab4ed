"""Texts with placeholders `@NAME@`, kept as files of a package."""

from __future__ import annotations

import re
from importlib.resources import files


def filled(folder: str, name: str, **values: str) -> str:
    """The text `name` in the folder `package.folder`, every `@KEY@` replaced. Raises KeyError for a key without a value."""
    package, _, inside = folder.rpartition(".")
    text = (files(package) / inside / name).read_text(encoding="utf-8")
    return re.sub("@([A-Z_]+)@", lambda found: values[found.group(1)], text)
