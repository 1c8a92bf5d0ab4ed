"""The proof of an artifact again: of each plan by the tags that lie beside it, as both are shipped. Nothing is searched for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from texpr.artifact.certificate import PROOF, Data, may_be_open, numbered, proofs_text, with_schedule
from texpr.artifact.sources import Part
from texpr.artifact.tools import Share, in_turn
from texpr.backends.c.names import identifier
from texpr.faithful import faithful, require_kept
from texpr.frontend import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_verify import verify
from texpr.ir.notes_text import noted
from texpr.ir.proof import Obligation, Proof, Verdict
from texpr.ir.tags_parse import parse_tags
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.span import NOWHERE
from texpr.verifier import prove, question

FAULTS = (ValueError, LookupError, ArithmeticError, RecursionError, CompilerBug)
"""What tags and plans raise that nobody built: of names that there are not, lists that are too short, divisions by 0."""


def recheck(directory: Path, share: Share = in_turn) -> Iterator[str]:
    """What is wrong with the proof of an artifact: a plan that its tags do not prove, or not as before, or that is not what the
    sources print.

    Plans are proved one by one, by whom `share` says. Raises OSError where files cannot be read.
    """
    if not (directory / PROOF).exists():
        return
    files = sorted(directory.glob("proof/*/*.plan"), key=lambda path: path.parts[-2:])
    names = [str(file.relative_to(directory)) for file in files]
    proofs: dict[str, list[Data]] = {}
    sound = True
    for file, answer in zip(files, share(lambda at: _rechecked(directory, files[at]), names), strict=True):
        found = _Found(**json.loads(answer))
        yield from found.wrong
        sound = sound and not found.wrong
        proofs.setdefault(file.parent.name, []).extend(_recorded(directory, file) if found.proof is None else [found.proof])
    if sound and proofs_text(proofs) != (directory / PROOF).read_text(encoding="utf-8"):
        yield f"not proved as it was: {PROOF}"


def believed(directory: Path) -> list[str]:
    """The plans, as TARGET/NAME, that nothing is there to prove again by: the language had no words for their programs."""
    plans = (directory / "proof").glob("*/*.plan") if (directory / PROOF).exists() else ()
    return sorted("/".join(file.with_suffix("").parts[-2:]) for file in plans if not file.with_suffix(".tags").exists())


def _recorded(directory: Path, file: Path) -> list[Data]:
    """What `proof.json` says of a plan."""
    try:
        every: list[Data] = json.loads((directory / PROOF).read_text(encoding="utf-8"))["targets"][file.parent.name]
        return [each for each in every if identifier(each["function"]) == file.stem]
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


class _Found(NamedTuple):
    """What is wrong with one plan, and the proof of it, if its program is there."""

    wrong: list[str]
    proof: Data | None


def _rechecked(directory: Path, file: Path) -> bytes:
    """What is found of a plan, as one process can send it to another."""
    return json.dumps(_found(directory, file)._asdict()).encode()


def _found(directory: Path, file: Path) -> _Found:
    name, program, tags = str(file.relative_to(directory)), file.with_suffix(".te"), file.with_suffix(".tags")
    try:
        plan = parse_plan(file.read_text(encoding="utf-8"), name)
        verify(plan)
        printed = _is_printed(directory, file.parent.name, plan)
    except (TexprError, *FAULTS) as why:
        return _Found([f"cannot be read: {name}: {_told(why)}"], None)
    wrong = [] if printed else [f"not what the sources say: {name}"]
    missing = [str(each.relative_to(directory)) for each in (program, tags) if not each.exists()]
    if missing:  # of both, where the language has no words for something in the program
        return _Found([*wrong, *(f"missing: {each}" for each in missing if len(missing) == 1)], None)
    try:
        proof, unproved = _proved(directory, program, plan, tags)
    except (OSError, TexprError, *FAULTS) as why:
        return _Found([*wrong, f"not proved as it was by its tags: {name}: {_told(why)}"], None)
    left = [*proof.of(Verdict.REFUSED), *(() if unproved else proof.of(Verdict.UNDECIDED))]
    wrong += [f"not proved as it was by its tags: {name}: {_open(each)}" for each in left[:1]]
    try:
        schedule, lost = _of_schedule(directory, program)
    except (OSError, TexprError, *FAULTS) as why:
        return _Found([*wrong, f"not proved to be as it was written: {name}: {_told(why)}"], None)
    return _Found([*wrong, *(f"missing: {each}" for each in lost)], with_schedule(proof, schedule))


def _of_schedule(directory: Path, program: Path) -> tuple[Proof | None, list[str]]:
    """The proof that the program as it was laid out is the one as it was written, None where there is no other; what is missing
    of it. Raises CompilerBug where they differ, and Limitation where that is open, but if the text lets it pass."""
    before, notes = program.with_suffix(".written.te"), program.with_suffix(".notes")
    missing = [str(each.relative_to(directory)) for each in (before, notes) if not each.exists()]
    if missing:
        return None, missing if len(missing) == 1 else []

    def read(file: Path) -> tuple[str, str]:
        return file.read_text(encoding="utf-8"), str(file.relative_to(directory))

    written, laid = (parse(*read(file)).functions[0] for file in (before, program))
    proof = faithful(written, noted(laid, *read(notes)))
    require_kept(proof, may_be_open(written))
    return proof, []


def _proved(directory: Path, program: Path, plan: Plan, tags: Path) -> tuple[Proof, bool]:
    """The proof of `plan` by the files `program` and `tags`; and whether the program lets pass what is open in it."""
    names = [str(file.relative_to(directory)) for file in (program, tags)]
    function = parse(program.read_text(encoding="utf-8"), names[0]).functions[0]
    asked = question(function, plan)
    said = parse_tags(tags.read_text(encoding="utf-8"), numbered(asked), names[1])
    return prove(asked, plan, said), may_be_open(function)


def _open(each: Obligation) -> str:
    place = each.kernel if each.span is NOWHERE else str(each.span)
    about = ", ".join(filter(None, (each.what, each.about)))
    return ": ".join(filter(None, (place, about, f"{each.verdict.value}, {each.how}")))


def _told(why: Exception) -> str:
    """What is wrong, with its place if that is known."""
    match why:
        case TexprError(diagnostics=(first, *_)):
            return first.message if first.span is None else f"{first.span}: {first.message}"
        case RecursionError():
            return "it is nested too deeply"
        case KeyError() | IndexError():
            return f"it names what there is not: {why}"
        case _:
            return str(why)


def _is_printed(directory: Path, target: str, plan: Plan) -> bool:
    """Whether some source of the artifact is the print of `plan`, what it says of places in the text aside."""
    text = _bare(Part(target, (plan,)).source(0))
    files = sorted((directory / "src").glob(f"{identifier(plan.name)}*.c*"))
    return any(text in _bare(file.read_text(encoding="utf-8")) for file in files)


def _bare(text: str) -> str:
    lines = (line.split("//")[0].strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("TX_AT", "TX_SOURCE")))
