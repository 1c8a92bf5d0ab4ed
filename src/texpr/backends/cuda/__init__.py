"""A plan's kernels as CUDA, the launcher that runs them, and the headers of both."""

from texpr.backends.cuda.headers import headers
from texpr.backends.cuda.printer import print_kernels

__all__ = ["headers", "print_kernels"]
