"""The proof that an artifact carries: of each plan, against its program, both as they are shipped.

proof.json                  what was to be shown, and how it was
proof/TARGET/NAME.plan      the plan, of which the sources are the print
proof/TARGET/NAME.te        the program as it was laid out, where the language can say it
proof/TARGET/NAME.tags      what each event of the plan is said to do for it, of which nothing is believed: by that it is proved
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.certificate import PROOF, Data, carried, may_be_open, proofs_text, written
from texpr.artifact.sources import Part, Shown
from texpr.backends.c.names import identifier
from texpr.frontend import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.ir.program import Function, Program
from texpr.ir.text import print_program
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError
from texpr.support.record import replace
from texpr.verifier import question
from texpr.witness import certified, proved, search


def show(function: Function, plan: Plan, source: str) -> Shown:
    """What is shipped of `function`, as it was laid out: proved from the texts alone, with the tags that this is by.

    Raises CompilerBug where the plan is not what its program says, and Limitation where neither that nor the opposite is
    proved, but if the text lets it pass.
    """
    text, (program, said) = plan_text(plan), _said(function)
    shipped = plan if said is None else parse_plan(text)
    own = question(function, plan)  # whose lines say most to who searches
    asked = own if said is None else question(said, shipped)
    found = certified(asked, shipped, *carried(search(own), own, asked))
    unproved = may_be_open(function)
    try:
        found.proof.require(unproved)
    except (CompilerBug, Limitation):
        proved(function, plan).require(unproved)  # whose places are those of the text that was written
        raise
    tags = None if said is None else written(found.tags, asked)
    return Shown(text, source, program, tags, found.proof.data)


def proof_files(parts: Sequence[Part]) -> dict[str, str]:
    """The files of the proof, by path; none for plans whose program is not at hand."""
    files: dict[str, str] = {}
    proofs: dict[str, list[Data]] = {}
    for part in parts:
        for plan, shown in zip(part.plans, part.shown, strict=False):
            where = f"proof/{part.target}/{identifier(plan.name)}"
            files[f"{where}.plan"] = shown.plan
            if shown.program is not None and shown.tags is not None:
                files |= {f"{where}.te": shown.program, f"{where}.tags": shown.tags}
            proofs.setdefault(part.target, []).append(shown.proof)
    return {**files, PROOF: proofs_text(proofs)} if proofs else {}


def _said(function: Function) -> tuple[str, Function] | tuple[None, None]:
    """`function` as text, and what that says; nothing where the language has no words for something in it."""
    text = print_program(Program((replace(function, schedules=()),)))
    try:
        return text, parse(text).functions[0]
    except TexprError:
        return None, None
