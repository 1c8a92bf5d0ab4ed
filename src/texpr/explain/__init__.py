"""Every decision on a function with its reason, as data, and the forms it takes, as text: what `texpr explain` prints."""

from texpr.explain.forms import FORMS, form
from texpr.explain.kernels import Data, explain

__all__ = ["FORMS", "Data", "explain", "form"]
