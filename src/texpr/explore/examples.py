"""The example programs of the menu: those of the wheel, or, in a checkout, those of its folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_SHIPPED = Path(__file__).parent / "examples"
_CHECKOUT = Path(__file__).parents[3] / "examples"

FOLDERS = ("", "scheduled", "hopper", "tma")


@cache
def _found() -> dict[str, Path]:
    root = _SHIPPED if _SHIPPED.is_dir() else _CHECKOUT
    paths = (path for folder in FOLDERS for path in sorted((root / folder).glob("*.te")))
    return {path.relative_to(root).as_posix(): path for path in paths}


def names() -> tuple[str, ...]:
    """The name of each, with its folder."""
    return tuple(_found())


def text_of(name: str) -> str | None:
    """The text of one; None for a name that is not among them."""
    path = _found().get(name)
    return None if path is None else path.read_text(encoding="utf-8")
