"""The planner's model of a nest: its loops, and for each buffer the accessed elements as affine forms.

    par M |i| { par N |j| { C[i, j] = 0; seq K |k| { C[i, j] += A[i, k] * B[k, j] } } }

Loops on the path to the innermost statement: i, j (`par`) and k (`seq`). Accessed in each iteration of k: A[i, k], B[k, j],
C[i, j]. A loop that an access does not depend on, or along which accesses overlap, gives reuse: a tile has fewer distinct
elements than accesses. All of this is derived from the instances and accesses of the relation; values are not examined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeVar

from texpr.affine.expr import ZERO, Expr, Sym, term
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.relation.collect import model
from texpr.relation.model import Access, Branch, Instance
from texpr.support.record import Record

Stmt = TypeVar("Stmt", bound=ir.Stmt)

NOMINAL = 4096
"""The value assumed for an unknown extent."""


DEEPEST, MOST_PARALLEL = 12, 8
"""The most loops of a nest that is planned, of which schedules are found and proved in a second; and the most parallel ones: of
more, whose indices are quotients by products of open sizes, proofs are not found."""


class NoPlan(Exception):
    """Why a nest has no plan and is left to the default mapping: a whole sentence."""


class Forbidden(NoPlan):
    """Why a strategy may not have a nest, or should not: told whatever else is done with it."""


class Subscript(Record):
    """A subscript Σ steps[loop] · loop + base over the loops of the nest; `base` depends on the loops `bent` only, not
    affinely, such as h / 4."""

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
    """An access in the body of the nest. `index`: its subscripts, None where one is data; `shape`: the extents of these
    dimensions, to which a flat buffer is delinearised.

    `around`: the loops of the nest around it; `times`: the number of its executions in the whole nest.
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
    """`loops`: the path from the outermost `par` to the innermost statement. `trips`: their trip counts, or `NOMINAL`."""

    loops: tuple[ir.Loop, ...]
    touches: tuple[Touch, ...]
    trips: Mapping[Sym, int]
    local: frozenset[Buffer]
    """Buffers that are declared in the nest."""
    known: Known
    """What is known where the innermost statement runs."""
    whole: Mapping[Sym, Expr]
    """For loops whose extents depend on other loops of the nest, an upper bound of the extent."""
    masked: bool = False
    """Whether some of its iterations are not to be executed, as extents are such upper bounds."""

    @property
    def pars(self) -> tuple[ir.Loop, ...]:
        """The parallel loops."""
        return tuple(loop for loop in self.loops if isinstance(loop, ir.Par))

    @property
    def seqs(self) -> tuple[ir.Loop, ...]:
        """The sequential loops."""
        return tuple(loop for loop in self.loops if isinstance(loop, ir.Seq))

    @property
    def points(self) -> int:
        """The iterations of the innermost statement, with unknown sizes taken as `NOMINAL`."""
        return prod(self.trips.values())

    @property
    def line(self) -> int:
        """Its line in the text."""
        return self.loops[0].span.line

    def read_only(self) -> tuple[Buffer, ...]:
        """Buffers declared outside that the nest reads and does not write, in order of appearance."""
        written = {t.buffer for t in self.touches if t.writes}
        read = (t.buffer for t in self.touches if t.reads and t.buffer not in written and t.buffer not in self.local)
        return tuple(dict.fromkeys(read))

    def of(self, buffer: Buffer) -> tuple[Touch, ...]:
        """The accesses of `buffer`."""
        return tuple(t for t in self.touches if t.buffer is buffer)


def outermost(body: Sequence[ir.Stmt]) -> Iterator[ir.Par]:
    """Every `par` without a `par` around it, in textual order."""
    return outermost_of(ir.Par, body)


def outermost_of(kind: type[Stmt], body: Sequence[ir.Stmt]) -> Iterator[Stmt]:
    """Every statement of a kind with none of that kind around it, in textual order."""
    for stmt in body:
        if isinstance(stmt, kind):
            yield stmt
        else:
            for block in ir.blocks(stmt):
                yield from outermost_of(kind, block)


def nests(function: ir.Function) -> Iterator[tuple[ir.Par, Nest | NoPlan]]:
    """Each nest of `function`, or why it has no plan."""
    inside: dict[ir.Loop, list[Instance]] = defaultdict(list)
    for instance in model(function).instances:
        for loop in instance.loops:
            inside[loop].append(instance)
    for par in outermost(function.body):
        try:
            yield par, nest_of(par, inside[par])
        except NoPlan as reason:
            yield par, reason


def nest_of(par: ir.Par, instances: Sequence[Instance], *, meeting: bool = False) -> Nest:
    """The nest of `par` as far as it encloses all `instances`. `meeting`: reductions across iterations are allowed. Raises
    NoPlan."""
    if not instances:
        raise NoPlan("nothing is computed in it")
    ways = {i: i.loops[i.loops.index(par) :] for i in instances}
    loops = max(ways.values(), key=len)
    if len(loops) > DEEPEST:
        raise NoPlan(f"it has {len(loops)} loops, and proofs about more than {DEEPEST} take too long")
    parallel = sum(isinstance(loop, ir.Par) for loop in loops)
    if parallel > MOST_PARALLEL:
        raise NoPlan(f"it has {parallel} parallel loops, and proofs about more than {MOST_PARALLEL} take too long")
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
    """For each of nested loops an upper bound of its extent without loop indices."""
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
    """Raises NoPlan unless all statements lie on one path of plain loops."""
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
    """`index` as an affine form over the loops `around`, and the loops on which it depends otherwise."""
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
