"""Toolchain (E06)."""

CODES: dict[str, str] = {}
