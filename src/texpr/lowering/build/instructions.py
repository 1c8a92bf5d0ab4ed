"""Instructions of lanes in a program: where they are used, and whether a target has them."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.instr import Instr, Operand, loads_of, stays_in_warps
from texpr.ir.value import Load, walk
from texpr.isa.target import Target
from texpr.support.diagnostic import limitation


def uses(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Instruction, Instr]]:
    """The uses of instructions with fragments, each with its definition."""
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Instruction) and stmt.instr is not None:
            yield stmt, stmt.instr


def instrs_of(body: tuple[ir.Stmt, ...]) -> tuple[Instr, ...]:
    """The instructions of a nest, each once."""
    found = {instr.name: instr for _, instr in uses(body)}
    return tuple(found[name] for name in sorted(found))


def require_templates(function: ir.Function, target: Target) -> None:
    """Raises Limitation E0541 for an instruction that `target` lacks."""
    for stmt, instr in uses(function.body):
        if not target.has_warps and instr.lanes == 1 and instr.template(target) is not None:
            continue
        if not target.has_warps:
            told = f"`{instr.name}` is done by lanes of a warp, and {target.name} has none"
            help = "targets with warps have lanes, and loops that compute the same run on any target"
            raise limitation("E0541", stmt.span, told, help=help)
        if target.warp % instr.lanes and instr.group is None:
            told = f"`{instr.name}` is done by {instr.lanes} lanes together, and warps of {target.name} are {target.warp}"
            raise limitation("E0541", stmt.span, told, help="the number of lanes divides the size of a warp")
        if not stays_in_warps(instr, target.warp):
            told = f"lanes of `{instr.name}` compute from registers that lanes of other warps have, which go their own way"
            raise limitation("E0541", stmt.span, told, help="fragments that have a row in one warp, in both operands, are read")
        if instr.template(target) is None:
            known = ", ".join(first for first, _ in instr.asm) or "none"
            told = f"`{instr.name}` has no template for {target.name}: there are those for {known}"
            help = f'a template of its own, `asm "{target.name}": "…";`, would say how it is done there'
            raise limitation("E0541", stmt.span, told, help=help)


def described_element(stmt: ir.Instruction, instr: Instr, operand: Operand) -> tuple[Load, tuple[Sym, ...]]:
    """An element of an operand as the program reads it, and by which indices: its own first, row and column."""
    binds = [each for each in ir.walk(stmt.body) if isinstance(each, ir.Bind)]
    loops = [each.sym for each in ir.walk(stmt.body) if isinstance(each, ir.Seq)][-len(instr.loops) :]
    called = {turn.sym: sym for turn, sym in zip(instr.loops, loops, strict=True)}
    for give, bind in zip(instr.gives, binds, strict=True):
        read = [node for node in walk(bind.values[0]) if isinstance(node, Load)]
        for meant, load in zip(loads_of(give), read, strict=False):
            syms = [e.as_sym for e in meant.index]
            if meant.buffer is operand.memory and None not in syms:
                return load, tuple(called[sym] for sym in syms if sym is not None)
    told = f"`{operand.name}` of `{instr.name}` is read from shared memory by other subscripts than loops of its meaning"
    raise limitation("E0541", stmt.span, told, help="a descriptor says where rows and columns lie")
