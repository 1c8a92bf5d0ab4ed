"""`python -m texpr` is the command `texpr`."""

from __future__ import annotations

import sys

from texpr.cli import main

if __name__ == "__main__":
    sys.exit(main())
