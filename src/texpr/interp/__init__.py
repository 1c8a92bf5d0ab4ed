"""The reference interpreter: runs a function on NumPy arrays, and finds its errors at given sizes."""

from texpr.interp.arguments import Bound, bind
from texpr.interp.findings import Finding
from texpr.interp.run import run
from texpr.interp.trace import conflicts

__all__ = ["Bound", "Finding", "bind", "conflicts", "run"]
