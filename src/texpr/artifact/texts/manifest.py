"""manifest.json: a machine-readable description of an artifact."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from texpr.affine.expr import Sym
from texpr.artifact.record import RESOURCES, Recorded
from texpr.artifact.texts.sources import Part
from texpr.backends.c.arguments import Argument, arguments, distinct, function_name
from texpr.backends.c.types import PUBLIC_NAMES
from texpr.ir.instr import Instr
from texpr.ir.kernel import Kernel, Plan, kernels, rounding
from texpr.ir.kernel.origin import Origin
from texpr.ir.kernel.turns.terms import terms
from texpr.ir.program import Compare
from texpr.ir.program.promises import assume_text
from texpr.isa.levels import Level

FORMAT = "texpr-artifact 4"
"""The value of `format`; a later, incompatible manifest will have another one."""


def print_manifest(record: Recorded, parts: Sequence[Part]) -> str:
    """The manifest: what follows from the plans, and the record, which `texpr.artifact.record` parses."""
    functions = [
        {
            "name": plan.name,
            "symbol": function_name(plan),
            "source": _source(record.origins.get(plan.name)),
            "arguments": [_argument(a) for a in arguments(plan)],
            "fixed": {str(sym): value for sym, value in plan.fixed},
            "where": [_fact(fact) for fact in plan.requires],
            "assume": [assume_text(assume) for assume in plan.assumes],
            **_rounding(parts, at),
            "targets": {part.target: _kernels(part.plans[at], part.target, record) for part in parts},
        }
        for at, plan in enumerate(parts[0].plans)
    ]
    whole = {
        "format": FORMAT,
        "name": record.name,
        "texpr": record.version,
        "targets": [part.target for part in parts],
        "tools": dict(sorted(record.tools.items())),
        "flags": {what: list(told) for what, told in sorted(record.flags.items())},
        "libraries": list(record.libraries),
        "fatbin": record.fatbin,
        "consts": dict(sorted(record.consts.items())),
        **({"torch": True} if record.torch else {}),
        **({"tuned": True} if record.tuned else {}),
        "functions": functions,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _rounding(parts: Sequence[Part], at: int) -> dict[str, object]:
    """By target and result, the instructions whose own arithmetic may be in it; nothing where there is none."""
    found: dict[str, dict[str, list[dict[str, object]]]] = {}
    for part in parts:
        parts_of = terms(part.plans[at])
        for each in part.plans[at].versions:
            for name, instrs in rounding(each).items():
                told = found.setdefault(part.target, {}).setdefault(name, [])
                every = (_rounded(instr, parts_of.get(instr.name)) for instr in instrs)
                told += [one for one in every if one not in told]
    return {"rounding": found} if found else {}


def _rounded(instr: Instr, terms: int | None) -> dict[str, object]:
    """The parameters of an instruction's bound (docs/theory/rounding.md); none where its definition does not say. `terms`: the
    most that it adds up before its sum begins anew, if that is known."""
    rounds = instr.rounding
    if rounds is None:
        return {"instruction": instr.name, "bound": None}
    kept = {"aligned": rounds.aligned, "products": rounds.products, "kept": rounds.kept, "nearest": rounds.nearest}
    return {"instruction": instr.name, "bound": kept, **({} if terms is None else {"terms": terms})}


def _source(origin: Origin | None) -> dict[str, object] | None:
    if origin is None:
        return None
    return {"file": origin.name, "lines": {str(number): line for number, line in sorted(origin.lines.items())}}


def _argument(argument: Argument) -> dict[str, object]:
    if isinstance(argument.key, Sym):
        return {"name": argument.name, "kind": "size", "type": "int64_t"}
    buffer = argument.key
    described: dict[str, object] = {
        "name": argument.name,
        "kind": "array" if argument.is_pointer else "scalar",
        "type": PUBLIC_NAMES[buffer.dtype],
        "dtype": buffer.dtype.name,
    }
    if argument.is_pointer:
        described |= {"role": buffer.role, "shape": [str(extent) for extent in buffer.shape]}
        described["strides"] = None if buffer.strides is None else [str(stride) for stride in buffer.strides]
        described["align"] = buffer.align or buffer.dtype.bytes
    return described


def _kernels(plan: Plan, target: str, record: Recorded) -> list[dict[str, object]]:
    return [
        _kernel(kernel, record.used.get((plan.name, target, kernel.name), {})) | _only(plan, each)
        for each in plan.versions
        for kernel in distinct(kernels(each.steps))
    ]


def _only(plan: Plan, one: Plan) -> dict[str, object]:
    """Of a kernel of the wide plan, what must hold of arguments for it to be launched."""
    if one is plan:
        return {}
    where = [_fact(fact) for fact in one.requires if _fact(fact) not in map(_fact, plan.requires)]
    pairs = zip((*plan.params, *plan.results), (*one.params, *one.results), strict=True)
    return {"only": {"where": where, "align": {b.name: b.align for a, b in pairs if a.align != b.align}}}


def _kernel(kernel: Kernel, used: Mapping[str, int]) -> dict[str, object]:
    return {
        "name": kernel.name,
        "grid": {a.dim: str(a.extent) for a in kernel.axes if a.level in (Level.GRID, Level.CORE)},
        "block": {a.dim: a.extent.constant for a in kernel.axes if a.level is Level.BLOCK},
        **{what: used[what] for what in RESOURCES if what in used},
    }


def _fact(fact: Compare) -> str:
    return f"{fact.left} {fact.op} {fact.right}"
