"""A nest as a planner sees it: its loops, and for each buffer which elements an iteration touches, as affine forms.

    par M |i| { par N |j| { C[i, j] = 0; seq K |k| { C[i, j] += A[i, k] * B[k, j] } } }

Loops of the way to the innermost statement: i, j (`par`) and k (`seq`). Touched each turn of k: A[i, k], B[k, j], C[i, j]. What
an access does not depend on, or moves along by less than it is wide, is reuse: a tile touches fewer elements than it makes
accesses. All of this is read off the instances and accesses of the relation; what they compute is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from texpr.affine.expr import ZERO, Expr, Sym, term
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.relation.collect import model
from texpr.relation.model import Access, Branch, Instance
from texpr.support.record import Record

NOMINAL = 4096
"""What an extent that is not known is taken to be."""


DEEPEST = 8
"""Loops of a nest that is planned, at most: proofs about more of them, cut in two or three each, take seconds."""


class NoPlan(Exception):
    """Why a nest is left to the mapping that needs no schedule: a whole sentence."""


class Subscript(Record):
    """Σ steps[loop] · loop + base: one subscript, in the loops of the nest; `base` varies in the loops `bent` alone, such as by
    h / 4, and there is no telling how."""

    steps: Mapping[Sym, int]
    base: Expr
    bent: frozenset[Sym] = frozenset()

    @property
    def fixed(self) -> Expr:
        """The base without its constant."""
        return self.base - self.base.constant

    def varies(self, sym: Sym) -> bool:
        """Whether it depends on `sym`."""
        return sym in self.steps or sym in self.bent


class Touch(Record, eq=False):
    """One access in the body of the nest. `index`: its subscripts, None where one is data; `shape`:
    the extents of these dimensions, which those of a flat buffer are delinearised to.

    `around`: the loops of the nest around it; `times`: how often it happens, over all of the nest.
    """

    buffer: Buffer
    reads: bool
    writes: bool
    updates: bool
    index: tuple[Subscript, ...] | None
    shape: tuple[Expr, ...]
    around: frozenset[Sym]
    times: int

    def along(self, sym: Sym) -> bool:
        """Whether the element depends on `sym`."""
        return self.index is None or any(each.varies(sym) for each in self.index)


class Nest(Record, eq=False):
    """`loops`: the way from the outermost `par` to the innermost statement. `trips`: their extents, or `NOMINAL`."""

    loops: tuple[ir.Loop, ...]
    touches: tuple[Touch, ...]
    trips: Mapping[Sym, int]
    local: frozenset[Buffer]
    """Buffers that are made in the nest."""
    known: Known
    """What is known where the innermost statement runs."""
    whole: Mapping[Sym, Expr]
    """Of loops whose extents depend on loops around them in the nest, an extent that holds all of these."""

    @property
    def pars(self) -> tuple[ir.Loop, ...]:
        """The loops whose iterations may be shared out."""
        return tuple(loop for loop in self.loops if isinstance(loop, ir.Par))

    @property
    def seqs(self) -> tuple[ir.Loop, ...]:
        """The loops that come in order."""
        return tuple(loop for loop in self.loops if isinstance(loop, ir.Seq))

    @property
    def points(self) -> int:
        """Iterations of the innermost statement, with sizes that are not known taken as `NOMINAL`."""
        return prod(self.trips.values())

    @property
    def line(self) -> int:
        """Where it stands in the text."""
        return self.loops[0].span.line

    def read_only(self) -> tuple[Buffer, ...]:
        """Buffers from outside that the nest reads and does not write, in order of appearance."""
        written = {t.buffer for t in self.touches if t.writes}
        read = (t.buffer for t in self.touches if t.reads and t.buffer not in written and t.buffer not in self.local)
        return tuple(dict.fromkeys(read))

    def of(self, buffer: Buffer) -> tuple[Touch, ...]:
        """The accesses of `buffer`."""
        return tuple(t for t in self.touches if t.buffer is buffer)


def outermost(body: Sequence[ir.Stmt]) -> Iterator[ir.Par]:
    """Every `par` that stands in no other one, in textual order."""
    for stmt in body:
        if isinstance(stmt, ir.Par):
            yield stmt
        else:
            for block in ir.blocks(stmt):
                yield from outermost(block)


def nests(function: ir.Function) -> Iterator[tuple[ir.Par, Nest | NoPlan]]:
    """Each nest of `function`, or why there is no plan for it."""
    instances = model(function).instances
    for par in outermost(function.body):
        inside = [i for i in instances if par in i.loops]
        try:
            yield par, nest_of(par, inside)
        except NoPlan as reason:
            yield par, reason


def nest_of(par: ir.Par, instances: Sequence[Instance], *, meeting: bool = False) -> Nest:
    """The nest of `par` as far as it is around `instances`. `meeting`: iterations may meet. Raises NoPlan."""
    if not instances:
        raise NoPlan("nothing is computed in it")
    ways = {i: i.loops[i.loops.index(par) :] for i in instances}
    loops = max(ways.values(), key=len)
    if len(loops) > DEEPEST:
        raise NoPlan(f"it has {len(loops)} loops, and proofs about more than {DEEPEST} take too long")
    _require_one_way(loops, ways, instances, meeting)
    extents = _whole(loops)
    trips = {sym: max(1, extent.constant) if extent.is_constant else NOMINAL for sym, extent in extents.items()}
    touches = tuple(
        _touch(access, frozenset(loop.sym for loop in way), trips) for i, way in ways.items() for access in i.accesses
    )
    local = frozenset(s.buffer for s in ir.walk((par,)) if isinstance(s, ir.New))
    whole = {loop.sym: extents[loop.sym] for loop in loops if extents[loop.sym] is not loop.extent}
    return Nest(loops, touches, trips, local, max(instances, key=lambda i: len(i.loops)).known, whole)


def _whole(loops: tuple[ir.Loop, ...]) -> dict[Sym, Expr]:
    """For each of nested loops an extent without any of their indices that is never less than its own."""
    found: dict[Sym, Expr] = {}
    for loop in loops:
        extent = ZERO
        for monomial, coefficient in loop.extent.terms:
            part = term(monomial, coefficient)
            if not part.syms() & found.keys():
                extent = extent + part
            elif len(monomial) != 1 or not isinstance(monomial[0], Sym):
                raise NoPlan(f"the extent of `{loop.sym.base}` depends on a loop around it, and not linearly")
            elif coefficient > 0:
                extent = extent + coefficient * (found[monomial[0]] - 1)
        found[loop.sym] = extent + loop.extent.constant
    return found


def _require_one_way(
    loops: tuple[ir.Loop, ...], ways: Mapping[Instance, tuple[ir.Loop, ...]], instances: Sequence[Instance], meeting: bool
) -> None:
    """Raises NoPlan unless all statements lie on one way of plain loops."""
    for loop in loops:
        if isinstance(loop, ir.Par) and ((loop.reduce and not meeting) or loop.fully):
            raise NoPlan(f"the iterations of `{loop.sym.base}` meet, or are lanes already")
        if loop.directives:
            raise NoPlan(f"the text says where `{loop.sym.base}` runs")
    for instance in instances:
        way = ways[instance]
        if loops[: len(way)] != way:
            raise NoPlan("its statements lie in several loops, one beside the other")
        if not isinstance(instance.stmt, ir.Bind | ir.If | ir.Let):
            raise NoPlan("a statement must stay where it is")
        start = instance.path.index(loops[0])
        inside = instance.path[start:]
        last = next(n for n, step in enumerate(inside) if step is way[-1])
        if any(isinstance(step, Branch) for step in inside[:last]):
            raise NoPlan("an `if` stands between its loops")
        if any(not isinstance(step, ir.Par | ir.Seq | Branch) for step in inside):
            raise NoPlan("a statement must stay where it is")


def _touch(access: Access, around: frozenset[Sym], trips: Mapping[Sym, int]) -> Touch:
    index = None
    is_flat = len(access.shape) > access.buffer.rank
    seen, shape = (access.index, access.shape) if is_flat else (access.load.index, access.buffer.shape)
    if not access.hidden or (not is_flat and not access.load.data and all(h.widened for h in access.hidden)):
        index = tuple(_subscript(each, around) for each in seen)
    times = prod(trips[s] for s in around)
    return Touch(access.buffer, access.reads, access.writes, access.kind == "update", index, shape, around, times)


def _subscript(index: Expr, around: frozenset[Sym]) -> Subscript:
    """`index` by the loops `around` of which it is an affine form, and of those of which it is none."""
    bent: set[Sym] = set()
    for monomial, coefficient in index.terms:
        if not (len(monomial) == 1 and isinstance(monomial[0], Sym)):
            bent |= term(monomial, coefficient).syms() & around
    steps: dict[Sym, int] = {}
    base = ZERO + index.constant
    for monomial, coefficient in index.terms:
        sym = monomial[0] if len(monomial) == 1 else None
        if isinstance(sym, Sym) and sym in around - bent:
            steps[sym] = coefficient
        else:
            base = base + term(monomial, coefficient)
    return Subscript(steps, base, frozenset(bent))
