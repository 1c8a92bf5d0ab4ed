"""What is undecided or not supported (E05)."""

CODES: dict[str, str] = {}
