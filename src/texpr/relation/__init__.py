"""Statement instances, their accesses and the dependences between them: the basis of every later decision.

`model(function)` gives the instances and accesses as relations; `dependences(model)` the pairs whose order matters.
"""

from texpr.relation.collect import model
from texpr.relation.dependence import Dependence, dependences
from texpr.relation.model import Access, Ancestor, Branch, Computing, Instance, Model

__all__ = ["Access", "Ancestor", "Branch", "Computing", "Dependence", "Instance", "Model", "dependences", "model"]
