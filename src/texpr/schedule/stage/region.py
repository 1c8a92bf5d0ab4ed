"""The region of a buffer that one iteration of a loop accesses: its accesses, and their bounding box.

An index inside the loop is a base, invariant during the iteration, plus an offset within constant bounds:

    A[i, k] with i = 128 · bi + ti, k = 16 · ko + ki, in an iteration of ko:  base (128 · bi, 16 · ko), box 128 × 16
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from texpr.affine.expr import ZERO, Expr, Sym, expr, term
from texpr.affine.ranges import bounds
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Cast, Load, Value
from texpr.presburger.formula import Formula, Ge, compare, conj, disj
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine, is_affine
from texpr.presburger.points import Points
from texpr.relation.facts import in_loop, known
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.state import State
from texpr.schedule.tree import Body, replaced
from texpr.support.record import Record, replace


class Use(Record, eq=False):
    """One access. `outer`, `inner`: the loops around it up to the loop in question, and those inside of that. `index`: its
    subscripts over the IterDomains of these loops. `tested`: whether it is under an `if`."""

    stmt: ir.Stmt
    load: Load
    writes: bool
    outer: tuple[ir.Loop, ...]
    inner: tuple[ir.Loop, ...]
    index: tuple[Expr, ...]
    tested: bool


class Box(Record):
    """Elements base, base + step, …, `extent` of them, along each dimension; bases over the IterDomains outside.

    `grain` divides the distance of any two accessed elements, 0 where there is one: a step has to divide it. `cuts`: the
    distance between iterations of each loop inside, in elements: candidates for the box from splits by hand. `early`: of the
    elements along the last dimension, those before the first accessed one.
    """

    base: tuple[Expr, ...]
    extent: tuple[int, ...]
    grain: tuple[int, ...]
    step: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...] = ()
    early: int = 0

    def every(self, step: tuple[int, ...]) -> Box:
        """Every `step`-th element of a box of step 1."""
        extent = tuple((e - 1) // s + 1 for e, s in zip(self.extent, step, strict=True))
        return replace(self, extent=extent, step=step)

    def holds(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The place in the box of the element at `index`."""
        return tuple((e - b) // s for e, b, s in zip(index, self.base, self.step, strict=True))


class NoBox(Exception):
    """The region has no bounding box of constant size; the text is the reason, `use` the access at fault, and `help` a
    remedy: to split loops that are `open`, to promise a `clause`."""

    def __init__(self, use: Use, reason: str, help: str | None = None, open: Sequence[Sym] = (), clause: str | None = None):
        super().__init__(reason)
        self.use = use
        self.help, self.open, self.clause = help, tuple(open), clause


def uses(state: State, buffer: Buffer, outer: Sequence[ir.Loop]) -> tuple[Use, ...]:
    """Every access of `buffer` inside the last loop of `outer`, in textual order; reads of a statement before its writes."""
    return tuple(_uses(state, buffer, outer[-1].body, tuple(outer), (), False))


def _uses(
    state: State, buffer: Buffer, body: Body, outer: tuple[ir.Loop, ...], inner: tuple[ir.Loop, ...], tested: bool
) -> Iterator[Use]:
    for stmt in body:
        targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
        found = [load for load in loads(stmt) if load.buffer is buffer and not any(load is t for t in targets)]
        found += [t for t in targets if t.buffer is buffer]
        for load in found:
            writes = any(load is t for t in targets)
            yield Use(stmt, load, writes, outer, inner, subscripts(state, load, (*outer, *inner)), tested)
        for block in ir.blocks(stmt):
            deeper = (*inner, stmt) if isinstance(stmt, ir.Par | ir.Seq) else inner
            yield from _uses(state, buffer, block, outer, deeper, tested or isinstance(stmt, ir.If))


def are_apart(found: Sequence[Use]) -> bool:
    """Whether each access has its own place: clones of a statement share theirs, and then their loops must not be split
    differently."""
    return len({id(use.load) for use in found}) == len({(id(use.load), use.index) for use in found})


def told_apart(state: State, at: ir.Loop, buffer: Buffer) -> State:
    """The same, where each access of `buffer` inside `at` is an object of its own."""

    def own(load: Load) -> Load | None:
        return replace(load) if load.buffer is buffer else None

    def target(load: Load) -> Load:
        return own(load) or load

    body = Rewriter(value=lambda value: replace_loads(value, own), target=target).block(at.body)
    return state.with_body(replaced(state.function.body, at, lambda _: (replace(at, body=body),)))


def subscripts(state: State, load: Load, around: tuple[ir.Loop, ...]) -> tuple[Expr, ...]:
    """The subscripts of an access over the IterDomains of the loops `around` it."""
    graph = state.graph(around)
    indices = graph.indices()
    facts = list(given(state.function))
    for leaf in graph.leaves:
        facts += in_loop(leaf.sym, leaf.extent.substitute(indices))
    simple = Simplifier(known(facts))
    return tuple(simple(e.substitute(indices)) for e in load.index)


def box(state: State, found: Sequence[Use]) -> Box:
    """The bounding box of all uses. Raises NoBox."""
    rank = len(found[0].index)
    bases: list[Expr] = []
    extents: list[int] = []
    grains: list[int] = []
    cuts: list[tuple[int, ...]] = []
    for dim in range(rank):
        lows: list[int] = []
        highs: list[int] = []
        base: Expr | None = None
        grain = 0
        parted: set[int] = set()
        for use in found:
            here, offset, (low, high) = _parted(state, use, dim)
            if base is None:
                base = here
            if not (here - base).is_constant:
                raise NoBox(use, f"its subscript {dim} starts at {here} and that of another access at {base}")
            shift = (here - base).constant
            lows.append(low + shift)
            highs.append(high + shift)
            grain = gcd(grain, shift, *(coefficient for _, coefficient in offset.terms))
            parted |= {abs(coefficient) for _, coefficient in offset.terms}
        assert base is not None
        bases.append(base + min(lows))
        extents.append(max(highs) - min(lows) + 1)
        grains.append(gcd(grain, min(lows)))
        cuts.append(tuple(sorted(parted)))
    return Box(tuple(bases), tuple(extents), tuple(grains), (1,) * rank, tuple(cuts))


def _parted(state: State, use: Use, dim: int) -> tuple[Expr, Expr, tuple[int, int]]:
    """One subscript as a base outside and an offset inside, with the minimum and maximum of the offset."""
    if use.load.data:
        raise NoBox(use, "its subscripts are data")
    domains = {state.domain(loop).sym: state.domain(loop) for loop in use.inner}
    ranges: dict[Sym, tuple[int | None, int | None]] = {}
    for sym, domain in domains.items():
        most = _most(state, use, domain.extent)
        ranges[sym] = (0, None if most is None else most - 1)
    base, offset = use.index[dim], ZERO
    for monomial, coefficient in use.index[dim].terms:
        part = term(monomial, coefficient)
        if part.syms() & domains.keys():
            base, offset = base - part, offset + part
    outside = offset.syms() - domains.keys()
    if outside:
        name = min(s.base for s in outside)
        reason = f"its subscript {dim}, {use.index[dim]}, mixes `{name}` with indices that vary inside"
        raise NoBox(use, reason, "in a box it is a number plus loops")
    low, high = bounds(offset, ranges)
    if low is None or high is None:
        open_ends = sorted((s for s in offset.syms() if ranges[s][1] is None), key=lambda s: s.base)
        reason = f"its subscript {dim} varies with `{open_ends[0].base}`, whose extent is not a constant"
        raise NoBox(use, reason, open=open_ends)
    return base, offset, (low, high)


def _most(state: State, use: Use, extent: Expr) -> int | None:
    """A constant upper bound of an inner extent, if one is promised: the size of the box."""
    return extent.constant if extent.is_constant else known(inside(state, use.outer)).bounds(extent)[1]


def varying(state: State, use: Use) -> tuple[ir.Loop, ...]:
    """The loops inside that the element depends on, outermost first."""
    indices = state.graph((*use.outer, *use.inner)).indices()
    syms = frozenset(s for e in use.load.index for s in e.substitute(indices).syms())
    return tuple(loop for loop in use.inner if state.domain(loop).sym in syms)


def inside(state: State, around: Sequence[ir.Loop]) -> tuple[Expr, ...]:
    """What is ≥ 0 where statements run in the loops `around`: the bounds of every IterDomain above these."""
    graph = state.graph(around)
    indices = graph.indices()
    facts = list(given(state.function))
    for leaf in graph.leaves:
        facts += in_loop(leaf.sym, leaf.extent.substitute(indices))
    for domain in graph.domains():
        if domain not in graph.leaves:
            index = indices[domain.sym]
            facts += (index, domain.extent.substitute(indices) - 1 - index)
    return (*facts, *_promised(state.function, around))


def _promised(function: ir.Function, around: Sequence[ir.Loop]) -> Iterator[Expr]:
    """The same, as callers promise it of what `let`s, of an iteration of one of these loops each, read from tables."""
    ranges = {each.buffer: each for each in function.assumes if isinstance(each, ir.InRange)}
    syms = {loop.sym for loop in around} if ranges else set[Sym]()
    bodies = (s.body for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and s.sym in syms)
    for stmt in (each for body in (function.body, *bodies) for each in body if isinstance(each, ir.Let)):
        table = table_of(stmt.value)
        if table is not None and table.buffer in ranges:
            yield expr(stmt.sym) - ranges[table.buffer].lo
            yield ranges[table.buffer].hi - 1 - expr(stmt.sym)


def table_of(value: Value) -> Load | None:
    """The element of a table that an integer is, which nothing writes and whose place is no data; None where it is none."""
    table = value.arg if isinstance(value, Cast) else value
    plain = isinstance(table, Load) and not table.data and table.buffer.role == "input" and value.dtype.is_integer
    return table if plain and isinstance(table, Load) else None


def is_met_again(state: State, like: Use, chosen: Sequence[ir.Loop], free: bool = False) -> bool:
    """Whether the element of `like` may be accessed again in another iteration of the loops `chosen` inside, or of a `par`
    around.

    Loops around the buffer's `new` do not count or, where `free`, loops that reduce into the buffer. True also where
    undecided.
    """
    buffer = like.load.buffer
    around = tuple(loop for loop in like.outer if not (_makes(loop, buffer) or (free and buffer in loop.reduce)))
    every = (*like.outer, *chosen)
    syms_of = {loop: state.domain(loop).sym for loop in every}
    one = {s: expr(left(s)) for s in syms_of.values()}
    other = {s: expr(right(s)) for s in syms_of.values()}
    indices = state.graph((*like.outer, *like.inner)).indices()
    index = [e.substitute(indices) for e in like.load.index]
    both = [Ge(e.substitute(side)) for e in inside(state, every) if is_affine(e) for side in (one, other)]
    meet = [compare("==", e.substitute(one), e.substitute(other)) for e in index]
    apart: list[Formula] = []
    same = [compare("==", one[syms_of[p]], other[syms_of[p]]) for p in like.outer if p not in around]
    for loop in (*around, *chosen):
        sym = syms_of[loop]
        if isinstance(loop, ir.Par) or loop in chosen:
            apart.append(conj((*same, compare("!=", one[sym], other[sym]))))
        same.append(compare("==", one[sym], other[sym]))
    try:
        return not Points(conj((*both, *meet, disj(apart))), sorted(state.function.sizes, key=str)).is_empty()
    except (NotAffine, Undecided):
        return True


def _makes(loop: ir.Loop, buffer: Buffer) -> bool:
    return any(isinstance(s, ir.New) and s.buffer is buffer for s in ir.walk(loop.body))


def cloned(state: State, chosen: Sequence[ir.Loop], name: str, shared: bool) -> tuple[State, tuple[ir.Loop, ...]]:
    """Fresh loops `name`_0, `name`_1, …, without bodies, over the IterDomains of `chosen`, with their bindings.

    `shared`: threads share them out, as each iteration copies an element of its own.
    """
    made: list[ir.Loop] = []
    for number, loop in enumerate(chosen):
        state, copy = state.copy_of(loop, f"{name}_{number}")
        made.append(ir.Par(copy.sym, copy.extent, (), directives=copy.directives, span=copy.span) if shared else copy)
    return state, tuple(made)


def nested(chosen: Sequence[ir.Loop], body: Body) -> Body:
    """`chosen` around `body`, the first outermost."""
    for loop in reversed(chosen):
        body = (_with_body(loop, body),)
    return body


def _with_body(loop: ir.Loop, body: Body) -> ir.Loop:
    match loop:
        case ir.Par():
            return ir.Par(loop.sym, loop.extent, body, (), None, loop.directives, loop.fully, loop.span)
        case ir.Seq():
            return ir.Seq(loop.sym, loop.extent, body, (), None, loop.directives, loop.span)
