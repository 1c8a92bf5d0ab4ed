"""Files of an artifact that rarely change: texts with placeholders `@NAME@`."""

from __future__ import annotations

import re
from importlib.resources import files


def template(name: str, **values: str) -> str:
    """The text of a template, with every `@KEY@` replaced. Raises KeyError for a key without a value."""
    text = (files("texpr.artifact.texts") / "templates" / name).read_text(encoding="utf-8")
    return re.sub("@([A-Z_]+)@", lambda found: values[found.group(1)], text)
