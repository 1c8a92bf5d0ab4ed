"""What makes a statement of a kernel well formed, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from texpr.affine.expr import ONE, ZERO, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir import kernel as k
from texpr.ir.place import VALUED, Place, Rule
from texpr.ir.tile_verify import TILE_RULES
from texpr.ir.transfer_verify import TRANSFER_RULES
from texpr.ir.types import BOOL, DType
from texpr.ir.uniformity import CLUSTER
from texpr.ir.updates import sum_and_product
from texpr.ir.value_verify import complaints
from texpr.isa.levels import Level, Space
from texpr.support.limits import LARGEST_INT

WARP = 32
ATOMIC_OPS = {"add": "number", "min": "number", "max": "number", "and": "integer", "or": "integer"}
"""What an atomic may do, and to which types (`and`, `or` to bool as well)."""


def values_are_well_formed(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Every value keeps the rules of values."""
    for value in k.values(stmt):
        yield from complaints(value, at.scope)


def name_is_new(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A loop index or variable hides nothing that is in scope."""
    match stmt:
        case k.For() | k.Declare():
            new = (stmt.sym,)
        case k.Exchange() | k.Shuffle():
            new = (stmt.target,)
        case k.LoadVector():
            new = stmt.targets
        case _:
            return
    for earlier, sym in enumerate(new):
        if sym in at.scope.indices or sym in at.scope.variables or sym in new[:earlier]:
            yield f"{sym} is declared already"
        if sym.name in at.scope.buffers:
            yield f"{sym} is the name of a buffer"


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
        if any(isinstance(s, k.Barrier | k.Exchange | k.Shuffle) for s in k.walk(stmt.body)):
            yield "lanes cannot wait for each other"
        if any(isinstance(s, k.Transfer) and not isinstance(s, k.LoadVector | k.StoreVector) for s in k.walk(stmt.body)):
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


def first_value_has_the_type(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A variable starts with a value of its type."""
    if isinstance(stmt, k.Declare) and stmt.value.dtype != stmt.dtype:
        yield f"{stmt.sym} is {stmt.dtype}, its value {stmt.value.dtype}"


def assigned_variable_is_declared(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Only variables are assigned, with values of their type."""
    if isinstance(stmt, k.Assign):
        dtype = at.scope.variables.get(stmt.sym)
        if dtype is None:
            yield f"variable {stmt.sym} is not declared here"
        elif stmt.value.dtype != dtype:
            yield f"{stmt.sym} is {dtype}, its value {stmt.value.dtype}"


@lru_cache(maxsize=16)
def _declared(loop: k.For) -> frozenset[Sym]:
    """The variables that are declared in a loop."""
    inside = tuple(k.walk(loop.body))
    vectors = (sym for s in inside if isinstance(s, k.LoadVector) for sym in s.targets)
    return frozenset((*(s.sym for s in inside if isinstance(s, k.Declare)), *vectors))


def lanes_assign_their_own(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Below a simd loop a variable from outside is assigned only as a reduction."""
    simd = at.simd if isinstance(stmt, k.Assign) else None
    if isinstance(stmt, k.Assign) and simd is not None:
        joined = any(stmt.sym is sym for sym, _ in simd.reductions)
        if not joined and stmt.sym not in _declared(simd):
            yield f"all lanes of {simd.sym} assign {stmt.sym}"


def written_memory_may_be_written(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Memory of the kernel's own, or a buffer that the kernel says it writes."""
    if isinstance(stmt, k.Store | k.Atomic | k.StoreVector):
        buffer = stmt.target.buffer
        if not any(array.buffer is buffer for array in at.kernel.arrays) and buffer.name not in at.kernel.written:
            yield f"{buffer.name} is not said to be written"
        if buffer in at.kernel.scalars:
            yield f"{buffer.name} is passed by value"


def part_of_another_block_is_only_read(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Of an array of a cluster, a block writes to its own part, and reads several elements at once from there alone."""
    if isinstance(stmt, k.Store | k.Atomic | k.StoreVector | k.LoadVector):
        place = stmt.source if isinstance(stmt, k.LoadVector) else stmt.target
        shared = any(a.buffer is place.buffer and a.space is Space.CLUSTER for a in at.kernel.arrays)
        own = place.index[0].as_sym if place.index else None
        if shared and (own is None or own is not at.kernel.rank or isinstance(stmt, k.Atomic)):
            yield f"{place.buffer.name} has a part in each block, and this is not only of its own"


def written_value_has_the_type(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The value has the type of the element."""
    match stmt:
        case k.Store() | k.Atomic():
            given = (stmt.value,)
        case k.StoreVector():
            given = stmt.values
        case _:
            return
    for value in given:
        if value.dtype != stmt.target.dtype:
            yield f"{stmt.target.buffer.name} holds {stmt.target.dtype}, the value is {value.dtype}"


def fused_is_a_sum_of_a_product(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """What is fused is x ± a · b."""
    if isinstance(stmt, k.Assign | k.Store) and stmt.fused and sum_and_product(stmt.value) is None:
        yield "nothing is there to be fused"


def atomic_operation_fits(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """add, min, max of numbers; and, or of integers and bools."""
    if isinstance(stmt, k.Atomic):
        dtype, wanted = stmt.target.dtype, ATOMIC_OPS.get(stmt.op)
        if wanted is None:
            yield f"no atomic is called {stmt.op}"
        elif not _takes(wanted, dtype):
            yield f"no atomic {stmt.op} of {dtype}"


def _takes(wanted: str, dtype: DType) -> bool:
    return dtype.is_integer or (dtype.is_float if wanted == "number" else dtype == BOOL)


def atomic_scope_fits(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Threads meet in memory that they share, at a level at which they meet."""
    if isinstance(stmt, k.Atomic):
        if stmt.scope not in (Level.GRID, Level.CLUSTER, Level.BLOCK):
            yield f"no atomic acts at {stmt.scope.value}"
        if any(a.buffer is stmt.target.buffer and a.space in (Space.LOCAL, Space.LANES) for a in at.kernel.arrays):
            yield f"{stmt.target.buffer.name} is one thread's own"


def barrier_is_of_threads(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A barrier joins a cluster, a block, or some lanes of a warp; the kernel has threads to join."""
    if isinstance(stmt, k.Barrier):
        if stmt.level not in (Level.CLUSTER, Level.BLOCK, Level.WARP):
            yield f"no barrier joins a {stmt.level.value}"
        if stmt.level is Level.CLUSTER and not any(axis.level is Level.CLUSTER for axis in at.kernel.axes):
            yield "the kernel has no clusters to join"
        if not 1 <= stmt.lanes <= WARP or stmt.lanes & (stmt.lanes - 1):
            yield f"{stmt.lanes} lanes are no power of two up to {WARP}"
        if not any(axis.level is Level.BLOCK for axis in at.kernel.axes):
            yield "the kernel has no threads to join"
        parts = tuple(stmt.part * count for count in (2, 4, 8))
        if stmt.part and (stmt.level is not Level.BLOCK or stmt.part % WARP or at.kernel.threads not in parts):
            yield f"{stmt.part} threads are no half, quarter or eighth of {at.kernel.threads} in whole warps"


def barrier_is_met_by_all(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Control flow around a barrier is the same for all who must arrive."""
    if isinstance(stmt, k.Barrier):
        groups = {Level.CLUSTER: CLUSTER, Level.BLOCK: stmt.part or None}
        yield from _met(at, groups.get(stmt.level, stmt.lanes))


def exchange_is_within_a_warp(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Groups are powers of two of lanes, and the other lane is another one of the group, in each turn of an unrolled loop."""
    if isinstance(stmt, k.Exchange):
        shifts = {expr(s.sym): s.hi for s in at.around if isinstance(s, k.For) and s.kind == "unroll" and s.lo is ZERO}
        last = {ZERO: ONE, **shifts}.get(stmt.shift)
        if last is None or not last.is_constant or 0 < stmt.mask < 1 << max(last.constant - 1, 0):
            yield f"lane ^ {stmt.mask} >> {stmt.shift} is perhaps no other lane"
        if not 2 <= stmt.width <= WARP or stmt.width & (stmt.width - 1):
            yield f"{stmt.width} lanes are no power of two from 2 to {WARP}"
        if not 1 <= stmt.mask < stmt.width:
            yield f"lane ^ {stmt.mask} is no other lane of {stmt.width}"


def exchange_is_met_by_all(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Control flow around an exchange is the same for all lanes of a warp."""
    if isinstance(stmt, k.Exchange):
        if at.kernel.threads % stmt.width:
            yield f"{at.kernel.threads} threads are no groups of {stmt.width} lanes"
        yield from _met(at, min(WARP, at.kernel.threads))


def shuffle_is_of_lanes(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """What lanes read of each other is in registers that are there for it, in a lane that is an index expression."""
    if isinstance(stmt, k.Shuffle):
        if not any(a.buffer is stmt.source.buffer and a.space is Space.LANES for a in at.kernel.arrays):
            yield f"{stmt.source.buffer.name} is in no registers that other lanes may read"
        unknown = at.scope.unknown((stmt.lane,))
        if unknown:
            yield f"no {', '.join(map(str, unknown))} in scope"


def shuffle_is_met_by_all(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Control flow around a shuffle is the same for all lanes of a warp."""
    if isinstance(stmt, k.Shuffle):
        yield from _met(at, min(WARP, at.kernel.threads))


def _met(at: Place, group: int | None) -> Iterator[str]:
    apart = at.disagreement(group)
    if apart is not None:
        who = "threads of a block" if group is None else f"{group} lanes" if group else "blocks of a cluster"
        what = f"loop over {apart.sym}" if isinstance(apart, k.For) else "branch"
        yield f"{who} may part at the {what} around it"


RULES: Mapping[Rule, tuple[type[k.Stmt], ...]] = {
    name_is_new: (k.For, k.Declare, k.Exchange, k.Shuffle, k.LoadVector),
    bounds_are_in_scope: (k.For,),
    values_are_well_formed: VALUED,
    step_is_positive: (k.For,),
    loop_kind_is_known: (k.For,),
    unrolled_loop_counts_to_a_constant: (k.For,),
    simd_loop_is_plain: (k.For,),
    reductions_are_of_lanes: (k.For,),
    condition_is_bool: (k.If,),
    first_value_has_the_type: (k.Declare,),
    assigned_variable_is_declared: (k.Assign,),
    lanes_assign_their_own: (k.Assign,),
    written_memory_may_be_written: (k.Store, k.Atomic, k.StoreVector),
    part_of_another_block_is_only_read: (k.Store, k.Atomic, k.StoreVector, k.LoadVector),
    written_value_has_the_type: (k.Store, k.Atomic, k.StoreVector),
    fused_is_a_sum_of_a_product: (k.Assign, k.Store),
    atomic_operation_fits: (k.Atomic,),
    atomic_scope_fits: (k.Atomic,),
    barrier_is_of_threads: (k.Barrier,),
    barrier_is_met_by_all: (k.Barrier,),
    exchange_is_within_a_warp: (k.Exchange,),
    exchange_is_met_by_all: (k.Exchange,),
    shuffle_is_of_lanes: (k.Shuffle,),
    shuffle_is_met_by_all: (k.Shuffle,),
    **TRANSFER_RULES,
    **TILE_RULES,
}
"""Each rule, and the kinds of statements of which it says anything."""

RULES_OF = {kind: [rule for rule, kinds in RULES.items() if kind in kinds] for kinds in RULES.values() for kind in kinds}
"""The rules of each kind."""


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
