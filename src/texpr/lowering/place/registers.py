"""Locals that are operands of lanes' instructions: the first subscript is the lane, the second the register."""

from __future__ import annotations

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.steps.place import RegisterLayout
from texpr.ir.value import Buffer
from texpr.lowering.place.owners import Lanes, Price, subscripts


def registers(body: tuple[ir.Stmt, ...]) -> dict[Buffer, Lanes]:
    """The layouts in lanes of the locals that are operands of instructions in a nest."""
    given = {
        load.buffer
        for stmt in ir.walk(body)
        if isinstance(stmt, ir.Instruction) and stmt.instr is not None
        for operand, load in zip(stmt.instr.operands, stmt.operands, strict=True)
        if not operand.is_shared
    }
    return {buffer: _lanes(buffer, body) for buffer in given}


def columns(body: tuple[ir.Stmt, ...]) -> dict[Buffer, str]:
    """The locals in tensor memory, lanes and columns of it, and why they are there."""
    every = [
        (load.buffer, operand.access)
        for stmt in ir.walk(body)
        if isinstance(stmt, ir.Instruction) and stmt.instr is not None
        for operand, load in zip(stmt.instr.operands, stmt.operands, strict=True)
        if operand.columns
    ]
    summed = {buffer for buffer, access in every if access == "update"}
    return {b: "tensor cores sum up there" if b in summed else "tensor cores read it there" for b, _ in every}


def _lanes(buffer: Buffer, body: tuple[ir.Stmt, ...]) -> Lanes:
    lane, slot = subscripts(buffer)
    dealt = RegisterLayout((lane, slot), expr(lane), (expr(slot),), (buffer.shape[1].constant,))
    return Lanes(dealt, Price(0, 0, 0), _counting(buffer, body))


def _counting(buffer: Buffer, body: tuple[ir.Stmt, ...]) -> frozenset[Sym]:
    """The loops that the register depends on: they are unrolled."""
    found: set[Sym] = set()
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Bind):
            found |= {s for t in stmt.targets if t.buffer is buffer for s in t.index[1].syms()}
        if isinstance(stmt, ir.Instruction) and stmt.instr is not None:
            found |= {s for load in stmt.operands if load.buffer is buffer for s in load.index[1].syms()}
    return frozenset(found)
