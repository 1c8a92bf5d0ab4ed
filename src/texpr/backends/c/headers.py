"""The headers that all emitted code shares."""

from __future__ import annotations

from importlib.resources import files

_NAMES = ("texpr_numeric.h", "texpr_math.h")


def numeric_headers() -> dict[str, str]:
    """File name and text of the headers with scalar types and mathematics, for every C-like backend."""
    folder = files("texpr.backends.c")
    return {name: (folder / name).read_text(encoding="utf-8") for name in _NAMES}
