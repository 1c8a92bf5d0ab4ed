"""Running values in chunks: what a scheduled program that was made by `scan` is compared with.

A `seq` over j gives the running value s of each iteration to its body B, and combines it with terms ⊕ e(j), in any order.
Suppose that it is one element, which B accesses only so, and that no e(j) reads what the loop writes (`ir.program.running`).
Then with j = S · c + t, in the order of the text,

    seq C |c| { sums[c] = identity  seq S |t| { if j < N { sums[c] ⊕= e(j) } } }
    seq C |m| { at[m] = s  s ⊕= sums[m] }
    seq C |c| { own = at[c]  seq S |t| { if j < N { B with own for s } } }

computes the same. *Proof*: sums[c] is combined of the terms of chunk c, as a term has the same value before the loop as in it.
So at[c] is the value of s before the loop, combined with all terms of the chunks before c, and own, after t iterations, with
those of the iterations before j: the terms that s had then, and no others. B reads it in the same state of all other memory,
as its iterations are in the same order. At the end s has all terms. ∎

Tiles of T iterations, in order, do so one after the other. Without chunks (S = 0) an iteration combines the terms itself:

    seq N |j| { own = s  seq j |k| { own ⊕= e(k) }  B with own for s }
    seq N |k| { s ⊕= e(k) }            -- unless nothing reads s behind the loop

A scheduled program names these loops by marks (`Scanned`), which are claims: where they are false, so is the comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.copies import copied
from texpr.ir.program.marked import read
from texpr.ir.program.marks import NONE, Scanned
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, with_blocks
from texpr.ir.program.running import Running, is_dead, runnings, terms
from texpr.ir.program.updates import identity
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.ir.value.types import BOOL, I64
from texpr.support.record import Mutable, field, replace

Body = tuple[ir.Stmt, ...]
Places = Mapping[Buffer, Load]


def in_chunks(written: ir.Function, laid: ir.Function) -> ir.Function | None:
    """`written` with its running values in the chunks that `laid` has; None where there are no such loops."""
    marks = read(replace(laid, body=())).directives
    for number, mark in enumerate(each for each in marks if isinstance(each, Scanned)):
        loop = next((s for s in ir.walk(written.body) if isinstance(s, ir.Seq) and s.sym.name == mark.loop), None)
        if loop is None or (mark.tile and (not mark.size or mark.tile % mark.size)):
            return None
        maker = _Chunks(loop, mark, runnings(loop), number)
        if not maker.runs:
            return None
        whole = mark.over != NONE
        if not (mark.size or whole or all(is_dead(written.body, loop, run.target.buffer) for run in maker.runs)):
            return None
        made = maker.chunks() if mark.size else maker.before(whole)
        written = replace(written, body=_replaced(written.body, loop, made))
    return written


def _replaced(body: Body, loop: ir.Loop, made: Body) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        blocks = tuple(_replaced(block, loop, made) for block in ir.blocks(stmt))
        found.extend(made if stmt is loop else (with_blocks(stmt, blocks),))
    return tuple(found)


class _Chunks(Mutable):
    loop: ir.Seq
    mark: Scanned
    runs: tuple[Running, ...]
    number: int
    names: count[int] = field(default_factory=count)

    def fresh(self, name: str) -> str:
        """A name that no text has."""
        return f"{name}◆{self.number}.{next(self.names)}"

    def chunks(self) -> Body:
        """The three loops, in a loop over tiles if there are some."""
        size, tile, extent = self.mark.size, self.mark.tile, self.loop.extent
        many = expr(tile // size) if tile else -((-extent) // size)
        sums, at = ({r.target.buffer: self.new(r, (many,)) for r in self.runs} for _ in range(2))
        outer = Sym(self.fresh("tile"))
        start = expr(outer) * tile if tile else ZERO
        made: Body = tuple(ir.New(buffer) for each in (sums, at) for buffer in each.values())
        made += (*self.parts(start, many, sums), *self.over(many, sums, at), self.whole(start, many, at))
        return (ir.Seq(outer, -((-extent) // tile), made),) if tile else made

    def new(self, run: Running, shape: tuple[Expr, ...]) -> Buffer:
        """Memory for values of the same type."""
        return Buffer(self.fresh(run.target.buffer.name), run.target.dtype, shape, "local")

    def parts(self, start: Expr, many: Expr, sums: Mapping[Buffer, Buffer]) -> Body:
        """What each chunk combines of its own."""
        chunk, inner = Sym(self.fresh("c")), Sym(self.fresh("t"))
        places = {buffer: Load(made, (expr(chunk),)) for buffer, made in sums.items()}
        clear = tuple(ir.Bind((places[r.target.buffer],), identity(r.update, (r.target.dtype,))) for r in self.runs)
        each = self.chunk(inner, start + expr(chunk) * self.mark.size, self.terms(), places)
        return (ir.Seq(chunk, many, (*clear, replace(each, reduce=tuple(sums.values())))),)

    def over(self, many: Expr, sums: Mapping[Buffer, Buffer], at: Mapping[Buffer, Buffer]) -> Body:
        """What each chunk starts with."""
        sym, found = Sym(self.mark.over), list[ir.Stmt]()
        for run in self.runs:
            own = run.target.buffer
            start, part = (Load(each[own], (expr(sym),)) for each in (at, sums))
            found += (ir.Bind((start,), (run.target,)), ir.Bind((run.target,), (part,), run.update))
        return (ir.Seq(sym, many, tuple(found), scan=tuple(run.target.buffer for run in self.runs)),)

    def whole(self, start: Expr, many: Expr, at: Mapping[Buffer, Buffer]) -> ir.Stmt:
        """The iterations themselves."""
        chunk = Sym(self.fresh("c"))
        owns = {run.target.buffer: self.new(run, ()) for run in self.runs}
        places = {buffer: Load(own, ()) for buffer, own in owns.items()}
        first = (*map(ir.New, owns.values()), *(ir.Bind((places[b],), (Load(at[b], (expr(chunk),)),)) for b in owns))
        each = self.chunk(Sym(self.mark.inside), start + expr(chunk) * self.mark.size, self.loop.body, places)
        return ir.Seq(chunk, many, (*first, replace(each, scan=tuple(owns.values()))))

    def chunk(self, inner: Sym, start: Expr, body: Body, places: Places) -> ir.Seq:
        """The iterations of a chunk, as far as there are any."""
        at = start + expr(inner)
        inside = Op("lt", (Index(at, I64), Index(self.loop.extent, I64)), BOOL)
        return ir.Seq(inner, expr(self.mark.size), (ir.If(inside, _moved(body, {self.loop.sym: at}, places)),))

    def terms(self) -> Body:
        """What adds terms, once more."""
        return copied(terms(self.loop.body, frozenset(run.target.buffer for run in self.runs)), self.fresh)

    def before(self, whole: bool) -> Body:
        """Each iteration with the terms of all before it; and the value of all of them, if that is wanted."""
        sym, extent = self.loop.sym, self.loop.extent
        owns = {run.target.buffer: self.new(run, ()) for run in self.runs}
        places = {buffer: Load(own, ()) for buffer, own in owns.items()}
        first = (*map(ir.New, owns.values()), *(ir.Bind((places[r.target.buffer],), (r.target,)) for r in self.runs))
        earlier = self.all_terms(expr(sym), places)
        made: Body = (ir.Seq(sym, extent, (*first, earlier, *_moved(self.loop.body, {}, places))),)
        return (*made, self.all_terms(extent, {r.target.buffer: r.target for r in self.runs})) if whole else made

    def all_terms(self, extent: Expr, places: Places) -> ir.Seq:
        """The terms of the first iterations."""
        each = Sym(self.fresh("k"))
        body = _moved(self.terms(), {self.loop.sym: expr(each)}, places)
        return ir.Seq(each, extent, body, tuple(place.buffer for place in places.values()))


def _moved(body: Body, at: Mapping[Sym, Expr], places: Places) -> Body:
    """`body` with another place for each running value, and symbols replaced."""

    def value(old: Value) -> Value:
        return replace_loads(old, lambda load: places.get(load.buffer))

    def target(old: Load) -> Load:
        moved = value(old)
        assert isinstance(moved, Load)
        return moved

    def buffer(old: Buffer) -> Buffer:
        return places[old].buffer if old in places else old

    return Rewriter(value=value, target=target, buffer=buffer).block(substitute_block(body, at))
