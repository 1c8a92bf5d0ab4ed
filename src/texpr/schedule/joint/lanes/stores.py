"""How lanes store what they hold of a tile to shared memory: by an instruction, where one fits, or element by element.

    fully par 128 |t| { seq 16 |n| { … C_s[…] = bf16(acc[t, r + 8 * n]) } }

    seq 16 |n| #unroll {
        new put: bf16[128, 8]
        fully par 128 |t| { … put[t, r] = bf16(acc[t, r + 8 * n]) }
        instr stmatrix_x4_bf16(put[0, 0], C_s[0, 16 * n]) { … C_s[…] = put[…] }
    }

An instruction stores so if its meaning is `p[…] = d[…]`, of registers d and of an array p in shared memory of whose rows lanes
give addresses. It fits where its lanes hold what those of a tile do, and digits of its registers are among those of the tile's:
what is stored gets registers of its own, in the order of the instruction. All lanes store, also where nothing was to be stored:
in an array that only this statement writes, so nobody reads it there, and of values that come from what lanes hold alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.instr import STORED, Instr, Operand
from texpr.ir.instr.fragment import Digit
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Unroll
from texpr.ir.program.rewrite import substitute_load
from texpr.ir.program.uses import touched
from texpr.ir.value import Buffer, Load
from texpr.isa.target import Target
from texpr.schedule.joint.lanes.wide import shared
from texpr.schedule.joint.records import usable_in
from texpr.schedule.joint.rows import in_rows
from texpr.schedule.tree import Body
from texpr.support.record import Mutable, Record, replace
from texpr.support.span import Span

Ranges = Mapping[Sym, Range]

Moved = Callable[[Sequence[Expr], Load, Ranges], Body]
"""What is done with an element of a tile that is in a register, for indices in such ranges."""


class Tile(Record):
    """What `lanes` hold of a tile of a shape, and their registers, by lane."""

    lanes: int
    shape: tuple[int, ...]
    digits: tuple[Digit, ...]
    made: Buffer


class _Turn(Record):
    """A digit of registers: so many elements along a dimension, `step` apart, in registers that are `weight` apart."""

    size: int
    dim: int
    step: int
    weight: int


class _Fit(Record):
    """An instruction as a store of a tile. `dims`: of the tile, for those of what it stores; `inner`: its registers, in order,
    and `outer`, those of the tile that further ones store."""

    instr: Instr
    source: Operand
    target: Operand
    dims: tuple[int, ...]
    inner: tuple[_Turn, ...]
    outer: tuple[_Turn, ...]


def stored(
    function: ir.Function, machine: Target, tile: Tile, moved: Moved, fresh: Callable[[str], Sym], span: Span
) -> tuple[ir.Stmt, ...]:
    """The statements that store a tile by an instruction; none where no instruction fits."""
    at = [Sym(f"element {dim}") for dim in range(len(tile.shape))]
    ranges = {sym: (0, size - 1) for sym, size in zip(at, tile.shape, strict=True)}
    body = moved([*map(expr, at)], Load(tile.made, (ZERO, ZERO)), ranges)
    bind = _only(body)
    if bind is None or not _writes_alone(function, bind):
        return ()
    if body[0] is not bind and not touched((bind,)) <= {tile.made, bind.targets[0].buffer}:
        return ()  # elsewhere there may be nothing to compute it from
    target = bind.targets[0]
    for found in _storers(usable_in(function, machine)):
        fit = _fit(tile, target, *found)
        if fit is not None and in_rows(target, at[fit.dims[-1]], fit.target.fragment.registers, ranges):
            return tuple(_Storing(tile, fit, moved, target, at, fresh, span).block())
    return ()


def _only(body: Body) -> ir.Bind | None:
    """The one statement, perhaps in tests, if it gives a value to one element."""
    while len(body) == 1 and isinstance(stmt := body[0], ir.If) and not stmt.orelse:
        body = stmt.then
    stmt = body[0] if len(body) == 1 else None
    return stmt if isinstance(stmt, ir.Bind) and stmt.update is None and len(stmt.targets) == 1 else None


def _writes_alone(function: ir.Function, bind: ir.Bind) -> bool:
    """Whether an array in shared memory is written by one statement, which is this one."""
    target = bind.targets[0].buffer
    stmts = [*ir.walk(function.body)]
    written = [t.buffer for s in stmts if isinstance(s, ir.Bind) for t in s.targets]
    return target in shared(function) and target.role == "local" and written.count(target) == 1


def _storers(instrs: Sequence[Instr]) -> Iterator[tuple[Instr, Operand, Operand]]:
    """The instructions that store registers to rows of shared memory, as they are."""
    for instr in instrs:
        target = next((operand for operand in instr.operands if operand.access == STORED), None)
        if target is None or len(instr.gives) != 1 or len(instr.operands) != 2 or instr.gives[0].update is not None:
            continue
        (give,) = instr.gives
        value = give.value
        if isinstance(value, Load) and value.index == give.target.index and all(e.as_sym is not None for e in value.index):
            source = instr.by_memory[value.buffer]
            if not source.fragment.copies:
                yield instr, source, target


def _fit(tile: Tile, target: Load, instr: Instr, source: Operand, there: Operand) -> _Fit | None:
    if source.dtype != target.dtype or tile.lanes % instr.lanes:
        return None
    digits = sorted((d for d in tile.digits if d.size > 1), key=lambda digit: digit.weight)
    lanes = [digit for digit in digits if digit.of_lane and digit.weight < instr.lanes]
    wanted = [digit for digit in source.fragment.digits if digit.of_lane]
    dims: dict[int, int] = {}
    if len(lanes) != len(wanted):
        return None
    for mine, other in zip(lanes, wanted, strict=True):
        if mine.dim is None or other.dim is None or (mine.size, mine.step) != (other.size, other.step):
            return None
        if dims.setdefault(other.dim, mine.dim) != mine.dim:
            return None
    left = [_Turn(d.size, d.dim, d.step, d.weight) for d in digits if not d.of_lane and d.dim is not None]
    inner: list[_Turn] = []
    for digit in (digit for digit in source.fragment.digits if not digit.of_lane):
        along = dims.get(-1 if digit.dim is None else digit.dim)
        one = next((t for t in left if (t.dim, t.step) == (along, digit.step) and t.size % digit.size == 0), None)
        if one is None:
            return None
        inner.append(replace(one, size=digit.size))
        rest = _Turn(one.size // digit.size, one.dim, one.step * digit.size, one.weight * digit.size)
        left = [rest if t is one else t for t in left if t is not one or rest.size > 1]
    if not len({*dims.values()}) == len(dims) == len(source.fragment.shape):
        return None
    return _Fit(instr, source, there, tuple(dims[dim] for dim in range(len(dims))), tuple(inner), tuple(left))


class _Storing(Mutable):
    """A tile that an instruction stores to elements `target`, of which the subscripts are `at`."""

    tile: Tile
    fit: _Fit
    moved: Moved
    target: Load
    at: Sequence[Sym]
    fresh: Callable[[str], Sym]
    span: Span

    def block(self) -> Iterator[ir.Stmt]:
        """The statements."""
        fit = self.fit
        count = fit.source.fragment.registers
        made = Buffer(self.fresh("put").name, self.target.dtype, (expr(self.tile.lanes), expr(count)), "local")
        outer = [(self.fresh("t"), turn) for turn in fit.outer]
        body: Body = (ir.New(made, span=self.span), self.filled(made, outer), self.used(made, outer))
        for sym, turn in outer:
            body = (marked(ir.Seq(sym, expr(turn.size), body, span=self.span), Unroll(span=self.span)),)
        yield from body

    def filled(self, made: Buffer, outer: Sequence[tuple[Sym, _Turn]]) -> ir.Stmt:
        """Each lane puts what it stores into registers, in the order of the instruction."""
        lane, inner = self.fresh("lane"), [(self.fresh("r"), turn) for turn in self.fit.inner]
        element = [ZERO for _ in self.tile.shape]
        for digit in (digit for digit in self.tile.digits if digit.of_lane):
            element[digit.dim or 0] += digit.of(expr(lane), self.tile.lanes) * digit.step
        register, own, weight = ZERO, ZERO, 1
        for sym, turn in (*outer, *inner):
            element[turn.dim] += expr(sym) * turn.step
            register += expr(sym) * turn.weight
        for sym, turn in inner:
            own, weight = own + expr(sym) * weight, weight * turn.size
        ranges = {lane: (0, self.tile.lanes - 1), **{sym: (0, turn.size - 1) for sym, turn in (*outer, *inner)}}
        kept = Load(made, (expr(lane), own))
        bind = _only(self.moved(element, Load(self.tile.made, (expr(lane), register)), ranges))
        assert bind is not None, "as it is for any element"
        body: Body = (replace(bind, targets=(kept,)),)
        for sym, turn in inner:
            body = (ir.Seq(sym, expr(turn.size), body, span=self.span),)
        return ir.Par(lane, expr(self.tile.lanes), body, fully=True, span=self.span)

    def used(self, made: Buffer, outer: Sequence[tuple[Sym, _Turn]]) -> ir.Stmt:
        """The instruction."""
        instr, source = self.fit.instr, self.fit.source
        names = {turn.sym: expr(self.fresh(turn.sym.base)) for turn in instr.loops}
        groups, group = self.tile.lanes // instr.lanes, self.fresh("group")
        which = expr(group) if groups > 1 else ZERO
        index = [e.substitute(names) for e in instr.gives[0].target.index]
        element = [ZERO for _ in self.tile.shape]
        for dim, e in zip(self.fit.dims, index, strict=True):
            element[dim] += e
        for digit in (digit for digit in self.tile.digits if digit.of_lane and digit.weight >= instr.lanes):
            element[digit.dim or 0] += digit.of(which * instr.lanes, self.tile.lanes) * digit.step
        for sym, turn in outer:
            element[turn.dim] += expr(sym) * turn.step
        ranges = {group: (0, groups - 1), **{sym: (0, turn.size - 1) for sym, turn in outer}}
        ranges |= {sym: (0, turn.extent - 1) for turn in instr.loops if (sym := names[turn.sym].as_sym) is not None}
        simple = Simplifier(Known(ranges))
        there = substitute_load(self.target, dict(zip(self.at, element, strict=True)))
        there = replace(there, index=tuple(map(simple, there.index)))
        lane, register = source.fragment.lane(index), source.fragment.register(index)
        body: Body = (ir.Bind((there,), (Load(made, (which * instr.lanes + lane, register)),), span=self.span),)
        for turn in reversed(instr.loops):
            sym = names[turn.sym].as_sym
            assert sym is not None
            body = (ir.Seq(sym, expr(turn.extent), body, span=self.span),)
        if groups > 1:
            body = (ir.Seq(group, expr(groups), body, span=self.span),)
        first = dict.fromkeys((group, *(s for e in names.values() if (s := e.as_sym) is not None)), ZERO)
        given = {source.memory: Load(made, (ZERO, ZERO)), self.fit.target.memory: substitute_load(there, first)}
        operands = tuple(given[operand.memory] for operand in instr.operands)
        return ir.Instruction(instr.name, body, operands, span=self.span, instr=instr)
