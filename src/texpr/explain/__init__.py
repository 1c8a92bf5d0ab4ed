"""Every decision on a function with its reason, as data, and its intermediate forms, as text: the output of `texpr explain`."""

from texpr.explain.data import Data
from texpr.explain.forms import FORMS, form
from texpr.explain.kernels import explain

__all__ = ["FORMS", "Data", "explain", "form"]
