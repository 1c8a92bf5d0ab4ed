"""Rows that go through several phases, one of them a product that an instruction of a warp does: tiles of rows, on registers.

    par L |i| { …  seq n / 64 |b| { … par 64 |j| { seq 64 |d| reduce(s) { s[j] += Q[i, d] * K[64 * b + j, d] } }  … }  … }

split, split           rows of a block, of a warp
reorder, distribute    sequential loops with a product inside go around rows; each phase of a row gets a loop over rows
bind                   warps
stage, pipeline        operands from memory, in the innermost sequential loop with which they change; copies turns ahead
mma                    each product; all that is touched with what one sums up goes to registers, when the schedule ends

What a row keeps from phase to phase has constant extents, and fits the registers of its lanes. Which loops are rows and which
phases are products is a question of `texpr.schedule.joint.match`; what else happens to a row, the strategy does not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, prod
from typing import Any, TypeAlias, TypeVar

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.program.rewrite import map_value
from texpr.ir.program.uses import loads as loads_in
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value, walk
from texpr.isa.levels import WARP
from texpr.isa.registry import DEVICES
from texpr.isa.target import Target
from texpr.model.bound import SYNC, bound
from texpr.model.work import Shape, Work
from texpr.planner.budget import MULTIPROCESSORS
from texpr.planner.copies import COPIED, Copies
from texpr.planner.follow import Refused
from texpr.planner.nest import NOMINAL, NoPlan
from texpr.planner.strategies.products import ADDRESSES, all_unmarked, allowed
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor import alive
from texpr.schedule.joint.match import Match, cut
from texpr.schedule.joint.records import usable_in
from texpr.schedule.tree import loops
from texpr.support.record import Record, replace

SHAPES = ((4, 2), (8, 1), (4, 1))
"""Warps of a block, and strips of rows of each, in the order in which they are tried: more strips read operands less often."""

WORDS = 200
"""Registers of a thread for what a row keeps, and for operands: the rest is for addresses and copies."""

STAGES = 2
"""Turns of copies that are in shared memory at once."""

LEAST = 64
"""The least rows that are known for which a tile is worth it."""

LESSER = 0.01
"""What the units beside the busiest count, of the time of rows."""


class Linked(Record):
    """A product inside of a row: the loops over columns and the sum, the instruction, and how often a row has it."""

    columns: ir.Loop
    sum: ir.Loop
    found: Match
    rows: int
    turns: int

    @property
    def operands(self) -> tuple[Buffer, ...]:
        """What is read."""
        return tuple(dict.fromkeys(load.buffer for load in self.found.reads.values()))

    @property
    def size(self) -> int:
        """Bytes of an element that is read."""
        return max(buffer.dtype.bytes for buffer in self.operands)

    @property
    def panel(self) -> int:
        """Elements of the operand that all rows share: columns by the depth of the sum."""
        return self.columns.extent.constant * self.sum.extent.constant

    def words(self, strips: int) -> int:
        """Registers of a lane for strips of rows that it sums up, and for what it multiplies these with at a time."""
        turns = {turn.sym: turn.extent for turn in self.found.instr.loops}
        depth = next(extent for sym, extent in turns.items() if self.found.loops[sym] == self.sum.sym)
        read = max(buffer.dtype.bytes for buffer in self.operands)
        bytes = self.columns.extent.constant * (strips * self.rows * self.found.result.dtype.bytes + depth * read)
        return bytes // 4 // self.found.instr.lanes


class Rows(Record):
    """A nest as rows: the loops around, of which the last is over rows, the products of a row, and its locals."""

    way: tuple[ir.Par, ...]
    products: tuple[Linked, ...]
    local: frozenset[Buffer]

    @property
    def row(self) -> ir.Par:
        """The loop over rows."""
        return self.way[-1]

    @property
    def strip(self) -> int:
        """Rows of an instruction."""
        return self.products[0].rows


class Strips(Record):
    """`rows` of a block, and `own` rows of a warp, for the rows of a nest; registers of a thread, and bytes of a block."""

    of: Rows
    rows: int
    own: int
    registers: int
    shared: int

    @property
    def lanes(self) -> int:
        """How many do an instruction together."""
        return self.of.products[0].found.instr.lanes

    @property
    def blocks(self) -> int:
        """How many there are."""
        way = self.of.way
        return prod(trips(loop.extent) for loop in way[:-1]) * ceil(trips(way[-1].extent) / self.rows)

    def read(self, product: Linked) -> int:
        """Bytes of shared memory that a block reads for a product of its rows: each warp all that rows share, and its rows."""
        left = 0 if product.operands[0] in self.of.local else self.rows * product.sum.extent.constant
        return (self.rows // self.own * product.panel + left) * product.size

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        name, used = str(self.of.row.sym), dict.fromkeys(each.found.instr.name for each in self.of.products)
        return {
            "tile": {name: self.rows},
            "own": {},
            "warp": {name: self.own},
            "instruction": ", ".join(used),
            "staged": [],
            "stages": STAGES,
        }


class LinkedScript(Copies, kw_only=True):
    """Gives strips of rows to warps, and their products to instructions."""

    tile: Strips

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        rows, name = self.tile.of, self.tile.of.row.sym.name
        block, inner, warp, own = self.fresh(name, "b", "e", "w", "m")
        self.must("split", name, self.tile.rows, results=(block, inner))
        self.must("split", inner, self.tile.own, results=(warp, own))
        self._around(own, warp)
        for product in rows.products:
            self._alone(product.sum, product.columns)
        for product in rows.products:
            self._alone(product.columns, own, warp)
        self.must("bind", warp, "block.y")
        self._operands(block)
        strips = [self.strip_of(each.columns.sym, own) for each in rows.products]
        for product, strip in zip(rows.products, strips, strict=True):
            self.must("mma", strip, product.columns.sym.name, product.sum.sym.name, product.found.instr.name)
        for loop in [s for s in loops(self.state.function.body) if isinstance(s, ir.Seq) and self._copies_in(s)]:
            self.may("pipeline", loop.sym.name, stages=STAGES)
        self.turned(own)
        self.require_laid_out()
        return ()

    def strip_of(self, sym: Sym, own: str) -> str:
        """The name of the loop over rows, one of those that fission has made of `own`, around a loop of a statement."""
        return next(s for s in self.above(self.loop(sym.name)) if self.is_copy(s, own)).sym.name

    def turned(self, own: str) -> None:
        """Has turns overlap, whose statements are in loops over rows, which fission has made of `own`; here they do not."""

    def _around(self, own: str, warp: str) -> None:
        """Puts sequential loops with products inside around rows."""
        moved = {each.columns.sym for each in self.tile.of.products}
        while True:
            found = next(self._sequential(own, moved), None)
            if found is None:
                return
            row, loop = found
            outer = next(s for s in self.above(row) if self.is_copy(s, warp))
            self.must("reorder", loop.sym.name, outer.sym.name, row.sym.name)

    def _sequential(self, own: str, moved: set[Sym]) -> Iterator[tuple[ir.Loop, ir.Seq]]:
        """Loops over rows, and sequential ones inside of them around a product."""
        for row in self.state.copies(self.loop(own)):
            for loop in row.body:
                if isinstance(loop, ir.Seq) and any(s.sym in moved for s in loops(loop.body)):
                    yield row, loop

    def _alone(self, loop: ir.Loop, *around: ir.Loop | str) -> None:
        """Gives the loops around a product, from the innermost on, no other statement."""
        for each in around:
            name = each if isinstance(each, str) else each.sym.name
            outer = next(s for s in self.above(loop) if self.is_copy(s, name))
            if sum(not isinstance(s, ir.New) for s in outer.body) > 1:
                self.must("distribute", outer.sym.name)

    def _operands(self, block: str) -> None:
        """Copies what products read from memory of callers, each in the innermost loop of the block with which it changes."""
        reads = {load.buffer: load for each in self.tile.of.products for load in each.found.reads.values()}
        where = {buffer: each for each in self.tile.of.products for buffer in each.operands}
        for buffer, load in reads.items():
            if buffer.role == "local":
                continue
            moved = {sym for e in load.index for sym in e.syms()} | self._named(buffer, where[buffer])
            above = self.above(where[buffer].columns)
            turns = [s for s in above if isinstance(s, ir.Seq) and s.sym in moved]
            self.to_shared(load, turns[0].sym.name if turns else block)

    def _named(self, buffer: Buffer, product: Linked) -> set[Sym]:
        """The indices by which data say what a product reads of a buffer."""
        inside = ir.walk((self.loop(product.columns.sym.name),))
        return {sym for stmt in inside for load in loads_in(stmt) if load.buffer is buffer for sym in _said(load)}

    def _copies_in(self, loop: ir.Seq) -> bool:
        """Whether something is copied to shared memory in each turn."""
        return any(isinstance(s, ir.New) and s.space == "shared" for s in loop.body)


Some = TypeVar("Some", bound=Strips)

Choices: TypeAlias = Callable[[ir.Par, ir.Bind], Iterable[Instr]]
"""The instructions that may do a product of these columns, those to prefer first."""

Fits: TypeAlias = Callable[[Match, frozenset[Buffer]], bool]
"""Whether an instruction reads operands where they are, given the locals of a row."""


def rows_of(par: ir.Par, choices: Choices, fits: Fits = lambda _, __: True) -> Rows | None:
    """The nest of `par` as rows with products."""
    way = [par]
    while len(way[-1].body) == 1 and isinstance(inner := way[-1].body[0], ir.Par):
        way.append(inner)
    if any(p.reduce or p.fully or p.directives for p in way):
        return None
    local = {s.buffer for s in way[-1].body if isinstance(s, ir.New)}
    local |= {
        s.buffer for stmt in way[-1].body if isinstance(stmt, ir.Seq) for s in ir.walk(stmt.body) if isinstance(s, ir.New)
    }
    products = tuple(_Finder(way[-1], frozenset(local), choices, fits).products(way[-1].body))
    strips = {each.rows for each in products}
    if len(strips) != 1 or len({each.found.instr.lanes for each in products}) != 1:
        return None
    return Rows(tuple(way), products, frozenset(local))


class _Finder(Record):
    """Finds the products of a `row`, whose locals are `local`."""

    row: ir.Par
    local: frozenset[Buffer]
    choices: Choices
    fits: Fits

    def products(self, body: Sequence[ir.Stmt], turns: int = 1) -> Iterator[Linked]:
        """The products below a row, in the order of the text."""
        for stmt in body:
            found = self.product(stmt, turns) if isinstance(stmt, ir.Par) else None
            if found is not None:
                yield found
            elif isinstance(stmt, ir.Seq):
                yield from self.products(stmt.body, turns * trips(stmt.extent, self.row))

    def product(self, columns: ir.Par, turns: int) -> Linked | None:
        """The loop as a product of a row, by the first instruction that does it."""
        sums = [s for s in columns.body if isinstance(s, ir.Par | ir.Seq)]
        bind = sums[0].body[0] if len(sums) == 1 and len(sums[0].body) == 1 else None
        if not isinstance(bind, ir.Bind) or len(bind.targets) != 1 or bind.targets[0].buffer not in self.local:
            return None
        nest = (self.row, columns, sums[0])
        if not columns.extent.is_constant or not sums[0].extent.is_constant:
            return None
        bind = _of_row(bind, nest, self.local)
        for instr in self.choices(columns, bind):
            for shape, found in cut(instr, nest, bind):
                whole = columns.extent.constant % shape[1] == 0 and sums[0].extent.constant % shape[2] == 0
                if whole and self.fits(found, self.local):
                    return Linked(columns, sums[0], found, shape[0], turns)
        return None


def _said(load: Load) -> set[Sym]:
    """The indices by which data say where an element is."""
    named = (node for _, meaning in load.data for node in walk(meaning) if isinstance(node, Load))
    return {sym for each in named for e in each.index for sym in e.syms()}


def _of_row(bind: ir.Bind, nest: Sequence[ir.Loop], local: frozenset[Buffer]) -> ir.Bind:
    """A statement whose locals have an element for each row, as fission makes them, and that reads what is padded, or of a page
    that a table names, as staged."""
    row, inner = nest[0], {loop.sym for loop in nest}

    def leaf(node: Value) -> Value | None:
        match node:
            case Load() if node.data and not _said(node) & inner:
                return replace(node, data=())
            case Load() if node.buffer in local:
                return replace(node, index=(expr(row.sym), *node.index))
            case Op("select", (_, (Load() | Cast(Load())) as arm, Literal(0))):
                return arm
            case _:
                return None

    targets = tuple(replace(t, index=(expr(row.sym), *t.index)) for t in bind.targets)
    return replace(bind, targets=targets, values=tuple(map_value(value, leaf) for value in bind.values))


def strips_of(rows: Rows, target: Target, refused: int) -> Strips | None:
    """Rows of a block: the most that leave no multiprocessor idle, after as many as were refused; none if they do not fit."""
    words = {strips: sum(each.words(strips) for each in rows.products) for _, strips in SHAPES}
    found = [
        Strips(rows, count, strips * rows.strip, WORDS, _bytes(rows, count))
        for warps, strips in SHAPES
        if words[strips] <= WORDS and _bytes(rows, count := warps * strips * rows.strip) <= target.shared
    ]
    if not found:  # not all of it is there at once
        lanes = rows.products[0].found.instr.lanes
        needs = {strips: alive.registers(rows.row.body, strips * rows.strip, lanes) + ADDRESSES for _, strips in SHAPES}
        found = [
            Strips(rows, count, strips * rows.strip, needs[strips], _bytes(rows, count))
            for warps, strips in SHAPES
            if needs[strips] <= target.registers_thread and _bytes(rows, count := warps * strips * rows.strip) <= target.shared
        ]
    return most(found, refused) if found else None


def most(found: Sequence[Strips], refused: int) -> Strips | None:
    """The first of `found` that leaves no multiprocessor idle, after as many as were refused."""
    left = busy(found)
    return left[refused] if refused < len(left) else None


def busy(found: Sequence[Some]) -> list[Some]:
    """Those that leave no multiprocessor idle, and the last."""
    return [each for each in found if each is found[-1] or each.blocks >= MULTIPROCESSORS]


def microseconds(strips: Strips, target: Target, sync: bool) -> float:
    """The least time that the units of products and of memory need for rows in such strips; 0 where nobody says how fast the
    device is. `sync`: whether instructions are those of a warp. What else happens to a row, all strips have alike."""
    device = DEVICES.get(target.name)
    if device is None:
        return 0.0
    products, shared, l2, blocks = dict[str, float](), 0.0, 0.0, strips.blocks
    for each in strips.of.products:
        name = each.operands[0].dtype.name + SYNC * sync
        products[name] = products.get(name, 0.0) + blocks * strips.rows * each.panel * each.turns
        copied = each.panel * each.size
        shared += blocks * each.turns * (strips.read(each) + copied) / (device.bandwidth.shared.value or 1.0)
        l2 += blocks * each.turns * copied
    work = Work(issued=0, units={}, products=products, shared=shared, l2=l2, dram=None)
    threads = strips.rows // strips.own * max(strips.lanes, WARP)
    found = bound(work, Shape(blocks, threads, strips.registers, strips.shared), target, device)
    return found.us + LESSER * sum(part.us or 0.0 for part in found.parts)


def _bytes(rows: Rows, count: int) -> int:
    """Bytes of shared memory for what is copied in turns, and once for so many rows, about."""
    total = 0
    for each in rows.products:
        columns, depth = each.columns.extent.constant, each.sum.extent.constant
        size = max(buffer.dtype.bytes for buffer in each.operands)
        total += min(columns, depth) * (max(columns, depth) * size + COPIED[0]) * STAGES
        total += 0 if each.operands[0] in rows.local else count * (depth * size + COPIED[0])
    return total


def trips(extent: Expr, row: ir.Loop | None = None) -> int:
    """How many iterations there are, or are taken to be; of a loop inside of a row, those of the row in the middle."""
    if row is not None and extent.syms() == frozenset({row.sym}):
        return max(1, extent.evaluate({row.sym: trips(row.extent) // 2}))
    return extent.constant if extent.is_constant else NOMINAL


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and isinstance(subject.nest, NoPlan) and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    target = subject.state.target
    instrs = usable_in(subject.state.function, target)
    rows = allowed(
        rows_of(subject.par, lambda _, __: instrs),
        lambda: rows_of(replace(subject.par, body=all_unmarked(subject.par.body)), lambda _, __: instrs),
        lambda other: other.products[0].found.instr.name,
    )
    if rows is None or trips(rows.row.extent) < LEAST:
        return None
    tile = strips_of(rows, target, len(refused))
    if tile is None:
        return None
    return Proposal(LinkedScript(subject.state, subject.span, tile=tile), microseconds(tile, target, sync=True), tile)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
"""Where nothing else keeps rows in registers."""
