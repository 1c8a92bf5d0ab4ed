"""The proof that an artifact carries: of each plan, against its program, both as they are shipped.

proof.json                  what was to be shown, and how it was
proof/TARGET/NAME.plan      the plan, of which the sources are the print
proof/TARGET/NAME.te        the program as it was laid out, where the language can say it
proof/TARGET/NAME.tags      what each event of the plan is said to do for it, of which nothing is believed: by that it is proved
proof/TARGET/NAME.written.te   the program as it was written, where a schedule laid it out
proof/TARGET/NAME.notes     what each statement of the one is said to do of the other; nothing of that is believed either
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.certificate import PROOF, Data, carried, may_be_open, proofs_text, with_schedule
from texpr.artifact.certificate import written as tags_as_text
from texpr.artifact.sources import Part, Shown
from texpr.backends.c.names import identifier
from texpr.faithful import faithful, require_kept
from texpr.frontend import parse
from texpr.ir.instances import statements
from texpr.ir.kernel import Plan
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.ir.notes_text import noted, notes_text
from texpr.ir.program import Function, Program
from texpr.ir.proof import Proof
from texpr.ir.text import print_program
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError
from texpr.support.record import replace
from texpr.verifier import question
from texpr.witness import certified, proved, search


def show(function: Function, plan: Plan, source: str, written: Function | None = None) -> Shown:
    """What is shipped of `function`, as it was laid out: proved from the texts alone, with the tags that this is by.

    `written`: the program before a schedule laid it out. That both do the same is proved as far as it can be. Raises
    CompilerBug where the plan is not what its program says, or that not what was written, and Limitation where neither that
    nor the opposite is proved of the plan, but if the text lets it pass.
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
    tags = None if said is None else tags_as_text(found.tags, asked)
    before, notes, schedule = _as_written(written, function, said) if written is not None else (None, None, None)
    return Shown(text, source, program, tags, with_schedule(found.proof, schedule), before, notes)


def _as_written(written: Function, laid: Function, said: Function | None) -> tuple[str | None, str | None, Proof]:
    """The program as it was written, and notes of the one that was laid out, as texts where there are some; and the proof, by
    these, that both do the same. Raises CompilerBug where they do not, and Limitation E0509 where that is undecided."""
    (text, before), notes = _said(written), notes_text(laid)
    if said is None or before is None or len(statements(said)) != len(statements(laid)):
        text, notes, proof = None, None, faithful(written, laid)
    else:
        proof = faithful(before, noted(said, notes))
    require_kept(proof, may_be_open(written))
    return text, notes, proof


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
            if shown.written is not None and shown.notes is not None:
                files |= {f"{where}.written.te": shown.written, f"{where}.notes": shown.notes}
            proofs.setdefault(part.target, []).append(shown.proof)
    return {**files, PROOF: proofs_text(proofs)} if proofs else {}


def _said(function: Function) -> tuple[str, Function] | tuple[None, None]:
    """`function` as text, and what that says; nothing where the language has no words for something in it."""
    text = print_program(Program((replace(function, schedules=()),)))
    try:
        return text, parse(text).functions[0]
    except TexprError:
        return None, None
