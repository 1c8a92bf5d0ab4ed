"""Checks of argument types in public functions."""

from __future__ import annotations


def expect(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raises `TypeError` if `value` is of none of `kinds`; `what` names the argument and its expected type."""
    if not isinstance(value, kinds):
        raise TypeError(f"{what}, not {value!r:.60} of type {type(value).__name__}")
