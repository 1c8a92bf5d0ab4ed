"""What a nest multiplies: the product of matrices that instructions of lanes do, or several that are summed up in one loop.

    par M |i| { par N |j| { … seq K |k| reduce(s, t) { s += X[i, k] * A[j, k]   t += X[i, k] * B[j, k] } … } }

The loops over rows, columns and the sum are those of all products: tiles are alike, and lanes hold the same elements of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Number, Sym, expr, number_of
from texpr.ir import program as ir
from texpr.ir.instr import Instr, Operand
from texpr.ir.program.rewrite import map_value, replace_loads
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value, walk
from texpr.ir.value.types import F32, DType
from texpr.isa.instructions.wgmma import PART
from texpr.planner.nest import Nest
from texpr.schedule.directives.widen import product
from texpr.schedule.joint.match import Match, cut
from texpr.support.record import Record, replace

Along: TypeAlias = tuple[frozenset[Sym], frozenset[Sym]]
"""Loops with which operands along rows vary, and those along columns."""


class Product(Record):
    """A nest as a product: the loops over rows, columns and the sum; and `sums`, each with its instruction, as in the text."""

    rows: ir.Loop
    columns: ir.Loop
    sum: ir.Loop
    sums: tuple[Match, ...]

    @property
    def found(self) -> Match:
        """The first sum, which all are like."""
        return self.sums[0]

    @property
    def extents(self) -> tuple[int, int, int]:
        """Of one instruction."""
        return _extents(self.found, (self.rows, self.columns, self.sum))

    @property
    def wider(self) -> frozenset[Buffer]:
        """What is summed up in a wider type than it has."""
        targets = (each.bind.targets[0].buffer for each in self.sums)
        return frozenset(b for each, b in zip(self.sums, targets, strict=True) if b.dtype != each.result.dtype)

    @property
    def loads(self) -> tuple[Load, ...]:
        """The elements that are read, each once, whatever sums they are for; without scales, and without what computed operands
        have alike for many terms."""
        every = (load for each in self.sums for o in _factors(each) if not o.columns for load in elements(each, o))
        return _each([load for load in every if self.density(load) >= DENSE])

    @property
    def alike(self) -> tuple[Load, ...]:
        """What computed operands have alike for many terms, as scales, each once."""
        every = (load for each in self.sums for o in _factors(each) if not o.columns for load in elements(each, o))
        return _each([load for load in every if self.density(load) < DENSE])

    @property
    def is_computed(self) -> bool:
        """Whether lanes compute an operand."""
        return any(each.computed for each in self.sums)

    @property
    def of(self) -> DType:
        """What the unit multiplies."""
        return next(_factors(self.found)).dtype

    def density(self, load: Load) -> float:
        """Elements that are read for a term, one behind the other."""
        return distinct(load, self.sum.sym, TERMS) / TERMS

    def weight(self, load: Load) -> float:
        """Bytes that are read for a term, relative to an operand that is read as it is."""
        if not any(load is each for m in self.sums for o in _factors(m) if o.memory in m.computed for each in elements(m, o)):
            return 1
        return self.density(load) * load.buffer.dtype.bytes / self.size

    @property
    def scales(self) -> tuple[Load, ...]:
        """The scales of elements that are read, each once."""
        every = (each.reads[o.memory] for each in self.sums for o in _factors(each) if o.columns)
        return tuple({(load.buffer, load.index): load for load in every}.values())

    @property
    def operands(self) -> tuple[Buffer, ...]:
        """What is read."""
        return tuple(dict.fromkeys(load.buffer for load in self.loads))

    @property
    def size(self) -> int:
        """Bytes of an element that is read."""
        return max(buffer.dtype.bytes for buffer in self.operands)

    @property
    def words(self) -> float:
        """Registers for an element of all that is summed up."""
        return sum(each.result.dtype.bytes for each in self.sums) / WORD

    @property
    def strips(self) -> tuple[float, float]:
        """How many operands go along rows, and along columns; those that are narrow are parts of one."""
        sides = (self.rows, self.columns)
        rows, columns = (sum(self.weight(load) for load in self.loads if moves(load, loop.sym)) for loop in sides)
        return rows, columns

    @property
    def scaled(self) -> tuple[int, int]:
        """How many scales go along rows, and along columns."""
        rows, columns = (sum(moves(load, loop.sym) for load in self.scales) for loop in (self.rows, self.columns))
        return rows, columns

    @property
    def along(self) -> Along:
        """The loops with which operands along rows vary, and those along columns."""
        rows, columns = (
            frozenset(s for load in self.loads if moves(load, loop.sym) for s in syms_of(load))
            for loop in (self.rows, self.columns)
        )
        return rows, columns

    def brought(self, rows: int, columns: int) -> int:
        """Rows of all operands together, for so many rows and columns of results."""
        return ceil(rows * self.strips[0] + columns * self.strips[1])


def _factors(found: Match) -> Iterator[Operand]:
    """The operands of an instruction that a sum reads."""
    return (operand for operand in found.instr.operands if operand.memory in found.reads)


def elements(found: Match, operand: Operand) -> tuple[Load, ...]:
    """The elements that an operand is, or is computed of."""
    value = found.computed.get(operand.memory, found.reads[operand.memory])
    return tuple(node for node in walk(value) if isinstance(node, Load))


def distinct(load: Load, sym: Sym, count: int) -> int:
    """How many elements so many iterations of a loop read."""
    others = {each: 0 for e in load.index for each in e.syms()}
    return len({tuple(e.evaluate({**others, sym: at}) for e in load.index) for at in range(count)})


def _each(loads: Sequence[Load]) -> tuple[Load, ...]:
    return tuple({(load.buffer, load.index): load for load in loads}.values())


WORD = 4
"""Bytes of a register."""

TERMS, DENSE = PART, 1 / 8
"""Of so many terms elements are counted; of what has so few for a term nothing else is copied in each turn."""

ROWED = 2
"""Dimensions of an array of rows."""


def product_of(nest: Nest, instrs: Sequence[Instr]) -> Product | None:
    """The nest as the product that an instruction does, the first of `instrs`; or as several, of sums beside each other."""
    body = nest.loops[-1].body
    narrow = [_expanded(stmt, nest) for stmt in body if isinstance(stmt, ir.Bind)]
    binds = [wide(bind) for bind in narrow]
    if not binds or len(binds) < len(body) or not nest.seqs:
        return None
    moved = {s for e in binds[0].targets[0].index for s in e.syms()}
    for instr in instrs:
        for loops in _loops([loop for loop in nest.pars if loop.sym in moved], nest.seqs):
            free = [replace(loop, reduce=(*loop.reduce, *_made(loop, narrow, binds))) for loop in loops]
            for _, found in cut(instr, free, binds[0]):
                others = [_alike(found, free, instrs, bind) for bind in binds[1:]]
                sums = (found, *(each for each in others if each is not None))
                if len(sums) == len(binds) and _are_apart(sums):
                    return Product(*loops, tuple(replace(each, bind=b) for each, b in zip(sums, narrow, strict=True)))
    return None


def _made(loop: ir.Loop, narrow: Sequence[ir.Bind], binds: Sequence[ir.Bind]) -> Iterator[Buffer]:
    """The wider sums that a loop frees."""
    for old, new in zip(narrow, binds, strict=True):
        if old.targets[0].buffer in loop.reduce:
            yield new.targets[0].buffer


def _alike(found: Match, loops: Sequence[ir.Loop], instrs: Sequence[Instr], bind: ir.Bind) -> Match | None:
    """Another sum in the loops of `found`, by the first instruction of the same shape, with the same loops along its sides, of
    elements of the same size."""
    for instr in instrs:
        for _, other in cut(instr, loops, bind):
            sides = other.along(other.result) == found.along(found.result)
            if sides and _extents(other, loops) == _extents(found, loops) and _size(other) == _size(found):
                return other
    return None


def _are_apart(sums: Sequence[Match]) -> bool:
    """Whether each sums up in an array of its own, which none of them multiplies."""
    targets = {each.bind.targets[0].buffer for each in sums}
    read = (load.buffer for each in sums for operand in _factors(each) for load in elements(each, operand))
    return len(targets) == len(sums) and not any(buffer in targets for buffer in read)


def _extents(found: Match, loops: Sequence[ir.Loop]) -> tuple[int, int, int]:
    by = {found.loops[turn.sym]: turn.extent for turn in found.instr.loops}
    rows, columns, along = (by[loop.sym] for loop in loops)
    return rows, columns, along


def _size(found: Match) -> int:
    return max(load.buffer.dtype.bytes for load in found.reads.values())


def moves(load: Load, sym: Sym) -> bool:
    """Whether an element depends on a loop."""
    return any(sym in e.syms() for e in load.index)


def _expanded(bind: ir.Bind, nest: Nest) -> ir.Bind:
    """A statement that sums up in a local of each iteration, with an element for each, as interchange of loops makes it; and
    that reads what is padded with zero, and rows that a table names, as they are staged."""
    bind = replace(bind, values=tuple(map_value(value, _unpadded) for value in bind.values))
    bind = replace(
        bind, values=tuple(replace_loads(value, named) for value in bind.values), targets=tuple(map(named, bind.targets))
    )
    target = bind.targets[0]
    if target.buffer not in nest.local:
        return bind
    around = tuple(expr(loop.sym) for loop in nest.pars)
    return replace(bind, targets=(replace(target, index=(*around, *target.index)),))


def wide(bind: ir.Bind) -> ir.Bind:
    """A sum of a narrow floating type as `widen` makes it: of f32."""
    target = bind.targets[0]
    if len(bind.targets) > 1 or bind.update != "add" or not target.dtype.is_float or target.dtype.bits >= F32.bits:
        return bind
    made = replace(target, buffer=replace(target.buffer, dtype=F32))
    return replace(bind, targets=(made,), values=(product(bind.values[0]),))


def reads_memory(value: Value) -> bool:
    """Whether a value depends on data."""
    return any(isinstance(node, Load) for node in walk(value))


def named(load: Load) -> Load:
    """An element as a copy of the tile has it: a row that an element of a table names, as if that were the row, and an offset
    that one says as a number, which has to be the same for a tile."""
    left, told = list[tuple[Sym, Value]](), dict[Sym, Expr]()
    for sym, meaning in load.data:
        inner = meaning.arg if isinstance(meaning, Cast) else meaning
        table = named(inner) if isinstance(inner, Load) else None
        if table is None or table.data:
            left.append((sym, meaning))
        elif load.buffer.rank == ROWED and load.index[0].as_sym is sym:
            told[sym] = sum(table.index, ZERO)  # it varies with all that tell the element of the table
        else:
            told[sym] = expr(number_of(table.buffer.name, table.index))
    index = tuple(e.substitute(told) for e in load.index)
    return replace(load, index=index, data=tuple(left)) if load.data else load


def syms_of(load: Load) -> frozenset[Sym]:
    """The symbols that an element depends on, by numbers that data say, too."""
    syms, found = [sym for e in load.index for sym in e.syms()], set[Sym]()
    while syms:
        sym = syms.pop()
        found.add(sym)
        syms += [inner for e in sym.args for inner in e.syms()] if isinstance(sym, Number) else ()
    return frozenset(found)


def _unpadded(node: Value) -> Value | None:
    match node:
        case Op("select", (test, (Load() | Cast(Load())) as arm, Literal(0))) if not reads_memory(test):
            return arm
        case _:
            return None


def _loops(pars: Sequence[ir.Loop], seqs: Sequence[ir.Loop]) -> Iterator[tuple[ir.Loop, ir.Loop, ir.Loop]]:
    """The loops that rows, columns and the sum may be, inner ones first, and rows around columns before the other way."""
    pairs = [(rows, columns) for at, columns in reversed([*enumerate(pars)]) for rows in reversed(pars[:at])]
    yield from ((rows, columns, along) for along in reversed(seqs) for rows, columns in pairs)
    yield from ((rows, columns, along) for along in reversed(seqs) for columns, rows in pairs)


KEPT = {"f32": 23}
"""Bits behind the leading one that an addition in a type keeps."""


def is_by_parts(product: Product, nest: Nest) -> bool:
    """Whether a sum is one of several, each a local of a turn around, that are added up in turn."""
    parts = {each.bind.targets[0].buffer for each in product.sums}
    return any(isinstance(stmt, ir.New) and stmt.buffer in parts for loop in nest.seqs for stmt in loop.body)


def keeps_few_bits(product: Product, nest: Nest) -> bool:
    """Whether the unit keeps fewer bits of a sum than its type has, of more terms than a part has."""
    rounds = [each.instr.rounding for each in product.sums]
    few = any(r is not None and r.kept < KEPT.get(s.result.dtype.name, 0) for r, s in zip(rounds, product.sums, strict=True))
    return few and (is_by_parts(product, nest) or prod(nest.trips[loop.sym] for loop in nest.seqs) > PART)


def by_warps(nest: Nest, instrs: Sequence[Instr]) -> bool:
    """Whether one of `instrs`, of warps, does the product, and keeps the bits of its sum."""
    found = product_of(nest, instrs)
    return found is not None and not keeps_few_bits(found, nest)
