"""What is undecided or not supported (E05)."""

CODES: dict[str, str] = {
    "E0551": "sizes beyond 64 bits",
    "E0552": "too many threads in a block",
    "E0553": "too much shared memory in a block",
    "E0554": "clusters of blocks",
    "E0580": "unknown target",
}
