"""What is said where an operation on layouts has no answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class LayoutError(Exception):
    """An operation is refused: its condition fails, or is not proved.

    `operation` names it, `reason` says what fails, `mode` is the path of the mode at fault (of the second layout, where there
    are two), and `help` says what would do.
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
    """Refusals of the operations that another one is made of are its own."""
    try:
        yield
    except LayoutError as refused:
        raise LayoutError(operation, refused.reason, mode=refused.mode, help=refused.help) from None


@contextmanager
def in_mode(place: int) -> Generator[None]:
    """Refusals from inside carry that they arose in mode `place`."""
    try:
        yield
    except LayoutError as refused:
        path = (place, *refused.mode)
        raise LayoutError(refused.operation, refused.reason, mode=path, help=refused.help) from None
