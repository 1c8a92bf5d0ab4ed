"""The rules of well-formed statements of kernels; rules of one family of operations are in its file."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir import kernel as k
from texpr.ir.kernel.place import Place, Rule
from texpr.ir.kernel.roles import between_roles_is_nothing, registers_are_those_of_the_block, roles_are_of_warps
from texpr.ir.kernel.turns.apart import turns_apart_are_few
from texpr.ir.ops import OPERATIONS
from texpr.ir.value import Load, walk
from texpr.ir.value.types import BOOL
from texpr.ir.value.verify import complaints
from texpr.support.limits import LARGEST_INT


def values_are_well_formed(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The values keep the rules of `ir.value.verify`."""
    for value in k.values(stmt):
        yield from complaints(value, at.scope)


def name_is_new(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A loop index or variable shadows no name in scope."""
    new = (stmt.sym,) if isinstance(stmt, k.For) else tuple(b.sym for b in stmt.bound) if isinstance(stmt, k.Operation) else ()
    for earlier, sym in enumerate(new):
        if sym in at.scope.indices or sym in at.scope.variables or sym in new[:earlier]:
            yield f"{sym} is declared already"
        if sym.name in at.scope.buffers:
            yield f"{sym} is the name of a buffer"


def indices_are_in_scope(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Index expressions of operations use symbols in scope only."""
    unknown = at.scope.unknown(stmt.exprs) if isinstance(stmt, k.Operation) else ()
    if unknown:
        yield f"no {', '.join(map(str, unknown))} in scope"


def barriers_are_barriers(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Operations on barriers name elements of barrier arrays, and no other access does."""
    meant = stmt.barriers if isinstance(stmt, k.Operation) else ()
    for barrier in meant:
        array = at.array(barrier.buffer)
        if array is None or not array.barrier:
            yield f"{barrier.buffer.name} holds no barriers"
    held = [array.buffer for array in at.kernel.arrays if array.barrier]
    nodes = (node for value in k.values(stmt) for node in walk(value)) if held else ()
    for load in (node for node in nodes if isinstance(node, Load)):
        if any(load.buffer is buffer for buffer in held) and not any(load is barrier for barrier in meant):
            yield f"{load.buffer.name} holds barriers, not numbers"


def all_come_who_must(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Control flow around an operation of several threads is uniform in their group; a block may be smaller than a warp."""
    if isinstance(stmt, k.Operation) and stmt.meets is not None:
        group = at.kernel.group(stmt.meets)
        yield from at.parted(min(group, at.kernel.threads) if group > 0 else group)


def bounds_are_in_scope(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A loop's bounds and step use symbols in scope only."""
    if isinstance(stmt, k.For):
        unknown = at.scope.unknown((stmt.lo, stmt.hi, stmt.step))
        if unknown:
            yield f"no {', '.join(map(str, unknown))} in scope"


def step_is_positive(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The step of a loop is positive."""
    if isinstance(stmt, k.For) and not (stmt.step.is_constant and stmt.step.constant > 0):
        sizes: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in at.kernel.sizes}
        if not Known(sizes).positive(stmt.step):
            yield f"step {stmt.step} is not known to be positive"


def loop_kind_is_known(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The kind is serial, unroll or simd; only an unrolled loop has a factor."""
    if isinstance(stmt, k.For):
        if stmt.kind not in ("serial", "unroll", "simd"):
            yield f"no loop is {stmt.kind}"
        if stmt.factor < 0 or (stmt.factor and stmt.kind != "unroll"):
            yield f"a {stmt.kind} loop has the factor {stmt.factor}"


def unrolled_loop_counts_to_a_constant(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A completely unrolled loop has a constant trip count."""
    if not isinstance(stmt, k.For) or stmt.kind != "unroll" or stmt.factor:
        return
    if not ((stmt.hi - stmt.lo).is_constant and stmt.step.is_constant):
        yield f"{stmt.lo}..{stmt.hi} by {stmt.step} has no constant length"


def simd_loop_is_plain(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A simd loop has step 1 and no nested simd loop, and its body has no barriers, exchanges or asynchronous operations."""
    if isinstance(stmt, k.For) and stmt.kind == "simd":
        if stmt.step is not expr(1):
            yield f"lanes go by {stmt.step}"
        if at.simd is not None:
            yield f"lanes of {stmt.sym} inside lanes of {at.simd.sym}"
        below = [s for s in k.walk(stmt.body) if isinstance(s, k.Operation)]
        if any(s.meets is not None for s in below):
            yield "lanes cannot wait for each other"
        if any(s.meets is None and not s.IN_LANES for s in below):
            yield "lanes have no copies of their own to wait for"


def reductions_are_of_lanes(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Only a simd loop has reductions; they use known operations and variables declared before the loop."""
    if isinstance(stmt, k.For):
        if stmt.reductions and stmt.kind != "simd":
            yield f"a {stmt.kind} loop reduces nothing"
        for sym, op in stmt.reductions:
            if sym not in at.scope.variables:
                yield f"variable {sym} is not declared here"
            if op not in ("add", "mul", "max", "min", "and", "or"):
                yield f"{op} is no reduction"


def condition_is_bool(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The condition of an `if` is a bool."""
    if isinstance(stmt, k.If) and stmt.condition.dtype != BOOL:
        yield f"the condition is {stmt.condition.dtype}"


LOOP_RULES: tuple[Rule, ...] = (
    bounds_are_in_scope,
    step_is_positive,
    loop_kind_is_known,
    unrolled_loop_counts_to_a_constant,
    turns_apart_are_few,
    simd_loop_is_plain,
    reductions_are_of_lanes,
)

GENERAL: tuple[Rule, ...] = (
    name_is_new,
    values_are_well_formed,
    indices_are_in_scope,
    barriers_are_barriers,
)
"""The rules of every statement."""

RULES_OF: dict[type[k.Stmt], tuple[Rule, ...]] = {
    k.For: (*GENERAL, *LOOP_RULES),
    k.If: (*GENERAL, condition_is_bool, roles_are_of_warps, registers_are_those_of_the_block, between_roles_is_nothing),
    **{kind: (*GENERAL, *kind.RULES, all_come_who_must) for kind in OPERATIONS},
}
"""The rules of each kind of statement."""

RULES = tuple(dict.fromkeys(rule for rules in RULES_OF.values() for rule in rules))


def body_complaints(body: tuple[k.Stmt, ...], at: Place) -> Iterator[tuple[k.Stmt, str]]:
    """The complaints about the statements of a block and their nested ones, in textual order."""
    for stmt in body:
        for rule in RULES_OF.get(type(stmt), ()):
            for complaint in rule(stmt, at):
                yield stmt, f"{rule.__name__}: {complaint}"
        if isinstance(stmt, k.For | k.If):
            inside = at.inside(stmt)
            for block in k.blocks(stmt):
                yield from body_complaints(block, inside)
        at = at.after(stmt)
