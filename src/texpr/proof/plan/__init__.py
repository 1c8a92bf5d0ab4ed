"""A lowered plan proved against its program, by code that shares nothing with what lowered it.

What lowering says is a hint, never a fact: what is uniform, which dependence a barrier is there for, is found and proved anew.
Nor is it searched for here what an instruction does for the program: `tags` say so, that `texpr.proof.search` finds, and each
is proved or refused. The premises are that the program is legal (`texpr.checks`: its `par`s are
independent, its subscripts in bounds, nothing is read before it is written) and what the text promises.
"""

from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.proof.tags import Tags
from texpr.proof.plan.prove import Question, prove, question

__all__ = ["Obligation", "Proof", "Question", "Tags", "Verdict", "prove", "question"]
