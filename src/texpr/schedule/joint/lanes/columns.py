"""Loops over a tile in tensor memory: in registers meanwhile, a few columns at a time.

    par 128 |i| { par 256 |j| { C[i, j] = bf16(acc[i, j]) } }

    seq 8 |q| {                                                                 -- acc[lane, column], in tensor memory
        new part: f32[128, 32]                                                  -- lane, register
        instr tcgen05_ld_x32_f32(acc[0, 32 * q], part[0, 0]) { … part[lane, r] = acc[lane, 32 * q + r] }
        fully par 128 |lane| { seq 4 |r| { par 8 |s| #vector { C[…] = bf16(part[lane, 8 * r + s]) } } }
    }

What loops write goes back the same way, by `tcgen05_st`. Which instructions do it is found by their meaning: moves between
columns and as many registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.instr.fragment import Digit, Misfit
from texpr.ir.program.rewrite import substitute_block
from texpr.ir.value import Buffer, Load
from texpr.ir.value import walk as ir_walk
from texpr.isa.engine import CHUNK
from texpr.isa.target import Target
from texpr.schedule.joint.records import moving
from texpr.schedule.tree import Body
from texpr.support.record import Mutable
from texpr.support.span import Span


class Columns(Mutable):
    """A tile `made` of all `lanes` in tensor memory. `fresh`: a symbol called like a name."""

    made: Buffer
    lanes: int
    target: Target
    function: ir.Function
    fresh: Callable[[str], Sym]

    def registers(self, count: int) -> Buffer:
        """New registers for so many columns."""
        return Buffer(self.fresh(f"{self.made.name}_part").name, self.made.dtype, (expr(self.lanes), expr(count)), "local")

    def around(self, part: Buffer, first: Expr, body: Sequence[ir.Stmt], span: Span) -> Iterator[ir.Stmt]:
        """`body`, which works on the registers `part`, between what brings columns from `first` on, and puts them back."""
        inside = [s for s in ir.walk(tuple(body)) if isinstance(s, ir.Bind)]
        writes = [s for s in inside if any(t.buffer is part for t in s.targets)]
        some = any(isinstance(s, ir.If) for s in ir.walk(tuple(body)))
        reads = any(s.update is not None for s in writes) or any(load.buffer is part for s in inside for load in read_of(s))
        yield ir.New(part, span=span)
        if reads or (writes and some):
            yield self.move(part, first, span, inward=True)
        yield from body
        if writes:
            yield self.move(part, first, span, inward=False)

    def move(self, part: Buffer, first: Expr, span: Span, *, inward: bool) -> ir.Stmt:
        """An instruction that moves columns to registers, or back. Raises Misfit."""
        count = part.shape[1].constant
        instr = moving(self.function, self.target, self.made.dtype.name, count, inward=inward)
        if instr is None:
            way = "from" if inward else "to"
            raise Misfit(f"no instruction of {self.target.name} moves {count} columns of {self.made.dtype} {way} tensor memory")
        names = {turn.sym: expr(self.fresh(turn.sym.base)) for turn in instr.loops}
        groups = self.lanes // instr.lanes
        group = self.fresh("group")
        base = expr(group) * instr.lanes if groups > 1 else ZERO
        return ir.Instruction(
            instr.name,
            self._meaning(instr, names, (part, self.made), first, (base, group, groups), span),
            tuple(Load(*((self.made, (ZERO, first)) if each.columns else (part, (ZERO, ZERO)))) for each in instr.operands),
            span=span,
            instr=instr,
        )

    def _meaning(
        self,
        instr: Instr,
        names: dict[Sym, Expr],
        buffers: tuple[Buffer, Buffer],
        first: Expr,
        of: tuple[Expr, Sym, int],
        span: Span,
    ) -> Body:
        (give,), (base, group, groups) = instr.gives, of

        def element(old: Load) -> Load:
            operand = instr.by_memory[old.buffer]
            index = [e.substitute(names) for e in old.index]
            register = operand.fragment.register(index) + (first if operand.columns else ZERO)
            return Load(buffers[int(operand.columns)], (base + operand.fragment.lane(index), register))

        assert isinstance(give.value, Load)
        body: Body = (ir.Bind((element(give.target),), (element(give.value),), span=span),)
        for turn in reversed(instr.loops):
            sym = names[turn.sym].as_sym
            assert sym is not None
            body = (ir.Seq(sym, expr(turn.extent), body, span=span),)
        return (ir.Seq(group, expr(groups), body, span=span),) if groups > 1 else body


def read_of(stmt: ir.Bind) -> Iterator[Load]:
    """What a statement reads."""
    for value in stmt.values:
        for node in ir_walk(value):
            if isinstance(node, Load):
                yield node


def in_vectors(
    digits: Sequence[tuple[Sym, Digit]], body: Body, fresh: Callable[[str], Sym]
) -> tuple[list[tuple[Sym, Digit]], Body]:
    """The loops over registers with the innermost divided, so that it has as many elements as one access stores."""
    *outer, (sym, digit) = digits
    sizes = [t.dtype.bytes for s in ir.walk(body) if isinstance(s, ir.Bind) for t in s.targets if t.buffer.role != "local"]
    wide = CHUNK // max(sizes, default=CHUNK)
    if wide < 2 or digit.size % wide or digit.size == wide:
        return [*digits], body
    few, many = fresh(sym.base), fresh(sym.base)
    inner = Digit(digit.of_lane, digit.weight, wide, digit.dim, digit.step)
    rest = Digit(digit.of_lane, digit.weight * wide, digit.size // wide, digit.dim, digit.step * wide)
    made = substitute_block(body, {sym: expr(many) * wide + few})
    return [*outer, (many, rest), (few, inner)], made
