"""The proof in an artifact: of each plan, against its program, both as they are shipped.

proof.json                  the obligations, their verdicts, and hashes of the texts
proof/TARGET/NAME.plan      the plan, from which the sources are printed
proof/TARGET/NAME.te        the program after its schedule
proof/TARGET/NAME.tags      untrusted witnesses: which statement each event of the plan implements
proof/TARGET/NAME.written.te   the program before its schedule, if it has one
proof/TARGET/NAME.notes     untrusted witnesses: which written statement each scheduled one is
proof/TARGET/NAME.wide.*    the same of the wide plan, if there is one; its program is the first, for callers who promise more
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.artifact.certificate import (
    PLAN,
    PROOF,
    SCHEDULE,
    Data,
    carried,
    may_be_open,
    of_texts,
    proof_of,
    proof_path,
    proofs_text,
    said,
    shipped_texts,
    texts_of,
)
from texpr.artifact.certificate import written as tags_as_text
from texpr.artifact.texts.sources import Part, Shown
from texpr.ir.kernel import Plan
from texpr.ir.kernel.origin import origin_of
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function
from texpr.ir.program.instances import statements
from texpr.ir.proof import Proof
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.presburger.solve.hints import hinted
from texpr.proof.plan import question
from texpr.proof.schedule import faithful, require_kept
from texpr.proof.search import certified, proved, search
from texpr.support.diagnostic import CompilerBug, Limitation
from texpr.support.record import as_dict, replace


def show(function: Function, plan: Plan, written: Function | None = None) -> Shown:
    """The shipped texts of `function` after its schedule: proved from the texts alone, with the tags used.

    `written`: the program before the schedule. The equivalence of both is proved as far as possible. Raises CompilerBug where
    the plan differs from its program, or that from the written one, or where the language cannot express one of them; and
    Limitation where the plan is neither proved nor refuted, unless the text permits it.
    """
    text, (program, spoken) = plan_text(plan), said(function)
    shipped = parse_plan(text)
    own = question(function, plan)  # its lines are the most useful ones in messages
    asked = question(spoken, shipped)
    known = [*carried(search(own), own, asked)]
    with hinted() as of_plan:
        found = certified(asked, shipped, *known)
    unproved = may_be_open(function)
    try:
        found.proof.require(unproved)
    except (CompilerBug, Limitation):
        proved(function, plan).require(unproved)  # its places are those of the source text
        raise
    tags = tags_as_text(found.tags, asked)
    with hinted() as of_schedule:
        before, notes, schedule = _as_written(written, function, spoken) if written is not None else (None, None, None)
    origin, texts = origin_of(plan), shipped_texts(text, program, tags, before, notes)
    proof = of_texts(found.proof, schedule, texts)
    file = None if origin is None else as_dict(replace(origin, lines={str(at): line for at, line in origin.lines.items()}))
    hints = {PLAN: of_plan.made, SCHEDULE: of_schedule.made}
    return Shown(text, program, tags, proof, file, before, notes, hints)


def _as_written(written: Function, laid: Function, spoken: Function) -> tuple[str, str, Proof]:
    """The program as written, and notes of the one after its schedule, as texts; and the proof of their equivalence by these.
    Raises CompilerBug where they differ, and Limitation E0509 where that is undecided."""
    (text, before), notes = said(written), notes_text(laid)
    if len(statements(spoken)) != len(statements(laid)):
        raise CompilerBug(f"`{laid.name}` as it was laid out has other statements in its text")
    proof = faithful(before, noted(spoken, notes))
    require_kept(proof, may_be_open(written))
    return text, notes, proof


def proof_files(parts: Sequence[Part]) -> dict[str, str]:
    """The files of the proof, by path; none for plans without a program."""
    files: dict[str, str] = {}
    proofs: dict[str, list[Data]] = {}
    for part in parts:
        for plan, shown in zip(part.plans, part.shown, strict=False):
            files |= {proof_path(part.target, plan.name, end): text for end, text in texts_of(shown).items()}
            proofs.setdefault(part.target, []).append(proof_of(shown))
    return {**files, PROOF: proofs_text(proofs)} if proofs else {}
