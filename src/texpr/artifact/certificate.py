"""The part of an artifact by which its plans are proved again without search: tags as text, and the proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeAlias

from texpr.artifact.texts.sources import Shown
from texpr.backends.c.names import identifier
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.text import stmt_text
from texpr.ir.program import Combiner, Function
from texpr.ir.program import Program as File
from texpr.ir.program.marked import read as read_marks
from texpr.ir.program.text import print_program
from texpr.ir.proof import UNPROVED, Proof, Verdict, proof_text
from texpr.ir.proof.tags import Numbered, Tags
from texpr.ir.proof.tags_parse import parse_tags
from texpr.ir.proof.tags_text import tags_text
from texpr.ir.value import Load, Ref
from texpr.proof.plan import Question
from texpr.proof.plan.match import element, home_of, subscripts
from texpr.proof.read.actions import Program
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.support.span import NOWHERE

Data: TypeAlias = dict[str, Any]

PROOF = "proof.json"

PLAN, SCHEDULE = "plan", "schedule"
"""The proofs of which there are hints."""


def written(tags: Tags, asked: Question) -> str:
    """The tags of a plan, of which `asked` is the question, as text, which is checked to parse to the same."""
    own = numbered(asked)
    text = tags_text(tags, own)
    try:
        again = parse_tags(text, own)
    except TexprError as why:
        raise CompilerBug(f"the tags of `{own.plan}` cannot be read as they are written: {why}") from why
    if again != tags:
        raise CompilerBug(f"the tags of `{own.plan}` say something else as they are written")
    return text


def carried(tags: Tags, asked: Question, to: Question) -> Iterator[Tags]:
    """The tags of one question transferred to another one, about the same in other texts, if the numbers of items agree."""
    with suppress(TexprError):
        yield parse_tags(tags_text(tags, numbered(asked)), numbered(to))


def numbered(asked: Question) -> Numbered:
    """The items of a question that tags refer to by number, with the lines of the plan's text, or of the program's."""
    program, reading = asked.program, asked.reading
    return Numbered(
        program.function.name,
        tuple(f"{_place(event.target)}, line {event.span.line}" for event in reading.events),
        tuple(f"{_place(action.target)}, line {action.span.line} of the program" for action in program.actions),
        tuple(_text(step.stmt) for step in reading.steps),
        tuple(_text(signal.stmt) for signal in reading.signals),
        _combiners(program),
    )


def _place(target: Load | Ref) -> str:
    return element(home_of(target), subscripts(target))


def _text(stmt: k.Stmt) -> str:
    """The text of a statement without its origin."""
    said, span = stmt_text(stmt).split("  --")[0].split(" covers ")[0], getattr(stmt, "span", NOWHERE)
    return said if span is NOWHERE else f"{said}, line {span.line}"


def _combiners(program: Program) -> Mapping[str, Combiner]:
    return {each.name: each for action in program.actions if isinstance(each := action.update, Combiner)}


def proofs_text(proofs: Mapping[str, Sequence[Data]]) -> str:
    """`proof.json`, for proofs by target in any order."""
    return proof_text({target: sorted(each, key=lambda proof: str(proof["function"])) for target, each in proofs.items()})


def of_texts(proof: Proof, schedule: Proof | None, shipped: Mapping[str, str | None]) -> Data:
    """The data of a proof, with that of its schedule, if there is one: that the program after the schedule is equivalent to
    the one before.

    `shipped`: the texts of the proof, by kind; the proof contains their hashes, so that it applies to no others.
    """
    of = {kind: sha256(text.encode()).hexdigest() for kind, text in sorted(shipped.items()) if text is not None}
    data = {**proof.data, "of": of}
    if schedule is None:
        return data
    verdict = "believed" if schedule.of(Verdict.UNDECIDED) else "proved"
    told = {"verdict": verdict, **{name: schedule.data[name] for name in ("counts", "obligations")}}
    return {**data, "schedule": told}


def may_be_open(function: Function) -> bool:
    """Whether the text permits what is not proved."""
    return any(directive.name == UNPROVED for directive in function.directives)


def shipped_texts(plan: str, program: str, tags: str, written: str | None, notes: str | None) -> Mapping[str, str | None]:
    """The texts of a proof, by file name suffix."""
    return {"plan": plan, "te": program, "tags": tags, "written.te": written, "notes": notes}


WIDE = "wide."
"""What stands before the suffixes of texts of the wide plan."""


def proof_path(target: str, function: str, end: str) -> str:
    """The path of a text of the proof, by file name suffix."""
    return f"proof/{target}/{identifier(function)}.{end}"


def texts_of(shown: Shown) -> dict[str, str]:
    """The texts of the proof of a function, by file name suffix."""
    texts = shipped_texts(shown.plan, shown.program, shown.tags, shown.written, shown.notes)
    own = {end: text for end, text in texts.items() if text is not None}
    return own if shown.wide is None else own | {WIDE + end: text for end, text in texts_of(shown.wide).items()}


def proof_of(shown: Shown) -> Data:
    """The proof of a function, that of its wide plan inside."""
    return shown.proof if shown.wide is None else {**shown.proof, "wide": proof_of(shown.wide)}


def program_text(function: Function) -> str:
    """`function` as it is shipped: a text of its own, without schedules, which parses to what prints the same.

    Raises CompilerBug where the language cannot express something in it.
    """
    return said(function)[0]


def said(function: Function) -> tuple[str, Function]:
    """`function` as text, and what that parses to. Raises CompilerBug where the language cannot express something in it."""
    try:
        printed = _print(function)
        first = _parsed(printed)  # numbers may be written otherwise, such as 0 as a float
        text = _print(first)
        again = first if text == printed else _parsed(text)
    except TexprError as why:
        raise CompilerBug(f"`{function.name}` cannot be read as it is written: {why}") from why
    if again is not first and _print(again) != text:
        raise CompilerBug(f"`{function.name}` is read as something else than it is written")
    return text, again


def _print(function: Function) -> str:
    return print_program(File((replace(function, schedules=()),)))


def _parsed(text: str) -> Function:
    return read_marks(parse(text).functions[0])
