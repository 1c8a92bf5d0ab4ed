"""A plan as stand-alone C++17 with OpenMP, and its headers."""

from texpr.backends.cpu.headers import headers
from texpr.backends.cpu.printer import print_cpu

__all__ = ["headers", "print_cpu"]
