"""Scales of a product in tensor memory: from shared memory, where a schedule staged them, to where the instruction reads them.

    new a_s: f8e8m0[128, 4]                                   new a_s: f8e8m0[32, 16]
    par 128 |r| { par 4 |b| { a_s[r, b] = a[…] } }            … a_s[r % 32, 4 * (r / 32) + b] = a[…] …
                                                              new sa: f8e8m0[128, 16]         -- lane, slot
                                                              instr tcgen05_cp_f8e8m0_x128(a_s[0, 0], sa[0, 0]) { … }
    seq 4 |kk| { … #mma … f32(a_s[i, kk]) … }                 seq 4 |kk| { … #mma … f32(sa[i % 32, i / 32 + 4 * kk]) … }

Which instruction brings them is found by its meaning: a copy from a matrix to columns whose elements lie so that those of the
product are where its fragment says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.instr import Instr, Operand
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Joint
from texpr.ir.program.rewrite import Rewriter, replace_loads
from texpr.ir.value import Buffer, Load
from texpr.isa.instructions.tcgen05_scaled import QUARTER, QUARTERS, SCALE, WORD
from texpr.isa.target import Target
from texpr.schedule.joint.match import match
from texpr.schedule.joint.nests import nest_of
from texpr.schedule.joint.records import by_name, called
from texpr.schedule.tree import Body, path_to, replaced
from texpr.support.record import Record, replace
from texpr.support.span import Span

MATRIX = 2
"""Dimensions of scales of a turn: rows and blocks. A ring of turns has one more."""

Fresh = Callable[[str], Sym]
"""A symbol called like a name."""


class Scales(Record, eq=False):
    """Those of `staged`, in shared memory, for `rows` rows: `shared` as it lies there now, `there` in tensor memory."""

    staged: Buffer
    shared: Buffer
    there: Buffer
    by: Instr
    rows: int
    tops: tuple[ir.Loop, ...]
    turn: tuple[Expr, ...]
    span: Span

    @property
    def groups(self) -> int:
        """Columns of a turn: one for each 32 rows."""
        return self.rows // QUARTER

    @property
    def first(self) -> Expr:
        """The first slot in tensor memory of what is read in a turn."""
        return self.turn[0] * (WORD * self.groups) if self.turn else ZERO

    def in_shared(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """Where the scale of a row and a block is in shared memory, of a turn whose ring has a slot."""
        *turn, row, block = index
        group = row // QUARTER
        whole = row // (QUARTER * QUARTERS) * QUARTER if self.groups > QUARTERS else ZERO
        return *turn, whole + row % QUARTER, (group % QUARTERS if self.groups > QUARTERS else group) * WORD + block

    def in_columns(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The lane, the first of those that have it, and the slot of a scale in tensor memory."""
        *_, row, block = index
        return row % QUARTER, self.first + block * self.groups + row // QUARTER


def brought(function: ir.Function, target: Target, fresh: Fresh) -> ir.Function:
    """`function`, with the scales that its marked nests read brought to tensor memory, as far as they are staged for that."""
    while (each := next(_found(function, target, fresh), None)) is not None:
        function = _moved(function, each, fresh)
    return function


def _found(function: ir.Function, target: Target, fresh: Fresh) -> Iterator[Scales]:
    tops = [s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)]
    read: dict[Buffer, list[ir.Loop]] = {}
    turns: dict[Buffer, set[tuple[Expr, ...]]] = {}
    for top in tops:
        for _, load in _scales(function, top):
            read.setdefault(load.buffer, []).append(top)
            turns.setdefault(load.buffer, set()).add(tuple(load.index[:-MATRIX]))
    for staged, readers in read.items():
        new = next((s for s in ir.walk(function.body) if isinstance(s, ir.New) and s.buffer is staged), None)
        rows, by = _rows(staged), None
        if rows is not None:
            by = called(f"tcgen05_cp_{SCALE}_x{rows}")
        if new is None or new.space != "shared" or rows is None or by is None or by.template(target) is None:
            continue
        if len(turns[staged]) > 1:
            continue
        (turn,), ring = turns[staged], staged.shape[:-MATRIX]
        shared = replace(staged, shape=(*ring, expr(rows // QUARTERS), expr(QUARTERS * WORD)))
        slots = rows // QUARTER * WORD * prod(e.constant for e in ring)
        there = Buffer(fresh(f"{staged.name}_t").name, staged.dtype, (expr(QUARTER * QUARTERS), expr(slots)), "local")
        yield Scales(staged, shared, there, by, rows, tuple(readers), turn, new.span)


def _rows(staged: Buffer) -> int | None:
    """The rows of which it has scales of as many blocks as a word; None where it is not of that shape, or of a ring of such."""
    if staged.rank not in (MATRIX, MATRIX + 1) or not all(e.is_constant for e in staged.shape):
        return None
    *_, rows, blocks = (e.constant for e in staged.shape)
    return rows if blocks == WORD and rows % (QUARTER * QUARTERS) == 0 else None


def _scales(function: ir.Function, top: ir.Loop) -> Iterator[tuple[Operand, Load]]:
    """The operands in tensor memory that a marked nest only reads, and what it reads of each."""
    asked = mark(top, Joint)
    loops, bind = nest_of(top)
    instr = by_name(function, asked.instr) if asked is not None else None
    found = None if instr is None or bind is None else match(instr, loops, bind)
    if found is not None:
        yield from ((o, found.reads[o.memory]) for o in found.instr.operands if o.columns and o is not found.result)


def _moved(function: ir.Function, each: Scales, fresh: Fresh) -> ir.Function:
    """One of them: brought once a turn, ahead of the first statement with a nest that reads it."""
    new = next(s for s in ir.walk(function.body) if isinstance(s, ir.New) and s.buffer is each.staged)
    around, path = path_to(function.body, new) or (), path_to(function.body, each.tops[0]) or ()
    syms = {sym for e in each.turn for sym in e.syms()}
    loops = [at for at, s in enumerate(path) if isinstance(s, ir.Par | ir.Seq) and (s in around or s.sym in syms)]
    assert loops, "what makes it, or a loop around, is around what reads it"
    first = next(s for s in path[loops[-1] + 1 :] if not isinstance(s, ir.If))
    body = replaced(function.body, first, lambda old: (_copy(each, fresh), old))
    body = replaced(body, new, lambda old: (old, ir.New(each.there, span=each.span)))
    return replace(function, body=_renamed(body, each, {top.sym for top in each.tops}))


def _renamed(body: Body, each: Scales, tops: set[Sym]) -> Body:
    """`body`, which reads it in tensor memory in the nests from `tops` on, and elsewhere in shared memory as it lies."""

    def at(load: Load, there: bool) -> Load:
        index = each.in_columns(load.index) if there else each.in_shared(load.index)
        return replace(load, buffer=each.there if there else each.shared, index=index)

    def inside(stmts: Body, there: bool) -> Body:
        return Rewriter(
            value=lambda old: replace_loads(old, lambda load: at(load, there) if load.buffer is each.staged else None),
            target=lambda old: at(old, there) if old.buffer is each.staged else old,
            buffer=lambda old: each.shared if old is each.staged else old,
        ).block(stmts)

    marked = [s for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq) and s.sym in tops]
    for top in marked:
        body = replaced(body, top, lambda old: inside((old,), True))
    return inside(body, False)


def _copy(each: Scales, fresh: Fresh) -> ir.Stmt:
    """The instruction that copies from shared memory to each quarter of the lanes."""
    instr = each.by
    (give,) = instr.gives
    names: Mapping[Sym, Expr] = {turn.sym: expr(fresh(turn.sym.base)) for turn in instr.loops}
    copy = fresh("quarter")
    source, target = (next(o for o in instr.operands if o.is_written is written) for written in (False, True))
    index = [e.substitute(names) for e in give.target.index]
    lane, slot = target.fragment.lane(index, expr(copy)), target.fragment.register(index)
    read = Load(each.shared, (*each.turn, *index))
    body: Body = (ir.Bind((Load(each.there, (lane, each.first + slot)),), (read,), span=each.span),)
    for turn in reversed(instr.loops):
        sym = names[turn.sym].as_sym
        assert sym is not None
        body = (ir.Seq(sym, expr(turn.extent), body, span=each.span),)
    body = (ir.Seq(copy, expr(target.fragment.copied), body, span=each.span),)
    begin = Load(each.shared, (*each.turn, ZERO, ZERO))
    begins = {source.memory: begin, target.memory: Load(each.there, (ZERO, each.first))}
    operands = tuple(begins[o.memory] for o in instr.operands)
    return ir.Instruction(instr.name, body, operands, span=each.span, instr=instr)
