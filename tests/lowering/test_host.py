"""What the host runs, in which order: launches, loops and choices among kernels."""

from __future__ import annotations

import pytest

from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower


def shape(steps: tuple[k.HostStep, ...]) -> list[object]:
    """Host steps as nested lists: names of buffers that kernels write, loops with their extent, choices with their facts."""
    found: list[object] = []
    for step in steps:
        match step:
            case k.Launch(kernel):
                found.append("+".join(sorted(kernel.written)))
            case k.HostLoop(sym, extent, inner):
                found.append([f"{sym} < {extent}", *shape(inner)])
            case k.HostIf(conditions, inner):
                found.append([" and ".join(f"{c.left} {c.op} {c.right}" for c in conditions), *shape(inner)])
    return found


HEAD = """fn f(x: i32[n], P: i32[n], inout a: i32[n], inout b: i32[n])
    where n >= 1
    assume P in 0..n
"""

CASES: dict[str, tuple[str, list[object]]] = {
    "two that depend": ("par n |i| { a[i] = 1 }\npar n |i| { b[i] = a[n - 1 - i] }", ["a", "b"]),
    "a loop of sizes": (
        "seq n |t| { par n |i| { a[i] = b[n - 1 - i] }\npar n |i| { b[i] = a[i] + 1 } }",
        [["t < n", "a", "b"]],
    ),
    "a choice by size": (
        "if n > 4 { par n |i| { a[i] = 1 } } else { par n |i| { b[i] = 2 } }",
        [["n > 4", "a"], ["n <= 4", "b"]],
    ),
    "a choice by a host loop": (
        "seq n |t| { if t > 2 and n > 4 { par n |i| { a[i] = 1 } } }",
        [["t < n", ["t > 2 and n > 4", "a"]]],
    ),
    "a choice by data": (
        "if x[0] > 0 { par n |i| { a[i] = 1 } } else { par n |i| { b[i] = 2 } }",
        ["decided", "a", "b"],
    ),
    "single statements share a kernel": ("a[0] = 1\nb[0] = 2\npar n |i| { a[i] = b[0] }", ["a+b", "a"]),
    "what does not depend is put off": ("a[0] = 1\npar n |i| { b[i] = 2 }\na[0] = 3", ["b", "a"]),
    "a let is kept for what follows": ("let p = P[0]\npar n |i| { a[i] = x[p] }", ["p", "a"]),
    "a let of a let": ("let p = P[0]\nlet q = P[p]\na[0] = q", ["p", "q", "a"]),
    "lets of their own share a kernel": ("let p = P[0]\nlet q = x[0]\npar n |i| { a[i] = x[p] + q }", ["p+q", "a"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_host_runs(case: str) -> None:
    body, want = CASES[case]
    function = parse(f"{HEAD}{{\n{body}\n}}", "host.te").functions[0]
    plan, _ = lower(function, resolve("sm_90a"))
    names = {b.name: b.name.split("_")[0] for b in plan.workspace}

    def plain(found: object) -> object:
        if isinstance(found, list):
            return [plain(each) for each in found]  # type: ignore[reportUnknownVariableType]
        return (
            "+".join(sorted(names.get(part, part) for part in str(found).split("+")))
            if "+" in str(found)
            else names.get(str(found), found)
        )

    assert plain(shape(plan.steps)) == want
