"""Legality: what is proved wrong (E04)."""

CODES: dict[str, str] = {}
