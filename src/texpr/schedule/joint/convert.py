"""A laid-out program with nests that are marked `#mma` as one in which lanes do instructions together.

    new acc: f32[4, 16, 8]                                     new acc: f32[32, 16]          -- lane, register
    par 4 |mi| { par 16 |i| { par 8 |j| {                      fully par 32 |t| { seq 4 |mi| { seq 2 |r| { seq 2 |s| {
        acc[mi, i, j] = 0.0 } } }                                  acc[t, s + 2 * r + 4 * mi] = 0.0 } } } }
    seq K / 16 |ko| { par 4 |mi| {                             seq K / 16 |ko| {
        par 16 |i| #mma(m16n8k16) { par 8 |j| {                    new a: bf16[32, 32]   new b: bf16[32, 4]
        seq 16 |k| reduce(acc) {                                   fully par 32 |t| { … a[t, …] = As[…] }   … b …
            acc[mi, i, j] += f32(As[…]) * f32(Bs[…])               instr m16n8k16(a[0, 0], b[0, 0], acc[0, 0]) { … }
        } } } } }                                                  instr m16n8k16(a[0, 8], b[0, 0], acc[0, 4]) { … }   …
                                                               }

The tile that the nests sum up is held by lanes as the instruction's fragment says (`layout`), and every loop over it goes over
lanes and registers instead. Which instance of which statement is done is told with each, so all is proved like any schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr.fragment import Digit, Fragment, Misfit
from texpr.ir.program.marked import mark, marked
from texpr.ir.program.marks import Joint, Unroll
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, with_blocks
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Index, Load, Value
from texpr.ir.value import walk as value_walk
from texpr.isa.target import Target
from texpr.schedule.edits import Offers
from texpr.schedule.joint.lanes import stores
from texpr.schedule.joint.lanes.columns import Columns, in_vectors
from texpr.schedule.joint.lanes.layout import Place, place, solved, steps_of, tile_fragment
from texpr.schedule.joint.lanes.parts import part_of
from texpr.schedule.joint.lanes.wide import is_stored
from texpr.schedule.joint.match import match
from texpr.schedule.joint.nests import Nest, nest_of
from texpr.schedule.joint.product import Product, Unfit
from texpr.schedule.joint.records import by_name
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Mutable, field, replace


class Converter(Mutable):
    """`function`, of which the nest at `top` and all else that touches its tile is told by lanes."""

    function: ir.Function
    target: Target
    top: ir.Loop
    taken: set[str] = field(default_factory=set[str])
    pairs: set[Sym] = field(default_factory=set[Sym])
    """Loops over neighbouring registers, of statements that write what callers know."""

    def __post_init__(self) -> None:
        self.taken |= {b.name for b in (*ir.buffers(self.function), *self.function.results)}
        self.taken |= {s.name for s in (*self.function.sizes, *(s for s, _ in self.function.consts))}
        self.taken |= {s.sym.name for s in ir.walk(self.function.body) if isinstance(s, ir.Par | ir.Seq | ir.Let)}

    def run(self) -> ir.Function:
        """The function, with one tile less to be told by lanes."""
        found = self.nest(self.top)
        new = next((s for s in ir.walk(self.function.body) if isinstance(s, ir.New) and s.buffer is found.tile), None)
        if new is None or found.tile.role != "local":
            name = found.tile.name
            help = f"a `new`, or `stage({name}, at=…, in=registers)`, makes a tile that lanes can hold"
            raise self.refuse(f"`{name}` is in memory that callers know, and lanes sum up in their registers", help)
        path = path_to(self.function.body, new) or ()
        home = next((s for s in reversed(path[:-1]) if isinstance(s, ir.Par | ir.Seq)), None)
        if home is None or not isinstance(path[-2] if len(path) > 1 else None, ir.Par | ir.Seq):
            raise self.refuse(f"`{found.tile.name}` is made outside of every loop, so no block has it")
        try:
            made = Tile(self, home, new).block()
        except Unfit as why:
            raise self.refuse(str(why), why.help, offers=why.offers) from None
        except Misfit as why:
            raise self.refuse(str(why)) from None
        return replace(self.function, body=replaced(self.function.body, home, lambda _: (replace(home, body=made),)))

    def nest(self, top: ir.Loop) -> Nest:
        """What a marked nest is."""
        asked = mark(top, Joint)
        assert asked is not None
        loops, bind = nest_of(top)
        instr = by_name(self.function, asked.instr)
        found = None if instr is None or bind is None else match(instr, loops, bind)
        if found is None:
            reason = f"the loops from `{top.sym.base}` on are not what `{asked.instr}` means any more"
            raise self.refuse(reason, "give a nest to an instruction when its loops are as they will stay")
        path = path_to(self.function.body, top) or ()
        return Nest(found, top, path[:-1], asked.span)

    def refuse(self, reason: str, help: str | None = None, offers: Offers = ()) -> TexprError:
        """The error at the directive."""
        asked = mark(self.top, Joint)
        return error("E0919", None if asked is None else asked.span, reason, help=help, offers=offers)

    def fresh(self, base: str) -> Sym:
        """A symbol that is called like `base`."""
        name, n = base, 0
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return Sym(name)


class Tile(Mutable):
    """A tile that `new` makes in the body of `home`: its fragment, and what becomes of all that touches it."""

    by: Converter
    home: ir.Loop
    new: ir.New
    nests: dict[ir.Loop, Nest] = field(default_factory=dict[ir.Loop, Nest])
    held: Fragment = field(init=False)
    made: Buffer = field(init=False)
    columns: Columns | None = None
    """What brings parts of it to registers, where it is in tensor memory."""

    def __post_init__(self) -> None:
        tops = [s for s in ir.walk(self.home.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)]
        found = [self.by.nest(top) for top in tops]
        for nest in found:
            if nest.tile is self.new.buffer:
                at = nest.around.index(self.home)
                self.nests[nest.top] = replace(nest, around=nest.around[at + 1 :])
        first, *others = (self.fragment_of(nest) for nest in self.nests.values())
        if any((each.layout, each.lanes) != (first.layout, first.lanes) for each in others):
            raise Misfit(f"two products sum up in `{self.tile.name}`, in lanes of their own each")
        self.held = first
        self.made = replace(self.tile, shape=(expr(first.lanes), expr(first.registers)))
        if {nest.match.result.columns for nest in self.nests.values()} == {True}:
            self.columns = Columns(self.made, self.lanes, self.by.target, self.by.function, self.by.fresh)

    @property
    def tile(self) -> Buffer:
        """As it is declared."""
        return self.new.buffer

    @property
    def lanes(self) -> int:
        """Threads that hold it."""
        return self.held.lanes

    def fragment_of(self, nest: Nest) -> Fragment:
        """Which lanes hold the tile, as one nest has it. Raises Misfit."""
        if not all(e.is_constant for e in self.tile.shape):
            raise Misfit(f"the shape of `{self.tile.name}` is not constant, so no lanes can hold it")
        index, found = nest.match.bind.targets[0].index, nest.match
        inner = nest_of(nest.top)[0]
        steps = steps_of(index, frozenset(loop.sym for loop in (*nest.loops, *inner)))
        for loop in (*nest.teams, *nest.tiles):
            if not loop.extent.is_constant:
                raise Misfit(f"the extent of `{loop.sym.base}` is not constant, so no registers can be set aside for it")
        shape = tuple(e.constant for e in self.tile.shape)
        return tile_fragment(shape, steps, found.along(found.result), found.result.fragment, nest.teams, nest.tiles)

    def block(self) -> Body:
        """The statements of the loop that makes the tile."""
        return tuple(made for stmt in self.home.body for made in self.stmt(stmt))

    def touches(self, stmt: ir.Stmt) -> bool:
        """Whether the tile is read or written below."""
        inside = list(ir.walk((stmt,)))
        targets = (t.buffer for s in inside if isinstance(s, ir.Bind) for t in s.targets)
        return self.tile in targets or any(load.buffer is self.tile for s in inside for load in loads(s))

    def stmt(self, stmt: ir.Stmt, around: tuple[ir.Loop, ...] = ()) -> Iterator[ir.Stmt]:
        """What becomes of a statement. `around`: loops over the tile that stay, each iteration for a part of it."""
        inside = [nest for top, nest in self.nests.items() if top is stmt or any(s is top for s in ir.walk((stmt,)))]
        if stmt is self.new:
            yield ir.New(self.made, span=self.new.span)
        elif not self.touches(stmt):
            yield stmt
        elif not inside and isinstance(stmt, ir.Par | ir.Seq) and self.is_in_parts(stmt):
            yield self.by_parts(stmt, (*around, stmt))
        elif not inside:
            yield from self.spread(stmt, around)
        elif stmt in self.nests:
            yield from self.product(self.nests[stmt])
        else:
            yield from self.around(stmt, inside)

    def product(self, nest: Nest, turns: tuple[ir.Loop, ...] = ()) -> Iterator[ir.Stmt]:
        """A marked nest as instructions, in `turns` of which operands are computed before. Raises Misfit."""
        by = self.by
        yield from Product(nest, self.made, self.lanes, by.function, by.target, by.fresh, turns).block()

    def around(self, stmt: ir.Stmt, inside: Sequence[Nest]) -> Iterator[ir.Stmt]:
        """A statement with marked nests inside: loops over warps, and over tiles of a warp, are gone."""
        gone = {loop.sym for nest in inside for loop in (*nest.teams, *nest.tiles)}
        if isinstance(stmt, ir.If) and {s for e in exprs_of(stmt) for s in e.syms()} & gone:
            raise Misfit("a condition around the product is not the same for all that lanes do together")
        if turns := inside[0].turns_from(stmt):
            yield from self.product(inside[0], turns)
            return
        bodies = tuple(tuple(made for each in block for made in self.stmt(each)) for block in ir.blocks(stmt))
        if isinstance(stmt, ir.Par | ir.Seq):
            if stmt.sym in gone:
                if len(stmt.body) != 1:
                    raise Misfit(f"the loop over `{stmt.sym.base}` has other statements beside the product")
                yield from bodies[0]
                return
            reduce = tuple(self.made if buffer is self.tile else buffer for buffer in stmt.reduce)
            yield replace(stmt, body=bodies[0], reduce=reduce)
        else:
            yield with_blocks(stmt, bodies)

    def is_in_parts(self, loop: ir.Loop) -> bool:
        """Whether a loop over the tile has statements beside those in all loops over it."""
        over = {
            sym
            for s in ir.walk((loop,))
            for load in accesses(s)
            if load.buffer is self.tile
            for e in load.index
            for sym in e.syms()
        }
        return loop.sym in over and any(not isinstance(each, ir.If) and not self.touches(each) for each in loop.body)

    def by_parts(self, loop: ir.Loop, around: tuple[ir.Loop, ...]) -> ir.Stmt:
        """Such a loop: its iterations in order, as each finds its part in registers that are named."""
        _require_plain(loop, self.tile)
        body = tuple(made for each in loop.body for made in self.stmt(each, around))
        return marked(ir.Seq(loop.sym, loop.extent, body, span=loop.span), Unroll(span=loop.span))

    def spread(self, stmt: ir.Stmt, around: tuple[ir.Loop, ...]) -> Iterator[ir.Stmt]:
        """Loops over the tile, as loops over lanes and registers, to which columns of tensor memory are brought first; or as
        instructions that store it. `around`: loops over it that stay."""
        found = [load for s in ir.walk((stmt,)) for load in accesses(s) if load.buffer is self.tile]
        indices = {load.index for load in found}
        if len(indices) != 1 or found[0].data:
            raise Misfit(f"loops touch several elements of `{self.tile.name}` in one iteration")
        (index,) = indices
        part = part_of(self.held, index, [loop for loop in around if any(loop.sym in e.syms() for e in index)])
        own = {s.sym: s for s in ir.walk((stmt,)) if isinstance(s, ir.Par | ir.Seq)}
        used = {sym: own[sym] for e in index for sym in e.syms() if sym in own}
        for loop in used.values():
            _require_plain(loop, self.tile)
        extents = {sym: loop.extent.constant for sym, loop in used.items()}
        outer = {loop.sym: (0, loop.extent.constant - 1) for loop in around}

        def moved(element: Sequence[Expr], at: Load, ranges: Mapping[Sym, Range]) -> Body:
            ranges = {**ranges, **outer}
            at = replace(at, index=(at.index[0], at.index[1] + part.first))
            values = dict(solved(part.index, element, extents, part.held.shape))
            values |= {sym: ZERO for sym, loop in own.items() if isinstance(loop, ir.Par) and loop.extent is ONE}
            self._require_inside(stmt, frozenset(values), frozenset(used))
            simple, body = Simplifier(Known(ranges)), self._without((stmt,), frozenset(values))
            at_element = {sym: simple(e) for sym, e in values.items()}
            return renamed(body, at_element, self.tile, lambda old: replace(at, span=old.span))

        by, span = self.by, getattr(stmt, "span", self.new.span)
        if self.columns is None:
            whole = stores.Tile(self.lanes, part.held.shape, part.held.digits, self.made)
            if instructions := stores.stored(by.function, by.target, whole, moved, by.fresh, span):
                yield from instructions
                return
        lane = by.fresh("lane")
        held = place(part.held, expr(lane), [by.fresh("r") for digit in part.held.digits if not digit.of_lane])
        ranges = {lane: (0, self.lanes - 1), **{sym: (0, digit.size - 1) for sym, digit in held.digits}}
        if self.columns is None:
            yield self.over(lane, held.digits, moved(held.element, Load(self.made, (expr(lane), held.register)), ranges), stmt)
        else:
            if around:
                raise Misfit("what is in tensor memory is not brought to registers part by part of another loop")
            yield from self._from_columns(self.columns, lane, held, moved, ranges, stmt)

    def _from_columns(
        self, columns: Columns, lane: Sym, held: Place, moved: stores.Moved, ranges: Mapping[Sym, Range], stmt: ir.Stmt
    ) -> Iterator[ir.Stmt]:
        """The same, some columns of tensor memory after the other."""
        *outer, own = held.digits
        part = columns.registers(own[1].size)
        made = moved(held.element, Load(part, (expr(lane), expr(own[0]))), ranges)
        span, first = getattr(stmt, "span", self.new.span), sum((expr(s) * d.weight for s, d in outer), ZERO)
        inner, made = in_vectors((own,), made, self.by.fresh) if is_stored(self.by.function, made) else ([own], made)
        nodes: Body = tuple(columns.around(part, first, (self.over(lane, inner, made, stmt),), span))
        for sym, digit in reversed(outer):
            nodes = (ir.Seq(sym, expr(digit.size), nodes, span=span),)
        yield from nodes

    def over(self, lane: Sym, digits: Sequence[tuple[Sym, Digit]], body: Body, stmt: ir.Stmt) -> ir.Par:
        """`body` for each lane and each of its registers."""
        span = getattr(stmt, "span", self.new.span)
        if digits and is_stored(self.by.function, body):
            *digits, (sym, digit) = digits
            self.by.pairs.add(sym)
            body = (ir.Par(sym, expr(digit.size), body, span=span),)
        for sym, digit in reversed(digits):
            body = (ir.Seq(sym, expr(digit.size), body, span=span),)
        return ir.Par(lane, expr(self.lanes), body, fully=True, span=span)

    def _require_inside(self, stmt: ir.Stmt, used: frozenset[Sym], left: frozenset[Sym]) -> None:
        """That whatever computes is in all loops over the tile, and those in no others that come in order."""
        if isinstance(stmt, ir.Par | ir.Seq):
            if left and stmt.sym not in used:
                raise Misfit(f"the loop over `{stmt.sym.base}` is around loops over `{self.tile.name}`")
            left = left - {stmt.sym}
        elif left and not isinstance(stmt, ir.If):
            raise Misfit(f"a statement is in some loops over `{self.tile.name}`, and not in all")
        for block in ir.blocks(stmt):
            for inner in block:
                self._require_inside(inner, used, left)

    def _without(self, body: Body, gone: frozenset[Sym]) -> Body:
        found: list[ir.Stmt] = []
        for stmt in body:
            made = with_blocks(stmt, tuple(self._without(block, gone) for block in ir.blocks(stmt)))
            found += made.body if isinstance(made, ir.Par | ir.Seq) and made.sym in gone else (made,)
        return tuple(found)


def accesses(stmt: ir.Stmt) -> tuple[Load, ...]:
    """What a statement reads, and what it gives a value."""
    targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
    return (*loads(stmt), *targets)


def _require_plain(loop: ir.Loop, tile: Buffer) -> None:
    if not loop.extent.is_constant or (isinstance(loop, ir.Par) and (loop.reduce or loop.fully)):
        through = f"the loop over `{loop.sym.base}` goes through `{tile.name}`"
        raise Misfit(f"{through}, and is no plain `par` of a constant extent")


def exprs_of(stmt: ir.If) -> Iterator[Expr]:
    """The index expressions in a condition, subscripts among them."""
    for node in value_walk(stmt.condition):
        if isinstance(node, Index):
            yield node.expr
        elif isinstance(node, Load):
            yield from node.index


def renamed(body: Body, values: Mapping[Sym, Expr], tile: Buffer, at: Callable[[Load], Load]) -> Body:
    """`body` at other indices, and the tile where it is held."""
    moved = substitute_block(body, values)

    def value(old: Value) -> Value:
        return replace_loads(old, lambda load: at(load) if load.buffer is tile else None)

    def target(old: Load) -> Load:
        return at(old) if old.buffer is tile else old

    return Rewriter(value=value, target=target).block(moved)
