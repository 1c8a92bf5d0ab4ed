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
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr import Operand
from texpr.ir.instr.fragment import Digit, Fragment, Misfit
from texpr.ir.program.marked import level_of, mark
from texpr.ir.program.marks import Joint
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, substitute_load, with_blocks
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Index, Load, Value
from texpr.ir.value import walk as value_walk
from texpr.isa.target import Target
from texpr.schedule.joint.layout import place, solved, steps_of, tile_fragment
from texpr.schedule.joint.match import Match, match
from texpr.schedule.joint.moves import Move, Tiles, move_of, movers
from texpr.schedule.joint.records import named, usable
from texpr.schedule.joint.wide import wide
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.diagnostic import Note, TexprError, error
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span

LEVELS = ("warp", "block.y", "block.z")
"""Levels whose iterations are warps, the fastest first: the lanes of one are the instruction's."""


class Nest(Record):
    """A marked nest: what it is, and the statements around, from what makes the tile on. `span`: the directive."""

    match: Match
    top: ir.Loop
    around: tuple[ir.Stmt, ...]
    span: Span

    @property
    def loops(self) -> tuple[ir.Loop, ...]:
        """The loops around."""
        return tuple(stmt for stmt in self.around if isinstance(stmt, ir.Par | ir.Seq))

    @property
    def tile(self) -> Buffer:
        """What it sums up in."""
        return self.match.bind.targets[0].buffer


def instructed(function: ir.Function, target: Target) -> ir.Function:
    """`function` with its marked nests as instructions. Raises TexprError E0919 where what is around one does not fit."""
    while (
        top := next((s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)), None)
    ) is not None:
        made = _Converter(function, target, top)
        function = wide(made.run(), made.pairs)
    return function


def nest_of(top: ir.Loop) -> tuple[tuple[ir.Loop, ...], ir.Bind | None]:
    """The perfectly nested loops from `top` on, and the one statement inside, if it is one that gives a value."""
    found: list[ir.Loop] = [top]
    while len(found[-1].body) == 1:
        (inner,) = found[-1].body
        if not isinstance(inner, ir.Par | ir.Seq):
            return tuple(found), inner if isinstance(inner, ir.Bind) else None
        found.append(inner)
    return tuple(found), None


class _Converter(Mutable):
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
            made = _Tile(self, home, new).block()
        except Misfit as why:
            raise self.refuse(str(why)) from None
        return replace(self.function, body=replaced(self.function.body, home, lambda _: (replace(home, body=made),)))

    def nest(self, top: ir.Loop) -> Nest:
        """What a marked nest is."""
        asked = mark(top, Joint)
        assert asked is not None
        loops, bind = nest_of(top)
        instr = named(self.function).get(asked.instr)
        found = None if instr is None or bind is None else match(instr, loops, bind)
        if found is None:
            reason = f"the loops from `{top.sym.base}` on are not what `{asked.instr}` means any more"
            raise self.refuse(reason, "give a nest to an instruction when its loops are as they will stay")
        path = path_to(self.function.body, top) or ()
        return Nest(found, top, path[:-1], asked.span)

    def refuse(self, reason: str, help: str | None = None, *notes: Note) -> TexprError:
        """The error at the directive."""
        asked = mark(self.top, Joint)
        return error("E0919", None if asked is None else asked.span, reason, *notes, help=help)

    def fresh(self, base: str) -> Sym:
        """A symbol that is called like `base`."""
        name, n = base, 0
        while name in self.taken:
            n += 1
            name = f"{base}_{n}"
        self.taken.add(name)
        return Sym(name)


class _Tile(Mutable):
    """A tile that `new` makes in the body of `home`: its fragment, and what becomes of all that touches it."""

    by: _Converter
    home: ir.Loop
    new: ir.New
    nests: dict[ir.Loop, Nest] = field(default_factory=dict[ir.Loop, Nest])
    held: Fragment = field(init=False)
    made: Buffer = field(init=False)
    warps: tuple[ir.Loop, ...] = ()

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
        warps, tiles = self.warps_of(nest), self.tiles_of(nest)
        for loop in (*warps, *tiles):
            if not loop.extent.is_constant:
                raise Misfit(f"the extent of `{loop.sym.base}` is not constant, so no registers can be set aside for it")
        shape = tuple(e.constant for e in self.tile.shape)
        return tile_fragment(shape, steps, found.along(found.result), found.result.fragment, warps, tiles)

    def warps_of(self, nest: Nest) -> tuple[ir.Loop, ...]:
        """The loops around a nest whose iterations are warps, the fastest first."""
        found = [loop for loop in nest.loops if level_of(loop) in LEVELS]
        return tuple(sorted(found, key=lambda loop: LEVELS.index(str(level_of(loop)))))

    def tiles_of(self, nest: Nest) -> tuple[ir.Loop, ...]:
        """The loops around a nest that go through the tiles of a warp, the innermost first."""
        moved = {sym for e in nest.match.bind.targets[0].index for sym in e.syms()}
        return tuple(loop for loop in reversed(nest.loops) if loop.sym in moved and level_of(loop) not in LEVELS)

    def block(self) -> Body:
        """The statements of the loop that makes the tile."""
        return tuple(made for stmt in self.home.body for made in self.stmt(stmt, {}))

    def touches(self, stmt: ir.Stmt) -> bool:
        """Whether the tile is read or written below."""
        inside = list(ir.walk((stmt,)))
        targets = (t.buffer for s in inside if isinstance(s, ir.Bind) for t in s.targets)
        return self.tile in targets or any(load.buffer is self.tile for s in inside for load in loads(s))

    def stmt(self, stmt: ir.Stmt, known: Mapping[Sym, Expr]) -> Iterator[ir.Stmt]:
        """What becomes of a statement. `known`: nothing, or loops around that are no loops any more."""
        inside = [nest for top, nest in self.nests.items() if top is stmt or any(s is top for s in ir.walk((stmt,)))]
        if stmt is self.new:
            yield ir.New(self.made, span=self.new.span)
        elif not self.touches(stmt):
            yield stmt
        elif not inside:
            yield self.spread(stmt)
        elif stmt in self.nests:
            yield from _Product(self, self.nests[stmt]).block()
        else:
            yield from self.around(stmt, inside)

    def around(self, stmt: ir.Stmt, inside: Sequence[Nest]) -> Iterator[ir.Stmt]:
        """A statement with marked nests inside: loops over warps, and over tiles of a warp, are gone."""
        gone = {loop.sym for nest in inside for loop in (*self.warps_of(nest), *self.tiles_of(nest))}
        if isinstance(stmt, ir.If) and {s for e in _exprs(stmt) for s in e.syms()} & gone:
            raise Misfit("a condition around the product is not the same for all that lanes do together")
        bodies = tuple(tuple(made for each in block for made in self.stmt(each, {})) for block in ir.blocks(stmt))
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

    def spread(self, stmt: ir.Stmt) -> ir.Stmt:
        """Loops over the tile, as loops over lanes and registers."""
        touched = [load for s in ir.walk((stmt,)) for load in _touched(s) if load.buffer is self.tile]
        indices = {load.index for load in touched}
        if len(indices) != 1 or touched[0].data:
            raise Misfit(f"loops touch several elements of `{self.tile.name}` in one iteration")
        (index,) = indices
        own = {s.sym: s for s in ir.walk((stmt,)) if isinstance(s, ir.Par | ir.Seq)}
        used = {sym: own[sym] for e in index for sym in e.syms() if sym in own}
        for loop in used.values():
            if not loop.extent.is_constant or (isinstance(loop, ir.Par) and (loop.reduce or loop.fully)):
                through = f"the loop over `{loop.sym.base}` goes through `{self.tile.name}`"
                raise Misfit(f"{through}, and is no plain `par` of a constant extent")
        lane = self.by.fresh("lane")
        names = [self.by.fresh("r") for digit in self.held.digits if not digit.of_lane]
        held = place(self.held, expr(lane), names)
        shape = tuple(e.constant for e in self.tile.shape)
        values = dict(solved(index, held.element, {s: loop.extent.constant for s, loop in used.items()}, shape))
        values |= {sym: ZERO for sym, loop in own.items() if isinstance(loop, ir.Par) and loop.extent is ONE}
        self._require_inside(stmt, frozenset(values), frozenset(used))
        body = self._without((stmt,), frozenset(values))
        at = Load(self.made, (expr(lane), held.register))
        simple = Simplifier(Known({lane: (0, self.lanes - 1), **{sym: (0, digit.size - 1) for sym, digit in held.digits}}))
        made = _renamed(body, {sym: simple(e) for sym, e in values.items()}, self.tile, lambda old: replace(at, span=old.span))
        return self.over(lane, held.digits, made, stmt)

    def over(self, lane: Sym, digits: Sequence[tuple[Sym, Digit]], body: Body, stmt: ir.Stmt) -> ir.Par:
        """`body` for each lane and each of its registers."""
        span = getattr(stmt, "span", self.new.span)
        stored = any(t.buffer.role != "local" for s in ir.walk(body) if isinstance(s, ir.Bind) for t in s.targets)
        if digits and stored:
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


class _Product(Mutable):
    """A marked nest: registers for its operands, what brings them there, and an instruction for each tile of a warp."""

    tile: _Tile
    nest: Nest
    number: dict[Sym, int] = field(default_factory=dict[Sym, int])

    @property
    def match(self) -> Match:
        """What it is."""
        return self.nest.match

    def block(self) -> Iterator[ir.Stmt]:
        """The statements."""
        registers: dict[Buffer, Buffer] = {}
        moves: list[ir.Stmt] = []
        for operand in self.match.instr.operands:
            if operand is not self.match.result:
                tiles = self.tiles(operand)
                count = operand.fragment.registers
                for loop in tiles:
                    count *= loop.extent.constant
                name = self.tile.by.fresh(operand.name).name
                registers[operand.memory] = Buffer(name, operand.dtype, (expr(self.tile.lanes), expr(count)), "local")
                yield ir.New(registers[operand.memory], span=self.nest.span)
                moves.append(
                    self.gathered(operand, registers[operand.memory]) or self.move(operand, registers[operand.memory], tiles)
                )
        yield from moves
        yield self.use(registers)

    def tiles(self, operand: Operand) -> tuple[ir.Loop, ...]:
        """The loops over tiles of a warp on which what an operand is depends, the innermost first."""
        read = {sym for e in self.match.reads[operand.memory].index for sym in e.syms()}
        return tuple(loop for loop in self.tile.tiles_of(self.nest) if loop.sym in read)

    def warps(self, group: Expr) -> Mapping[Sym, Expr]:
        """The loops over warps, of the warp of that number."""
        found: dict[Sym, Expr] = {}
        weight, count = 1, self.tile.lanes // self.match.instr.lanes
        for loop in self.tile.warps_of(self.nest):
            value, weight = group // weight, weight * loop.extent.constant
            found[loop.sym] = value if weight == count else value % loop.extent.constant
        return found

    def gathered(self, operand: Operand, made: Buffer) -> ir.Stmt | None:
        """Registers of an operand brought by an instruction, if one fits."""
        match, load, loops = self.match, self.match.reads[operand.memory], self.tiles(operand)
        new = next((s for s in ir.walk(self.tile.by.function.body) if isinstance(s, ir.New) and s.buffer is load.buffer), None)
        if new is None or new.space != "shared":
            return None
        tiles, weight = list[Tiles](), operand.fragment.registers
        for loop in loops:
            tiles.append(Tiles(loop.sym, loop.extent.constant, weight))
            weight *= loop.extent.constant
        every = movers(usable(self.tile.by.function, self.tile.by.target))
        moves = (move_of(operand.fragment, match.along(operand), load, tiles, each) for each in every)
        move = next((each for each in moves if each is not None), None)
        return None if move is None else self._gathering(move, made, load, tiles)

    def _gathering(self, move: Move, made: Buffer, load: Load, tiles: Sequence[Tiles]) -> ir.Stmt:
        by, instr, span = self.tile.by, move.instr, self.match.bind.span
        outer = [(each, move.tiles.get(each.sym, 1)) for each in tiles if each.extent > move.tiles.get(each.sym, 1)]
        turns = {each.sym: by.fresh(each.sym.base) for each, _ in outer}
        first = sum((expr(turns[each.sym]) * (each.weight * step) for each, step in outer), ZERO)
        names = {turn.sym: expr(by.fresh(turn.sym.base)) for turn in instr.loops}
        groups = self.tile.lanes // instr.lanes
        group = by.fresh("group")
        base = expr(group) * instr.lanes if groups > 1 else ZERO
        (give,) = instr.gives
        index = [e.substitute(names) for e in give.target.index]
        fixed = {each.sym: ZERO for each in tiles} | {each.sym: expr(turns[each.sym]) * step for each, step in outer}
        fixed |= self.warps(expr(group))
        source = substitute_load(load, {**fixed, **dict(zip(move.along, index, strict=True))})
        lane, register = move.target.fragment.lane(index), move.target.fragment.register(index)
        body: Body = (ir.Bind((Load(made, (base + lane, first + register)),), (source,), span=span),)
        for turn in reversed(instr.loops):
            sym = names[turn.sym].as_sym
            assert sym is not None
            body = (ir.Seq(sym, expr(turn.extent), body, span=span),)
        if groups > 1:
            body = (ir.Seq(group, expr(groups), body, span=span),)
        begin = substitute_load(load, {**fixed, **self.warps(ZERO), **dict.fromkeys(move.along, ZERO)})
        given = {move.source.memory: begin, move.target.memory: Load(made, (ZERO, first))}
        operands = tuple(given[operand.memory] for operand in instr.operands)
        found: ir.Stmt = ir.Instruction(instr.name, body, operands, span=span, instr=instr)
        for each, step in outer:
            found = ir.Seq(turns[each.sym], expr(each.extent // step), (found,), span=span)
        return found

    def move(self, operand: Operand, made: Buffer, tiles: Sequence[ir.Loop]) -> ir.Stmt:
        """Each lane brings to its registers what it holds of an operand, of all tiles of its warp."""
        by, held = self.tile.by, operand.fragment
        lane, lanes = by.fresh("lane"), self.match.instr.lanes
        own = expr(lane) % lanes if self.tile.lanes > lanes else expr(lane)
        names = [by.fresh("r") for digit in held.digits if not digit.of_lane]
        at = place(held, own, names)
        loops = {loop.sym: by.fresh(loop.sym.base) for loop in tiles}
        register, weight = at.register, held.registers
        for loop in tiles:
            register, weight = register + expr(loops[loop.sym]) * weight, weight * loop.extent.constant
        values = {**dict(zip(self.match.along(operand), at.element, strict=True)), **self.warps(expr(lane) // lanes)}
        values |= {sym: expr(new) for sym, new in loops.items()}
        ranges = {lane: (0, self.tile.lanes - 1), **{sym: (0, digit.size - 1) for sym, digit in at.digits}}
        simple = Simplifier(Known(ranges | {loops[loop.sym]: (0, loop.extent.constant - 1) for loop in tiles}))
        source = substitute_load(self.match.reads[operand.memory], {sym: simple(e) for sym, e in values.items()})
        body: Body = (ir.Bind((Load(made, (expr(lane), register)),), (source,), span=self.match.bind.span),)
        for sym, digit in reversed(at.digits):
            body = (ir.Seq(sym, expr(digit.size), body, span=self.match.bind.span),)
        for loop in tiles:
            body = (ir.Seq(loops[loop.sym], loop.extent, body, span=self.match.bind.span),)
        return ir.Par(lane, expr(self.tile.lanes), body, fully=True, span=self.match.bind.span)

    def use(self, registers: Mapping[Buffer, Buffer]) -> ir.Stmt:
        """An instruction for each tile of a warp."""
        tiles = self.tile.tiles_of(self.nest)
        at = {loop.sym: expr(self.tile.by.fresh(loop.sym.base)) for loop in tiles}
        first = {operand.memory: self.first(operand, at) for operand in self.match.instr.operands}
        buffers = {**registers, self.match.result.memory: self.tile.made}
        operands = tuple(Load(buffers[o.memory], (ZERO, first[o.memory])) for o in self.match.instr.operands)
        body = self.meaning(buffers, first, at)
        found: ir.Stmt = ir.Instruction(self.match.instr.name, body, operands, span=self.nest.span, instr=self.match.instr)
        for loop in tiles:
            sym = at[loop.sym].as_sym
            assert sym is not None
            found = ir.Seq(sym, loop.extent, (found,), span=self.match.bind.span)
        return found

    def first(self, operand: Operand, at: Mapping[Sym, Expr]) -> Expr:
        """The first register of an operand, for a tile of the warp."""
        tiles = self.tile.tiles_of(self.nest) if operand is self.match.result else self.tiles(operand)
        weight, found = operand.fragment.registers, ZERO
        for loop in tiles:
            found, weight = found + at[loop.sym] * weight, weight * loop.extent.constant
        return found

    def meaning(self, buffers: Mapping[Buffer, Buffer], first: Mapping[Buffer, Expr], at: Mapping[Sym, Expr]) -> Body:
        """What an instruction does, of registers, with the instances of the statement of the nest."""
        match, instr = self.match, self.match.instr
        names = {turn.sym: expr(self.tile.by.fresh(turn.sym.base)) for turn in instr.loops}
        groups = self.tile.lanes // instr.lanes
        group = self.tile.by.fresh("group")
        base = expr(group) * instr.lanes if groups > 1 else ZERO

        def element(old: Load) -> Load:
            operand = instr.by_memory[old.buffer]
            index = [e.substitute(names) for e in old.index]
            lane, register = operand.fragment.lane(index), operand.fragment.register(index)
            return Load(buffers[old.buffer], (base + lane, register + first[old.buffer]))

        values = {**self.warps(expr(group)), **at}
        values |= {match.loops[turn.sym]: names[turn.sym] for turn in instr.loops}
        instance = tuple(e.substitute(values) for e in match.bind.instance)
        give = match.give
        value = replace_loads(give.value, element)
        body: Body = (ir.Bind((element(give.target),), (value,), give.update, match.bind.span, instance),)
        for turn in reversed(instr.loops):
            sym = names[turn.sym].as_sym
            assert sym is not None
            free = tuple(buffers[o.memory] for o in instr.operands if o.name in turn.free)
            body = (ir.Seq(sym, expr(turn.extent), body, free, span=match.bind.span),)
        if groups > 1:
            body = (ir.Seq(group, expr(groups), body, span=match.bind.span),)
        return body


def _touched(stmt: ir.Stmt) -> tuple[Load, ...]:
    targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
    return (*loads(stmt), *targets)


def _exprs(stmt: ir.If) -> Iterator[Expr]:
    for node in value_walk(stmt.condition):
        if isinstance(node, Index):
            yield node.expr
        elif isinstance(node, Load):
            yield from node.index


def _renamed(body: Body, values: Mapping[Sym, Expr], tile: Buffer, at: Callable[[Load], Load]) -> Body:
    """`body` at other indices, and the tile where it is held."""
    moved = substitute_block(body, values)

    def value(old: Value) -> Value:
        return replace_loads(old, lambda load: at(load) if load.buffer is tile else None)

    def target(old: Load) -> Load:
        return at(old) if old.buffer is tile else old

    return Rewriter(value=value, target=target).block(moved)
