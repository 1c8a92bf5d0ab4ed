"""Files and the command line (E08)."""

CODES: dict[str, str] = {}
