"""Data given to a program (E07)."""

CODES: dict[str, str] = {}
