"""The error of operations on layouts."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class LayoutError(Exception):
    """An operation is refused: its condition fails, or is not proved.

    `operation` names it, `reason` says which condition fails, `mode` is the path of the mode at fault (of the second layout,
    where there are two), and `help` proposes a remedy.
    """

    def __init__(self, operation: str, reason: str, *, mode: tuple[int, ...] = (), help: str | None = None):
        self.operation, self.reason, self.mode, self.help = operation, reason, mode, help
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f" (mode {'.'.join(map(str, self.mode))})" if self.mode else ""
        advice = f"; {self.help}" if self.help else ""
        return f"{self.operation}{where}: {self.reason}{advice}"


@contextmanager
def during(operation: str) -> Generator[None]:
    """Context manager: a LayoutError raised inside is attributed to `operation`."""
    try:
        yield
    except LayoutError as refused:
        raise LayoutError(operation, refused.reason, mode=refused.mode, help=refused.help) from None


@contextmanager
def in_mode(place: int) -> Generator[None]:
    """Context manager: prefixes the mode of a LayoutError raised inside by `place`."""
    try:
        yield
    except LayoutError as refused:
        path = (place, *refused.mode)
        raise LayoutError(refused.operation, refused.reason, mode=path, help=refused.help) from None
