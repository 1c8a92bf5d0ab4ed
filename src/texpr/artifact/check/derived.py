"""The expected contents of an artifact: derived from its plans, which are parsed here and proved elsewhere, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from texpr.artifact.certificate import PROOF, WIDE, proof_path, shipped_texts, texts_of
from texpr.artifact.check.folder import Folder, printable
from texpr.artifact.check.recheck import FAULTS, told_of
from texpr.artifact.packages import package_of
from texpr.artifact.place import BOM, SIGNATURE, SUMS, TUNED
from texpr.artifact.record import Recorded
from texpr.artifact.texts.bom import print_bom
from texpr.artifact.texts.derive import texts
from texpr.artifact.texts.sources import Part, Shown
from texpr.artifact.texts.tuned import print_tuned
from texpr.backends.cuda.launcher import print_image
from texpr.ir.kernel import Plan
from texpr.ir.kernel.origin import Origin, printed_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify as require_well_formed
from texpr.isa.registry import resolve
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace


def read_parts(folder: Folder, record: Recorded) -> tuple[list[Part], list[str]]:
    """The plans of an artifact with their tags, for each target; and the errors found."""
    parts: list[Part] = []
    wrong: list[str] = []
    for target in record.targets:
        shown = [_both(folder, target, function, record.origins.get(function), wrong) for function in record.functions]
        there = [each for each in shown if each is not None]
        try:
            plans = tuple(_plan(each, target, name, record) for each, name in zip(there, record.functions, strict=False))
        except (TexprError, *FAULTS) as why:
            wrong.append(f"cannot be read: a plan for {target}: {told_of(why)}")
            continue
        parts.append(Part(target, plans, tuple(there)))
    return parts, wrong


def _both(folder: Folder, target: str, function: str, origin: Origin | None, wrong: list[str]) -> Shown | None:
    """The shipped texts of a function for a target, with those of its wide plan, if there are any."""
    shown = _shown(folder, target, function, origin, wrong)
    ends = shipped_texts("", "", "", None, None)
    if shown is None or not any(proof_path(target, function, WIDE + end) in folder.files for end in ends):
        return shown
    wide = _shown(folder, target, function, origin, wrong, WIDE)
    return None if wide is None else replace(shown, wide=wide)


def _shown(
    folder: Folder, target: str, function: str, origin: Origin | None, wrong: list[str], before: str = ""
) -> Shown | None:
    """The shipped texts of a plan."""
    found: dict[str, str] = {}
    for end in shipped_texts("", "", "", None, None):
        path = proof_path(target, function, before + end)
        try:
            if path in folder.files:
                found[end] = folder.files[path].decode("utf-8")
        except ValueError as why:
            wrong.append(f"cannot be read: {path}: {why}")
    needed = ("plan", "te", "tags", *(("written.te", "notes") if found.keys() & {"written.te", "notes"} else ()))
    missing = [f"missing: {proof_path(target, function, before + end)}" for end in needed if end not in found]
    wrong += missing
    if missing:
        return None
    file = None if origin is None else {"name": origin.name, "lines": origin.lines}
    return Shown(found["plan"], found["te"], found["tags"], {}, file, found.get("written.te"), found.get("notes"))


def _plan(shown: Shown, target: str, function: str, record: Recorded) -> Plan:
    """The well-formed plan of a function. Raises TexprError, CompilerBug, ValueError."""
    plan = _one_plan(shown, proof_path(target, function, "plan"), function, record)
    if shown.wide is not None:
        wide = _one_plan(shown.wide, proof_path(target, function, f"{WIDE}plan"), function, record)
        plan = replace(plan, wide=wide)
    require_well_formed(plan, resolve(target))
    return plan


def _one_plan(shown: Shown, path: str, function: str, record: Recorded) -> Plan:
    plan = printed_plan(shown.plan, path, record.origins.get(function))
    if plan.name != function:
        raise ValueError(f"{path} is of `{plan.name}`")
    if plan_text(plan) != shown.plan:
        raise ValueError(f"{path} is not as it is written by texpr")
    return plan


def derived(folder: Folder, record: Recorded, parts: Sequence[Part]) -> tuple[dict[str, bytes], list[str]]:
    """The expected contents of every text file, from the plans, the record, and the binaries; and the bill of all of them."""
    try:
        found = {path: text.encode() for path, text in texts(record, parts).items()}
        codes = {path: (symbol, folder.files.get(code)) for path, (symbol, code) in package_of(parts).images(parts).items()}
        images = {path: print_image(symbol, data).encode() for path, (symbol, data) in codes.items() if data is not None}
    except (TexprError, *FAULTS) as why:
        return {}, [f"cannot be printed: {told_of(why)}"]
    tuned = folder.files.get(TUNED) if record.tuned else None
    try:
        report = {} if tuned is None else {TUNED: print_tuned(tuned, record.functions).encode()}
    except FAULTS as why:
        return {}, [f"cannot be read: {TUNED}: {told_of(why)}"]
    made = {**found, **images, **report}
    return {**made, BOM: print_bom(record, {**folder.files, **made}).encode()}, []


def different(folder: Folder, record: Recorded, parts: Sequence[Part], expected: Mapping[str, bytes]) -> Iterator[str]:
    """Files that are missing, unexpected, or different from what is expected."""
    proofs = {
        proof_path(part.target, plan.name, end)
        for part in parts
        for plan, shown in zip(part.plans, part.shown, strict=True)
        for end in texts_of(shown)
    }
    package = package_of(parts)
    every = {*expected, *proofs, *package.binaries(record), *package.images(parts), PROOF, SUMS}
    every |= {TUNED} if record.tuned else set[str]()
    folders = {str(above) for path in every for above in PurePosixPath(path).parents}
    yield from (f"missing: {path}" for path in sorted(every - folder.files.keys()))
    yield from (f"no part of this artifact: {printable(path)}" for path in sorted(folder.files.keys() - every - {SIGNATURE}))
    yield from (f"no part of this artifact: {printable(path)}/" for path in sorted(folder.folders - folders))
    for path, data in sorted(expected.items()):
        if path in folder.files and folder.files[path] != data:
            yield f"not what follows from its plans: {path}"
