"""A way to make a parallel reduction explicit, as a record, and predicates that several of them share. Each lives in a file
of `ways`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cached_property
from math import inf, prod

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.program.marked import asked_at, is_atomic, level_of
from texpr.ir.program.marks import Bind
from texpr.ir.program.updates import Accumulator, accumulators
from texpr.ir.program.uses import bound, loads, used
from texpr.ir.value import Buffer, Load
from texpr.mapping.bands import band, contiguous
from texpr.mapping.bound import is_asked
from texpr.mapping.reductions.reached import Around, lines
from texpr.schedule.edits import left_out
from texpr.schedule.stage.combining import combined_by_engine
from texpr.schedule.tree import Body
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace


class Rank(IntEnum):
    """The order of the applicable ways, by what each saves."""

    GIVEN = 0
    """A schedule determines the order of the loops."""
    ALONE = 1
    """One thread computes all of it, and other iterations occupy the other threads."""
    PLAIN = 2
    """There is no reduction."""
    CUT = 3
    """Statements that reduce independently become reductions of their own."""
    ATOMIC = 4
    """Iterations reduce into elements that depend on the reduced index: atomics."""
    TEAM = 5
    """Threads share it, and combine their partial results once."""
    PARTS = 6
    """Blocks, or threads, compute a part each, and these are combined in memory."""
    ORDER = 7
    """Sequentially: always possible."""


class Limits(Record):
    """The limits for `arrange`, in iterations."""

    chunk: int
    few: int
    rows: int


class Case(Record, eq=False, dict=True):
    """A `par` and the band of loops from it inward. `at_top`: it is outermost, so that blocks may share it.

    `fresh` makes a fresh name from one. `team` arranges the body of a team, `below` the replacement of the `par`, `again`
    another loop in its place. `sizes`: what is known before the function runs.
    """

    par: ir.Par
    around: Around
    at_top: bool
    limits: Limits
    sizes: frozenset[Sym]
    fresh: Callable[[str], str]
    team: Callable[[Body, Around], Body]
    below: Callable[[Body, Around], Body]
    again: Callable[[ir.Par], Body]

    @cached_property
    def band(self) -> tuple[tuple[ir.Par, ...], Body]:
        """The loops, and the body of the innermost."""
        return band(self.par)

    @cached_property
    def _parted(self) -> tuple[tuple[ir.Par, ...], tuple[ir.Par, ...]]:
        return parted(told_apart(*self.band))

    @property
    def body(self) -> Body:
        """The body of all loops."""
        return self.band[1]

    @property
    def plain(self) -> tuple[ir.Par, ...]:
        """The loops that do not reduce."""
        return self._parted[0]

    @property
    def reducing(self) -> tuple[ir.Par, ...]:
        """The loops that reduce."""
        return self._parted[1]

    @cached_property
    def found(self) -> tuple[Accumulator, ...]:
        """The accumulators."""
        return accumulators(self.body, buffers(self.reducing))

    @cached_property
    def is_invariant(self) -> bool:
        """Whether each accumulator is one element for all reduced iterations."""
        return invariant(self.found, self.reducing, self.body)

    def has_room(self, loops: Sequence[ir.Loop]) -> bool:
        """Whether memory for each iteration can be allocated before a function runs."""
        return all(loop.extent.syms() <= self.sizes for loop in loops)


class Way(Record):
    """`make`: the replacement of the `par`, None where it cannot be built after all, and the next way is tried."""

    rank: Rank
    applies: Callable[[Case], bool]
    make: Callable[[Case], Body | None]


def parted(loops: tuple[ir.Par, ...]) -> tuple[tuple[ir.Par, ...], tuple[ir.Par, ...]]:
    """The loops that do not reduce, and those that do."""
    return tuple(p for p in loops if not p.reduce), tuple(p for p in loops if p.reduce)


def told_apart(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Par, ...]:
    """`loops` with `reduce` removed from those whose index is a subscript, in one dimension, of all accumulators: their
    iterations are independent."""

    def never_meets(loop: ir.Par) -> bool:
        places: dict[Buffer, set[int]] = {}
        for target in (t for a in accumulators(body, frozenset(loop.reduce)) for t in a.targets):
            own = {at for at, e in enumerate(target.index) if e.as_sym is loop.sym}
            places[target.buffer] = places.get(target.buffer, own) & own
        return all(places.values())

    return tuple(replace(p, reduce=()) if p.reduce and not is_asked(p) and never_meets(p) else p for p in loops)


def buffers(reducing: tuple[ir.Par, ...]) -> frozenset[Buffer]:
    """The buffers that the loops reduce into."""
    return frozenset(b for loop in reducing for b in loop.reduce)


def invariant(found: tuple[Accumulator, ...], reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether each accumulator is one element for all reduced iterations, and no atomics are requested."""
    varying = frozenset(loop.sym for loop in reducing) | bound(body)
    local = frozenset(s.buffer for s in ir.walk(body) if isinstance(s, ir.New))
    return not any(is_atomic(loop) for loop in reducing) and not any(
        used(target) & varying or target.data or target.buffer in local for a in found for target in a.targets
    )


def stay_apart(plain: tuple[ir.Par, ...], reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether no two iterations of `plain` reduce into one element, for any iterations of `reducing`."""
    varying = frozenset(loop.sym for loop in (*plain, *reducing)) | bound(body)
    targets: dict[Buffer, list[Load]] = {}
    for each in (t for a in accumulators(body, buffers(reducing)) for t in a.targets):
        targets.setdefault(each.buffer, []).append(each)

    def tells(subscript: Expr, sym: Sym, data: frozenset[Sym]) -> bool:
        return subscript.syms() & (varying | data) == frozenset({sym}) and bool(lines((subscript,), sym))

    def apart(loop: ir.Par, found: list[Load]) -> bool:
        first, data = found[0], frozenset(s for t in found for s, _ in t.data)
        same = (e for at, e in enumerate(first.index) if all(t.index[at] == e for t in found))
        return any(tells(e, loop.sym, data) for e in same)

    return all(apart(loop, found) for found in targets.values() for loop in plain)


def most(loops: Sequence[ir.Loop]) -> float:
    """The product of the trip counts of nested loops; infinite where the program does not bound it."""
    return prod((loop.extent.constant if loop.extent.is_constant else inf) for loop in loops)


def prefers_thread(thread: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether accesses that vary with outer iterations and inner loops are contiguous along outer iterations only."""
    loops = {s.sym for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq)}
    every = {load for stmt in ir.walk(body) if isinstance(stmt, ir.Bind) for load in loads(stmt)}
    found = [contiguous(load) for load in every if thread.sym in (syms := used(load)) and syms & loops]
    return any(thread.sym in syms for syms in found) and not any(loops & syms for syms in found)


def as_seq(loops: tuple[ir.Par, ...]) -> tuple[ir.Seq, ...]:
    """The loops as `seq`s. Raises Limitation E0909 for one that a schedule bound to blocks."""
    bound = next((p for p in loops if (level_of(p) or "").startswith("grid")), None)
    if bound is not None:
        reason = f"blocks that share `{bound.sym.base}` would meet in elements that threads do not combine so"
        staged = all(
            combined_by_engine(a.update, a.targets[0].dtype) for a in accumulators(bound.body, frozenset(bound.reduce))
        )
        help = "staged by via=tma, the engine combines such elements" if staged else None
        span = asked_at(bound, Bind)
        raise limitation("E0909", span, reason, help=help, offers=left_out(span, "leave the loop unbound"))
    return tuple(map(ir.in_turn, loops))


def serial(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """`body` as one thread runs it: its reductions are sequential loops."""

    def each(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Par() if stmt.reduce:
                (loop,) = as_seq((stmt,))
                return replace(loop, body=serial(stmt.body))
            case ir.Par() | ir.Seq() | ir.Instruction():
                return replace(stmt, body=serial(stmt.body))
            case ir.If():
                return replace(stmt, then=serial(stmt.then), orelse=serial(stmt.orelse))
            case _:
                return stmt

    return tuple(each(stmt) for stmt in body)
