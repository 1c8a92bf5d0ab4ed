"""Rows that go through several phases, products of a warpgroup among them: what one leaves in registers, the next reads there.

split, reorder, …      as for strips of a warp (`linked`), of 64 rows a warpgroup
stage … via=tma        what products read from memory of callers, as a descriptor says where elements lie; what all turns
                       read, once
pipeline               copies one turn ahead
mma                    an instruction of a warpgroup for each product: of matrices in shared memory; or with the left operand in
                       registers, where that is what a phase of the row before left there
overlap                the last product of a turn goes on while lanes do the phases of the next one; or more of a turn is late,
                       as a search finds (`planner.clocks.found`)
roles                  warps of their own copy, so that warpgroups of a block wait for slots, and not for each other

Whether turns overlap, and who copies, and how many warpgroups a block has, is decided by the time of a turn
(`planner.clocks.turns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.instr import GROUPS, Instr
from texpr.ir.value import Buffer, Load, walk
from texpr.isa.cuda import SETMAXNREG, WARPGROUP, WGMMA, registers_at_launch, registers_left
from texpr.isa.levels import WARP
from texpr.isa.registry import DEVICES, INSTRUCTIONS
from texpr.isa.speed import Device
from texpr.isa.target import Target
from texpr.model.machine import residence
from texpr.model.work import Shape
from texpr.planner.clocks.found import Late, late_of
from texpr.planner.clocks.operations import Steps, steps_of
from texpr.planner.clocks.told import told
from texpr.planner.clocks.turns import Product, Turn, turn_of
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan
from texpr.planner.strategies.linked import (
    LEAST,
    STAGES,
    WORDS,
    Linked,
    LinkedScript,
    Rows,
    Strips,
    busy,
    microseconds,
    rows_of,
    trips,
)
from texpr.planner.strategies.products import all_unmarked, allowed
from texpr.planner.strategies.warpgroups import ADDRESSES, BARRIERS
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor import alive
from texpr.planner.tensor.boxed import SPAN, by_engine, extent
from texpr.planner.tensor.described import lies_so
from texpr.planner.tensor.product import WORD
from texpr.schedule.joint.match import Match
from texpr.schedule.joint.records import called
from texpr.support.record import Record, replace

GROUPS_OF_A_BLOCK = (2, 1)
"""Warpgroups of a block, in the order in which they are tried: more of them read operands less often."""

GROUPS_OF_TURNS = (3, 2, 1)
"""The same where turns overlap, so that fewer blocks at once do."""

COPYING = 24
"""Registers of a thread of a warpgroup that copies."""

CLOSE = 1.1
"""How much longer than another way turns of one may take that counts as about as good: within so much turns are known, and more
warpgroups hide from each other what a model does not see."""

WORTH = 0.98
"""Of the time of what is tried in any case, how much that takes at most which a search finds: less is within what a model can
tell."""


class Teams(Strips):
    """Strips of warpgroups. `late`: the loop in whose next turn the last product of a turn goes on; `apart`: that in which
    warps of their own copy, if there is one. `found`: what else is late, as a search has found; `turn`: what it says."""

    late: Sym | None = None
    apart: Sym | None = None
    found: Late | None = None
    turn: Mapping[str, Any] | None = None

    @property
    def groups(self) -> int:
        """Warpgroups that compute."""
        return self.rows // self.own

    @property
    def kept(self) -> int:
        """Registers of a thread that computes, where another warpgroup copies."""
        return registers_left(WARPGROUP, COPYING, self.groups * WARPGROUP)

    def fits(self, target: Target, registers: int = WORDS + ADDRESSES) -> bool:
        """Whether a block has as many registers, of which a thread has so many at most, and as much shared memory."""
        allowed = min(self.kept, registers) if self.apart is not None else registers
        held = self.shape.registers * self.shape.threads <= target.registers_block
        return held and self.registers <= allowed and self.shared <= target.shared

    @property
    def shape(self) -> Shape:
        """The launch."""
        threads = (self.groups + (self.apart is not None)) * WARPGROUP
        registers = self.registers if self.apart is None else registers_at_launch(threads, 1)
        return Shape(self.blocks, threads, registers, self.shared)

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        told = {"overlaps": self.late is not None, "roles": self.apart is not None}
        return {**super().data(), "team": "warpgroup", **told, "turn": self.turn}


class JoinedScript(LinkedScript, kw_only=True):
    """Gives strips of rows to warpgroups."""

    def turned(self, own: str) -> None:
        """Has turns overlap, and warps of their own copy."""
        tile = self.tile
        if isinstance(tile, Teams) and tile.late is not None:
            products = [each.columns.sym for each in tile.of.products]
            first, behind = (products[-1], products[0]) if tile.found is None else (tile.found.first, tile.found.behind)
            self.must("overlap", tile.late.name, self.strip_of(first, own), behind=self.strip_of(behind, own))
        if isinstance(tile, Teams) and tile.apart is not None:
            shares = ir.Group((ir.Argument(COPYING), ir.Argument(tile.kept)))
            self.must("roles", tile.apart.name, copy=WARPGROUP // WARP, compute=tile.groups, registers=shares)

    def to_shared(self, load: Load, at: str) -> None:
        """Has the engine copy an operand."""
        (name,) = self.fresh(load.buffer.name, "s")
        keys = {"at": at, **by_engine(load, _sizes(self.tile.of, self.tile.rows)), **self.which(load)}
        self.must("stage", load.buffer.name, results=(name,), of=load.buffer, **keys)


def _sizes(rows: Rows, count: int) -> Mapping[Sym, int]:
    """How many iterations of each loop are in a block at once, of so many rows."""
    found = {rows.row.sym: count}
    for each in rows.products:
        found |= {each.columns.sym: each.columns.extent.constant, each.sum.sym: each.sum.extent.constant}
    return found


def _choices(target: Target, columns: ir.Par, bind: ir.Bind) -> Iterator[Instr]:
    """The instructions of warpgroups of the types of a product, of as many columns as there are, or parts of them."""
    read = {load.dtype.name for load in _loads(bind)}
    records = [each for each in INSTRUCTIONS.values() if each.effect in GROUPS and each.template(target) is not None]
    for each in sorted(records, key=lambda record: -record.operands[-1].shape[1]):
        types = {operand.dtype for operand in each.operands if not operand.inout}
        if read == types and columns.extent.constant % each.operands[-1].shape[1] == 0:
            instr = called(each.name)
            if instr is not None:
                yield instr


def _loads(bind: ir.Bind) -> Iterator[Load]:
    return (node for value in bind.values for node in walk(value) if isinstance(node, Load))


def _fits(found: Match, local: frozenset[Buffer]) -> bool:
    """Whether rows of the instruction are those of the nest, and operands lie so: what is in memory in rows of as many bytes as
    the swizzle, and in registers what a row keeps."""
    record = INSTRUCTIONS[found.instr.name]
    for mine, operand in zip(record.operands, found.instr.operands, strict=True):
        if operand is not found.result:
            kept = found.reads[operand.memory].buffer in local
            if kept == operand.is_described or not (kept or lies_so(mine, operand, found)):
                return False
    return True


def _whole(rows: Rows) -> bool:
    """Whether rows of all operands in memory are as many bytes as the swizzle, or several times as many."""
    sizes = _sizes(rows, rows.strip)
    loads = (load for each in rows.products for load in each.found.reads.values() if load.buffer not in rows.local)
    return all(extent(load.index[-1], sizes) * load.dtype.bytes % SPAN == 0 for load in loads)


def teams_of(rows: Rows, target: Target, refused: Sequence[Refused], in_step: bool) -> Teams | None:
    """Rows of a block, those of the least time of a turn first, after what was refused; none if they do not fit. `in_step`: no
    warps have work of their own.

    Where warps do all of it in step, turns overlap only if all rows have as many: masked ones of an H200 took a sixth longer so
    (bench/results/times.json), by the turn that is added to each block's.
    """
    words = sum(_words(rows, each.columns.extent.constant, each.found) for each in rows.products) + ADDRESSES
    turn, device = _turn(rows), DEVICES.get(target.name)
    known = turn if device is not None else None
    fitting = [each for each in _ways(rows, known, words, target) if each.fits(target)]
    if not fitting:  # not all of it is there at once
        ways = _ways(rows, known, alive.registers(rows.row.body, rows.strip, WARPGROUP) + ADDRESSES, target)
        fitting = [each for each in ways if each.fits(target, target.registers_thread)]
    found = busy(fitting) if fitting else []
    if found and turn is not None and device is not None:
        timed = _Timed(rows, turn, target, device)
        found = timed.sorted(timed.searched(found))
    for reason in refused:
        first = found.pop(0) if found else None
        if first is not None and reason.directive.name == "overlap":
            found = [each for each in found if each.late is None]
        elif first is not None and reason.directive.name == "roles":
            found = [each for each in found if each.apart is None]
    found = [each for each in found if each.apart is None or not in_step]
    if not found or turn is None or device is None:
        return found[0] if found else None
    return _Timed(rows, turn, target, device).told(found[0])


def _ways(rows: Rows, turn: Turn | None, words: int, target: Target) -> Iterator[Teams]:
    """Rows of a block, with turns that overlap, and with warps that copy, where there is such a turn."""
    ways: list[tuple[int, Sym | None, Sym | None]] = [(groups, None, None) for groups in GROUPS_OF_A_BLOCK]
    if turn is not None:
        loop = turn.loop.sym
        overlap = loop if turn.may_be_late else None
        same = overlap is not None and rows.row.sym not in turn.loop.extent.syms()
        late = [(groups, overlap, None) for groups in GROUPS_OF_TURNS] if same else []
        many = GROUPS_OF_TURNS if overlap is not None else GROUPS_OF_A_BLOCK
        apart = [(groups, overlap, loop) for groups in many] if SETMAXNREG in target.features else []
        ways = [*apart, *late, *ways]
    for groups, overlaps, copied in ways:
        count = groups * rows.strip
        if turn is not None and not _alike(turn.loop.extent, rows.row, count):
            continue  # warpgroups of a block go round the loop together
        yield Teams(rows, count, rows.strip, words, _bytes(rows, count) + BARRIERS, overlaps, copied)


def _alike(extent: Expr, row: ir.Par, count: int) -> bool:
    """Whether so many rows have as many turns, as far as that is known: of a triangle by its blocks."""
    if extent.syms() != frozenset({row.sym}):
        return True
    last = trips(row.extent) - 1
    ends = ((at, min(at + count - 1, last)) for at in range(0, last + 1, count))
    return all(extent.evaluate({row.sym: first}) == extent.evaluate({row.sym: end}) for first, end in ends)


def _turn(rows: Rows) -> Turn | None:
    """A turn of a row whose products have what they read brought anew."""
    products = [
        Product(each.columns, each.panel * rows.strip, each.operands[0].dtype.name, _kept(each, rows)) for each in rows.products
    ]
    return turn_of(rows.row, products, rows.strip)


def _kept(product: Linked, rows: Rows) -> frozenset[Buffer]:
    """What a product touches of a row."""
    targets = {t.buffer for s in ir.walk((product.columns,)) if isinstance(s, ir.Bind) for t in s.targets}
    return frozenset((*product.operands, *targets)) & rows.local


class _Timed(Record):
    """How long turns of all rows take."""

    rows: Rows
    turn: Turn
    target: Target
    device: Device

    def order(self, teams: Teams) -> tuple[bool, float]:
        """Blocks of one warpgroup come last."""
        return teams.rows == teams.own, self.us(teams, self.clocks(teams))

    def sorted(self, ways: Sequence[Teams]) -> list[Teams]:
        """The best first: of those whose turns are about as long the one of which a multiprocessor has most warpgroups."""
        every = sorted(ways, key=self.order)
        alone, least = self.order(every[0])
        close = [each for each in every if self.order(each) <= (alone, CLOSE * least) and self.least(each) <= least]
        first = max(close, key=lambda each: each.groups * self.blocks(each))
        return [first, *(each for each in every if each is not first)]

    def blocks(self, teams: Teams) -> int:
        """That a multiprocessor has at once: no more than its share."""
        held = residence(teams.shape, self.target, self.device).blocks
        return min(held, ceil(teams.blocks / (self.device.multiprocessors.value or 1.0)))

    def clocks(self, teams: Teams) -> float:
        """Of a turn, by the warpgroup."""
        if teams.found is not None:
            return teams.found.clocks
        late, apart = teams.late is not None, teams.apart is not None
        return self.turn.clocks(self.device, late, apart, teams.groups, self.blocks(teams))

    def us(self, teams: Teams, clocks: float) -> float:
        """Microseconds of all turns of all rows, or those that products and operands need at least."""
        loss = residence(teams.shape, self.target, self.device).loss
        one_more = teams.late is not None and self.is_masked  # where blocks have few turns, and many
        total = clocks * (trips(self.turn.loop.extent, self.rows.row) + one_more) * teams.groups * teams.blocks
        each = (self.device.multiprocessors.value or 1.0) * (self.device.clock.value or 1.0)
        return max(total * loss / each, self.least(teams))

    def least(self, teams: Teams) -> float:
        """Microseconds that products and operands need."""
        return microseconds(teams, self.target, sync=False)

    @property
    def is_masked(self) -> bool:
        """Whether how many turns there are depends on the row."""
        return self.rows.row.sym in self.turn.loop.extent.syms()

    @property
    def steps(self) -> Steps | None:
        """The turn as operations."""
        return steps_of(self.turn.loop, self.turn.products, self.rows.strip, self.device)

    def searched(self, ways: Sequence[Teams]) -> list[Teams]:
        """The same, and what a search finds that clearly takes less of each. Only where circles decide: where units do, other
        warpgroups fill them, and machine code shows nothing of what another order gains (docs/model.md)."""
        steps, made = self.steps, list[Teams]()
        for each in {(way.groups, way.apart): way for way in reversed(ways)}.values():
            apart = each.apart is not None
            if steps is None or (self.is_masked and not apart):
                continue
            late = late_of(steps, each.groups, self.blocks(each), apart)
            if late is not None and late.by_circles and late.clocks < WORTH * self.clocks(each):
                made.append(replace(each, late=self.turn.loop.sym, found=late))
        return [*made, *ways]

    def told(self, teams: Teams) -> Teams:
        """The same with what `explain` says of its turn."""
        steps = self.steps
        if steps is None:
            return teams
        turn = steps.turn(teams.groups, self.blocks(teams), teams.apart is not None)
        return replace(teams, turn=told(turn, steps.numbers, self.clocks(teams), STAGES))


def _words(rows: Rows, columns: int, found: Match) -> int:
    """Registers of a lane for what a product sums up, and for what lanes lend to it."""
    total = columns * rows.strip * found.result.dtype.bytes
    for operand in found.instr.operands:
        if operand is not found.result and not operand.is_described:
            load = found.reads[operand.memory]
            total += load.buffer.shape[-1].constant * rows.strip * operand.dtype.bytes
    return total // WORD // WARPGROUP


def _bytes(rows: Rows, count: int) -> int:
    """Bytes of shared memory for what the engine brings, about."""
    total = 0
    for each in rows.products:
        total += each.panel * each.size * STAGES
        total += 0 if each.operands[0] in rows.local else count * each.sum.extent.constant * each.size
    return total


def _applies(subject: Subject) -> bool:
    return WGMMA in subject.state.target.features and isinstance(subject.nest, NoPlan) and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    target = subject.state.target

    def found(par: ir.Par) -> Rows | None:
        return rows_of(par, lambda columns, bind: _choices(target, columns, bind), _fits)

    rows = allowed(
        found(subject.par),
        lambda: found(replace(subject.par, body=all_unmarked(subject.par.body))),
        lambda other: other.products[0].found.instr.name,
    )
    if rows is None or trips(rows.row.extent) < LEAST or not _whole(rows):
        return None
    if any(each.buffer is not None for each in refused):
        return None  # the engine does not copy it, of however many rows
    tile = teams_of(rows, target, refused, subject.in_step)
    if tile is None:
        return None
    script = JoinedScript(subject.state, subject.span, tile=tile)
    return Proposal(script, microseconds(tile, target, sync=False), tile)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
"""Rows that a warp may keep as well, by the bound of both."""
