"""The tensor memory accelerator: what one copy does, its descriptor and rules, the copy that a graph asks for, correctness."""

from texpr.tma.descriptor import TensorMap
from texpr.tma.reference import tma

__all__ = ["TensorMap", "tma"]
