"""A marked nest as an instruction for each tile of a team of lanes: where its operands are, and what is done.

Operands in registers are brought there before, by an instruction that loads rows where one fits, or element by element. What a
descriptor is of stays where it is in shared memory, as long as one fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr import Operand
from texpr.ir.instr.fitting import fitting
from texpr.ir.instr.fragment import Misfit
from texpr.ir.program.rewrite import replace_loads, substitute_load, substitute_value
from texpr.ir.value import Buffer, Load
from texpr.isa.target import Target
from texpr.schedule.edits import Offers, instead
from texpr.schedule.joint.lanes.layout import place
from texpr.schedule.joint.match import Match
from texpr.schedule.joint.moves import Move, Tiles, move_of, movers
from texpr.schedule.joint.nests import Nest
from texpr.schedule.joint.records import alike, usable_in
from texpr.schedule.tree import Body
from texpr.support.record import Mutable, replace

BYTE = 8
"""Bits of scales."""


class Unfit(Misfit):
    """An operand that is not where its instruction reads it. `help`, `offers`: what may be done."""

    def __init__(self, reason: str, help: str, offers: Offers):
        self.help, self.offers = help, offers
        super().__init__(reason)


def _is_next(index: Expr, sym: Sym) -> bool:
    """Whether the next iteration is of the next element."""
    return index.substitute({sym: expr(sym) + 1}) - index is ONE


class Product(Mutable):
    """A marked nest: registers for its operands, what brings them there, and an instruction for each tile of a team.

    `tile`: the registers of what it sums up, of all `lanes`; `fresh`: a symbol called like a name. `turns`: loops around, ahead
    of which lanes compute operands of all iterations, so that the instructions go on one behind the other.
    """

    nest: Nest
    tile: Buffer
    lanes: int
    function: ir.Function
    target: Target
    fresh: Callable[[str], Sym]
    turns: tuple[ir.Loop, ...] = ()

    @property
    def match(self) -> Match:
        """What it is."""
        return self.nest.match

    def block(self) -> Iterator[ir.Stmt]:
        """The statements. Raises Misfit."""
        registers: dict[Buffer, Buffer] = {}
        moves: list[ir.Stmt] = []
        for operand in self.match.instr.operands:
            if operand.is_described:
                self.require_described(operand)
            elif self.stays(operand):
                self.require_columns(operand)
            elif operand is not self.match.result:
                registers[operand.memory], move = self.brought(operand)
                if move is not None:
                    yield ir.New(registers[operand.memory], span=self.nest.span)
                    moves.append(move)
        yield from moves
        made = self.use(registers)
        for loop in reversed(self.turns):
            reduce = tuple(self.tile if buffer is self.nest.tile else buffer for buffer in loop.reduce)
            made = replace(loop, body=(made,), reduce=reduce)
        yield made

    def brought(self, operand: Operand) -> tuple[Buffer, ir.Stmt | None]:
        """New registers of an operand, and what brings it there."""
        tiles, count = self.tiles(operand), operand.fragment.registers
        for loop in tiles:
            count *= loop.extent.constant
        made = Buffer(self.fresh(operand.name).name, operand.dtype, (expr(self.lanes), expr(count)), "local")
        return made, self.gathered(operand, made) or self.move(operand, made, tiles)

    def require_described(self, operand: Operand) -> None:
        """That a descriptor says where an operand lies. Raises Unfit."""
        load, name = self.match.reads[operand.memory], self.match.instr.name
        new = self.shared(load.buffer)
        if new is None:
            told = f"`{name}` reads `{operand.name}` from shared memory, and `{load.buffer.name}` is not there"
            raise Unfit(told, "what is staged is: `stage(…, in=shared, via=tma, swizzle=128B)`", self.staging(load.buffer))
        ranges = {loop.sym: (0, loop.extent.constant - 1) for loop in self.nest.loops if loop.extent.is_constant}
        if next(fitting(load, self.match.along(operand), self.match.instr, operand, Known(ranges)), None) is None:
            told = f"no descriptor says where elements of `{operand.name}` of `{name}` lie in `{load.buffer.name}`"
            help = "rows of as many bytes as a swizzle, along the sum unless the instruction has another order, are laid out so"
            raise Unfit(told, help, (*self.instead(operand), *self.swizzled(new)))

    def stays(self, operand: Operand) -> bool:
        """Whether it is read in tensor memory, where it has been brought (`joint.scales`)."""
        return operand.columns and operand is not self.match.result

    def require_columns(self, operand: Operand) -> None:
        """That an operand lies in tensor memory as its fragment says. Raises Unfit."""
        load, name = self.match.reads[operand.memory], self.match.instr.name
        if operand.dtype.bits > BYTE:
            self._require_rows(operand, load)
            return
        new = self.shared(load.buffer)
        if new is not None:
            told = f"`{operand.name}` of `{name}` is scales of four blocks of 32, and `{load.buffer.name}` is of another shape"
            raise Unfit(told, "a loop over the sum of 128 a turn has them, for rows in multiples of 128", ())
        inner = self.match.along(operand)
        (rows,) = (e.constant for e in operand.memory.shape)
        at = [substitute_load(load, dict(zip(inner, (expr(row),), strict=True))).index for row in range(rows)]
        lies = [(operand.fragment.lane((expr(row),)), operand.fragment.register((expr(row),))) for row in range(rows)]
        if len(load.index) != 2 or any(a[0] is not b[0] or a[1] - at[0][1] is not b[1] for a, b in zip(at, lies, strict=True)):
            told = f"`{name}` reads `{operand.name}` from tensor memory, and `{load.buffer.name}` is not there"
            help = "scales are brought there from shared memory: `stage(…, in=shared)`"
            raise Unfit(told, help, self.staging(load.buffer, ""))

    def _require_rows(self, operand: Operand, load: Load) -> None:
        """That an operand that lanes computed is there, a row of it a lane. Raises Unfit."""
        name, (row, column) = self.match.instr.name, self.match.along(operand)
        plain = len(load.index) == len(operand.memory.shape) and load.index[0].as_sym is row
        if self.shared(load.buffer) is not None or not plain or not _is_next(load.index[1], column):
            told = f"`{name}` reads `{operand.name}` from tensor memory, and rows of `{load.buffer.name}` are no lanes there"
            raise Unfit(told, "a `new` tile of 128 rows, or `stage(…, in=registers)`, is brought there", ())

    def staging(self, buffer: Buffer, how: str = ", via=tma, swizzle=128B") -> Offers:
        """The offers to stage an operand first, at a loop around that comes in order, inner ones first."""
        around = (loop.sym.base for loop in reversed(self.nest.loops) if isinstance(loop, ir.Seq))
        made = (f"stage({buffer.name}, at={at}, in=shared{how})" for at in around)
        return tuple(
            offer
            for new in made
            for offer in instead(self.nest.span, f"stage it first: `{new}`", lambda said, new=new: f"{new}  {said}")
        )

    def instead(self, operand: Operand) -> Offers:
        """The offers of instructions of the same shape and types, of operands that lie otherwise."""
        return tuple(
            offer
            for name in alike(self.match.instr, operand)
            for offer in instead(self.nest.span, f"name the instruction `{name}`", lambda said, name=name: said.plain(3, name))
        )

    def swizzled(self, new: ir.New) -> Offers:
        """The offer to stage by the engine, with its widest swizzle."""
        return instead(new.span, "stage it so: %", lambda said: said.having("via", "tma").having("swizzle", "128B"))

    def shared(self, buffer: Buffer) -> ir.New | None:
        """Where it is made, if a schedule keeps it in shared memory."""
        made = (stmt for stmt in ir.walk(self.function.body) if isinstance(stmt, ir.New) and stmt.buffer is buffer)
        return next((new for new in made if new.space == "shared"), None)

    def tiles(self, operand: Operand) -> tuple[ir.Loop, ...]:
        """The loops over tiles of a warp, and turns, on which what an operand is depends, the innermost first."""
        read = {sym for e in self.match.reads[operand.memory].index for sym in e.syms()}
        return tuple(loop for loop in (*self.nest.tiles, *reversed(self.turns)) if loop.sym in read)

    def warps(self, group: Expr) -> Mapping[Sym, Expr]:
        """The loops over warps, of the warp of that number."""
        found: dict[Sym, Expr] = {}
        weight, count = 1, self.lanes // self.match.instr.lanes
        for loop in self.nest.teams:
            value, weight = group // weight, weight * loop.extent.constant
            found[loop.sym] = value if weight == count else value % loop.extent.constant
        return found

    def gathered(self, operand: Operand, made: Buffer) -> ir.Stmt | None:
        """Registers of an operand brought by an instruction, if one fits."""
        match, load, loops = self.match, self.match.reads[operand.memory], self.tiles(operand)
        if self.shared(load.buffer) is None:
            return None
        tiles, weight = list[Tiles](), operand.fragment.registers
        for loop in loops:
            tiles.append(Tiles(loop.sym, loop.extent.constant, weight))
            weight *= loop.extent.constant
        every = movers(usable_in(self.function, self.target))
        moves = (move_of(operand.fragment, match.along(operand), load, tiles, each) for each in every)
        move = next((each for each in moves if each is not None), None)
        return None if move is None else self._gathering(move, made, load, tiles)

    def _gathering(self, move: Move, made: Buffer, load: Load, tiles: Sequence[Tiles]) -> ir.Stmt:
        instr, span = move.instr, self.match.bind.span
        outer = [(each, move.tiles.get(each.sym, 1)) for each in tiles if each.extent > move.tiles.get(each.sym, 1)]
        turns = {each.sym: self.fresh(each.sym.base) for each, _ in outer}
        first = sum((expr(turns[each.sym]) * (each.weight * step) for each, step in outer), ZERO)
        names = {turn.sym: expr(self.fresh(turn.sym.base)) for turn in instr.loops}
        groups = self.lanes // instr.lanes
        group = self.fresh("group")
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
        held = operand.fragment
        lane, lanes = self.fresh("lane"), self.match.instr.lanes
        own = expr(lane) % lanes if self.lanes > lanes else expr(lane)
        names = [self.fresh("r") for digit in held.digits if not digit.of_lane]
        at = place(held, own, names)
        loops = {loop.sym: self.fresh(loop.sym.base) for loop in tiles}
        register, weight = at.register, held.registers
        for loop in tiles:
            register, weight = register + expr(loops[loop.sym]) * weight, weight * loop.extent.constant
        values = {**dict(zip(self.match.along(operand), at.element, strict=True)), **self.warps(expr(lane) // lanes)}
        values |= {sym: expr(new) for sym, new in loops.items()}
        ranges = {lane: (0, self.lanes - 1), **{sym: (0, digit.size - 1) for sym, digit in at.digits}}
        simple = Simplifier(Known(ranges | {loops[loop.sym]: (0, loop.extent.constant - 1) for loop in tiles}))
        value = self.match.computed.get(operand.memory, self.match.reads[operand.memory])
        source = substitute_value(value, {sym: simple(e) for sym, e in values.items()})
        body: Body = (ir.Bind((Load(made, (expr(lane), register)),), (source,), span=self.match.bind.span),)
        for sym, digit in reversed(at.digits):
            body = (ir.Seq(sym, expr(digit.size), body, span=self.match.bind.span),)
        for loop in tiles:
            body = (ir.Seq(loops[loop.sym], loop.extent, body, span=self.match.bind.span),)
        return ir.Par(lane, expr(self.lanes), body, fully=True, span=self.match.bind.span)

    def use(self, registers: Mapping[Buffer, Buffer]) -> ir.Stmt:
        """An instruction for each tile of a team."""
        tiles = self.nest.tiles
        at = {loop.sym: expr(self.fresh(loop.sym.base)) for loop in tiles}
        described = [operand for operand in self.match.instr.operands if operand.is_described or self.stays(operand)]
        first = {each.memory: self.first(each, at) for each in self.match.instr.operands if each not in described}
        buffers = {**registers, self.match.result.memory: self.tile}
        begins = {memory: Load(buffers[memory], (ZERO, register)) for memory, register in first.items()}
        begins |= {operand.memory: self.begin(operand, at) for operand in described}
        operands = tuple(begins[o.memory] for o in self.match.instr.operands)
        body = self.meaning(buffers, first, at)
        found: ir.Stmt = ir.Instruction(self.match.instr.name, body, operands, span=self.nest.span, instr=self.match.instr)
        for loop in tiles:
            sym = at[loop.sym].as_sym
            assert sym is not None
            found = ir.Seq(sym, loop.extent, (found,), span=self.match.bind.span)
        return found

    def begin(self, operand: Operand, at: Mapping[Sym, Expr]) -> Load:
        """The first element of what a descriptor is of, for a tile of the first team."""
        inner = dict.fromkeys(self.match.loops.values(), ZERO)
        return substitute_load(self.match.reads[operand.memory], {**inner, **self.warps(ZERO), **at})

    def first(self, operand: Operand, at: Mapping[Sym, Expr]) -> Expr:
        """The first register of an operand, for a tile of the warp."""
        tiles = self.nest.tiles if operand is self.match.result else self.tiles(operand)
        weight, found = operand.fragment.registers, ZERO
        for loop in tiles:
            found, weight = found + at.get(loop.sym, expr(loop.sym)) * weight, weight * loop.extent.constant
        return found

    def meaning(self, buffers: Mapping[Buffer, Buffer], first: Mapping[Buffer, Expr], at: Mapping[Sym, Expr]) -> Body:
        """What an instruction does, of registers, with the instances of the statement of the nest."""
        match, instr = self.match, self.match.instr
        names = {turn.sym: expr(self.fresh(turn.sym.base)) for turn in instr.loops}
        groups = self.lanes // instr.lanes
        group = self.fresh("group")
        base = expr(group) * instr.lanes if groups > 1 else ZERO

        def element(old: Load) -> Load:
            operand = instr.by_memory[old.buffer]
            if operand.is_described or self.stays(operand):
                return substitute_load(match.reads[old.buffer], values)
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
