"""Products that instructions of a core do on rows of memory, 16 sums at a time: `mma`, over panels packed as they read them.

    par j_b { par i_b { seq k_o {
        panel of B: rows interleaved by two, or by four, as a sum takes them    -- packed once, used by every tile of the block
        par i_o {
            rows of A beside one another      tile of C in registers, from 0
            seq k_m { par 6 |i_m| { par 4 |j_m| { instr vdpbf16ps(A[i_m, 2 * k_m], B[k_m, 16 * j_m], tile[i_m, 16 * j_m]) } } }
            C += tile
    } } } }

Panels are filled with zero where the sum ends, and all of a panel is summed up, so that instructions need no tests. A nest is
one if the statement inside is what an instruction of the target means (`texpr.schedule.joint.match`), as for lanes of a warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from texpr.affine.expr import Sym, expr
from texpr.ir.value import Load
from texpr.isa.target import Target
from texpr.planner.copies import Copies
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.search import named
from texpr.planner.strategies.products import allowed, unmarked
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor.product import Product, product_of
from texpr.schedule.joint.records import usable_in
from texpr.support.record import Record

WIDE = 4
"""The vectors of a row of a tile: as many rows of the panel are read for each row of the left operand."""

BLOCK = 240
"""The rows of a block, approximately, which use one panel."""

STEPS = 512
OPEN = STEPS // 4
"""The steps of a sum that a panel holds at most; and where nobody knows how many there are, as all of a panel is computed."""

LEAST = 8
"""The least rows, and columns, that are known for which packing is worth it."""


class Rows(Record):
    """A tile of `rows` × `columns` results of a product, `steps` of its sum at a time, in blocks of `block` rows."""

    product: Product
    rows: int
    columns: int
    steps: int
    block: int

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        rows, columns, along = (loop.sym for loop in (self.product.rows, self.product.columns, self.product.sum))
        return {
            "tile": named({rows: self.block, columns: self.columns, along: self.steps}),
            "own": named({rows: self.rows, columns: self.columns}),
            "of_core": self.product.found.instr.name,
        }


def rows_of(nest: Nest, product: Product, target: Target) -> Rows | None:
    """The tile that fills the registers of vectors, over a panel that fits the cache; None where it is no such product."""
    of_rows, of_columns, along = product.extents
    plain = of_rows == 1 and len(product.sums) == 1 and not product.is_computed and not product.wider
    if not plain or not _is_plain(product):
        return None
    rows, columns = nest.trips[product.rows.sym], nest.trips[product.columns.sym]
    wide = min(WIDE, ceil(columns / of_columns))
    own = min((target.vectors - 1 - wide) // wide, rows)  # the results, a row of the panel, and what all lanes have
    terms = nest.trips[product.sum.sym]
    steps = ceil(terms / max(1, ceil(terms / STEPS)) / along) * along if product.sum.extent.is_constant else OPEN
    return Rows(product, own, wide * of_columns, max(along, steps), max(1, min(BLOCK, rows) // own) * own)


def _is_plain(product: Product) -> bool:
    """Whether results are contiguous along columns, and each subscript moves by one with one loop of the product at most."""
    loops = [loop.sym for loop in (product.rows, product.columns, product.sum)]
    target = product.found.bind.targets[0]
    every = [target, *(product.found.reads[o.memory] for o in product.found.instr.operands if o is not product.found.result)]
    return target.index[-1].syms() >= {loops[1]} and all(_dim(load, sym) is not None for load in every for sym in loops)


def _dim(load: Load, sym: Sym) -> int | None:
    """The dimension along which an element moves by one with a loop, −1 for none; None where it is not so simple."""
    found = [at for at, e in enumerate(load.index) if sym in e.syms()]
    if not found:
        return -1
    (at, *more) = found
    step = load.index[at].substitute({sym: expr(sym) + 1}) - load.index[at]
    return at if not more and step is expr(1) and load.data == () else None


class RowsScript(Copies, kw_only=True):
    """Gives `tile` of `nest` to cores, and to instructions on rows of memory."""

    nest: Nest
    tile: Rows

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        tile, product = self.tile, self.tile.product
        j_b, j_v = self._split(product.columns.sym.name, tile.columns, "b", "v")
        i_b, i_e = self._split(product.rows.sym.name, tile.block, "b", "e")
        i_o, i_v = self.fresh(product.rows.sym.name, "o", "v")
        self.must("split", i_e, tile.rows, results=(i_o, i_v))
        k_o, k_i = self._split(product.sum.sym.name, tile.steps, "o", "i")
        mine = (product.columns, product.rows, product.sum)
        others = [p.sym.name for p in self.nest.pars if p not in mine]
        outer = [s.sym.name for s in self.nest.seqs if s not in mine]
        self.must("reorder", *others, j_b, i_b, *outer, k_o, i_o, k_i, i_v, j_v)
        left, right = self._operands()
        self._panel(right, k_o)
        self._rows(left, i_o)
        target = product.found.bind.targets[0].buffer
        (acc,) = self.fresh(target.name, "acc")
        self.must("stage", target.name, results=(acc,), at=i_o, space="registers", start="neutral")
        made = tuple(self.fresh(name, "m")[0] for name in (product.rows.sym.name, product.columns.sym.name, k_i))
        self.must("mma", i_v, j_v, k_i, product.found.instr.name, results=made)
        for name in made[:2]:
            self.may("unroll", name)
        self.require_laid_out()
        return ()

    def _operands(self) -> tuple[Load, Load]:
        """What is read along rows, and along columns."""
        found, columns = self.tile.product.found, self.tile.product.columns.sym
        loads = [found.reads[o.memory] for o in found.instr.operands if o is not found.result]
        (right,) = (load for load in loads if _dim(load, columns) != -1)
        return next(load for load in loads if load is not right), right

    def _split(self, name: str, size: int, *suffixes: str) -> tuple[str, str]:
        outer, inner = self.fresh(name, *suffixes)
        self.must("split", name, size, results=(outer, inner))
        return outer, inner

    def _copied(self, load: Load, at: str) -> tuple[str, int]:
        """A copy of what an operand is of, filled with zero; its name, and the dimension along the sum."""
        (name,) = self.fresh(load.buffer.name, "p")
        self.must("stage", load.buffer.name, results=(name,), of=load.buffer, at=at, space="registers", fill="zero")
        along = _dim(load, self.tile.product.sum.sym)
        assert along is not None
        return name, along

    def _panel(self, load: Load, at: str) -> None:
        """The right operand: rows interleaved, which loops over these do."""
        name, along = self._copied(load, at)
        across = _dim(load, self.tile.product.columns.sym)
        per = self.tile.product.extents[2]
        turns, part = self.fresh(name, "q", "r")
        self.must("split", f"{name}.d{along}", per, results=(turns, part))
        outside = [f"{name}.d{d}" for d in range(load.buffer.rank) if d not in (along, across)]
        self.must("reorder", *outside, f"{name}.{turns}", f"{name}.d{across}", f"{name}.{part}")
        if across is not None and along < across:
            rows, each = self.fresh(name, "k", "e")
            if self.may("split", f"{name}_{along}", per, results=(rows, each)):
                self.may("reorder", rows, f"{name}_{across}", each)
                self.may("unroll", each)
                self.may("partition", rows)
        else:
            self.may("partition", f"{name}_{across}")

    def _rows(self, load: Load, at: str) -> None:
        """The left operand: rows along the sum."""
        name, along = self._copied(load, at)
        dims = [d for d in range(load.buffer.rank) if d != along]
        if along != load.buffer.rank - 1:
            self.must("reorder", *(f"{name}.d{d}" for d in dims), f"{name}.d{along}")
        self.may("partition", f"{name}_{min(along, _dim(load, self.tile.product.rows.sym) or 0)}")


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_vector_lanes and isinstance(subject.nest, Nest) and not subject.nest.whole


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    nest, target = subject.nest, subject.state.target
    if refused or len(nest.pars) < 2 or not nest.seqs:
        return None
    instrs = [instr for instr in usable_in(subject.state.function, target) if instr.lanes == 1]
    product = allowed(product_of(nest, instrs), lambda: product_of(unmarked(nest), instrs), lambda o: o.found.instr.name)
    if product is None or min(nest.trips[loop.sym] for loop in (product.rows, product.columns)) < LEAST:
        return None
    tile = rows_of(nest, product, target)
    return None if tile is None else Proposal(RowsScript(subject.state, subject.span, nest=nest, tile=tile), tile=tile)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose)
