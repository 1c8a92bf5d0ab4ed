"""IterDomain graphs: split, merge, resize, swizzle, reorder; their indices, holes, predicates and correctness."""

from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain

__all__ = ["DomainGraph", "IterDomain"]
