"""Updates of an element as one step, whoever else updates it: `red` gives nothing back, `atom` what was there before.

Their effect names the order and the scope. *relaxed*: updates of one element come one after the other, and order nothing else;
*release*: what the thread did before is seen by whoever sees the update and acquires it; *acquire*, *acq_rel*: likewise for
what is read. The scope is whose updates are one step for each other: threads of a block (`cta`), a cluster, a device (`gpu`).
"""

from collections.abc import Iterator

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level

SCOPES = {Level.BLOCK: "cta", Level.CLUSTER: "cluster", Level.GRID: "gpu"}
"""The scope of updates by threads of a level, as PTX calls it (memory consistency model, "Scope")."""

ORDERS = ("relaxed", "release")
"""Orders of `red`."""

FETCHED = (*ORDERS, "acquire", "acq_rel")
"""Orders of `atom`."""

TYPES = {
    "add": ("u32", "i32", "u64", "f32", "f64"),
    "min": ("u32", "i32", "u64", "i64"),
    "max": ("u32", "i32", "u64", "i64"),
}
"""Operations that the language has, and the types of elements."""

VECTORS = {("add", "f32"): (2, 4)}
"""Operations on consecutive elements of global memory, each of which is one step: how many a `red` of sm_90 takes at once."""

_MEANT = {"add": "y += x", "min": "y min= x", "max": "y max= x"}


def ptx(op: str, of: str) -> str:
    """The operation and type as PTX has them: a sum of 64 bits is one without a sign, which wraps alike."""
    return f"{op}.{of.replace('i', 'u' if op == 'add' and of == 'i64' else 's')}"


def _update(verb: str, op: str, of: str, order: str, scope: Level) -> Instruction:
    fetched = verb == "atom"
    given, old = ("{old}, [{y}], {x}" if fetched else "[{y}], {x}"), Operand("old", of, inout=True)
    return Instruction(
        f"{verb}_{op}_{of}_{order}_{SCOPES[scope]}",
        f"y {op} x as one step for threads of a {scope.value}, {order}{', and what y was before' if fetched else ''}",
        Level.THREAD,
        (Operand("x", of), Operand("y", of, inout=True), *((old,) if fetched else ())),
        (("sm_90" if scope is Level.CLUSTER else "sm_80", f"{verb}.{order}.{SCOPES[scope]}.{ptx(op, of)} {given};"),),
        "old = y\n" * fetched + _MEANT[op],
        effect=f"one step at {scope.value}, {order}",
        source=f'PTX ISA 8.5, "{verb}"; memory consistency model, "Scope", "Release and Acquire Patterns"',
    )


def _several(op: str, of: str, count: int, order: str, scope: Level) -> Instruction:
    """Consecutive elements of global memory, by one access that is aligned to all of them."""
    given = ", ".join(f"{{x{at}}}" for at in range(count))
    return Instruction(
        f"red_{op}_v{count}_{of}_{order}_{SCOPES[scope]}",
        f"y {op} x of {count} elements side by side, each as one step for threads of a {scope.value}, {order}",
        Level.THREAD,
        (Operand("x", of, (count,)), Operand("y", of, (count,), inout=True)),
        (("sm_90", f"red.{order}.{SCOPES[scope]}.global.{op}.v{count}.{of} [{{y}}], {{ {given} }};"),),
        f"par {count} |i| {{ {_MEANT[op].replace('y', 'y[i]').replace('x', 'x[i]')} }}",
        effect=f"one step at {scope.value}, {order}",
        source='PTX ISA 8.5, "red": .vec_32_bit',
    )


def _every() -> Iterator[Instruction]:
    for (op, of), counts in VECTORS.items():
        yield from (_several(op, of, n, order, scope) for n in counts for order in ORDERS for scope in SCOPES)
    for verb, orders in (("red", ORDERS), ("atom", FETCHED)):
        for op, types in TYPES.items():
            yield from (_update(verb, op, of, order, scope) for of in types for order in orders for scope in SCOPES)


INSTRUCTIONS = tuple(_every())
