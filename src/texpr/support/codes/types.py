"""Types and ranks (E03)."""

CODES: dict[str, str] = {}
