"""The proof of a lowered plan against its program, by code that shares nothing with lowering.

Annotations by lowering are hints: uniformity, and the dependence that a barrier covers, are determined again and proved. The
statement that an instruction implements is not searched here: `tags`, which `texpr.proof.search` finds, are claims that are
each proved or refused. The premises are that the program is legal (`texpr.checks`: its `par`s are independent, its subscripts
in bounds, nothing is read before it is written) and the promises of its text.
"""

from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.proof.tags import Tags
from texpr.proof.plan.prove import Question, prove, question

__all__ = ["Obligation", "Proof", "Question", "Tags", "Verdict", "prove", "question"]
