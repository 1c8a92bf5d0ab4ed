"""Names (E02)."""

CODES: dict[str, str] = {}
