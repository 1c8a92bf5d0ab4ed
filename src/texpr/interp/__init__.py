"""What a program means: run a function on NumPy arrays, and find what is wrong with it at given sizes."""

from texpr.interp.arguments import Bound, bind
from texpr.interp.run import run

__all__ = ["Bound", "bind", "run"]
