"""`stage(A, …, via=gather4|scatter4)`: rows of a matrix given by an index table, copied four at a time: the conditions on a
region.

    A[I[32 · io + r], 64 · jo + c]     r < 32, c < 64:  eight copies, each with four numbers of rows out of I

The tile has whole groups of four rows, and so many columns that each copy is aligned to 128 bytes. An index beyond the table
is row −1 for the engine, which is outside of the matrix. PTX ISA, "cp.async.bulk.tensor", ".tile::gather4",
".tile::scatter4".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.operation.tensor_map import element
from texpr.ir.value import Buffer, Cast, Load, Value
from texpr.isa.cuda import TMA_ROWS
from texpr.isa.engine import CHUNK, LINE
from texpr.relation.facts import known
from texpr.schedule.call import Call
from texpr.schedule.edits import promise
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.stage.boxes import ALLOCATED, ATOM, Boxes, dense_strides
from texpr.schedule.stage.region import NoBox, Use, box, subscripts
from texpr.schedule.state import State
from texpr.schedule.tensor.engine import rule_help
from texpr.support.diagnostic import Note
from texpr.support.record import Record, replace
from texpr.tma.boxing import MOST_BOX
from texpr.tma.descriptor import TensorMap, Tiled, exprs
from texpr.tma.descriptor import Use as Instruction
from texpr.tma.rules import findings
from texpr.tma.swizzle import Swizzle

GROUP = 4
"""Rows of one copy."""


class Rows(Record):
    """Rows and columns of a matrix: `load` is the element at the start of both, `dim` the dimension of the table along which
    rows are given, `count` and `width` the accessed rows and columns, `boxes` the copies, which may cover more, and
    `where` the place of each access in the tile. `named`: the accesses by row number: the table's subscripts and the
    column."""

    load: Load
    dim: int
    count: int
    width: int
    boxes: Boxes
    where: Mapping[int, tuple[Expr, ...]]
    named: tuple[Use, ...]

    @property
    def table(self) -> Load:
        """The element of the table that gives the first row."""
        ((_, meaning),) = self.load.data
        table = table_of(meaning)
        assert table is not None
        return table

    @property
    def memory(self) -> Boxes:
        """The layout of the tile: with a swizzle, which depends on the address, all rows below each other, for each box of
        columns."""
        rows, width = self.boxes.extent[0], self.boxes.box[1]
        return self.boxes if self.boxes.swizzle is Swizzle.NONE else replace(self.boxes, box=(rows, width))

    @property
    def least(self) -> int:
        """The granularity of a tile's width in elements: four rows are a line of shared memory, or a row is a span."""
        return self.boxes.box[1] if self.boxes.swizzle is not Swizzle.NONE else LINE // GROUP // self.boxes.size

    def at(self, row: Sym, column: Sym) -> Load:
        """The element of the matrix for a row and a column of the tile."""
        ((sym, meaning),) = self.load.data
        index = tuple(e + expr(row) if dim == self.dim else e for dim, e in enumerate(self.table.index))
        moved: Value = replace(self.table, index=index)
        if isinstance(meaning, Cast):
            moved = Cast(moved, meaning.dtype)
        return replace(self.load, index=(self.load.index[0], self.load.index[1] + expr(column)), data=((sym, moved),))


def table_of(meaning: Value) -> Load | None:
    """The table element that a subscript consists of, or None."""
    inner = meaning.arg if isinstance(meaning, Cast) else meaning
    return inner if isinstance(inner, Load) and not inner.data else None


def require_target(call: Call, other: str) -> None:
    """Refuses machines whose engine has no gather4 and scatter4: E0916."""
    target = call.state.target
    if TMA_ROWS not in target.features:
        reason = f"the tensor memory accelerator of {target.name} copies no rows by their numbers"
        offers = call.by(other.removeprefix("via="))
        raise call.refuse("E0916", reason, at=call.key("via"), help="those of sm_100a and sm_103a do", offers=offers)


def rows(state: State, uses: Sequence[Use], swizzle: Swizzle = Swizzle.NONE) -> Rows:
    """The rows and columns that accesses touch. Raises NoBox with the reason where there are none."""
    tables: list[Use] = []
    columns: list[Use] = []
    spelt = spelt_out(state, uses)
    for use in spelt:
        load = use.load
        table = table_of(load.data[0][1]) if len(load.data) == 1 else None
        if load.buffer.rank != 2 or table is None:
            raise NoBox(use, "it is no element of a row that one element of a table names")
        ((sym, _),) = load.data
        if load.index[0] is not expr(sym) or sym in load.index[1].syms():
            raise NoBox(use, "its row is not what the table says, or its column depends on that")
        if table.buffer.role != "input" or (tables and table.buffer is not tables[0].load.buffer):
            raise NoBox(use, f"its table, `{table.buffer.name}`, is not one that is only read")
        around = (*use.outer, *use.inner)
        tables.append(replace(use, load=table, index=subscripts(state, table, around)))
        column = replace(load, index=(ZERO, load.index[1]), data=())
        columns.append(replace(use, load=column, index=(ZERO, use.index[1])))
    if not _are_rows(state, tables[0].load.buffer, uses[0].load.buffer.shape[0]):
        name, matrix = tables[0].load.buffer.name, uses[0].load.buffer
        reason = f"elements of `{name}` that are not asked for here might be no rows of `{matrix.name}`"
        raise NoBox(uses[0], reason, clause=f"assume {name} in 0..{matrix.shape[0]}")
    named, across = box(state, tables), box(state, columns)
    long = [dim for dim, extent in enumerate(named.extent) if extent > 1]
    if len(long) > 1:
        raise NoBox(uses[0], "its rows go along several dimensions of the table")
    dim = long[0] if long else len(named.extent) - 1
    first = spelt[0].load
    ((sym, meaning),) = first.data
    start: Value = replace(tables[0].load, index=named.base)
    if isinstance(meaning, Cast):
        start = Cast(start, meaning.dtype)
    where = {
        id(use.load): (named.holds(table.index)[dim], across.holds(column.index)[1])
        for use, table, column in zip(uses, tables, columns, strict=True)
    }
    boxes = _boxes(named.extent[dim], across.extent[1], first.dtype.bytes, swizzle)
    begin = replace(first, index=(expr(sym), across.base[1]), data=((sym, start),))
    return Rows(begin, dim, named.extent[dim], across.extent[1], boxes, where, tuple(map(by_name, spelt, tables)))


def spelt_out(state: State, uses: Sequence[Use]) -> list[Use]:
    """Accesses, with the `let` of a row number, `let p = I[i]`, replaced by its table element."""
    lets = {expr(stmt.sym): stmt for stmt in ir.walk(state.function.body) if isinstance(stmt, ir.Let)}

    def spelt(use: Use) -> Use:
        let, load = lets.get(use.load.index[0]), use.load
        table = None if let is None or load.data else table_of(let.value)
        if let is None or table is None or table.buffer.role != "input":
            return use
        return replace(use, load=replace(load, data=((let.sym, let.value),)))

    return [spelt(use) if use.load.index else use for use in uses]


def by_name(use: Use, table: Use) -> Use:
    """An access of a row's element, with the row replaced by the table's subscripts."""
    index = (*table.load.index, use.load.index[1])
    return replace(use, load=replace(use.load, index=index, data=()), index=(*table.index, use.index[1]))


def is_injective(state: State, table: Buffer) -> bool:
    """Whether the elements of a table are promised to be different, so that the rows are."""
    return any(isinstance(a, ir.Injective) and a.buffer is table for a in state.function.assumes)


def _are_rows(state: State, table: Buffer, size: Expr) -> bool:
    """Whether every element of a table is promised to be in bounds of the matrix's rows."""
    promised = known(given(state.function))
    ranges = (a for a in state.function.assumes if isinstance(a, ir.InRange) and a.buffer is table)
    return any(promised.nonnegative(a.lo) and promised.nonnegative(size - a.hi) for a in ranges)


def _boxes(count: int, width: int, size: int, swizzle: Swizzle) -> Boxes:
    """Four rows a box, as wide as the hardware permits, where every box takes whole lines of shared memory.

    With a swizzle they are as wide as its span, and the number of rows is a multiple of its period.
    """
    if swizzle is not Swizzle.NONE:
        span = swizzle.span // size
        return Boxes((-(-count // ATOM) * ATOM, -(-width // span) * span), (GROUP, span), size, swizzle)
    least = LINE // GROUP // size
    parts = -(-width // least)
    wide = least * max(n for n in range(1, MOST_BOX // least + 1) if parts % n == 0)
    return Boxes((-(-count // GROUP) * GROUP, parts * least), (GROUP, wide), size)


def row_map(buffer: Buffer, boxes: Boxes, base: Expr, sizes: Sequence[Expr]) -> TensorMap:
    """The tensor map of single rows, as the rules have it."""
    stride = dense_strides(buffer)[0] * buffer.dtype.bytes
    traversal = Tiled(exprs(boxes.box[1], 1))
    return TensorMap(element(buffer.dtype), base, tuple(sizes), (stride,), traversal, exprs(1, 1), swizzle=boxes.swizzle)


def require_rows(call: Call, found: Rows, promised: Known, stored: bool = False) -> None:
    """Refuses copies that break a rule of the hardware, or are not proved to satisfy those that a launch does not check:
    E0916.

    For a store, a row of the matrix must end with a whole chunk of 16 bytes, or other elements would be overwritten.
    """
    buffer = found.load.buffer
    note = Note(f"`{buffer.name}` is declared here", buffer.span)
    if dense_strides(buffer)[-1] is not ONE:
        raise call.refuse("E0916", f"elements of a row of `{buffer.name}` are not neighbours", note)
    begins = buffer.align or (buffer.dtype.bytes if buffer.role in ("input", "inout") else ALLOCATED)
    map = row_map(buffer, found.boxes, expr(Sym("base")) * begins, tuple(reversed(buffer.shape)))
    use = Instruction(map, (found.load.index[1], ZERO), expr(found.boxes.bytes), rows=exprs(-1, -1, -1, -1), stores=stored)
    for finding in findings(use, promised).unmet:
        reason = f"the tensor memory accelerator cannot copy `{buffer.name}`: {finding.asked.subject}: {finding.rule.says}"
        help, offers = rule_help(call, finding, buffer)
        raise call.refuse("E0916", reason, note, help=help, offers=offers)
    whole = CHUNK // buffer.dtype.bytes
    if stored and not promised.multiple(buffer.shape[1], whole):
        width = buffer.shape[1]
        reason = f"a store writes {CHUNK} bytes at once, and a row of `{buffer.name}`, of {width} elements, may end within them"
        raise call.refuse("E0916", reason, note, offers=promise(call.state.function, f"where {width} % {whole} == 0"))
