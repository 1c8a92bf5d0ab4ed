"""Products with phases between them as instructions of lanes: all that one loop makes for them goes into registers together.

A *family* is the products below a loop, the tiles that they sum up, and what is held as these are
(`texpr.schedule.joint.phases`). A product reads a local of a family from its registers, where lanes have the elements that the
instruction wants of them, one register behind the other; that is checked element by element. Functions whose products have no
such local are left as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr import Operand
from texpr.ir.instr.fragment import Misfit
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Joint
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.schedule.joint.convert import Converter, Tile, accesses, exprs_of
from texpr.schedule.joint.held import Held, tile_of
from texpr.schedule.joint.lanes.layout import place
from texpr.schedule.joint.lanes.wide import wide
from texpr.schedule.joint.nests import Nest
from texpr.schedule.joint.phases import Phase, Touched, held_by, phases
from texpr.schedule.joint.product import Product
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.record import Mutable, field, replace

Homes: TypeAlias = Mapping[ir.New, ir.Loop]
"""The loop that makes each tile of a function."""

SPACES = (None, "registers", "lanes")
"""Where a schedule puts locals that lanes may hold."""


def chained(function: ir.Function, target: Target) -> ir.Function:
    """`function` with its families as instructions and loops over lanes. Raises TexprError E0919 where one does not fit."""
    if not target.has_warps:
        return function
    for home in _homes(function, target):
        tops = [s for s in ir.walk(home.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)]
        by = Converter(function, target, tops[0])
        try:
            family = _Family(by, home)
            if not family.is_one:
                continue
            made = replace(home, body=family.block(home.body))
        except Misfit as why:
            raise by.refuse(str(why)) from None
        function = wide(replace(function, body=replaced(function.body, home, lambda _, made=made: (made,))), by.pairs)
    return function


def _homes(function: ir.Function, target: Target) -> list[ir.Loop]:
    """The loops, none in another one, that make the tiles of a function that are in registers."""
    found = list[ir.Loop]()
    news = {s.buffer: s for s in ir.walk(function.body) if isinstance(s, ir.New)}
    for top in (s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)):
        nest = Converter(function, target, top).nest(top)
        new = None if nest.match.result.columns else news.get(nest.tile)
        home = None if new is None else _home(function, new)
        if new is not None and home is not None:
            found.append(_widened(function, home, new.buffer, news))
    inner = {s for loop in found for s in ir.walk(loop.body)}
    return [*dict.fromkeys(loop for loop in found if loop not in inner)]


def _home(function: ir.Function, new: ir.New) -> ir.Loop | None:
    """The loop whose body has `new`."""
    path = path_to(function.body, new) or ()
    around = path[-2] if len(path) > 1 else None
    return around if isinstance(around, ir.Par | ir.Seq) else None


def _widened(function: ir.Function, home: ir.Loop, tile: Buffer, news: Mapping[Buffer, ir.New]) -> ir.Loop:
    """The loop that makes what is touched where a tile of `home` is, as a sum of tiles that is kept from turn to turn: `home`,
    or one around it."""
    tops = [s for s in ir.walk(home.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)]
    found = home
    for phase in _between(home.body, tops):
        touched = {load.buffer for stmt in ir.walk((phase,)) for load in accesses(stmt)}
        for new in (news[buffer] for buffer in touched if tile in touched and buffer in news):
            outer = _home(function, new)
            if new.space in SPACES and outer is not None and any(stmt is found for stmt in ir.walk(outer.body)):
                found = outer
    return found


def _between(body: Body, tops: Collection[ir.Loop]) -> Iterator[ir.Stmt]:
    """The statements that have none of `tops` inside."""
    for stmt in body:
        if any(inner in tops for inner in ir.walk((stmt,))):
            for block in ir.blocks(stmt) if stmt not in tops else ():
                yield from _between(block, tops)
        elif not isinstance(stmt, ir.New):
            yield stmt


class _Family(Mutable):
    """The family below `home`: its tiles, and all that is held."""

    by: Converter
    home: ir.Loop
    tiles: dict[Buffer, Tile] = field(default_factory=dict[Buffer, Tile])
    held: dict[Buffer, Held] = field(default_factory=dict[Buffer, Held])

    def __post_init__(self) -> None:
        local = {s.buffer: s for s in ir.walk(self.home.body) if isinstance(s, ir.New) and s.space in SPACES}
        for top in (s for s in ir.walk(self.home.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)):
            buffer = self.by.nest(top).tile
            home = _home(self.by.function, local[buffer]) if buffer in local else None
            if buffer not in self.tiles and home is not None:
                tile = self.tiles[buffer] = Tile(self.by, home, local[buffer])
                self.held[buffer] = tile_of(tile.held, tile.made)
        lanes = {held.lanes for held in self.held.values()}
        every = [each for stmt in self.phases(self.home.body) for each in phases(stmt)]
        before = 0
        while len(lanes) == 1 and before < len(self.held):
            before = len(self.held)
            for stmt in every:
                self.held |= held_by(stmt, self.held, local, self.by.target.warp)

    @property
    def nests(self) -> Mapping[ir.Loop, Nest]:
        """The products."""
        return {top: nest for tile in self.tiles.values() for top, nest in tile.nests.items()}

    @property
    def is_one(self) -> bool:
        """Whether something is held beside tiles, or read from one by a product, or tiles meet in a phase."""
        read = {load.buffer for nest in self.nests.values() for load in nest.match.reads.values()}
        return len(self.held) > len(self.tiles) or not read.isdisjoint(self.held) or self.meet

    @property
    def meet(self) -> bool:
        """Whether a phase touches several tiles."""
        every = (each for stmt in self.phases(self.home.body) for each in phases(stmt))
        return len(self.tiles) > 1 and any(len(Touched.of(each, {*self.tiles}).loads) > 1 for each in every)

    def phases(self, body: Body) -> Iterator[ir.Stmt]:
        """The statements that have no product inside."""
        return _between(body, self.nests)

    def inside(self, stmt: ir.Stmt) -> list[Nest]:
        """The products in a statement."""
        below = {*ir.walk((stmt,))}
        return [nest for top, nest in self.nests.items() if top in below]

    def block(self, body: Body) -> Body:
        """What becomes of statements. Raises Misfit."""
        return tuple(made for stmt in body for made in self.stmt(stmt))

    def stmt(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """What becomes of a statement."""
        nests, inside = self.nests, self.inside(stmt)
        if isinstance(stmt, ir.New) and stmt.buffer in self.held:
            held = self.held[stmt.buffer]
            yield ir.New(held.made, "lanes" if held.gone else None, span=stmt.span)
        elif isinstance(stmt, ir.Par | ir.Seq) and stmt in nests:
            nest = nests[stmt]
            by, tile = self.by, self.tiles[nest.tile]
            yield from _Linked(nest, tile.made, tile.lanes, by.function, by.target, by.fresh, held=self.held).block()
        elif inside:
            yield from self.around(stmt, inside)
        else:
            for each in phases(stmt):
                found = Touched.of(each, {*self.held})
                is_held = found.loads or found.several
                yield from Phase(self.by, self.held, each).block() if is_held else (each,)

    def around(self, stmt: ir.Stmt, inside: Sequence[Nest]) -> Iterator[ir.Stmt]:
        """A statement with products inside: loops over warps, and over tiles of a warp, are gone."""
        gone = {loop.sym for nest in inside for loop in (*nest.teams, *nest.tiles)}
        if isinstance(stmt, ir.If) and {s for e in exprs_of(stmt) for s in e.syms()} & gone:
            raise Misfit("a condition around the product is not the same for all that lanes do together")
        bodies = tuple(map(self.block, ir.blocks(stmt)))
        if not isinstance(stmt, ir.Par | ir.Seq):
            yield with_blocks(stmt, bodies)
        elif stmt.sym not in gone:
            reduce = tuple(self.held[b].made if b in self.held else b for b in stmt.reduce)
            yield replace(stmt, body=bodies[0], reduce=reduce)
        elif len(stmt.body) != 1:
            raise Misfit(f"the loop over `{stmt.sym.base}` has other statements beside the product")
        else:
            yield from bodies[0]


class _Linked(Product, kw_only=True):
    """A product, some of whose operands are in the registers of what is `held`."""

    held: Mapping[Buffer, Held]

    def registers_of(self, operand: Operand) -> Held | None:
        """What is held that an operand is read from."""
        return None if operand is self.match.result else self.held.get(self.match.reads[operand.memory].buffer)

    def brought(self, operand: Operand) -> tuple[Buffer, ir.Stmt | None]:
        """The registers of an operand, and what brings it there."""
        held = self.registers_of(operand)
        if held is None:
            return super().brought(operand)
        self.require_there(operand, held)
        return held.made, None

    def first(self, operand: Operand, at: Mapping[Sym, Expr]) -> Expr:
        """The first register of an operand, for a tile of the warp."""
        held = self.registers_of(operand)
        if held is None:
            return super().first(operand, at)
        inner = dict.fromkeys(self.match.loops.values(), ZERO)
        index = [e.substitute({**inner, **self.warps(ZERO), **at}) for e in self.match.reads[operand.memory].index]
        loops = {loop.sym: loop.extent for loop in self.nest.loops} | {
            s: loop.extent for loop in self.nest.tiles if (s := at[loop.sym].as_sym) is not None
        }
        ranges = {sym: (0, extent.constant - 1) for sym, extent in loops.items() if extent.is_constant}
        return Simplifier(Known(ranges))(held.register(index))

    def require_there(self, operand: Operand, held: Held) -> None:
        """Raises Misfit unless each lane has what the instruction wants of it, in registers that follow each other."""
        name, load = held.made.name, self.match.reads[operand.memory]
        tiles = [loop for loop in self.nest.loops if loop.sym in {s for e in load.index for s in e.syms()}]
        tiles = [loop for loop in tiles if loop not in self.nest.teams]
        lane, names = Sym("lane of it"), [Sym(f"digit {n}") for n in range(len(operand.fragment.digits))]
        at = place(
            operand.fragment, expr(lane) % self.match.instr.lanes, names[: sum(not d.of_lane for d in operand.fragment.digits)]
        )
        if load.data or held.gone or not all(loop.extent.is_constant for loop in tiles):
            raise Misfit(f"`{name}` is not held element by element by the lanes that read it")
        values = {
            **dict(zip(self.match.along(operand), at.element, strict=True)),
            **self.warps(expr(lane) // self.match.instr.lanes),
        }
        index = [e.substitute(values) for e in load.index]
        first = self.first(operand, {loop.sym: expr(loop.sym) for loop in self.nest.tiles})
        sides = (held.lane(index) - expr(lane), held.register(index) - first - at.register)
        counts = {lane: held.lanes, **{s: d.size for s, d in at.digits}, **{loop.sym: loop.extent.constant for loop in tiles}}
        for point in product(*map(range, counts.values())):
            values = dict(zip(counts, point, strict=True))
            if any(side.evaluate(values) for side in sides):
                reason = f"lanes hold `{name}` otherwise than `{self.match.instr.name}` reads `{operand.name}`"
                raise Misfit(reason)
