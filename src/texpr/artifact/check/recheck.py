"""Re-proof of an artifact: of each plan by its tags, from the shipped texts, without search."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from texpr.artifact.certificate import (
    PLAN,
    SCHEDULE,
    WIDE,
    Data,
    may_be_open,
    numbered,
    of_texts,
    program_text,
    proof_path,
    shipped_texts,
)
from texpr.artifact.texts.sources import Part, Shown
from texpr.artifact.tools import Share, in_turn
from texpr.checks import check, faults
from texpr.frontend import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.verify import verify
from texpr.ir.program import Function, Instruction, walk
from texpr.ir.program.promised import promised
from texpr.ir.program.rounded import given_away
from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.ir.proof.tags_parse import parse_tags
from texpr.ir.proof.tags_text import tags_text
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.presburger.solve.hints import hinted
from texpr.proof.plan import prove, question
from texpr.proof.schedule import as_marked, faithful, require_kept
from texpr.support.diagnostic import CompilerBug, Diagnostic, TexprError
from texpr.support.span import NOWHERE

FAULTS = (
    ValueError, LookupError, ArithmeticError, RecursionError, TypeError, AttributeError, AssertionError, CompilerBug,
)  # fmt: skip
"""The exceptions of parsing untrusted texts: unknown names, short lists, divisions by 0, overflows."""


def recheck(parts: Sequence[Part], share: Share = in_turn) -> tuple[list[str], dict[str, list[Data]]]:
    """The errors in the proofs of an artifact, and the new proofs, by target.

    Plans are proved one by one, distributed by `share`.
    """
    plans = [(part.target, at) for part in parts for at in range(len(part.plans))]
    by_target = {part.target: part for part in parts}

    def task(number: int) -> bytes:
        target, at = plans[number]
        part = by_target[target]
        return json.dumps(rechecked(target, part.plans[at].name, part.shown[at])._asdict()).encode()

    names = [proof_path(target, by_target[target].plans[at].name, "plan") for target, at in plans]
    wrong: list[str] = []
    proofs: dict[str, list[Data]] = {part.target: [] for part in parts}
    for (target, _), answer in zip(plans, share(task, names), strict=True):
        found = Found(**json.loads(answer))
        wrong += found.wrong
        proofs[target] += [] if found.proof is None else [found.proof]
    return wrong, proofs


class Found(NamedTuple):
    """The errors of one plan, and its proof."""

    wrong: list[str]
    proof: Data | None


def rechecked(target: str, function: str, shown: Shown) -> Found:
    """The proof of a function: of its plan, and of its wide one, whose program is the plan's for callers who promise more."""
    found = _found(target, function, shown)
    if shown.wide is None or found.proof is None:
        return found
    wide = _found(target, function, shown.wide, WIDE)
    wrong = [*found.wrong, *wide.wrong]
    try:
        if not _is_promised(shown, shown.wide):
            wrong.append(f"not the program for callers who promise more: {proof_path(target, function, f'{WIDE}te')}")
    except (TexprError, *FAULTS) as why:
        wrong.append(f"cannot be read: {proof_path(target, function, f'{WIDE}plan')}, or its program: {told_of(why)}")
    return Found(wrong, None if wide.proof is None else {**found.proof, "wide": wide.proof})


def _is_promised(shown: Shown, wide: Shown) -> bool:
    """Whether the program of the wide plan, before its schedule, is that of the plan with what the wide one asks for."""
    plan, (base,) = parse_plan(wide.plan), parse(shown.program if shown.written is None else shown.written).functions
    before = {param.name: param.align for param in base.params}
    align = {b.name: b.align for b in plan.params if b.align is not None and b.align != before.get(b.name)}
    both = {b.name for b in parse_plan(shown.plan).results if b.align is not None}  # results that both plans align
    align |= {b.name: b.align for b in plan.results if b.align is not None and b.name in both}
    known = {(fact.left, fact.op, fact.right) for fact in base.where}
    more = [fact for fact in plan.requires if (fact.left, fact.op, fact.right) not in known]
    return program_text(promised(base, align, more)) == (wide.program if wide.written is None else wide.written)


def _found(target: str, function: str, shown: Shown, before: str = "") -> Found:
    ends = ("plan", "te", "tags", "written.te", "notes")
    names = {end: proof_path(target, function, before + end) for end in ends}
    if (shown.written is None) != (shown.notes is None):
        return Found([f"missing: {names['notes' if shown.notes is None else 'written.te']}"], None)
    try:
        plan = parse_plan(shown.plan, names["plan"])
        verify(plan, resolve(target))
        laid = _program(shown.program, names["te"], plan)
        written = laid if shown.written is None else _program(shown.written, names["written.te"], plan)
    except (TexprError, *FAULTS) as why:
        return Found([f"cannot be read: {names['plan']}, or its program: {told_of(why)}"], None)
    wrong = [*_otherwise(laid, names["te"])]
    hints = shown.hints or {}
    try:
        with hinted(hints.get(PLAN, ())):
            proof = _proved(laid, plan, shown.tags, names["tags"], wrong)
    except (TexprError, *FAULTS) as why:
        return Found([*wrong, f"not proved as it was by its tags: {names['plan']}: {told_of(why)}"], None)
    left = [*proof.of(Verdict.REFUSED), *(() if may_be_open(laid) else proof.of(Verdict.UNDECIDED))]
    wrong += [f"not proved as it was by its tags: {names['plan']}: {_open(each)}" for each in left[:1]]
    schedule = None
    try:
        wrong += _illegal(written, check, names["te" if shown.written is None else "written.te"])
        if shown.written is not None and shown.notes is not None:
            with hinted(hints.get(SCHEDULE, ())):
                schedule = _of_schedule(written, laid, shown.notes, names["notes"], wrong)
            wrong += _illegal(laid, partial(faults, kept=not schedule.of(Verdict.UNDECIDED)), names["te"])
    except (TexprError, *FAULTS) as why:
        return Found([*wrong, f"not proved to be as it was written: {names['te']}: {told_of(why)}"], None)
    texts = shipped_texts(shown.plan, shown.program, shown.tags, shown.written, shown.notes)
    return Found(wrong, of_texts(proof, schedule, texts))


def _program(text: str, name: str, plan: Plan) -> Function:
    """The only function of `text`. Raises TexprError, ValueError."""
    function = parse(text, name).functions[0]
    if function.name != plan.name:
        raise ValueError(f"{name} is of `{function.name}`, and the plan of `{plan.name}`")
    if program_text(function) != text:
        raise ValueError(f"{name} is not as it is written by texpr")
    return function


def _otherwise(function: Function, name: str) -> Iterator[str]:
    """Reports instructions of this version that are said to round otherwise than they do: nothing else says how they round."""
    for instr in {
        use.instr.name: use.instr for use in walk(function.body) if isinstance(use, Instruction) and use.instr
    }.values():
        record = INSTRUCTIONS.get(instr.name)
        if record is not None and record.asm == instr.asm:
            said, own = (None if each is None else each.text for each in (instr.rounding, record.rounding))
            if said != own or (not instr.sums and own is not None):
                yield f"`{instr.name}` does not round like that: {name}"


def _illegal(function: Function, rules: Callable[[Function], Iterable[Diagnostic]], name: str) -> list[str]:
    """Reports that a program is not legal, which is a premise of its proof."""
    return [f"the program is not legal: {name}: {found.code}: {found.message}" for found in [*rules(function)][:1]]


def _of_schedule(written: Function, laid: Function, notes: str, name: str, wrong: list[str]) -> Proof:
    """The proof that the program after its schedule is equivalent to the one before. Raises CompilerBug where they differ,
    and Limitation where that is undecided, unless the text permits it."""
    said = noted(laid, notes, name)
    if notes_text(said) != notes:
        wrong.append(f"not as it is written by texpr: {name}")
    proof = faithful(written, said)
    require_kept(proof, may_be_open(written))
    wrong += [f"not rounded as it was written: {each}" for each in given_away(as_marked(written, said)[0] or written, said)]
    return proof


def _proved(function: Function, plan: Plan, tags: str, name: str, wrong: list[str]) -> Proof:
    """The proof of `plan` by `tags`."""
    asked = question(function, plan)
    own = numbered(asked)
    said = parse_tags(tags, own, name)
    if tags_text(said, own) != tags:
        wrong.append(f"not as it is written by texpr: {name}")
    return prove(asked, plan, said)


def _open(each: Obligation) -> str:
    place = each.kernel if each.span is NOWHERE else str(each.span)
    about = ", ".join(filter(None, (each.what, each.about)))
    return ": ".join(filter(None, (place, about, f"{each.verdict.value}, {each.how}")))


def told_of(why: Exception) -> str:
    """An error as text, with its place if known."""
    match why:
        case TexprError(diagnostics=(first, *_)):
            return first.message if first.span is None else f"{first.span}: {first.message}"
        case RecursionError():
            return "it is nested too deeply"
        case KeyError() | IndexError():
            return f"it names what there is not: {why}"
        case _:
            return str(why)
