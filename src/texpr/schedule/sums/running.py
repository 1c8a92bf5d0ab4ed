"""The rewrite of running values into chunks (`texpr.schedule.directives.scan`), and the notes of what it makes.

Statements get the numbers that they have in the program in chunks with which the proof compares (`Scanned`). There it is
made by other code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.split import Split
from texpr.ir import program as ir
from texpr.ir.program.copies import copied
from texpr.ir.program.marks import NONE
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, with_blocks
from texpr.ir.program.running import Running, is_dead, terms
from texpr.ir.program.updates import identity
from texpr.ir.value import Buffer, Load, Value
from texpr.schedule.state import State
from texpr.schedule.tree import Body, replaced
from texpr.support.record import Record, replace

Note = tuple[Expr, ...]


class Chunks(Record):
    """`loop` over `whole`, or over each tile of that by a loop over `tiles`, and its running values. `base`: the number of the
    first statement; `around`: the indices of the written loops around it."""

    state: State
    loop: ir.Seq
    runs: tuple[Running, ...]
    whole: IterDomain
    tiles: IterDomain | None
    base: int
    around: Note

    @property
    def terms(self) -> Body:
        """What adds terms, with other names."""
        taken = set(self.state.taken())

        def fresh(name: str) -> str:
            plain = name.partition("'")[0]
            found = next(each for n in range(1, len(taken) + 2) if (each := f"{plain}_{n}") not in taken)
            taken.add(found)
            return found

        return copied(terms(self.loop.body, frozenset(run.target.buffer for run in self.runs)), fresh)

    def parts(self, size: int, names: Sequence[Sym]) -> tuple[State, Sym]:
        """The state with chunks of `size` iterations, and the loop over them; `names` are those of the new loops."""
        part, term, over, chunk, inner = names
        old = self.state.domain(self.loop)
        domains = IterDomain(chunk, (old.extent + (size - 1)) // size), IterDomain(inner, expr(size))
        many, span, count = domains[0].extent, self.loop.span, len(self.runs)
        around = (*self.around, expr(self.tiles.sym)) if self.tiles else self.around
        sums, at, own = self.memory("sum", (many,)), self.memory("at", (many,)), self.memory("own", ())
        here = {b: Load(made, (expr(chunk),), span=span) for b, made in sums.items()}
        added = self.moved(self.terms, here, count, (*around, expr(chunk), expr(inner)))
        clear = [(here[r.target.buffer], identity(r.update, (r.target.dtype,))[0], None) for r in self.runs]
        adds = ir.Par(term, expr(size), added, tuple(sums.values()), span=span)
        first = ir.Par(part, many, (*self.binds(clear, 0, (*around, expr(chunk))), adds), span=span)
        number = count + size_of(added)
        steps = list[tuple[Load, Value, ir.Update | None]]()
        for run in self.runs:
            start, part_sum = (Load(each[run.target.buffer], (expr(over),), span=span) for each in (at, sums))
            steps += [(start, run.target, None), (run.target, part_sum, run.update)]
        second = ir.Seq(over, many, self.binds(steps, number, (*around, expr(over))), span=span, scan=tuple(sums))
        number += 2 * count
        mine = {b: Load(made, (), span=span) for b, made in own.items()}
        starts = [(mine[b], Load(at[b], (expr(chunk),), span=span), None) for b in own]
        body = self.moved(self.loop.body, mine, number + count, (*around, expr(chunk), expr(inner)))
        goes = replace(self.loop, sym=inner, extent=expr(size), body=body, label=None, scan=tuple(own.values()))
        news = tuple(ir.New(buffer, span=span) for buffer in own.values())
        third = ir.Par(
            chunk, many, (*news, *self.binds(starts, number, (*around, expr(chunk))), goes), label=self.loop.label, span=span
        )
        made = (*(ir.New(b, span=span) for each in (sums, at) for b in each.values()), first, second, third)
        known = {**self.state.domain_of, part: domains[0], term: domains[1]}
        return replace(self.put(made, number + count).with_transform(Split(old, *domains)), domain_of=known), chunk

    def before(self) -> tuple[State, Sym, str]:
        """The state in which each iteration combines the terms of those before it; the loop over iterations; and the name of
        that over all terms."""
        span, count, sym = self.loop.span, len(self.runs), self.loop.sym
        each, all_ = (Sym(name) for name in self.state.all_fresh((f"{sym.base}_b", f"{sym.base}_e")))
        own = self.memory("own", ())
        mine = {b: Load(made, (), span=span) for b, made in own.items()}
        starts = [(mine[run.target.buffer], run.target, None) for run in self.runs]
        added = self.moved(self.terms, mine, count, (*self.around, expr(sym), expr(each)), {self.whole.sym: expr(each)})
        earlier = ir.Par(each, expr(sym), added, tuple(own.values()), span=span)
        number = count + size_of(added)
        body = self.moved(self.loop.body, mine, number, (*self.around, expr(sym)))
        news = tuple(ir.New(buffer, span=span) for buffer in own.values())
        inside = (*news, *self.binds(starts, 0, (*self.around, expr(sym))), earlier, *body)
        made: Body = (ir.Par(sym, self.loop.extent, inside, label=self.loop.label, span=span),)
        is_wanted = not all(is_dead(self.state.function.body, self.loop, buffer) for buffer in own)
        if is_wanted:
            own_ = {run.target.buffer: run.target for run in self.runs}
            after = self.moved(
                self.terms, own_, number + size_of(body), (*self.around, expr(all_)), {self.whole.sym: expr(all_)}
            )
            made = (*made, ir.Par(all_, self.whole.extent, after, tuple(own), span=span))
            number += size_of(after)
        return self.put(made, number), sym, all_.name if is_wanted else NONE

    def memory(self, ending: str, shape: tuple[Expr, ...]) -> dict[Buffer, Buffer]:
        """Memory for each running value."""
        names = self.state.all_fresh(f"{run.target.buffer.name}_{ending}" for run in self.runs)
        old = [run.target.buffer for run in self.runs]
        made = (Buffer(name, b.dtype, shape, "local", span=b.span) for name, b in zip(names, old, strict=True))
        return dict(zip(old, made, strict=True))

    def binds(self, steps: Sequence[tuple[Load, Value, ir.Update | None]], first: int, at: Note) -> Body:
        """Statements, with notes: the numbers from `first` on, at these indices."""
        return tuple(
            ir.Bind((target,), (value,), update, self.loop.span, (expr(self.base + first + n), *at))
            for n, (target, value, update) in enumerate(steps)
        )

    def moved(
        self, body: Body, places: Mapping[Buffer, Load], first: int, at: Note, syms: Mapping[Sym, Expr] | None = None
    ) -> Body:
        """`body` with other places for the running values, other indices, and with notes of its own."""

        def value(old: Value) -> Value:
            return replace_loads(old, lambda load: places.get(load.buffer))

        def target(old: Load) -> Load:
            found = value(old)
            assert isinstance(found, Load)
            return found

        def buffer(old: Buffer) -> Buffer:
            return places[old].buffer if old in places else old

        numbers = iter(range(self.base + first, self.base + first + size_of(body)))
        made = Rewriter(value=value, target=target, buffer=buffer).block(substitute_block(body, syms or {}))
        return renoted(made, lambda old: (expr(next(numbers)), *at, *old[len(self.around) + 2 :]))

    def put(self, made: Body, more: int) -> State:
        """The state with `made` for the loop, and `more` statements before those that come later."""
        end = self.base + size_of((self.loop,))

        def later(old: Note) -> Note:
            return (old[0] + more, *old[1:]) if old and old[0].constant >= end else old

        marker = ir.Seq(self.loop.sym, self.loop.extent, ())
        body = renoted(replaced(self.state.function.body, self.loop, lambda _: (marker,)), later)
        return self.state.with_body(_put(body, marker.sym, made))


def size_of(body: Body) -> int:
    """The number of statements that have numbers."""
    return sum(isinstance(s, ir.Bind | ir.Let) for s in ir.walk(body))


def _put(body: Body, sym: Sym, made: Body) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Seq) and stmt.sym == sym:
            found.extend(made)
        else:
            found.append(with_blocks(stmt, tuple(_put(block, sym, made) for block in ir.blocks(stmt))))
    return tuple(found)


def renoted(body: Body, note: Callable[[Note], Note]) -> Body:
    """`body` with other notes."""
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(renoted(block, note) for block in ir.blocks(stmt)))
        if isinstance(made, ir.Bind | ir.Let) and (new := note(made.instance)) != made.instance:
            made = replace(made, instance=new)
        found.append(made)
    return tuple(found)
