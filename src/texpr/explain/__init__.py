"""Every decision on a function with its reason, as data: what `texpr explain` prints."""

from texpr.explain.kernels import Data, explain

__all__ = ["Data", "explain"]
