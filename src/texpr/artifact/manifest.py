"""manifest.json: what an artifact holds, for programs that read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from texpr.affine.expr import Sym
from texpr.artifact.header import promise
from texpr.artifact.sources import Part
from texpr.artifact.tools import DeviceCode
from texpr.backends.c.arguments import Argument, arguments, distinct, function_name
from texpr.backends.c.types import PUBLIC_NAMES
from texpr.ir.kernel import Kernel, Plan, kernels
from texpr.ir.program import Compare
from texpr.isa.levels import Level

FORMAT = "texpr-artifact 2"
"""What `format` says; a later, incompatible manifest will say something else."""


def print_manifest(
    name: str, version: str, parts: Sequence[Part], binaries: Mapping[tuple[str, str], DeviceCode], tools: Mapping[str, str]
) -> str:
    """The manifest. `binaries`: by function and target; `tools`: versions of what built it."""
    functions = [
        {
            "name": plan.name,
            "symbol": function_name(plan),
            "arguments": [_argument(a) for a in arguments(plan)],
            "fixed": {str(sym): value for sym, value in plan.fixed},
            "where": [_fact(fact) for fact in plan.requires],
            "assume": [promise(assume) for assume in plan.assumes],
            "targets": {part.target: _kernels(part.plans[at], binaries.get((plan.name, part.target))) for part in parts},
        }
        for at, plan in enumerate(parts[0].plans)
    ]
    whole = {
        "format": FORMAT,
        "name": name,
        "texpr": version,
        "targets": [part.target for part in parts],
        "tools": dict(sorted(tools.items())),
        "functions": functions,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


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


def _kernels(plan: Plan, binary: DeviceCode | None) -> list[dict[str, object]]:
    return [_kernel(kernel, binary) for kernel in distinct(kernels(plan.steps))]


def _kernel(kernel: Kernel, binary: DeviceCode | None) -> dict[str, object]:
    described: dict[str, object] = {
        "name": kernel.name,
        "grid": {a.dim: str(a.extent) for a in kernel.axes if a.level in (Level.GRID, Level.CORE)},
        "block": {a.dim: a.extent.constant for a in kernel.axes if a.level is Level.BLOCK},
    }
    for record in binary.kernels if binary is not None else ():
        if record.kernel == kernel.name:
            described |= record.numbers()
    return described


def _fact(fact: Compare) -> str:
    return f"{fact.left} {fact.op} {fact.right}"
