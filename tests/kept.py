"""What is compiled in tests, and kept by its content for the next run and for other workers."""

from pathlib import Path

EMULATED = Path(__file__).parents[1] / ".cache" / "emulator"
"""Kernels and the core of the emulator; `tests/conftest.py` bounds it."""
