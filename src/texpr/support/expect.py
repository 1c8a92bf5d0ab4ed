"""What a public function takes, said where a caller gives something else."""

from __future__ import annotations


def expect(value: object, kinds: type | tuple[type, ...], what: str) -> None:
    """Raises `TypeError` where `value` is of none of `kinds`; `what` names the argument and what it should be."""
    if not isinstance(value, kinds):
        raise TypeError(f"{what}, not {value!r:.60} of type {type(value).__name__}")
