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

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.marked import asked_at, atomic, is_atomic, level_of, mark
from texpr.ir.marks import Bind, Tensor
from texpr.ir.updates import may_meet
from texpr.ir.uses import bound, loads, symbols, used, written
from texpr.ir.value import Buffer, Load
from texpr.mapping.apart import cut
from texpr.mapping.bands import band, contiguous, rebuild
from texpr.mapping.bound import is_asked, is_own
from texpr.mapping.parts import Accumulator, accumulators, split
from texpr.mapping.reached import Around, lines, outermost, where_reached
from texpr.schedule.combining import combined_by_engine
from texpr.schedule.edits import left_out
from texpr.support.diagnostic import limitation
from texpr.support.record import replace

BLOCK_CHUNK, CORE_CHUNK = 4096, 65536
"""Iterations of a reduction at the top of a program that one block, or one CPU core, takes at a time."""

FEW = 16
"""The most iterations that are too few for a warp: half of its threads, or more, would have none."""

ENOUGH = 128
"""Iterations that are threads enough, each of which does few others in turn."""


PART, THREADS_ENOUGH = 128, 1 << 17
"""Iterations of a part of a sum that a GPU's thread makes, and threads that need no more beside them."""


def arrange(function: ir.Function, chunk: int = BLOCK_CHUNK, few: int = 0, rows: int = 0) -> ir.Function:
    """`function` with every parallel reduction in one of the forms above. `chunk`: what one block reduces at the top.

    `few`: iterations of which a team would leave most threads idle, so that one thread does them in turn where there are
    iterations around them for others. `rows`: iterations of which a thread makes a part of a sum, where its neighbours read
    neighbouring elements; with 0 it makes the whole sum, as a lane of a core.
    """
    names = {b.name for b in ir.buffers(function)} | {s.name for s in bound(function.body)} | {s.name for s in function.sizes}
    made = _Arranger(chunk, few, rows, names, frozenset(function.sizes)).host(function.body, outermost(function))
    return replace(function, body=made)


class _Arranger:
    def __init__(self, chunk: int, few: int, rows: int, names: set[str], sizes: frozenset[Sym]):
        self.chunk = chunk
        self.few = few
        self.rows = rows
        self.names = names
        self.sizes = sizes

    def fresh(self, base: str) -> str:
        for number in count():
            name = base if number == 0 else f"{base}_{number}"
            if name not in self.names:
                self.names.add(name)
                return name
        raise AssertionError

    def host(self, body: tuple[ir.Stmt, ...], around: Around) -> tuple[ir.Stmt, ...]:
        """Statements outside every `par`."""
        return tuple(self._each(body, around, self.host, self._top))

    def team(self, body: tuple[ir.Stmt, ...], around: Around) -> tuple[ir.Stmt, ...]:
        """Statements that a team of threads shares."""
        return tuple(self._each(body, around, self.team, self._inner))

    def _each(
        self,
        body: tuple[ir.Stmt, ...],
        around: Around,
        below: Callable[[tuple[ir.Stmt, ...], Around], tuple[ir.Stmt, ...]],
        par: Callable[[ir.Par, Around], tuple[ir.Stmt, ...]],
    ) -> Iterator[ir.Stmt]:
        for stmt in body:
            match stmt:
                case ir.Par():
                    yield from par(stmt, around)
                case ir.Seq():
                    yield replace(stmt, body=below(stmt.body, around.inside(stmt)))
                case ir.If():
                    then, orelse = below(stmt.then, around.inside(stmt)), below(stmt.orelse, around.inside(stmt, taken=False))
                    yield replace(stmt, then=then, orelse=orelse)
                case ir.Instruction():
                    yield replace(stmt, body=below(stmt.body, around))
                case _:
                    yield stmt
            around = around.after(stmt)

    def _top(self, par: ir.Par, around: Around) -> tuple[ir.Stmt, ...]:
        loops, body = band(par)
        if _has_order(loops):
            return _in_place(loops, body)
        plain, reducing = _parted(_told_apart(loops, body))
        few = _most(reducing) * _together(body) <= self.few and not any(map(is_asked, loops))
        if few and _most(plain) >= ENOUGH and _stay_apart(plain, reducing, body):
            return rebuild(plain, _in_turn(rebuild(reducing, body)))
        if not reducing:
            if not self.rows and _prefers_thread(plain[-1], body):
                return rebuild(plain, serial(body))
            ahead, body = self._ahead(plain, body, around)
            return (*ahead, *rebuild(plain, self.team(body, around.inside_all(plain))))
        found = accumulators(body, _buffers(reducing))
        if not _invariant(found, reducing, body):
            parts = cut(par, self.fresh) if not plain else (par,)
            if parts[0] is not par:
                return tuple(stmt for part in parts for stmt in self._top(part, around))
            return self._meeting(plain, reducing, body, found, lambda inside: self.host(inside, around.inside_all(reducing)))
        if plain:
            if _prefers_team(plain[-1], reducing[-1], body):
                return rebuild(plain, _shared(reducing, body, found, around.inside_all(plain)))
            ahead, last = self._columns(plain, reducing, body, found, around)
            return (*ahead, *rebuild(plain, last))
        if not self._has_room(reducing):
            return _shared(reducing, body, found, around)
        (*memory, parts), last = split(reducing, serial(body), found, self.chunk, self.fresh)
        made = where_reached(reducing, body, found, around, (parts, last))
        return rebuild(_as_seq(reducing), serial(body)) if made is None else (*memory, *made)

    def _has_room(self, loops: Sequence[ir.Loop]) -> bool:
        """Whether memory for each iteration can be set aside before a function runs."""
        return all(loop.extent.syms() <= self.sizes for loop in loops)

    def _columns(
        self,
        plain: tuple[ir.Par, ...],
        reducing: tuple[ir.Par, ...],
        body: tuple[ir.Stmt, ...],
        found: tuple[Accumulator, ...],
        around: Around,
    ) -> tuple[tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]:
        """Sums over `reducing` by threads of `plain`, in parts where these may be too few: what is ahead of `plain`, and in."""
        inside = _as_seq(reducing)
        many = THREADS_ENOUGH <= _most(plain) < inf
        if (
            not self.rows
            or many
            or not self._has_room((*plain, *reducing))
            or _most(reducing) <= 2 * self.rows
            or any(map(is_asked, (*plain, *reducing)))
            or not _prefers_thread(plain[-1], rebuild(reducing, body))
            or not _reads_each(body, (*plain, *reducing))
            or where_reached(reducing, body, found, around.inside_all(plain), body) is not body
        ):
            return (), rebuild(inside, serial(body))
        ahead, last = split(inside, serial(body), found, self.rows, self.fresh, plain)
        return ahead, (last,)

    def _ahead(
        self, plain: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...], around: Around
    ) -> tuple[tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]:
        """Sums that stand in `body` by themselves: the same."""
        ahead, inside = list[ir.Stmt](), list[ir.Stmt]()
        for stmt in body:
            loops, inner = band(stmt) if isinstance(stmt, ir.Par) else ((), ())
            found = accumulators(inner, _buffers(loops))
            if (
                loops
                and all(p.reduce for p in loops)
                and _invariant(found, loops, inner)
                and _is_alone(loops, inner, found, body)
            ):
                before, here = self._columns(plain, loops, inner, found, around)
                if before:
                    ahead += before
                    inside += here
                    continue
            inside.append(stmt)
        return tuple(ahead), tuple(inside)

    def _inner(self, par: ir.Par, around: Around) -> tuple[ir.Stmt, ...]:
        loops, body = band(par)
        if _has_order(loops):
            return _in_place(loops, body)
        plain, reducing = _parted(_told_apart(loops, body))
        if not reducing:
            return rebuild(plain, serial(body))
        found = accumulators(body, _buffers(reducing))
        if not _invariant(found, reducing, body):
            return self._meeting(plain, reducing, body, found, lambda inside: self.team(inside, around.inside_all(reducing)))
        if plain:
            return rebuild(plain, rebuild(_as_seq(reducing), serial(body)))
        return _shared(reducing, body, found, around)

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
            return rebuild(plain, rebuild(tuple(map(atomic, reducing)), serial(body)))
        if plain and _stay_apart(plain, reducing, body):
            return rebuild(plain, rebuild(_as_seq(reducing), serial(body)))
        return rebuild(_as_seq(reducing), below(rebuild(plain, body)))


def _shared(
    reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...], found: tuple[Accumulator, ...], around: Around
) -> tuple[ir.Stmt, ...]:
    """A reduction that threads share, where it updates something; in order, where they could not tell."""
    made = where_reached(reducing, body, found, around, rebuild(reducing, serial(body)))
    return rebuild(_as_seq(reducing), serial(body)) if made is None else made


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


def _has_order(loops: tuple[ir.Par, ...]) -> bool:
    """Whether a schedule put plain loops inside of a reduction, so that none of them may change places."""
    reduced = [bool(p.reduce) for p in loops]
    return reduced != sorted(reduced) and any(level_of(p) is not None or is_own(p) for p in loops)


def _in_place(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Reductions where they stand: with atomics where iterations meet and may do so, in order otherwise."""
    _, reducing = _parted(loops)
    found = accumulators(body, _buffers(reducing))
    if not _invariant(found, reducing, body) and all(_may_be_atomic(a, reducing, body) for a in found):
        return rebuild(tuple(atomic(p) if p.reduce else p for p in loops), serial(body))
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


def _stay_apart(plain: tuple[ir.Par, ...], reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether no two iterations of `plain` meet in what is reduced into, wherever each is in `reducing`."""
    varying = frozenset(loop.sym for loop in (*plain, *reducing)) | bound(body)
    targets: dict[Buffer, list[Load]] = {}
    for each in (t for a in accumulators(body, _buffers(reducing)) for t in a.targets):
        targets.setdefault(each.buffer, []).append(each)

    def tells(subscript: Expr, sym: Sym, data: frozenset[Sym]) -> bool:
        return subscript.syms() & (varying | data) == frozenset({sym}) and bool(lines((subscript,), sym))

    def apart(loop: ir.Par, found: list[Load]) -> bool:
        first, data = found[0], frozenset(s for t in found for s, _ in t.data)
        same = (e for at, e in enumerate(first.index) if all(t.index[at] == e for t in found))
        return any(tells(e, loop.sym, data) for e in same)

    return all(apart(loop, found) for found in targets.values() for loop in plain)


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
    copies = [s for s in ir.walk(body) if isinstance(s, ir.Par) and mark(s, Tensor)]
    inside = {id(s) for copy in copies for s in ir.walk(copy.body)}
    binds = (s for s in ir.walk(body) if isinstance(s, ir.Bind) and s.targets[0].buffer is accumulator.targets[0].buffer)
    return all(id(s) in inside for s in binds)


def _prefers_team(thread: ir.Par, reduced: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether, of what differs by reduced iteration, neighbours read neighbours in these and not in outer ones."""
    found = [contiguous(load) for stmt in ir.walk(body) for load in loads(stmt) if reduced.sym in used(load)]
    return any(reduced.sym in syms for syms in found) and not any(thread.sym in syms for syms in found)


def _is_alone(
    loops: tuple[ir.Par, ...], inner: tuple[ir.Stmt, ...], found: tuple[Accumulator, ...], body: tuple[ir.Stmt, ...]
) -> bool:
    """Whether a sum in `body` reads nothing that `body` makes, so that it may be made before."""
    own = {target.buffer for each in found for target in each.targets}
    read = {load.buffer for stmt in ir.walk(inner) for load in loads(stmt)}
    here = bound(body) - bound(rebuild(loops, inner))
    return not (read - own) & written(body) and not symbols(rebuild(loops, inner)) & here


def _reads_each(body: tuple[ir.Stmt, ...], loops: tuple[ir.Par, ...]) -> bool:
    """Whether something is read that differs by all loops, so that it is more than the parts of sums over some of them."""
    every = {loop.sym for loop in loops}
    return any(every <= used(load) for stmt in ir.walk(body) for load in loads(stmt))


def _prefers_thread(thread: ir.Par, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether, of what differs by outer iteration and by loops inside, neighbours read neighbours in outer ones alone."""
    loops = {s.sym for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq)}
    every = {load for stmt in ir.walk(body) if isinstance(stmt, ir.Bind) for load in loads(stmt)}
    found = [contiguous(load) for load in every if thread.sym in (syms := used(load)) and syms & loops]
    return any(thread.sym in syms for syms in found) and not any(loops & syms for syms in found)


def _as_seq(loops: tuple[ir.Par, ...]) -> tuple[ir.Seq, ...]:
    """The loops in order. Raises Limitation E0909 for one that a schedule gave to blocks."""
    bound = next((p for p in loops if (level_of(p) or "").startswith("grid")), None)
    if bound is not None:
        reason = f"blocks that share `{bound.sym.base}` would meet in elements that threads do not combine so"
        staged = all(
            combined_by_engine(a.update, a.targets[0].dtype) for a in accumulators(bound.body, frozenset(bound.reduce))
        )
        help = "staged by via=tma, the engine combines such elements" if staged else None
        span = asked_at(bound, Bind)
        raise limitation("E0909", span, reason, help=help, offers=left_out(span, "leave the loop unbound"))
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
