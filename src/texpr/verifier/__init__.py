"""A lowered plan proved against its program, by code that shares nothing with what lowered it.

What lowering says is a hint, never a fact: which statement an instruction belongs to, what is uniform, which dependence a
barrier is there for, is found and proved anew. The premises are that the program is legal (`texpr.checks`: its `par`s are
independent, its subscripts in bounds, nothing is read before it is written) and what the text promises.
"""

from texpr.verifier.proof import Obligation, Proof, Verdict
from texpr.verifier.prove import prove

__all__ = ["Obligation", "Proof", "Verdict", "prove"]
