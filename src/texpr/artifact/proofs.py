"""The proof that an artifact carries: of each plan, against its program, both as they are shipped.

proof.json                  what was to be shown, and how it was
proof/TARGET/NAME.plan      the plan, of which the sources are the print
proof/TARGET/NAME.te        the program as it was laid out, where the language can say it
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from texpr.artifact.sources import Part, Shown
from texpr.artifact.tools import Share, in_turn
from texpr.backends.c.names import identifier
from texpr.frontend import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.ir.program import Function
from texpr.ir.proof import UNPROVED, proof_text
from texpr.ir.text import print_function
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError
from texpr.witness import proved

Data: TypeAlias = dict[str, Any]

PROOF = "proof.json"


def show(function: Function, plan: Plan, source: str) -> Shown:
    """What is shipped of `function`, as it was laid out: proved from the texts alone.

    Raises CompilerBug where the plan is not what its program says, and Limitation where neither that nor the opposite is
    proved, but if the text lets it pass.
    """
    shipped, (program, said) = plan_text(plan), _said(function)
    proof = proved(function, plan) if said is None else proved(said, parse_plan(shipped))
    unproved = any(directive.name == UNPROVED for directive in function.directives)
    try:
        proof.require(unproved)
    except (CompilerBug, Limitation):
        proved(function, plan).require(unproved)  # whose places are those of the text that was written
        raise
    return Shown(shipped, source, program, proof.data)


def proof_files(parts: Sequence[Part]) -> dict[str, str]:
    """The files of the proof, by path; none for plans whose program is not at hand."""
    files: dict[str, str] = {}
    proofs: dict[str, list[Data]] = {}
    for part in parts:
        for plan, shown in zip(part.plans, part.shown, strict=False):
            where = f"proof/{part.target}/{identifier(plan.name)}"
            files[f"{where}.plan"] = shown.plan
            if shown.program is not None:
                files[f"{where}.te"] = shown.program
            proofs.setdefault(part.target, []).append(shown.proof)
    return {**files, PROOF: proof_text(_sorted(proofs))} if proofs else {}


def _sorted(proofs: dict[str, list[Data]]) -> dict[str, list[Data]]:
    return {target: sorted(each, key=lambda proof: str(proof["function"])) for target, each in proofs.items()}


def _said(function: Function) -> tuple[str, Function] | tuple[None, None]:
    """`function` as text, and what that says; nothing where the language has no words for something in it."""
    text = print_function(function)
    try:
        return text, parse(text).functions[0]
    except TexprError:
        return None, None


def recheck(directory: Path, share: Share = in_turn) -> Iterator[str]:
    """What is wrong with the proof of an artifact: a plan that is not proved as before, or is not what the sources print.

    Plans are proved one by one, by whom `share` says. Raises OSError where files cannot be read.
    """
    if not (directory / PROOF).exists():
        return
    files = sorted(directory.glob("proof/*/*.plan"), key=lambda path: path.parts[-2:])
    names = [str(file.relative_to(directory)) for file in files]
    proofs: dict[str, list[Data]] = {}
    whole = True
    for file, name, answer in zip(files, names, share(lambda at: _rechecked(directory, files[at]), names), strict=True):
        found: Data = json.loads(answer)
        if found["unreadable"] is not None:
            yield f"cannot be read: {name}: {found['unreadable']}"
            return
        if not found["printed"]:
            yield f"not what the sources say: {name}"
        if found["proof"] is None:
            whole = False
        else:
            proofs.setdefault(file.parent.name, []).append(found["proof"])
    if whole and proof_text(_sorted(proofs)) != (directory / PROOF).read_text(encoding="utf-8"):
        yield f"not proved as it was: {PROOF}"


def _rechecked(directory: Path, file: Path) -> bytes:
    """Whether a plan can be read, is what a source prints, and the proof of it, if its program is there."""
    target, program = file.parent.name, file.with_suffix(".te")
    found: Data = {"unreadable": None, "printed": True, "proof": None}
    try:
        plan = parse_plan(file.read_text(encoding="utf-8"))
        found["printed"] = _is_printed(directory, target, plan)
        if program.exists():
            found["proof"] = proved(parse(program.read_text(encoding="utf-8")).functions[0], plan).data
    except (TexprError, ValueError) as reason:
        found["unreadable"] = str(reason)
    return json.dumps(found).encode()


def _is_printed(directory: Path, target: str, plan: Plan) -> bool:
    """Whether some source of the artifact is the print of `plan`, what it says of places in the text aside."""
    text = _bare(Part(target, (plan,)).source(0))
    files = sorted((directory / "src").glob(f"{identifier(plan.name)}*.c*"))
    return any(text in _bare(file.read_text(encoding="utf-8")) for file in files)


def _bare(text: str) -> str:
    lines = (line.split("//")[0].strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("TX_AT", "TX_SOURCE")))
