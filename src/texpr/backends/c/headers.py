"""The headers that emitted code of all backends includes."""

from __future__ import annotations

from importlib.resources import files


def numeric_headers() -> dict[str, str]:
    """File name and text of the headers with scalar types, mathematics and vectors."""
    return _read("texpr_numeric.h", "texpr_math.h", "texpr_vector.h")


def check_headers() -> dict[str, str]:
    """File name and text of the header for argument checks (`texpr.backends.c.checks`)."""
    return _read("texpr_checks.h")


def _read(*names: str) -> dict[str, str]:
    folder = files("texpr.backends.c")
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}
