"""Cache and register tiling for a CPU: a tile of results in vector registers, over a packed panel in a cache.

    par j_b { par i_b { seq k_o {
        panel of B: the rows that k_o reaches, beside one another     -- packed once, used by every tile of the block
        par i_o {
            tile of C in registers
            seq k_i { par 4 |i_v| { par 64 |j_v| { tile[i_v, j_v] += A[i, k] * panel[k_i, j_v] } } }
    } } } }

The lane loop, the row loop and the buffers to pack are derived from the accesses, as for a GPU: a panel is packed from a
buffer whose lanes are neighbours, that moves with each step and is invariant in the rows, so that each element is reused by
every row of the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.planner.follow import Refused
from texpr.planner.model import Form, form
from texpr.planner.nest import Nest, NoPlan, Subscript, Touch
from texpr.planner.search import WHOLE, named
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject, without
from texpr.support.record import Record

ROWS = range(1, 17)
WIDE = (1, 2, 4, 8)
"""The vectors of a row of a tile."""

BLOCK = 256
"""The rows of a block, approximately, which use one panel: the cost of packing, a load and a store, is amortised over them."""

STEPS = (1024, 512, 256, 128, 64, 32, 16, 8)
"""The steps of a sequential loop that a panel may hold."""

FAR = 128
"""The same where each step reads one element of another row: so many lines stay in the nearest caches for the next tile."""

KINDS, NARROW = ("f32", "f64"), ("f16", "bf16")
"""The types that are computed in vectors as they are, and those that are converted to vectors of f32 when read."""


class Panel(Record):
    """`rows` × `lanes` results in registers, `steps` of each split sequential loop at a time, over `panels` in the cache.

    `outside`: sequential loops that stay outside, unsplit. `reads`: memory reads in each step, in vectors or single elements,
    for each vector of products.
    """

    lane: Sym
    lanes: int
    row: Sym
    rows: int
    steps: dict[Sym, int]
    outside: frozenset[Sym]
    panels: tuple[Form, ...]
    bytes: int
    reads: float

    @property
    def tile(self) -> dict[Sym, int]:
        """The iterations of each split loop in a block."""
        return {self.row: self.block, self.lane: self.lanes, **self.steps}

    @property
    def block(self) -> int:
        """The rows of a block: a whole number of tiles."""
        return -(-BLOCK // self.rows) * self.rows

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        return {
            "tile": named(self.tile),
            "own": named({self.row: self.rows, self.lane: self.lanes}),
            "panels": [each.buffer.name for each in self.panels],
            "panel_bytes": self.bytes,
            "reads": self.reads,
        }


def panel(nest: Nest, target: Target, banned: frozenset[Buffer], in_order: bool) -> Panel:
    """The panel and tile for `nest`. `in_order`: no sequential loops are interchanged. Raises NoPlan where none pays."""
    return panels(nest, target, banned, in_order, 1)[0]


def panels(
    nest: Nest, target: Target, banned: frozenset[Buffer] = frozenset(), in_order: bool = False, most: int | None = None
) -> list[Panel]:
    """Panels and tiles that fit, those with the fewest reads first. `most`: of one row loop. Raises NoPlan where none pays."""
    seqs = {loop.sym for loop in nest.seqs}
    if not any(t.updates and t.around & seqs for t in nest.touches):
        raise NoPlan("nothing is summed up over a loop in order, so no tile of results stays in registers")
    if any(t.buffer.dtype.name not in (KINDS if t.writes else KINDS + NARROW) or t.index is None for t in nest.touches):
        raise NoPlan("it is not all plain arithmetic of f32 or f64 at places that are known")
    lane = _lane(nest)
    found = {b: f for b in nest.read_only() if b not in banned and (f := form(nest.of(b))) is not None}
    shared = {b: f for b, f in found.items() if lane in f.along - f.bent and f.along & seqs}
    rows = [p.sym for p in nest.pars if p.sym != lane and any(p.sym not in f.along for f in shared.values())]
    if not rows:
        raise NoPlan("no two rows read the same vectors")
    every = [list(_sized(nest, target, lane, row, shared, in_order, most)) for row in rows]
    if not all(every):
        raise NoPlan("no panel of it fits the cache")
    return sorted((each for found in every for each in found), key=lambda each: each.reads)


def _lane(nest: Nest) -> Sym:
    """The `par` along which what is written is contiguous, the innermost of several."""
    for par in reversed(nest.pars):
        written = [t for t in nest.touches if t.writes and t.buffer not in nest.local]
        if written and all(t.index and _is_contiguous(t.index, par.sym) for t in written):
            return par.sym
    raise NoPlan("what it writes is contiguous along none of its `par`s")


def _is_contiguous(index: tuple[Subscript, ...], sym: Sym) -> bool:
    return index[-1].steps.get(sym) == 1 and not any(part.varies(sym) for part in index[:-1])


def _sized(
    nest: Nest, target: Target, lane: Sym, row: Sym, shared: dict[Buffer, Form], in_order: bool, most_tiles: int | None
) -> Iterator[Panel]:
    """The tiles with `row` as their row loop, the cheapest first, each with the longest panel that the caches hold."""
    packed = tuple(f for f in shared.values() if row not in f.along)
    size = max(t.buffer.dtype.bytes for t in nest.touches)
    each = target.vector // size
    inner = [t for t in nest.touches if any(t.along(seq.sym) for seq in nest.seqs)]
    found: list[tuple[float, int, int]] = []
    for rows, wide in product(ROWS, WIDE):
        fits = rows * wide + wide + 1 <= target.vectors  # the results, a row of shared operands, and one operand of a row
        if fits and (wide - 1) * each < nest.trips[lane] and rows <= nest.trips[row]:
            vectors = sum(wide * (rows if t.along(row) else 1) for t in inner if t.buffer in shared)
            singles = sum(rows if t.along(row) else 1 for t in inner if not t.writes and t.buffer not in shared)
            found.append(((vectors + singles) / (rows * wide), rows, wide * each))
    split = [s.sym for s in nest.seqs if not s.extent.is_constant or s.extent.constant > WHOLE]
    names = [s.sym for s in nest.seqs]
    before = names[: names.index(split[-1])] if split else []
    outside = frozenset(before if in_order else split[:-1])
    inside = {s: nest.trips[s] for s in names if s not in split and s not in outside}
    far = [t for t in nest.touches if t.buffer not in shared and any(_is_far(t, each) for each in split[-1:])]
    most = FAR if far else STEPS[0]
    for reads, rows, lanes in sorted(found)[:most_tiles]:
        for step in (each for each in STEPS if each <= most):
            steps = dict.fromkeys(split[-1:], step)
            tile = {**dict.fromkeys(nest.trips, 1), lane: lanes, row: BLOCK + rows, **inside, **steps}
            taken = sum(prod(f.box(tile)) * f.buffer.dtype.bytes for f in packed)
            if 4 * taken <= target.caches[-1]:
                yield Panel(lane, lanes, row, rows, steps, outside, packed, taken, reads)
                break


def _is_far(touch: Touch, step: Sym) -> bool:
    """Whether the next iteration of `step` reads from another row."""
    return touch.reads and touch.index is not None and any(part.varies(step) for part in touch.index[:-1])


class PanelScript(Script, kw_only=True):
    """Tiles `nest` over cores and lanes by `panel`."""

    nest: Nest
    panel: Panel

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        chosen = self.panel
        j_o, j_v = self._split(chosen.lane, chosen.lanes, "b", "v")
        block, rest = self._split(chosen.row, chosen.block, "b", "e")
        i_o, i_v = self.fresh(chosen.row.name, "o", "v")
        self.must("split", rest, chosen.rows, results=(i_o, i_v))
        steps = {sym: self._split(sym, size, "o", "i") for sym, size in chosen.steps.items()}
        others = [p.sym.name for p in self.nest.pars if p.sym not in (chosen.lane, chosen.row)]
        around = {s: s.name for s in chosen.outside} | {s: pair[0] for s, pair in steps.items()}
        outer = [around[s.sym] for s in self.nest.seqs if s.sym in around]
        inner = [steps[s.sym][1] if s.sym in steps else s.sym.name for s in self.nest.seqs if s.sym not in chosen.outside]
        self.must("reorder", *others, j_o, block, *outer, i_o, *inner, i_v, j_v)
        for each in chosen.panels:
            reached = [around[s.sym] for s in self.nest.seqs if s.sym in around and s.sym in each.along]
            (name,) = self.fresh(each.buffer.name, "p")
            at = reached[-1] if reached else block
            self.must("stage", each.buffer.name, results=(name,), of=each.buffer, at=at, space="registers")
            first = next((s for s in self.loops() if s.sym.name == f"{name}_0"), None)
            if first is not None:
                self.may("partition", first.sym.name)
        self._accumulators(i_o)
        self.may("unroll", i_v)
        self.may("partition", i_o)
        return ()

    def _split(self, sym: Sym, size: int, *suffixes: str) -> tuple[str, str]:
        outer, inner = self.fresh(sym.name, *suffixes)
        self.must("split", sym.name, size, results=(outer, inner))
        return outer, inner

    def _accumulators(self, at: str) -> None:
        """Keeps what is updated over the sequential loops: in registers during a tile, and the nest's own locals in the
        cache."""
        seqs = {loop.sym for loop in self.nest.seqs}
        kept = (t.buffer for t in self.nest.touches if t.updates and t.around & seqs)
        for buffer in dict.fromkeys(kept):
            (name,) = self.fresh(buffer.name, "acc")
            self.must("stage", buffer.name, at=at, space="registers", results=(name,))
            if buffer in self.nest.local:
                self.may("place", buffer.name, "registers")

    def loops(self) -> tuple[ir.Loop, ...]:
        """Every current loop."""
        return tuple(s for s in ir.walk(self.state.function.body) if isinstance(s, ir.Par | ir.Seq))


def _applies(subject: Subject) -> bool:
    return not subject.state.target.has_blocks and isinstance(subject.nest, Nest) and not subject.nest.whole


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    """The tile with the fewest reads of memory for each vector of products."""
    assert isinstance(subject.nest, Nest), "as it applies"
    less = without(refused)
    if less is None:
        return None
    found = panel(subject.nest, subject.state.target, less.banned, less.in_order)
    return Proposal(PanelScript(subject.state, subject.span, nest=subject.nest, panel=found), found.reads, found)


def _others(subject: Subject) -> Iterator[Proposal]:
    """All tiles that fit vector registers."""
    assert isinstance(subject.nest, Nest), "as it applies"
    for found in panels(subject.nest, subject.state.target):
        yield Proposal(PanelScript(subject.state, subject.span, nest=subject.nest, panel=found), found.reads, found)


STRATEGY = Strategy(Rank.TILE, _applies, _propose, _others)
