"""Tiles of which each block of a pair has one half in its shared memory, since one instruction reads both.

    tcgen05_pair_m128n256k16 of Bs[t % 4, j, …], j < 256      →      128 rows in each block: row j % 128 of block j / 128

Which half is whose is said by the instruction; the blocks are those of a cluster of two, which share the copy of the tile.
"""

from __future__ import annotations

from texpr.affine.expr import Expr, FloorDiv, Sym, expr
from texpr.ir import program as ir
from texpr.ir.steps import Steps
from texpr.ir.steps.place import Parts
from texpr.ir.value import Buffer
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.isa.levels import Level
from texpr.lowering.build.instructions import described_element
from texpr.support.diagnostic import limitation


def halved(body: tuple[ir.Stmt, ...], steps: Steps) -> dict[Buffer, Parts]:
    """The locals of which instructions of a nest read halves, each with its parts. Raises Limitation E0918, E0541."""
    found: dict[Buffer, Parts] = {}
    for use in ir.walk(body):
        instr = use.instr if isinstance(use, ir.Instruction) else None
        if not isinstance(use, ir.Instruction) or instr is None or not instr.is_pair:
            continue
        ranks = [axis for axis in steps.axes if axis.level is Level.CLUSTER]
        if [axis.extent for axis in ranks] != [expr(PAIR)]:
            told = f"`{instr.name}` is done by two blocks together, and these are in no cluster of {PAIR}"
            raise limitation(
                "E0918", use.span, told, help=f"a cluster of {PAIR} along the loop of the grid over rows is a pair"
            )
        for operand in (each for each in instr.operands if each.halved is not None):
            load, names = described_element(use, instr, operand)
            half, sym = operand.part[operand.halved or 0], names[operand.halved or 0]
            along = [(at, step) for at, e in enumerate(load.index) if (step := _step(e, sym)) and half % step == 0]
            dims = [(at, half // step) for at, step in along if load.buffer.shape[at] is expr(PAIR * half // step)]
            if len(dims) != 1:
                told = f"`{instr.name}` reads `{operand.name}` in halves of {half}, one in each block, and `{load.buffer.name}`"
                help = f"both blocks share the copy of a tile of {PAIR * half}, of which each has a half"
                raise limitation("E0541", load.span or use.span, f"{told} has no such halves", help=help)
            found[load.buffer] = Parts(*dims[0], PAIR, ranks[0].sym)
    return found


def _step(index: Expr, sym: Sym) -> int:
    """How many values of a symbol are at one subscript, if it is that symbol, or a quotient of it; else 0."""
    atom = index.as_atom
    if isinstance(atom, FloorDiv) and atom.num is expr(sym) and atom.den.is_constant:
        return atom.den.constant
    return int(index.as_sym is sym)
