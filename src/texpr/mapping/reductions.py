"""Parallel reductions made explicit in the program, before anything is mapped.

`par N |i| reduce(s) { s += e }` is, by what the text permits,

- a *team reduction*, kept as it is: partial values in registers, combined over the threads of a block;
- at the top of a program, two of them: blocks reduce chunks into a buffer of partial values, then one block reduces those;
- a `seq` loop of the thread that owns the element, where other `par`s give enough parallelism, or no order can be freed, or
  at most half as many iterations as a warp has threads;
- a plain `par` with atomic updates (`#atomic`): where the element depends on the reduced index, for integer updates and
  for maximum and minimum, or where the text asks.

Before: a function as checked. After: every `par … reduce` left is a team reduction or is marked `#atomic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from math import inf, prod

from texpr.affine.expr import Expr, Sym, expr, minimum
from texpr.ir import program as ir
from texpr.ir.rewrite import Rewriter, replace_loads, substitute_block
from texpr.ir.updates import identity, may_meet
from texpr.ir.uses import bound, loads, used
from texpr.ir.value import Buffer, Load
from texpr.mapping.apart import cut
from texpr.mapping.bands import band, contiguous, rebuild
from texpr.mapping.bound import is_asked, is_own
from texpr.schedule.combining import combined_by_engine
from texpr.schedule.marks import BIND, TENSOR, asked_at, level_of, mark
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace

BLOCK_CHUNK, CORE_CHUNK = 4096, 65536
"""Iterations of a reduction at the top of a program that one block, or one CPU core, takes at a time."""

FEW = 16
"""The most iterations that are too few for a warp: half of its threads, or more, would have none."""

ENOUGH = 128
"""Iterations that are threads enough, each of which does few others in turn."""


class Accumulator(Record):
    """An element (or tuple of elements) that iterations meet in, and how."""

    targets: tuple[Load, ...]
    update: ir.Update

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two updates of the same elements."""
        return tuple((t.buffer, t.index) for t in self.targets)


def accumulators(body: tuple[ir.Stmt, ...], reduce: frozenset[Buffer]) -> tuple[Accumulator, ...]:
    """The elements of the buffers in `reduce` that `body` updates, each once."""
    found: dict[tuple[object, ...], Accumulator] = {}
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Bind) and stmt.update is not None and stmt.targets[0].buffer in reduce:
            accumulator = Accumulator(stmt.targets, stmt.update)
            found.setdefault(accumulator.key, accumulator)
    return tuple(found.values())


def is_atomic(loop: ir.Loop) -> bool:
    """Whether updates of the loop's reduce buffers are atomic."""
    return any(d.name == "atomic" for d in loop.directives)


def arrange(function: ir.Function, chunk: int = BLOCK_CHUNK, few: int = 0, *, across: bool = False) -> ir.Function:
    """`function` with every parallel reduction in one of the forms above. `chunk`: what one block reduces at the top.

    `few`: iterations of which a team would leave most threads idle, so that one thread does them in turn where there are
    iterations around them for others. `across`: whether sums are one thread's whose neighbours read neighbouring elements, so
    that its lanes make several.
    """
    names = {b.name for b in ir.buffers(function)} | {s.name for s in bound(function.body)} | {s.name for s in function.sizes}
    return replace(function, body=_Arranger(chunk, few, across, names).host(function.body))


class _Arranger:
    def __init__(self, chunk: int, few: int, across: bool, names: set[str]):
        self.chunk = chunk
        self.few = few
        self.across = across
        self.names = names

    def fresh(self, base: str) -> str:
        for number in count():
            name = base if number == 0 else f"{base}_{number}"
            if name not in self.names:
                self.names.add(name)
                return name
        raise AssertionError

    def host(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Statements outside every `par`."""
        return tuple(self._each(body, self.host, self._top))

    def team(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Statements that a team of threads shares."""
        return tuple(self._each(body, self.team, self._inner))

    def _each(
        self,
        body: tuple[ir.Stmt, ...],
        below: Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]],
        par: Callable[[ir.Par], tuple[ir.Stmt, ...]],
    ) -> Iterator[ir.Stmt]:
        for stmt in body:
            match stmt:
                case ir.Par():
                    yield from par(stmt)
                case ir.Seq():
                    yield replace(stmt, body=below(stmt.body))
                case ir.If():
                    yield replace(stmt, then=below(stmt.then), orelse=below(stmt.orelse))
                case ir.Instruction():
                    yield replace(stmt, body=below(stmt.body))
                case _:
                    yield stmt

    def _top(self, par: ir.Par) -> tuple[ir.Stmt, ...]:
        loops, body = band(par)
        if _has_order(loops):
            return _in_place(loops, body)
        plain, reducing = _parted(_told_apart(loops, body))
        few = _most(reducing) * _together(body) <= self.few and not any(map(is_asked, loops))
        if few and _most(plain) >= ENOUGH:
            return rebuild(plain, _in_turn(rebuild(reducing, body)))
        if not reducing:
            side = self.across and _prefers_thread(plain[-1], body)
            return rebuild(plain, serial(body) if side else self.team(body))
        found = accumulators(body, _buffers(reducing))
        if not _invariant(found, reducing, body):
            parts = cut(par, self.fresh) if not plain else (par,)
            if parts[0] is not par:
                return tuple(stmt for part in parts for stmt in self._top(part))
            return self._meeting(plain, reducing, body, found, self.host)
        if plain:
            if _prefers_team(plain[-1], reducing[-1], body):
                return rebuild(plain, rebuild(reducing, serial(body)))
            return rebuild(plain, rebuild(_as_seq(reducing), serial(body)))
        return self._split(reducing, body, found)

    def _inner(self, par: ir.Par) -> tuple[ir.Stmt, ...]:
        loops, body = band(par)
        if _has_order(loops):
            return _in_place(loops, body)
        plain, reducing = _parted(_told_apart(loops, body))
        if not reducing:
            return rebuild(plain, serial(body))
        found = accumulators(body, _buffers(reducing))
        if not _invariant(found, reducing, body):
            return self._meeting(plain, reducing, body, found, self.team)
        if plain:
            return rebuild(plain, rebuild(_as_seq(reducing), serial(body)))
        return rebuild(reducing, serial(body))

    def _meeting(
        self,
        plain: tuple[ir.Par, ...],
        reducing: tuple[ir.Par, ...],
        body: tuple[ir.Stmt, ...],
        found: tuple[Accumulator, ...],
        below: Callable[[tuple[ir.Stmt, ...]], tuple[ir.Stmt, ...]],
    ) -> tuple[ir.Stmt, ...]:
        """Iterations meet in elements that depend on the reduced index: atomics, or in order."""
        if all(_may_be_atomic(a, reducing, body) for a in found):
            return rebuild(plain, rebuild(tuple(map(_atomic, reducing)), serial(body)))
        if plain:
            return rebuild(plain, rebuild(_as_seq(reducing), serial(body)))
        return rebuild(_as_seq(reducing), below(body))

    def _split(
        self, reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...], found: tuple[Accumulator, ...]
    ) -> tuple[ir.Stmt, ...]:
        """Chunks of the outermost loop to blocks, each with its own accumulator; then one block combines the partial values."""
        outer, *inner = reducing
        chunk = _chunk(inner, self.chunk)
        blocks = (outer.extent + (chunk - 1)) // chunk
        block = Sym(self.fresh(f"{outer.sym.base}_block"))
        own, partial = self._buffers(found, blocks)
        start = expr(block) * chunk
        moved = substitute_block(body, {outer.sym: start + expr(outer.sym)})
        part = replace(outer, extent=minimum(chunk, outer.extent - start), reduce=tuple(own.values()))
        rest = tuple(replace(loop, reduce=tuple(own.values())) for loop in inner)
        first = ir.Par(
            block,
            blocks,
            (
                *(ir.New(b, span=outer.span) for b in own.values()),
                *(_start(a, own, outer) for a in found),
                *rebuild((part, *rest), serial(_into(moved, found, own))),
                *(_store(a, own, partial, block, outer) for a in found),
            ),
            span=outer.span,
        )
        again = Sym(self.fresh(f"{outer.sym.base}_part"))
        last = ir.Par(
            again,
            blocks,
            tuple(_join(a, partial, again, outer) for a in found),
            reduce=tuple(dict.fromkeys(t.buffer for a in found for t in a.targets)),
            span=outer.span,
        )
        return (*(ir.New(b, span=outer.span) for b in partial.values()), first, last)

    def _buffers(self, found: tuple[Accumulator, ...], blocks: Expr) -> tuple[dict[_Slot, Buffer], dict[_Slot, Buffer]]:
        own: dict[_Slot, Buffer] = {}
        partial: dict[_Slot, Buffer] = {}
        for accumulator in found:
            for target in accumulator.targets:
                slot = _slot(target)
                if slot not in own:
                    base = target.buffer.name
                    own[slot] = Buffer(self.fresh(f"{base}_block"), target.dtype, (), "local", span=target.span)
                    partial[slot] = Buffer(self.fresh(f"{base}_parts"), target.dtype, (blocks,), "local", span=target.span)
        return own, partial


def _most(loops: Sequence[ir.Loop]) -> float:
    """How many iterations nested loops have together; without end where the program does not say."""
    return prod((loop.extent.constant if loop.extent.is_constant else inf) for loop in loops)


def _together(body: tuple[ir.Stmt, ...]) -> float:
    """How many iterations of nested `par`s there may be at once; without end where somebody says what they are for."""
    most = 1.0
    for stmt in body:
        inside = max(map(_together, ir.blocks(stmt)), default=1.0)
        if isinstance(stmt, ir.Par):
            inside *= inf if is_asked(stmt) else max(1, _most((stmt,)))
        asked = isinstance(stmt, ir.Instruction) or (isinstance(stmt, ir.New) and stmt.space not in (None, "registers"))
        most = max(most, inf if asked else inside)
    return most


def _in_turn(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """`body` as one thread runs it, all its loops in order."""

    def each(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Par():
                (loop,) = _as_seq((stmt,))
                return replace(loop, body=_in_turn(stmt.body))
            case ir.Seq():
                return replace(stmt, body=_in_turn(stmt.body))
            case ir.If():
                return replace(stmt, then=_in_turn(stmt.then), orelse=_in_turn(stmt.orelse))
            case _:
                return stmt

    return tuple(map(each, body))


_Slot = tuple[Buffer, tuple[Expr, ...]]


def _slot(target: Load) -> _Slot:
    return (target.buffer, target.index)


def _has_order(loops: tuple[ir.Par, ...]) -> bool:
    """Whether a schedule put plain loops inside of a reduction, so that none of them may change places."""
    reduced = [bool(p.reduce) for p in loops]
    return reduced != sorted(reduced) and any(level_of(p) is not None or is_own(p) for p in loops)


def _in_place(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Reductions where they stand: with atomics where iterations meet and may do so, in order otherwise."""
    _, reducing = _parted(loops)
    found = accumulators(body, _buffers(reducing))
    if not _invariant(found, reducing, body) and all(_may_be_atomic(a, reducing, body) for a in found):
        return rebuild(tuple(_atomic(p) if p.reduce else p for p in loops), serial(body))
    return rebuild(tuple(_as_seq((p,))[0] if p.reduce else p for p in loops), serial(body))


def _told_apart(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Par, ...]:
    """`loops` without the `reduce` of those whose index is a subscript, in one place, of all that they update: iterations of
    these never meet."""

    def never_meets(loop: ir.Par) -> bool:
        places: dict[Buffer, set[int]] = {}
        for target in (t for a in accumulators(body, frozenset(loop.reduce)) for t in a.targets):
            own = {at for at, e in enumerate(target.index) if e.as_sym is loop.sym}
            places[target.buffer] = places.get(target.buffer, own) & own
        return all(places.values())

    return tuple(replace(p, reduce=()) if p.reduce and not is_asked(p) and never_meets(p) else p for p in loops)


def _atomic(loop: ir.Par) -> ir.Par:
    return replace(loop, directives=(*loop.directives, ir.Directive("atomic")))


def _parted(loops: tuple[ir.Par, ...]) -> tuple[tuple[ir.Par, ...], tuple[ir.Par, ...]]:
    return tuple(p for p in loops if not p.reduce), tuple(p for p in loops if p.reduce)


def _buffers(reducing: tuple[ir.Par, ...]) -> frozenset[Buffer]:
    return frozenset(b for loop in reducing for b in loop.reduce)


def _invariant(found: tuple[Accumulator, ...], reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether each accumulator is one element for all of the reduced iterations, and nothing asks for atomics."""
    varying = frozenset(loop.sym for loop in reducing) | bound(body)
    local = frozenset(s.buffer for s in ir.walk(body) if isinstance(s, ir.New))
    return not any(is_atomic(loop) for loop in reducing) and not any(
        used(target) & varying or target.data or target.buffer in local for a in found for target in a.targets
    )


def _may_be_atomic(accumulator: Accumulator, reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> bool:
    update, dtype = accumulator.update, accumulator.targets[0].dtype
    asked = any(is_atomic(loop) for loop in reducing)
    if len(accumulator.targets) != 1 or not may_meet(update, dtype, asked):
        return False
    if _is_engine_s(accumulator, body):
        return True
    return dtype.bits >= 32 and (dtype.is_integer or (update in ("add", "sub") and dtype.name != "tf32"))


def _is_engine_s(accumulator: Accumulator, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the tensor memory accelerator makes every such update, which combines more types than threads do."""
    copies = [s for s in ir.walk(body) if isinstance(s, ir.Par) and mark(s, TENSOR)]
    inside = {id(s) for copy in copies for s in ir.walk(copy.body)}
    binds = (s for s in ir.walk(body) if isinstance(s, ir.Bind) and s.targets[0].buffer is accumulator.targets[0].buffer)
    return all(id(s) in inside for s in binds)


def _prefers_team(thread: ir.Par, reduced: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether neighbouring reduced iterations, and not neighbouring outer ones, read neighbouring elements."""
    found = [contiguous(load) for stmt in ir.walk(body) for load in loads(stmt)]
    return any(reduced.sym in syms for syms in found) and not any(thread.sym in syms for syms in found)


def _prefers_thread(thread: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether neighbouring outer iterations, and not neighbouring ones of any loop inside, read neighbouring elements."""
    found = [contiguous(load) for stmt in ir.walk(body) if isinstance(stmt, ir.Bind) for load in loads(stmt)]
    loops = {s.sym for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq)}
    return any(thread.sym in syms for syms in found) and not any(loops & syms for syms in found)


def _chunk(inner: list[ir.Par], most: int) -> int:
    product = 1
    for loop in inner:
        if not loop.extent.is_constant:
            return 1
        product *= max(1, loop.extent.constant)
    return max(1, most // product)


def _as_seq(loops: tuple[ir.Par, ...]) -> tuple[ir.Seq, ...]:
    """The loops in order. Raises Limitation E0909 for one that a schedule gave to blocks."""
    bound = next((p for p in loops if (level_of(p) or "").startswith("grid")), None)
    if bound is not None:
        reason = f"blocks that share `{bound.sym.base}` would meet in elements that threads do not combine so"
        staged = all(
            combined_by_engine(a.update, a.targets[0].dtype) for a in accumulators(bound.body, frozenset(bound.reduce))
        )
        help = "stage what they meet in by via=tma, or leave the loop unbound" if staged else "leave the loop unbound"
        raise limitation("E0909", asked_at(bound, BIND), reason, help=help)
    return tuple(
        ir.Seq(p.sym, p.extent, p.body, reduce=p.reduce, label=p.label, directives=p.directives, span=p.span) for p in loops
    )


def serial(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """`body` as one thread runs it: reductions in it are loops in order."""

    def each(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Par() if stmt.reduce:
                (loop,) = _as_seq((stmt,))
                return replace(loop, body=serial(stmt.body))
            case ir.Par() | ir.Seq() | ir.Instruction():
                return replace(stmt, body=serial(stmt.body))
            case ir.If():
                return replace(stmt, then=serial(stmt.then), orelse=serial(stmt.orelse))
            case _:
                return stmt

    return tuple(each(stmt) for stmt in body)


def _start(accumulator: Accumulator, own: dict[_Slot, Buffer], outer: ir.Par) -> ir.Bind:
    dtypes = [t.dtype for t in accumulator.targets]
    targets = tuple(Load(own[_slot(t)], (), span=t.span) for t in accumulator.targets)
    return ir.Bind(targets, identity(accumulator.update, dtypes), span=outer.span)


def _store(
    accumulator: Accumulator, own: dict[_Slot, Buffer], partial: dict[_Slot, Buffer], block: Sym, outer: ir.Par
) -> ir.Bind:
    targets = tuple(Load(partial[_slot(t)], (expr(block),), span=t.span) for t in accumulator.targets)
    return ir.Bind(targets, tuple(Load(own[_slot(t)], ()) for t in accumulator.targets), span=outer.span)


def _join(accumulator: Accumulator, partial: dict[_Slot, Buffer], part: Sym, outer: ir.Par) -> ir.Bind:
    update = "add" if accumulator.update == "sub" else accumulator.update
    values = tuple(Load(partial[_slot(t)], (expr(part),)) for t in accumulator.targets)
    return ir.Bind(accumulator.targets, values, update, outer.span)


def _into(body: tuple[ir.Stmt, ...], found: tuple[Accumulator, ...], own: dict[_Slot, Buffer]) -> tuple[ir.Stmt, ...]:
    """`body` with the updates of the accumulators turned to the block's own ones."""
    slots = {_slot(t) for a in found for t in a.targets}

    def target(load: Load) -> Load:
        return Load(own[_slot(load)], (), span=load.span) if _slot(load) in slots else load

    reduced = frozenset(buffer for buffer, _ in slots)
    return Rewriter(
        value=lambda v: replace_loads(v, lambda load: target(load) if load.buffer in reduced else None), target=target
    ).block(body)
