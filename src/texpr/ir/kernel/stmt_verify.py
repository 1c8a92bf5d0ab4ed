"""What makes a statement of a kernel well formed, rule by rule; rules of one family of operations stand with it."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir import kernel as k
from texpr.ir.kernel.place import Place, Rule
from texpr.ir.ops import OPERATIONS
from texpr.ir.value import Load, walk
from texpr.ir.value.types import BOOL
from texpr.ir.value.verify import complaints
from texpr.support.limits import LARGEST_INT


def values_are_well_formed(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Every value keeps the rules of values."""
    for value in k.values(stmt):
        yield from complaints(value, at.scope)


def name_is_new(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A loop index or variable hides nothing that is in scope."""
    new = (stmt.sym,) if isinstance(stmt, k.For) else tuple(b.sym for b in stmt.bound) if isinstance(stmt, k.Operation) else ()
    for earlier, sym in enumerate(new):
        if sym in at.scope.indices or sym in at.scope.variables or sym in new[:earlier]:
            yield f"{sym} is declared already"
        if sym.name in at.scope.buffers:
            yield f"{sym} is the name of a buffer"


def indices_are_in_scope(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Coordinates, lanes and parities name what is there."""
    unknown = at.scope.unknown(stmt.exprs) if isinstance(stmt, k.Operation) else ()
    if unknown:
        yield f"no {', '.join(map(str, unknown))} in scope"


def barriers_are_barriers(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """What is waited at is an element of an array of barriers, and nothing else touches those."""
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
    """Control flow around what threads do together is the same for all of them; a block may have fewer than a warp."""
    if isinstance(stmt, k.Operation) and stmt.meets is not None:
        group = at.kernel.group(stmt.meets)
        yield from at.parted(min(group, at.kernel.threads) if group > 0 else group)


def bounds_are_in_scope(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A loop's bounds and step name what is there."""
    if isinstance(stmt, k.For):
        unknown = at.scope.unknown((stmt.lo, stmt.hi, stmt.step))
        if unknown:
            yield f"no {', '.join(map(str, unknown))} in scope"


def step_is_positive(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A loop goes forward."""
    if isinstance(stmt, k.For) and not (stmt.step.is_constant and stmt.step.constant > 0):
        sizes: dict[Sym, Range] = {size: (0, LARGEST_INT) for size in at.kernel.sizes}
        if not Known(sizes).positive(stmt.step):
            yield f"step {stmt.step} is not known to be positive"


def loop_kind_is_known(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """serial, unroll or simd; only an unrolled one has a factor."""
    if isinstance(stmt, k.For):
        if stmt.kind not in ("serial", "unroll", "simd"):
            yield f"no loop is {stmt.kind}"
        if stmt.factor < 0 or (stmt.factor and stmt.kind != "unroll"):
            yield f"a {stmt.kind} loop has the factor {stmt.factor}"


def unrolled_loop_counts_to_a_constant(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The trip count of a loop that is unrolled wholly is known."""
    if not isinstance(stmt, k.For) or stmt.kind != "unroll" or stmt.factor:
        return
    if not ((stmt.hi - stmt.lo).is_constant and stmt.step.is_constant):
        yield f"{stmt.lo}..{stmt.hi} by {stmt.step} has no constant length"


def simd_loop_is_plain(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Lanes go by 1, contain no other lanes, and neither wait nor exchange nor start what is waited for."""
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
    """Only a simd loop reduces, into variables declared before it, by known operations."""
    if isinstance(stmt, k.For):
        if stmt.reductions and stmt.kind != "simd":
            yield f"a {stmt.kind} loop reduces nothing"
        for sym, op in stmt.reductions:
            if sym not in at.scope.variables:
                yield f"variable {sym} is not declared here"
            if op not in ("add", "mul", "max", "min", "and", "or"):
                yield f"{op} is no reduction"


def condition_is_bool(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """An `if` decides by a bool."""
    if isinstance(stmt, k.If) and stmt.condition.dtype != BOOL:
        yield f"the condition is {stmt.condition.dtype}"


LOOP_RULES: tuple[Rule, ...] = (
    bounds_are_in_scope,
    step_is_positive,
    loop_kind_is_known,
    unrolled_loop_counts_to_a_constant,
    simd_loop_is_plain,
    reductions_are_of_lanes,
)

GENERAL: tuple[Rule, ...] = (
    name_is_new,
    values_are_well_formed,
    indices_are_in_scope,
    barriers_are_barriers,
)
"""What every statement keeps."""

RULES_OF: dict[type[k.Stmt], tuple[Rule, ...]] = {
    k.For: (*GENERAL, *LOOP_RULES),
    k.If: (*GENERAL, condition_is_bool),
    **{kind: (*GENERAL, *kind.RULES, all_come_who_must) for kind in OPERATIONS},
}
"""The rules of each kind of statement."""

RULES = tuple(dict.fromkeys(rule for rules in RULES_OF.values() for rule in rules))


def body_complaints(body: tuple[k.Stmt, ...], at: Place) -> Iterator[tuple[k.Stmt, str]]:
    """Everything wrong with the statements of a block and those below them, in textual order."""
    for stmt in body:
        for rule in RULES_OF.get(type(stmt), ()):
            for complaint in rule(stmt, at):
                yield stmt, f"{rule.__name__}: {complaint}"
        if isinstance(stmt, k.For | k.If):
            inside = at.inside(stmt)
            for block in k.blocks(stmt):
                yield from body_complaints(block, inside)
        at = at.after(stmt)
