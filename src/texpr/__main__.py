"""`python -m texpr` is the command `texpr`."""

from __future__ import annotations

from texpr.cli import process

if __name__ == "__main__":
    process()
