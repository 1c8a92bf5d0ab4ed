"""What is undecided or not supported (E05)."""

CODES: dict[str, str] = {
    "E0580": "unknown target",
}
