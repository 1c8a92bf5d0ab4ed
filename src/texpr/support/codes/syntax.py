"""Syntax (E01)."""

CODES: dict[str, str] = {}
