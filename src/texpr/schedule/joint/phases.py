"""Phases around products, on the registers of lanes that hold what goes from one to the next.

    new s: f32[64, 64]   new m: f32[64]   new p: bf16[64, 64]          new s: f32[128, 32]   new m: f32[128, 2]   …
    … par 64 |i| { par 64 |j| { seq 64 |d| #mma { s[i, j] += … } } }   instr mma(…, s[0, …]) …
    par 64 |i| { par 64 |j| reduce(m) { m[i] max= s[i, j] } }          new part: f32[128, 2]
                                                                       fully par 128 |t| { … part[t, …] max= s[t, …] }
                                                                       fully par 128 |t| { if t % 4 == 0 {
                                                                           … seq 4 |q| { m[t, …] max= part[t + q, …] } } }
    par 64 |i| { par 64 |j| { p[i, j] = exp(s[i, j] - m[i]) } }        new all: f32[128, 2]
                                                                       fully par 128 |t| { all[t, …] = m[t - t % 4, …] }
                                                                       fully par 128 |t| { p[t, …] = exp(s[t, …] - all[t, …]) }
    … p is read by a product: lanes have the elements where that wants them

What is touched where a tile of a product is, at some of its subscripts, is held as that is (`texpr.schedule.joint.held`). A
loop that has all of them goes over lanes and registers; one over rows alone is run by the lanes that own rows. What reduces
into rows does so in each lane by itself, and then lanes that hold a row together are combined. Nothing here depends on what is
computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr.fragment import Digit, Misfit
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, substitute_value, with_blocks
from texpr.ir.program.updates import identity
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value, conjunction, walk
from texpr.ir.value.types import BOOL, I64
from texpr.schedule.joint.convert import Converter, accesses
from texpr.schedule.joint.held import Held, dims_of, part_of, register_of
from texpr.schedule.joint.lanes.layout import solved
from texpr.schedule.joint.lanes.wide import is_stored
from texpr.schedule.tree import Body
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span


def phases(stmt: ir.Stmt) -> Iterator[ir.Stmt]:
    """A loop with statements beside inner loops, as one for each: what is inside of each other's loops is of one tile."""
    around = isinstance(stmt, ir.Par | ir.Seq) or (isinstance(stmt, ir.If) and not stmt.orelse and _is_affine(stmt.condition))
    body = ir.blocks(stmt)[0] if around else ()
    nested = any(isinstance(s, ir.Par | ir.Seq | ir.If) for s in body)
    if not nested or any(isinstance(s, ir.New | ir.Let) for s in body):
        yield stmt
        return
    for each in body:
        for inner in phases(each):
            yield with_blocks(stmt, ((inner,), *ir.blocks(stmt)[1:]))


def _is_affine(condition: Value) -> bool:
    """Whether a condition is the same whatever is in memory."""
    return not any(isinstance(node, Load | Ref) for node in walk(condition))


def held_by(
    stmt: ir.Stmt, known: Mapping[Buffer, Held], local: Mapping[Buffer, ir.New], warp: int
) -> Iterator[tuple[Buffer, Held]]:
    """Locals that are held as what `stmt` touches of `known` is; none that lanes of several warps would hold together."""
    found = Touched.of(stmt, {*known, *local})
    main = found.main(known)
    if main is None:
        return
    for buffer, load in found.loads.items():
        if buffer in local and buffer not in known:
            made = part_of(known[main], found.loads[main].index, load.index, buffer)
            if made is not None and all(digit.weight * digit.size <= warp for digit in made.gone):
                yield buffer, made


class Touched(Record):
    """Where a statement touches each of some buffers, if in one place only."""

    loads: Mapping[Buffer, Load]
    several: frozenset[Buffer]

    @classmethod
    def of(cls, stmt: ir.Stmt, buffers: set[Buffer]) -> Touched:
        """What `stmt` touches."""
        found, several = dict[Buffer, Load](), set[Buffer]()
        for load in (load for s in ir.walk((stmt,)) for load in accesses(s) if load.buffer in buffers):
            if load.data or found.setdefault(load.buffer, load).index != load.index:
                several.add(load.buffer)
        return cls({b: load for b, load in found.items() if b not in several}, frozenset(several))

    def main(self, known: Mapping[Buffer, Held]) -> Buffer | None:
        """What has most dimensions of those that are held."""
        return max((b for b in self.loads if b in known), key=lambda b: len(known[b].shape), default=None)


class Phase(Mutable):
    """`stmt`, loops over what is `held`, as loops over lanes and registers. `by` makes names, and keeps what stores pairs."""

    by: Converter
    held: Mapping[Buffer, Held]
    stmt: ir.Stmt
    at: dict[Buffer, Load] = field(default_factory=dict[Buffer, Load])
    """The registers, by lane, of what is touched."""
    free: list[Buffer] = field(default_factory=list[Buffer])
    """Registers that are summed up in any order."""
    ahead: list[ir.Stmt] = field(default_factory=list[ir.Stmt])
    behind: list[ir.Stmt] = field(default_factory=list[ir.Stmt])

    def block(self) -> Iterator[ir.Stmt]:
        """The statements. Raises Misfit."""
        found = Touched.of(self.stmt, {*self.held})
        main = found.main(self.held)
        if found.several or main is None:
            name = next((buffer.name for buffer in found.several), "nothing")
            raise Misfit(f"loops touch several elements of `{name}` in one iteration")
        tile, index = self.held[main], found.loads[main].index
        lane = self.by.fresh("lane")
        names = {digit: self.by.fresh("r") for digit in tile.own}
        for buffer, load in found.loads.items():
            self.touch(buffer, load, dims_of(index, load.index), tile, lane, names)
        body, loops = self.moved(tile, index, expr(lane), [*names.values()]), [(names[digit], digit) for digit in tile.own]
        if tile.gone:
            body = (_first(tile, lane, body, self.span),)
        yield from self.ahead
        yield self.over(lane, loops, body, tile)
        yield from self.behind

    @property
    def span(self) -> Span:
        """Where it is in the text."""
        return self.stmt.span

    def touch(
        self, buffer: Buffer, load: Load, dims: tuple[int, ...] | None, tile: Held, lane: Sym, names: Mapping[Digit, Sym]
    ) -> None:
        """Finds where `buffer` is for the registers of `tile`, and what has to come before and after."""
        if dims is None:
            raise Misfit(f"`{buffer.name}` is touched elsewhere than what lanes hold with it")
        part = self.held[buffer]
        register = register_of(part, tile, names, dims)
        together = tuple(digit for digit in part.gone if digit not in tile.gone)
        if not together and len(dims) == len(tile.shape):
            self.at[buffer] = Load(part.made, (expr(lane), register))
            return
        writes = [s for s in ir.walk((self.stmt,)) if isinstance(s, ir.Bind) and any(t.buffer is buffer for t in s.targets)]
        made = self.summed(part, load, together, writes) if writes else self.asked(part, load.index)
        self.at[buffer] = Load(made, (expr(lane), register))

    def asked(self, part: Held, index: Sequence[Expr]) -> Buffer:
        """Registers of all lanes for what one of those that hold it together owns."""
        made = replace(part.made, name=self.by.fresh(part.made.name).name)
        lane, names = self.by.fresh("lane"), self.names(part)
        register = _register(part, names)
        source = Load(part.made, (part.owner(expr(lane)), register), span=self.span)
        copy = ir.Bind((Load(made, (expr(lane), register)),), (source,), span=self.span)
        body = self.guarded(part, index, lane, names, copy)
        self.ahead += (ir.New(made, span=self.span), self.over(lane, names, body, part))
        return made

    def guarded(self, part: Held, index: Sequence[Expr], lane: Sym, names: Sequence[tuple[Sym, Digit]], stmt: ir.Stmt) -> Body:
        """A statement on an element of `part`, which the loops touch at `index`, where tests around them hold for that."""
        own = {s.sym: s for s in ir.walk((self.stmt,)) if isinstance(s, ir.Par | ir.Seq)}
        used = {s: own[s].extent.constant for e in index for s in e.syms() if s in own and own[s].extent.is_constant}
        values = solved(index, part.element(expr(lane), [sym for sym, _ in names]), used, part.shape)
        simple = Simplifier(Known({lane: (0, part.lanes - 1), **{sym: (0, digit.size - 1) for sym, digit in names}}))
        values = {sym: simple(e) for sym, e in values.items()}
        test = conjunction([substitute_value(t, values) for t in self.tests() if _syms(t) & own.keys() <= used.keys()])
        return (stmt,) if test is None else (ir.If(test, (stmt,), span=self.span),)

    def tests(self) -> Iterator[Value]:
        """What has to hold for the loops to compute anything."""
        body = (self.stmt,)
        while len(body) == 1 and isinstance(stmt := body[0], ir.Par | ir.Seq | ir.If):
            body = ir.blocks(stmt)[0]
            if isinstance(stmt, ir.If) and not stmt.orelse and _is_affine(stmt.condition):
                yield stmt.condition

    def summed(self, part: Held, load: Load, together: Sequence[Digit], writes: Sequence[ir.Bind]) -> Buffer:
        """Registers in which each lane sums up what it holds of a row; lanes that hold it together are combined behind."""
        buffer, updates = load.buffer, {write.update for write in writes if len(write.targets) == 1}
        loops = [s for s in ir.walk((self.stmt,)) if isinstance(s, ir.Par | ir.Seq) and buffer in s.reduce]
        (update,) = updates if len(updates) == 1 and len(writes) == 1 else (None,)
        if not isinstance(update, str) or not loops or update == "sub":
            raise Misfit(f"`{buffer.name}` is given one value by several lanes, and not by a sum, or an extremum, in any order")
        made = replace(part.made, name=self.by.fresh(f"{part.made.name}_own").name)
        (nothing,) = identity(update, (buffer.dtype,))
        lane, names = self.by.fresh("lane"), self.names(part)
        start = ir.Bind((Load(made, (expr(lane), _register(part, names))),), (nothing,), span=self.span)
        self.ahead += (ir.New(made, "lanes", span=self.span), self.over(lane, names, (start,), part))
        lane, names = self.by.fresh("lane"), self.names(part)
        register, other, turns = _register(part, names), expr(lane), list[tuple[Sym, Digit]]()
        for digit in together:
            turns.append((self.by.fresh("q"), digit))
            other += expr(turns[-1][0]) * digit.weight
        self.free.append(made)
        source, target = Load(made, (other, register), span=self.span), Load(part.made, (expr(lane), register))
        join = ir.Bind((target,), (source,), update, span=self.span)
        body: Body = (_first(part, lane, self.guarded(part, load.index, lane, names, join), self.span),)
        for sym, digit in reversed(turns):
            body = (ir.Seq(sym, expr(digit.size), body, (part.made,), span=self.span),)
        for sym, digit in reversed(names):
            body = (ir.Seq(sym, expr(digit.size), body, span=self.span),)
        self.behind.append(self.over(lane, (), body, part))
        return made

    def over(self, lane: Sym, digits: Sequence[tuple[Sym, Digit]], body: Body, held: Held) -> ir.Par:
        """`body` for each lane and each of its registers."""
        summed = {t.buffer for s in ir.walk(body) if isinstance(s, ir.Bind) and s.update is not None for t in s.targets}
        free = tuple(buffer for buffer in self.free if buffer in summed)
        if digits and is_stored(self.by.function, body):
            *digits, (sym, digit) = digits
            self.by.pairs.add(sym)
            body = (ir.Par(sym, expr(digit.size), body, span=self.span),)
        for sym, digit in reversed(digits):
            body = (ir.Seq(sym, expr(digit.size), body, free, span=self.span),)
        return ir.Par(lane, expr(held.lanes), body, fully=True, span=self.span)

    def names(self, part: Held) -> list[tuple[Sym, Digit]]:
        """A loop for each digit of a register."""
        return [(self.by.fresh("r"), digit) for digit in part.own]

    def moved(self, tile: Held, index: Sequence[Expr], lane: Expr, names: Sequence[Sym]) -> Body:
        """What is inside of the loops, for the element of a tile that a lane has in a register."""
        own = {s.sym: s for s in ir.walk((self.stmt,)) if isinstance(s, ir.Par | ir.Seq)}
        used = {sym: own[sym] for e in index for sym in e.syms() if sym in own}
        for loop in used.values():
            if not loop.extent.is_constant or (isinstance(loop, ir.Par) and loop.fully):
                raise Misfit(f"the loop over `{loop.sym.base}` goes through what lanes hold, and is of no constant extent")
        values = dict(
            solved(index, tile.element(lane, names), {s: loop.extent.constant for s, loop in used.items()}, tile.shape)
        )
        values |= {sym: ZERO for sym, loop in own.items() if isinstance(loop, ir.Par) and loop.extent is ONE}
        _require_inside(self.stmt, frozenset(values), frozenset(used))
        ranges = {s: (0, d.size - 1) for s, d in zip(names, tile.own, strict=True)}
        simple = Simplifier(Known({**{s: (0, tile.lanes - 1) for s in lane.syms()}, **ranges}))
        moved = substitute_block(_without((self.stmt,), frozenset(values)), {sym: simple(e) for sym, e in values.items()})

        def load(old: Load) -> Load | None:
            found = self.at.get(old.buffer)
            return None if found is None else replace(found, span=old.span)

        def value(old: Value) -> Value:
            return replace_loads(old, load)

        return Rewriter(value=value, target=lambda old: load(old) or old).block(moved)


def _syms(test: Value) -> frozenset[Sym]:
    return frozenset(sym for node in walk(test) if isinstance(node, Index) for sym in node.expr.syms())


def _register(part: Held, names: Sequence[tuple[Sym, Digit]]) -> Expr:
    return sum((expr(sym) * digit.weight for sym, digit in names), ZERO)


def _first(part: Held, lane: Sym, body: Body, span: Span) -> ir.If:
    """`body` for those lanes that own what they hold."""
    mine = Op("eq", (Index(expr(lane) - part.owner(expr(lane)), I64), Literal(0, I64)), BOOL)
    return ir.If(mine, body, span=span)


def _require_inside(stmt: ir.Stmt, used: frozenset[Sym], left: frozenset[Sym]) -> None:
    """That whatever computes is in all loops over what lanes hold, and those in no others that come in order."""
    if isinstance(stmt, ir.Par | ir.Seq):
        if left and stmt.sym not in used:
            raise Misfit(f"the loop over `{stmt.sym.base}` is around loops over what lanes hold")
        left = left - {stmt.sym}
    elif left and not isinstance(stmt, ir.If):
        raise Misfit("a statement is in some loops over what lanes hold, and not in all")
    for block in ir.blocks(stmt):
        for inner in block:
            _require_inside(inner, used, left)


def _without(body: Body, gone: frozenset[Sym]) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_without(block, gone) for block in ir.blocks(stmt)))
        found += made.body if isinstance(made, ir.Par | ir.Seq) and made.sym in gone else (made,)
    return tuple(found)
