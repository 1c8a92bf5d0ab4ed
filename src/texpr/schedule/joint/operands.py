"""Operands that an instruction reads in tensor memory and that lanes compute: a row is a lane, as of what is summed up there.

    new P: bf16[128, 64]                                      new P: bf16[128, 64]                -- lane, slot
    par 128 |i| { par 64 |k| { P[i, k] = … } }                seq 2 |q| { new part: bf16[128, 32]   … part[lane, r] = …
                                                                  instr tcgen05_st_x32_bf16(part[0, 0], P[0, 32 * q]) { … } }
    seq 4 |kk| { instr …_at(P[0, 16 * kk], …) { … } }         the same

So a product that lanes computed is an operand of the next one without a way through shared memory. Loops that go over lanes
already, as they read what another product summed up, are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ZERO, expr
from texpr.ir import program as ir
from texpr.ir.instr.fragment import Misfit, fragment
from texpr.ir.instr.registers import WORD
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.value import Buffer, Load
from texpr.isa.instructions.tcgen05 import LANES, PART
from texpr.isa.target import Target
from texpr.schedule.joint.convert import Converter, Tile, accesses, renamed
from texpr.schedule.joint.lanes.columns import Columns
from texpr.schedule.joint.lanes.wide import wide
from texpr.schedule.tree import path_to, replaced
from texpr.support.record import replace


def operands_there(function: ir.Function, target: Target, top: ir.Loop) -> ir.Function:
    """`function`, with the tiles that its instructions read in tensor memory stored there by lanes. `top`: what is named in a
    refusal. Raises TexprError E0919."""
    for use, buffer in [*_read(function)]:
        new = next((s for s in ir.walk(function.body) if isinstance(s, ir.New) and s.buffer is buffer), None)
        path = () if new is None else path_to(function.body, new) or ()
        home = next((s for s in reversed(path[:-1]) if isinstance(s, ir.Par | ir.Seq)), None)
        by = Converter(function, target, top)
        if new is None or home is None:
            raise by.refuse(f"`{use.name}` reads `{buffer.name}`, which no loop of a block makes, in tensor memory")
        try:
            body = OperandTile(by, home, new).block()
        except Misfit as why:
            raise by.refuse(str(why)) from None
        made = replace(home, body=body)
        function = wide(replace(function, body=replaced(function.body, home, lambda _, made=made: (made,))), by.pairs)
    return function


def _read(function: ir.Function) -> Iterator[tuple[ir.Instruction, Buffer]]:
    """The tiles of 16-bit elements that instructions read in tensor memory, each once, and the first that does."""
    found = set[Buffer]()
    for use in (s for s in ir.walk(function.body) if isinstance(s, ir.Instruction) and s.instr is not None):
        for operand, load in zip(use.instr.operands if use.instr else (), use.operands, strict=True):
            there = operand.columns and operand.access == "read" and operand.dtype.bits == WORD // 2
            if there and load.buffer not in found:
                found.add(load.buffer)
                yield use, load.buffer


class OperandTile(Tile):
    """A tile that lanes compute, and that instructions read in tensor memory."""

    def __post_init__(self) -> None:
        shape = tuple(e.constant if e.is_constant else 0 for e in self.tile.shape)
        part = next((each for each in (PART, PART // 2) if shape[-1] % each == 0), 0)
        if len(shape) != len((LANES, part)) or shape[0] != LANES or not part:
            raise Misfit(f"`{self.tile.name}` is no tile of {LANES} rows, one for each lane, of multiples of {PART // 2}")
        self.held = fragment(f"({LANES},({part},{shape[1] // part})):(1@0,(1@1,{part}@1))", shape)
        self.made = self.tile
        self.columns = Columns(self.made, self.lanes, self.by.target, self.by.function, self.by.fresh)

    def stmt(self, stmt: ir.Stmt, around: tuple[ir.Loop, ...] = ()) -> Iterator[ir.Stmt]:
        """What becomes of a statement: all that touches the tile besides instructions is done in registers, and moved."""
        if isinstance(stmt, ir.Instruction | ir.New) or not self.touches(stmt):
            yield stmt
        elif isinstance(stmt, ir.Par) and stmt.fully:
            yield from self._part(stmt)
        elif any(isinstance(s, ir.Instruction) or (isinstance(s, ir.Par) and s.fully) for s in ir.walk((stmt,))):
            yield with_blocks(stmt, tuple(tuple(m for s in block for m in self.stmt(s)) for block in ir.blocks(stmt)))
        else:
            yield from self.spread(stmt, around)

    def _part(self, lanes: ir.Par) -> Iterator[ir.Stmt]:
        """Loops over lanes, and over consecutive elements of a row of each. Raises Misfit."""
        (index, *others) = {load.index for s in ir.walk((lanes,)) for load in accesses(s) if load.buffer is self.tile}
        own = {s.sym: s for s in ir.walk(lanes.body) if isinstance(s, ir.Par | ir.Seq)}
        if others or index[0].as_sym is not lanes.sym:
            raise Misfit(f"rows of `{self.tile.name}` are not the lanes of the loops that touch it")
        count, first = 1, index[1].substitute(dict.fromkeys(own, ZERO))
        steps = [(index[1].substitute({sym: expr(sym) + 1}) - index[1], own[sym]) for sym in index[1].syms() & own.keys()]
        for step, loop in sorted(steps, key=lambda each: each[0].constant):
            if not step.is_constant or step.constant != count or not loop.extent.is_constant:
                raise Misfit(f"loops do not go through rows of `{self.tile.name}` element by element")
            count *= loop.extent.constant
        assert self.columns is not None
        part = self.columns.registers(count)

        def at(load: Load) -> Load:
            return replace(load, buffer=part, index=(load.index[0], load.index[1] - first))

        yield from self.columns.around(part, first, renamed((lanes,), {}, self.tile, at), lanes.span or self.new.span)
