"""The proof that an artifact carries: of each plan, against its program, both as they are shipped.

proof.json                  what was to be shown, and how it was
proof/TARGET/NAME.plan      the plan, of which the sources are the print
proof/TARGET/NAME.te        the program as it was laid out, where the language can say it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from texpr.artifact.sources import CPU, Part
from texpr.backends.c.names import identifier
from texpr.backends.cpu import print_cpu
from texpr.backends.cuda import print_kernels
from texpr.frontend import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel_parse import parse_plan
from texpr.ir.kernel_text import plan_text
from texpr.ir.program import Function
from texpr.ir.proof import UNPROVED, proof_text
from texpr.ir.text import print_function
from texpr.isa.registry import resolve
from texpr.support.diagnostic import TexprError
from texpr.verifier import Proof
from texpr.witness import proved

PROOF = "proof.json"


def proof_files(parts: Sequence[Part]) -> dict[str, str]:
    """The files of the proof, by path; none for plans whose program is not at hand.

    Raises CompilerBug where a plan is not what its program says, and Limitation where neither that nor the opposite is proved.
    """
    files: dict[str, str] = {}
    proofs: dict[str, list[Proof]] = {}
    for part in parts:
        for plan, function in zip(part.plans, part.functions, strict=False):
            where = f"proof/{part.target}/{identifier(plan.name)}"
            files[f"{where}.plan"] = shipped = plan_text(plan)
            program = _said(function)
            if program is not None:
                files[f"{where}.te"] = program
            proof = _proof(function if program is None else None, program, plan, shipped)
            proof.require(any(directive.name == UNPROVED for directive in function.directives))
            proofs.setdefault(part.target, []).append(proof)
    return {**files, PROOF: proof_text(_sorted(proofs))} if proofs else {}


def _sorted(proofs: dict[str, list[Proof]]) -> dict[str, list[Proof]]:
    return {target: sorted(each, key=lambda proof: proof.plan) for target, each in proofs.items()}


def _said(function: Function) -> str | None:
    """`function` as text, None where the language has no words for something in it."""
    text = print_function(function)
    try:
        parse(text)
    except TexprError:
        return None
    return text


def _proof(function: Function | None, program: str | None, plan: Plan, shipped: str) -> Proof:
    if function is None and program is not None:
        return proved(parse(program).functions[0], parse_plan(shipped))
    assert function is not None
    return proved(function, plan)


def recheck(directory: Path) -> Iterator[str]:
    """What is wrong with the proof of an artifact: a plan that is not proved as before, or is not what the sources print.

    Raises OSError where files cannot be read.
    """
    if not (directory / PROOF).exists():
        return
    proofs: dict[str, list[Proof]] = {}
    whole = True
    for file in sorted(directory.glob("proof/*/*.plan"), key=lambda path: path.parts[-2:]):
        target, program = file.parent.name, file.with_suffix(".te")
        try:
            plan = parse_plan(file.read_text(encoding="utf-8"))
            if not _is_printed(directory, target, plan):
                yield f"not what the sources say: {file.relative_to(directory)}"
            if program.exists():
                proofs.setdefault(target, []).append(proved(parse(program.read_text(encoding="utf-8")).functions[0], plan))
            else:
                whole = False
        except (TexprError, ValueError) as reason:
            yield f"cannot be read: {file.relative_to(directory)}: {reason}"
            return
    if whole and proof_text(_sorted(proofs)) != (directory / PROOF).read_text(encoding="utf-8"):
        yield f"not proved as it was: {PROOF}"


def _is_printed(directory: Path, target: str, plan: Plan) -> bool:
    """Whether some source of the artifact is the print of `plan`, what it says of places in the text aside."""
    machine = resolve(target)
    text = _bare(print_cpu(plan) if target == CPU else print_kernels(plan, machine))
    files = sorted((directory / "src").glob(f"{identifier(plan.name)}*.c*"))
    return any(text in _bare(file.read_text(encoding="utf-8")) for file in files)


def _bare(text: str) -> str:
    lines = (line.split("//")[0].strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("TX_AT", "TX_SOURCE")))
