"""Plans of earlier builds, found by content: proved again, not searched again.

What is kept are the texts that an artifact ships, a plan, its program, and the witnesses of the proof, with hints for the
proof. An entry is trusted no more than an artifact of unknown origin: the plan is proved again, from these texts, to implement
the program at hand, and what cannot be proved is not used. So an entry that somebody edited can give another plan, but no wrong
one. No verdict is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from texpr.artifact import FAULTS, Shown, may_be_open, program_text, read_origin, rechecked
from texpr.ir.kernel.origin import lines_of
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function, Program
from texpr.ir.program.selection import NONE, Selected
from texpr.ir.program.text import print_program, print_schedule
from texpr.ir.proof import Verdict
from texpr.isa.target import Target
from texpr.proof.plan.places import follows
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.support.span import NOWHERE
from texpr.toolchain.cache import Cache, key

FILE = "shown.json"

LIMIT = 1 << 28
"""The size limit of all kept plans in bytes."""

SOURCES = (".py", ".te")
"""The files of this compiler that decide what it makes of a program."""


def plans(folder: Path) -> Cache:
    """The kept plans below the cache's `folder`."""
    return Cache(folder / "plans", LIMIT)


def name_of(function: Function, target: Target, selected: Selected, sizes: Mapping[str, int], device: str = "") -> str | None:
    """The name of the entry for a function: a hash of all that the result depends on, the release of the `device`'s compiler
    among it; None where that has no text."""
    source, compiler = function.span.source, _compiler()
    if compiler is None:
        return None
    match selected:
        case None | str():
            schedule, place = selected or NONE, ""
        case _:
            schedule, place = print_schedule(selected, function), str(selected.span)
    places = source.name, source.text, str(function.span.start), place
    program = print_program(Program((replace(function, schedules=()),)))
    return key(("plan", compiler, device, target.name, schedule, json.dumps(dict(sorted(sizes.items()))), program, *places))


@cache
def _compiler() -> str | None:
    """A hash of this compiler's sources; None where they are no files."""
    root, digest = Path(__file__).parent, hashlib.sha256(platform.python_version().encode())
    try:
        for folder, below, files in os.walk(root):
            below.sort()
            digest.update(f"{os.path.relpath(folder, root)}\0".encode())
            for file in sorted(file for file in files if file.endswith(SOURCES)):
                with open(f"{folder}/{file}", "rb", buffering=0) as source:
                    data = source.read()
                digest.update(f"{file}\0{len(data)}\0".encode() + data)
    except OSError:
        return None
    return digest.hexdigest()


def again(kept: Cache, name: str, function: Function, target: Target) -> Shown | None:
    """The kept texts of `function`, its sizes fixed, with their proof, which is new; None where there are none, or any is not
    as this compiler writes it, or something is not proved by them."""
    entry = kept.get(name)
    if entry is None:
        return None
    found = None
    with suppress(TexprError, *FAULTS):
        found = _proved(Shown.of(json.loads(entry.files[FILE])), function, target)
    if found is None:
        follows.cache_clear()  # wrong hints may have left questions open
    return found


def keep(kept: Cache, name: str, shown: Shown) -> None:
    """Keeps the texts of a function, without their proof."""
    wide = None if shown.wide is None else replace(shown.wide, proof={})
    kept.put(name, {FILE: json.dumps(replace(shown, proof={}, wide=wide).data).encode()})


def _proved(shown: Shown, function: Function, target: Target) -> Shown | None:
    program = program_text(function)
    if (shown.program if shown.written is None else shown.written) != program:
        return None
    for each in (shown, *(() if shown.wide is None else (shown.wide,))):
        if not _is_of(each, function):
            return None
    found = rechecked(target.name, function.name, shown)
    if found.wrong or found.proof is None:
        return None
    proofs = [{kind: data for kind, data in found.proof.items() if kind != "wide"}]
    proofs += [found.proof["wide"]] if shown.wide is not None else []
    if not may_be_open(function) and any(proof["counts"][Verdict.UNDECIDED.value] for proof in proofs):
        return None  # the program after its schedule may say that this is permitted, but that is in the entry, too
    wide = None if shown.wide is None else replace(shown.wide, proof=proofs[1])
    return replace(shown, proof=proofs[0], wide=wide)


def _is_of(shown: Shown, function: Function) -> bool:
    """Whether texts are of `function`, as this compiler writes them, and quote lines of its source alone."""
    plan = shown.printed()
    if plan_text(plan) != shown.plan:
        return False
    source = function.span.source
    if shown.origin is None:
        return source is NOWHERE.source
    origin = read_origin(shown.origin)
    return origin == lines_of(source, origin.lines)
