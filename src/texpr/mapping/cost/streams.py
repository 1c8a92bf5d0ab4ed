"""The accesses of a band as functions from iterations to bytes: the input of the solver of σ.

A *stream* is one access of the band's body: `address = first + Σ step · index`, in bytes, over the band's loops and over the
sequential loops inside of it. Open sizes are taken as numbers that have only the promised properties (`representatives`); a
row of such a size starts at any multiple of its known divisors.

A data-dependent index (`A[I[i]]`) is taken to have a large step: another row for each value of the symbols that it depends
on. An access whose index is not affine (a swizzle, a floor that remains) is kept as it is, and evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, term
from texpr.affine.facts import Fact, Known
from texpr.affine.linear import coefficients
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Vector
from texpr.ir.program.uses import loads, used
from texpr.ir.value import Buffer, Load, walk
from texpr.isa.memories import COALESCING, Coalescing
from texpr.mapping.cost.operations import addressed
from texpr.mapping.cost.radices import chain, divisors
from texpr.support.record import Mutable, Record, field, replace

OPEN = 4099
"""About the value of an open size: larger than any tile, odd, and not near a power of two times a small number."""

INSIDE = 1 << 15
"""The trip count assumed for an open extent."""

FEW = 64
"""Up to this many iterations, all are examined, the last ones included."""

SMALL = 4096
"""Up to this many iterations, each is evaluated, where an address is not affine."""

FAR = 1009
"""The step of a data-dependent index, in rows."""

Outer = tuple[tuple[int, int | None], ...]
"""Steps in bytes and extents of loops outside of the band; None: an open extent."""


class Stream(Record):
    """One access. `steps`: the step in bytes for each of the band's loops; `first`: the address of the first iteration.

    `outer`: the loops inside of the band around it, with the extents that weight it. `times`: how often it occurs in the
    text. `index`: its address in bytes where that is not affine. `shared`: it accesses memory of the block. `arithmetic`: the
    instructions for its address.
    """

    name: str
    width: int
    steps: tuple[int, ...]
    first: int = 0
    outer: Outer = ()
    times: int = 1
    index: Expr | None = None
    shared: bool = False
    kind: str = "load"
    arithmetic: int = 0

    @property
    def trips(self) -> int:
        """The executions of the access in one iteration of the band."""
        total = self.times
        for _, extent in self.outer:
            total *= OPEN if extent is None else extent
        return total


class Band(Record):
    """The input of σ: names and extents of the loops of a band (None: open), and the accesses below them.

    `spans`: the values assumed for open extents. `entered`: the executions of the band by a team of threads; None where it is
    distributed over the grid. `refined`: the same iterations by more loops, the digits at which accesses split an index, if
    that makes every address affine. `guarded`: some iterations may do nothing, as in partial tiles of an array.
    """

    loops: tuple[Sym, ...]
    extents: tuple[int | None, ...]
    spans: tuple[int, ...]
    streams: tuple[Stream, ...]
    request: Coalescing = Coalescing()
    entered: int | None = None
    refined: Band | None = None
    guarded: bool = False

    @property
    def counted(self) -> tuple[int, ...]:
        """The extents used in counts: large enough for open ones that boundary effects vanish."""
        return tuple(INSIDE if e is None else e for e in self.extents)

    def is_small(self, stream: Stream) -> bool:
        """Whether a non-affine address can be evaluated in each iteration, and does not depend on other loops."""
        known = None not in self.extents and prod(self.counted) <= SMALL
        return known and stream.index is not None and stream.index.syms() <= set(self.loops)


def representatives(sizes: Iterable[Sym], where: Iterable[ir.Compare]) -> dict[Sym, int]:
    """A number for each open size: about `OPEN`, with the divisors and in the range that `where` promises, all different."""
    names = tuple(sizes)
    known = Known({s: (0, None) for s in names}, tuple(_facts(where)))
    found: dict[Sym, int] = {}
    for number, sym in enumerate(names):
        divisor = next(d for d in (1024 >> n for n in range(11)) if known.multiple(expr(sym), d))
        lo, hi = known.bounds(expr(sym))
        value = max(1, OPEN // divisor + 4 * number) // 2 * 2 + 1
        least, most = -(-(lo or 0) // divisor), None if hi is None else hi // divisor
        if value < least:
            value = least | 1
        if most is not None and value > most:
            value = most
        found[sym] = divisor * value
    return found


def _facts(where: Iterable[ir.Compare]) -> Iterator[Fact]:
    for fact in where:
        match fact.op:
            case "==":
                yield Fact(0, fact.left - fact.right, 1)
            case "<":
                yield Fact(0, fact.right - fact.left - 1, None)
            case "<=":
                yield Fact(0, fact.right - fact.left, None)
            case ">":
                yield Fact(0, fact.left - fact.right - 1, None)
            case ">=":
                yield Fact(0, fact.left - fact.right, None)
            case _:
                pass


def band_of(
    loops: tuple[ir.Par, ...],
    body: tuple[ir.Stmt, ...],
    values: Mapping[Sym, int],
    around: Iterable[ir.Loop] = (),
    own: Collection[Buffer] = (),
    shared: Mapping[Buffer, int] | None = None,
    team: bool = False,
    request: Coalescing = COALESCING,
) -> Band:
    """The streams of a band of `loops` around `body`, executed for each iteration of the loops `around`.

    `values`: numbers for sizes. Buffers of `own` cost nothing (registers); those of `shared` lie in memory of the block, with
    rows padded by so many elements. `team`: the band is distributed over a team of threads, not over the grid. `request`: the
    machine's model of a request.
    """
    syms = tuple(p.sym for p in loops)
    local = {s.buffer for s in ir.walk(body) if isinstance(s, ir.New)} | set(own)
    builder = _Builder(syms, dict(values), frozenset(local), shared or {}, request.word)
    turns = tuple(map(_trips, around))
    builder.visit(body, turns)
    extents, spans = zip(*(_extent(p.extent, values) for p in loops), strict=True)
    entered = prod(OPEN if e is None else e for _, e in turns) if team else None
    guarded = any(isinstance(stmt, ir.If) for stmt in ir.walk(body))
    band = Band(syms, extents, spans, builder.merged(), request, entered, guarded=guarded)
    if all(stream.index is None or stream.shared for stream in band.streams):
        return band
    return replace(band, refined=_refined(band, builder, body, turns))


def _refined(band: Band, builder: _Builder, body: tuple[ir.Stmt, ...], turns: _Inner) -> Band | None:
    """`band` with loops split at the divisors of their indices, if addresses are affine then."""
    cuts: dict[Sym, tuple[int, ...]] = {}
    for sym, extent in zip(band.loops, band.extents, strict=True):
        dens = [d for s in band.streams if s.index is not None for d in divisors(s.index, sym)]
        found = chain((d.constant for d in dens if d.is_constant), extent)
        if found and extent is not None and extent % found[-1] == 0:
            cuts[sym] = found
    loops: list[Sym] = []
    extents: list[int | None] = []
    spans: list[int] = []
    meaning: dict[Sym, Expr] = {}
    for sym, extent, span in zip(band.loops, band.extents, band.spans, strict=True):
        weights = (1, *cuts.get(sym, ()))
        digits = [Sym(f"{sym}·{n}") for n in range(len(weights))] if len(weights) > 1 else [sym]
        lengths = [b // a for a, b in pairwise(weights)]
        rest = extent if extent is None else extent // weights[-1]
        loops += reversed(digits)
        extents += [rest, *reversed(lengths)]
        spans += [span // weights[-1], *reversed(lengths)]
        if len(digits) > 1:
            meaning[sym] = sum((expr(d) * w for d, w in zip(digits, weights, strict=True)), start=ZERO)
    if not meaning:
        return None
    known = Known({s: (0, None if e is None else e - 1) for s, e in zip(loops, extents, strict=True)}, ())
    other = _Builder(tuple(loops), builder.values, builder.local, builder.shared, builder.word, meaning, Simplifier(known))
    other.visit(body, turns)
    made = replace(band, loops=tuple(loops), extents=tuple(extents), spans=tuple(spans), streams=other.merged())
    return made if all(stream.index is None for stream in made.streams) else None


def _extent(extent: Expr, values: Mapping[Sym, int]) -> tuple[int | None, int]:
    """The extent of a loop, None where it is open, and the number assumed for it.

    A size that is promised to be small counts as known; a part of a size, as ⌈n / 4096⌉, may be large.
    """
    if extent.is_constant:
        return extent.constant, max(1, extent.constant)
    number = max(1, _number(extent, values))
    if number >= FEW:
        return None, number
    return (number, number) if extent.as_sym is not None else (None, OPEN)


def _number(value: Expr, values: Mapping[Sym, int]) -> int:
    """`value`, with 0 for symbols without a number."""
    try:
        return value.evaluate({**dict.fromkeys(value.syms(), 0), **values})
    except ZeroDivisionError:
        return 0


def _trips(loop: ir.Loop) -> tuple[Sym, int | None]:
    return loop.sym, max(0, loop.extent.constant) if loop.extent.is_constant else None


_Inner = tuple[tuple[Sym, int | None], ...]


class _Builder(Mutable):
    """Collects streams. `lanes`: loops whose iterations are vector lanes: one access for all of them. `meaning`: indices of
    the text over those of `syms`, where these differ."""

    syms: tuple[Sym, ...]
    values: dict[Sym, int]
    local: frozenset[Buffer]
    shared: Mapping[Buffer, int]
    word: int
    meaning: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    simplify: Simplifier | None = None
    lanes: dict[Sym, int] = field(default_factory=dict[Sym, int])
    found: dict[Stream, int] = field(default_factory=dict[Stream, int])

    def visit(self, body: tuple[ir.Stmt, ...], inner: _Inner) -> None:
        for stmt in body:
            seen: set[tuple[Buffer, tuple[Expr, ...], str]] = set()
            for load, kind in _touched(stmt):
                key = (load.buffer, load.index, kind)
                if load.buffer not in self.local and load.buffer.rank and key not in seen:
                    seen.add(key)
                    stream = self.stream(load, kind, inner)
                    self.found[stream] = self.found.get(stream, 0) + 1
            if isinstance(stmt, ir.Par | ir.Seq):
                if mark(stmt, Vector):
                    self.lanes[stmt.sym] = stmt.extent.constant
                self.visit(stmt.body, (*inner, _trips(stmt)))
            else:
                for block in ir.blocks(stmt):
                    self.visit(block, inner)

    def merged(self) -> tuple[Stream, ...]:
        """Each stream once, with the number of its occurrences."""
        return tuple(replace(stream, times=times) for stream, times in self.found.items())

    def stream(self, load: Load, kind: str, inner: _Inner) -> Stream:
        """The stream of one access."""
        width = load.dtype.bytes
        far = self._far(load, width)
        address = self._flat(load) * width
        if self.simplify is not None:
            address = self.simplify(address.substitute(self.meaning))
        moving = (*self.syms, *(sym for sym, _ in inner))
        is_shared = load.buffer in self.shared
        if is_shared and not load.data:
            address = self._in_banks(address)
        linear = coefficients(address, moving)
        name, arithmetic = load.buffer.name, addressed(load.index, _strides(load.buffer))
        if linear is None or not all(c.is_constant for c in linear[0].values()):
            trips = tuple((0, extent) for _, extent in inner)
            return Stream(name, width, (0,) * len(self.syms), 0, trips, 1, address, is_shared, kind, arithmetic)
        steps, rest = linear
        moved = tuple(steps[s].constant + far.get(s, 0) for s in self.syms)
        wide = width * prod(self.lanes[s] for s, _ in inner if s in self.lanes and steps[s].constant == width)
        inner = tuple((s, e) for s, e in inner if s not in self.lanes or steps[s].constant not in (0, width))
        outer = tuple((steps[s].constant + far.get(s, 0), extent) for s, extent in inner)
        return Stream(name, wide, moved, _number(rest, self.values), outer, 1, None, is_shared, kind, arithmetic)

    def _in_banks(self, address: Expr) -> Expr:
        """An address in shared memory without terms that are whole words and the same for all lanes: these rotate the banks."""
        kept = ZERO + address.constant
        for monomial, coefficient in address.terms:
            part = term(monomial, coefficient)
            if coefficient % self.word or not part.syms().isdisjoint(self.syms):
                kept = kept + part
        return kept

    def _rows(self, buffer: Buffer) -> tuple[int, ...]:
        return _rows(buffer, self.values, self.shared.get(buffer, 0))

    def _far(self, load: Load, width: int) -> dict[Sym, int]:
        """The bytes added by each symbol on which a data-dependent index depends."""
        far: dict[Sym, int] = {}
        rows = self._rows(load.buffer)
        for at, index in enumerate(load.index):
            data = (meaning for sym, meaning in load.data if sym in index.syms())
            depends = {s for value in data for node in walk(value) if isinstance(node, Load) for s in used(node)}
            for number, sym in enumerate(sorted(depends, key=str)):
                far[sym] = far.get(sym, 0) + (FAR + 2 * number) * rows[at] * width
        return far

    def _flat(self, load: Load) -> Expr:
        data = {sym: ZERO for sym, _ in load.data}
        total = ZERO
        for index, row in zip(load.index, self._rows(load.buffer), strict=True):
            own = index.substitute(data)
            fixed = {s: self.values[s] for s in own.syms() if s in self.values and s not in self.syms}
            with suppress(ZeroDivisionError):
                total = total + own.substitute(fixed) * row
        return total


def _rows(buffer: Buffer, values: Mapping[Sym, int], row_padding: int) -> tuple[int, ...]:
    """The stride of each dimension, in elements."""
    if buffer.strides is not None:
        return tuple(_number(s, values) for s in buffer.strides)
    found: list[int] = []
    total = 1
    for extent in reversed(buffer.shape):
        found.append(total)
        total *= max(1, _number(extent, values) + row_padding)
        row_padding = 0
    return tuple(reversed(found))


def _strides(buffer: Buffer) -> tuple[Expr, ...]:
    """The factors of the indices as in a kernel: sizes, and products of them."""
    if buffer.strides is not None:
        return buffer.strides
    found: list[Expr] = []
    total = ONE
    for extent in reversed(buffer.shape):
        found.append(total)
        total = total * extent
    return tuple(found)


def _touched(stmt: ir.Stmt) -> Iterator[tuple[Load, str]]:
    """The elements that `stmt` itself reads, and those that it writes."""
    targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
    for load in loads(stmt):
        yield load, "store" if isinstance(stmt, ir.Bind) and stmt.update is None and any(load is t for t in targets) else "load"
    if isinstance(stmt, ir.Bind) and stmt.update is not None:
        for target in targets:
            yield target, "store"
